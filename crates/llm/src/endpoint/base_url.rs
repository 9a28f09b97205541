//! Completes a base URL entered by a user.

use super::EndpointError;
use crate::ApiProtocol;

/// Returns the URL with a scheme, a path and a trailing slash.
///
/// Accepts `127.0.0.1:11434`, `http://localhost:8080` and `https://host/api/v1`. Without a
/// path, the protocol's default path is added.
pub(super) fn complete_url(text: &str, wire: ApiProtocol) -> Result<String, EndpointError> {
    let text = text.trim();
    let refused = || EndpointError::InvalidUrl(text.to_owned());
    let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let is_plain = !host.is_empty() && !host.contains(char::is_whitespace);
    if !matches!(scheme, "http" | "https") || !is_plain || path.contains(char::is_whitespace) {
        return Err(refused());
    }
    // A server that listens on all interfaces is reached on loopback.
    let host = match host.strip_prefix("0.0.0.0") {
        Some(port) => format!("127.0.0.1{port}"),
        None => host.to_owned(),
    };
    let is_ollama = !text.contains("://") && !host.contains(':');
    let port = if is_ollama { ":11434" } else { "" };
    let version = match wire {
        ApiProtocol::Anthropic | ApiProtocol::Chat | ApiProtocol::Responses => "v1",
        ApiProtocol::Gemini => "v1beta",
    };
    let path = path.trim_matches('/');
    // Anthropic base URLs omit the version, even behind a path prefix.
    let path = match (path, wire) {
        ("", _) => version.to_owned(),
        (path, ApiProtocol::Anthropic) if path.rsplit('/').next() != Some(version) => {
            format!("{path}/{version}")
        }
        (path, _) => path.to_owned(),
    };
    Ok(format!("{scheme}://{host}{port}/{path}/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_made_whole() {
        for (text, wire, whole) in [
            (
                "http://localhost:8080",
                ApiProtocol::Chat,
                "http://localhost:8080/v1/",
            ),
            ("http://h/v1", ApiProtocol::Chat, "http://h/v1/"),
            ("https://h/api/v1/", ApiProtocol::Chat, "https://h/api/v1/"),
            (
                "https://api.anthropic.com",
                ApiProtocol::Anthropic,
                "https://api.anthropic.com/v1/",
            ),
            (
                "https://h/anthropic",
                ApiProtocol::Anthropic,
                "https://h/anthropic/v1/",
            ),
            ("https://h/x/v1", ApiProtocol::Anthropic, "https://h/x/v1/"),
            (
                "127.0.0.1:11434",
                ApiProtocol::Chat,
                "http://127.0.0.1:11434/v1/",
            ),
            ("0.0.0.0", ApiProtocol::Chat, "http://127.0.0.1:11434/v1/"),
            (
                "0.0.0.0:9999",
                ApiProtocol::Chat,
                "http://127.0.0.1:9999/v1/",
            ),
        ] {
            assert_eq!(complete_url(text, wire).as_deref(), Ok(whole), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in ["", "ftp://h/", "http://", "two words", "http://h/a b"] {
            assert!(complete_url(text, ApiProtocol::Chat).is_err(), "{text}");
        }
    }
}
