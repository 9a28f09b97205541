//! Makes untrusted text safe for a terminal.
//!
//! Invariant: the result contains no control character except newline and tab, and no
//! bidirectional override.

use std::borrow::Cow;

/// Replaces every character that could control a terminal with a visible one.
///
/// C0 controls become their pictures (`␛` for escape); C1 controls, delete and
/// the bidirectional overrides become `U+FFFD`. Newline and tab are unchanged.
pub(crate) fn sanitize(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find(|c| replacement_for(c).is_some()) else {
        return Cow::Borrowed(text);
    };
    let (clean, rest) = text.split_at(first);
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(clean);
    out.extend(rest.chars().map(|c| replacement_for(c).unwrap_or(c)));
    Cow::Owned(out)
}

/// Returns the replacement for a character that must not be printed.
fn replacement_for(c: char) -> Option<char> {
    match c {
        '\n' | '\t' => None,
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)),
        '\x7f'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => Some('\u{fffd}'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmless_text_is_borrowed() {
        assert!(matches!(
            sanitize("naïve\n\t日本"),
            Cow::Borrowed("naïve\n\t日本")
        ));
    }

    #[test]
    fn controls_become_visible() {
        assert_eq!(sanitize("\x1b[2J\0\r\x07"), "␛[2J␀␍␇");
        assert_eq!(sanitize("a\x7fb\u{9b}c"), "a\u{fffd}b\u{fffd}c");
        assert_eq!(sanitize("\u{202e}evil\u{2066}"), "\u{fffd}evil\u{fffd}");
    }
}
