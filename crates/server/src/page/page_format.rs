//! Formats times, numbers and URLs for pages.

use std::fmt::Write as _;

use jiff::tz::TimeZone;
use maud::{Markup, html};
use throughline::format::{abbreviate, format_age};
use throughline::{Seq, SessionId, SessionInfo, Timestamp};

/// Percent-encodes text for a URL.
pub(super) fn percent_encode(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// URL path of a session.
pub(super) fn session_path(id: &SessionId) -> String {
    format!("/s/{}", percent_encode(id.as_str()))
}

/// URL path of an entry.
pub(super) fn entry_path(id: &SessionId, seq: Seq) -> String {
    format!("{}/e/{seq}#e{seq}", session_path(id))
}

/// Returns a path on this server, or the session list for anything else.
pub(super) fn local_path(path: Option<&str>) -> &str {
    let own = |path: &&str| {
        path.starts_with('/')
            && !path.starts_with("//")
            && !path.contains(['\\', '\n', '\r'])
            && path.is_ascii()
    };
    path.filter(own).unwrap_or("/")
}

/// The title of a session: its name, or the beginning of its first message.
pub(super) fn session_title(info: &SessionInfo) -> &str {
    match &info.name {
        Some(name) => name.as_str(),
        None if !info.preview.is_empty() => &info.preview,
        None => info.id.as_str(),
    }
}

/// The display name of what wrote a summary or a fact: a model's name is shown as it is.
pub(super) fn author_name(by: &str) -> &str {
    match by {
        "extractive" => "the extractive summarizer",
        "restored" => "the restored session",
        "person" => "a person",
        model => model,
    }
}

/// Formats a size in bytes.
pub(super) fn format_bytes(number: u64) -> String {
    match number {
        0..1_000 => format!("{number} B"),
        _ => format!("{}B", abbreviate(number)),
    }
}

/// Formats a timestamp in full.
pub(super) fn format_timestamp(at: Timestamp, zone: &TimeZone) -> String {
    let local = at.to_zoned(zone.clone());
    local.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Renders how long ago something happened, with the timestamp as a tooltip.
pub(super) fn relative_time(at: Timestamp, now: Timestamp, zone: &TimeZone) -> Markup {
    html! {
        time datetime=(at) title=(format_timestamp(at, zone)) { (format_age(at, now, zone)) }
    }
}

/// Same within a sentence: `3h ago`.
pub(super) fn relative_time_phrase(at: Timestamp, now: Timestamp, zone: &TimeZone) -> Markup {
    let age = format_age(at, now, zone);
    let age = match age.as_str() {
        "now" => "just now".to_owned(),
        day if day.contains('-') => format!("on {day}"),
        ago => format!("{ago} ago"),
    };
    html! {
        time datetime=(at) title=(format_timestamp(at, zone)) { (age) }
    }
}

/// Renders the time of day, with the date if it is not today.
pub(super) fn clock_time(at: Timestamp, now: Timestamp, zone: &TimeZone) -> Markup {
    let local = at.to_zoned(zone.clone());
    let today = local.date() == now.to_zoned(zone.clone()).date();
    let format = if today { "%H:%M" } else { "%b %-d, %H:%M" };
    html! {
        time datetime=(at) title=(format_timestamp(at, zone)) { (local.strftime(format)) }
    }
}

/// Returns the beginning of a text, on one line.
pub(super) fn truncate_line(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        None => line,
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_local_paths_are_redirected_to() {
        assert_eq!(local_path(Some("/s/a?x=1")), "/s/a?x=1");
        for away in [
            "//evil.example",
            "https://evil.example",
            "/\\evil",
            "",
            "/a\nb",
        ] {
            assert_eq!(local_path(Some(away)), "/", "{away}");
        }
        assert_eq!(local_path(None), "/");
    }

    #[test]
    fn an_id_is_percent_encoded_in_a_url() {
        assert_eq!(percent_encode("a/b?c#d é"), "a%2Fb%3Fc%23d%20%C3%A9");
    }
}
