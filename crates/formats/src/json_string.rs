//! Decodes JSON strings.
//!
//! Most of a history is strings whose escapes are line breaks and quotes, so these are
//! decoded in one pass into a buffer of sufficient size.

use std::borrow::Cow;

use memchr::memchr;
use serde_json::value::RawValue;

/// Returns the string, if the value is one; borrowed if it contains no escapes.
pub(crate) fn parse_string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let quoted = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    let mut rest = quoted;
    let mut text = String::new();
    while let Some(at) = memchr(b'\\', rest.as_bytes()) {
        if text.capacity() == 0 {
            // The decoded text is never longer than the encoded one.
            text.reserve_exact(quoted.len());
        }
        text.push_str(&rest[..at]);
        let (plain, length) = match rest.as_bytes().get(at + 1)? {
            b'n' => ('\n', 2),
            b't' => ('\t', 2),
            b'r' => ('\r', 2),
            b'b' => ('\u{8}', 2),
            b'f' => ('\u{c}', 2),
            b'u' => match decode_code_unit(rest.get(at + 2..at + 6)?) {
                Some(plain) => (plain, 6),
                // A surrogate: let serde_json handle it.
                None => return serde_json::from_str(raw.get()).ok().map(Cow::Owned),
            },
            escaped => (char::from(*escaped), 2),
        };
        text.push(plain);
        rest = &rest[at + length..];
    }
    if rest.len() == quoted.len() {
        return Some(Cow::Borrowed(quoted));
    }
    text.push_str(rest);
    Some(Cow::Owned(text))
}

/// Decodes four hex digits, unless they are a surrogate.
fn decode_code_unit(digits: &str) -> Option<char> {
    u32::from_str_radix(digits, 16)
        .ok()
        .and_then(char::from_u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(json: &str) -> Option<String> {
        let raw: &RawValue = serde_json::from_str(json).unwrap();
        parse_string(raw).map(Cow::into_owned)
    }

    #[test]
    fn what_is_no_text_is_none() {
        for json in ["1", "null", "[\"a\"]", "{\"a\":\"b\"}"] {
            assert_eq!(parse(json), None, "{json}");
        }
    }

    #[test]
    fn a_text_without_escapes_is_not_copied() {
        let raw: &RawValue = serde_json::from_str("\"größer\"").unwrap();
        assert!(matches!(parse_string(raw), Some(Cow::Borrowed("größer"))));
    }

    #[test]
    fn half_a_character_alone_is_no_text() {
        assert_eq!(parse(r#""a\ud800b""#), None);
        assert_eq!(parse(r#""a\ud83d\ude00b""#).as_deref(), Some("a😀b"));
    }

    proptest! {
        #[test]
        fn any_text_is_what_serde_json_says(
            parts in prop::collection::vec(
                prop_oneof![
                    Just(r"\n".to_owned()), Just(r"\t".to_owned()), Just(r"\r".to_owned()),
                    Just(r"\b".to_owned()), Just(r"\f".to_owned()), Just(r"\/".to_owned()),
                    Just(r"\\".to_owned()), Just(r#"\""#.to_owned()),
                    Just(r"\u001b".to_owned()), Just(r"\u00E9".to_owned()),
                    Just(r"\uD83D\uDE00".to_owned()), Just(r"\udc00".to_owned()),
                    "[^\"\\\\\\p{Cc}]{0,8}",
                ],
                0..12,
            )
        ) {
            let json = format!("\"{}\"", parts.concat());
            let theirs: Option<String> = serde_json::from_str(&json).ok();
            prop_assert_eq!(parse(&json), theirs);
        }
    }
}
