//! The URL of a server, with the rules about where a token may be sent.

use std::fmt;
use std::str::FromStr;

use reqwest::Url;
use throughline_model::is_loopback_host;
use throughline_store::StoreError;

/// The URL of a server: `https://HOST`, optionally with a path.
///
/// `http` is allowed for this machine only: elsewhere a token would be sent unencrypted.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerUrl(Url);

impl ServerUrl {
    /// Whether it is on this machine, and is therefore reached without a proxy.
    pub(crate) fn is_local(&self) -> bool {
        self.0.host_str().is_some_and(is_loopback_host)
    }

    /// Returns the URL of a path on the server.
    pub(crate) fn join_path(&self, path: &str) -> Url {
        let mut url = self.0.clone();
        url.set_path(&format!("{}{path}", self.0.path().trim_end_matches('/')));
        url
    }
}

impl FromStr for ServerUrl {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let wrong = |why: &str| StoreError::InvalidUrl {
            url: redact_user(text),
            why: why.to_owned(),
        };
        // The URL parser would accept `https:example.org` and `https:///example.org`.
        let authority = text.split_once("://").map(|(_, rest)| rest);
        if !authority.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', '\\'])) {
            return Err(wrong("use https://HOST"));
        }
        let url = Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
        let server = Self(url);
        let url = &server.0;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong(
                "the address must not contain a token; use `tl login`",
            ));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("remove everything after the path"));
        }
        let is_written_in = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
        let host = url.host_str().unwrap_or_default();
        if !host.bytes().all(is_written_in) {
            return Err(wrong("the host name is invalid"));
        }
        match url.scheme() {
            "https" => Ok(server),
            "http" if server.is_local() => Ok(server),
            "http" => Err(wrong(
                "messages and the token would be sent unencrypted; use https://, or a tunnel \
                 that ends on this machine",
            )),
            _ => Err(wrong("the address of a server begins with https://")),
        }
    }
}

/// Removes the user part of an address, which may be a secret.
fn redact_user(text: &str) -> String {
    match text.split_once("://") {
        Some((scheme, rest)) => {
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            let (authority, path) = rest.split_at(end);
            let host = authority
                .rsplit_once('@')
                .map_or(authority, |(_, host)| host);
            format!("{scheme}://{host}{path}")
        }
        None => text.to_owned(),
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_url(text: &str) -> Result<ServerUrl, StoreError> {
        text.parse()
    }

    #[test]
    fn addresses_are_read_and_written_alike() {
        for (text, shown) in [
            ("https://tl.example.org", "https://tl.example.org"),
            ("https://TL.example.org:443/", "https://tl.example.org"),
            ("https://example.org/tl/", "https://example.org/tl"),
            ("http://127.0.0.1:7878", "http://127.0.0.1:7878"),
            ("http://localhost:7878/", "http://localhost:7878"),
            ("http://[::1]:7878", "http://[::1]:7878"),
        ] {
            let server = parse_url(text).unwrap();
            assert_eq!(server.to_string(), shown);
            assert_eq!(
                server.join_path("/store").as_str(),
                format!("{shown}/store")
            );
        }
    }

    #[test]
    fn a_token_does_not_travel_in_the_clear() {
        for text in [
            "http://tl.example.org",
            "http://10.0.0.1:7878",
            "http://localhost.example.org",
        ] {
            let error = parse_url(text).unwrap_err().to_string();
            assert!(error.contains("unencrypted"), "{error}");
        }
    }

    #[test]
    fn an_invalid_server_address_is_explained_without_secrets() {
        for text in [
            "https://tl_secret@example.org",
            "https://me:tl_secret@example.org/x",
            "https://tl_secret@",
            "https://",
            "https:example.org",
            "https:/example.org",
            "https:///example.org",
            "https://{host}",
            "https://exa`mple.org",
            "https://example.org:port",
            "https://example.org/?token=x",
            "https://example.org/#x",
            "ftp://example.org",
        ] {
            let error = parse_url(text).unwrap_err().to_string();
            assert!(error.contains("is not a valid store address"), "{error}");
            assert!(!error.contains("tl_secret"), "{error}");
        }
    }
}
