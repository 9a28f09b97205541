//! Times, numbers and addresses, as people and browsers read them.

use std::fmt::Write as _;

use jiff::tz::TimeZone;
use maud::{Markup, html};
use throughline::format::{abbreviate, format_age};
use throughline::{Seq, SessionId, SessionInfo, Timestamp};

/// A text as part of an address.
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

/// Where a session is.
pub(super) fn session_path(id: &SessionId) -> String {
    format!("/s/{}", percent_encode(id.as_str()))
}

/// Where an entry is.
pub(super) fn entry_path(id: &SessionId, seq: Seq) -> String {
    format!("{}/e/{seq}#e{seq}", session_path(id))
}

/// A path of this server's, or the list where it is none.
pub(super) fn local_path(path: Option<&str>) -> &str {
    let own = |path: &&str| {
        path.starts_with('/')
            && !path.starts_with("//")
            && !path.contains(['\\', '\n', '\r'])
            && path.is_ascii()
    };
    path.filter(own).unwrap_or("/")
}

/// What people call a session: its name, or what was first said in it.
pub(super) fn session_title(card: &SessionInfo) -> &str {
    match &card.name {
        Some(name) => name.as_str(),
        None if !card.preview.is_empty() => &card.preview,
        None => card.id.as_str(),
    }
}

/// Bytes at a glance.
pub(super) fn format_bytes(number: u64) -> String {
    match number {
        0..1_000 => format!("{number} B"),
        _ => format!("{}B", abbreviate(number)),
    }
}

/// A moment, in full.
pub(super) fn format_timestamp(at: Timestamp, zone: &TimeZone) -> String {
    let local = at.to_zoned(zone.clone());
    local.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// How long ago something was, with the moment itself beneath.
pub(super) fn relative_time(at: Timestamp, now: Timestamp, zone: &TimeZone) -> Markup {
    html! {
        time datetime=(at) title=(format_timestamp(at, zone)) { (format_age(at, now, zone)) }
    }
}

/// The same within a sentence: `3h ago`.
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

/// The time of day, and the day where it is another.
pub(super) fn clock_time(at: Timestamp, now: Timestamp, zone: &TimeZone) -> Markup {
    let local = at.to_zoned(zone.clone());
    let today = local.date() == now.to_zoned(zone.clone()).date();
    let format = if today { "%H:%M" } else { "%b %-d, %H:%M" };
    html! {
        time datetime=(at) title=(format_timestamp(at, zone)) { (local.strftime(format)) }
    }
}

/// The beginning of a text, on one line.
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
    fn only_paths_of_this_server_are_led_back_to() {
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
    fn whatever_an_id_holds_stays_in_its_place_of_an_address() {
        assert_eq!(percent_encode("a/b?c#d é"), "a%2Fb%3Fc%23d%20%C3%A9");
    }
}
