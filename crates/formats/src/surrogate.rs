//! Replaces lone surrogates in JSON text.
//!
//! Programs that use UTF-16 sometimes cut a string inside a surrogate pair and write the
//! remaining half as an escape. It cannot be represented in UTF-8, so strict parsers reject
//! the whole line, and some providers the whole request.
//!
//! Invariant: only lone surrogates change, each into `\ufffd`; the length stays the same.

use memchr::memmem;

/// Replaces every lone surrogate escape; returns `None` if there are none.
pub(crate) fn replace_lone_surrogates(json: &str) -> Option<String> {
    let bytes = json.as_bytes();
    let mut escapes = memmem::find_iter(bytes, b"\\u");
    if !escapes.any(|at| matches!(bytes.get(at + 2), Some(b'd' | b'D'))) {
        return None;
    }
    let mut mended = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(offset) = json.get(at..).and_then(|rest| rest.find('\\')) {
        at += offset;
        at += match (
            parse_unicode_escape(bytes, at),
            parse_unicode_escape(bytes, at + 6),
        ) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                mended.push_str(&json[copied..at]);
                mended.push_str("\\ufffd");
                copied = at + 6;
                6
            }
            (Some(_), _) => 6,
            // Skip the escaped character, which may itself be a backslash.
            (None, _) => 1 + json[at + 1..].chars().next().map_or(0, char::len_utf8),
        };
    }
    if copied == 0 {
        return None;
    }
    mended.push_str(&json[copied..]);
    Some(mended)
}

/// Returns the code unit of the `\uXXXX` escape at `at`, if there is one.
fn parse_unicode_escape(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |unit, digit| {
        Some(unit * 16 + char::from(*digit).to_digit(16)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lone_halves_are_replaced() {
        for (broken, mended) in [
            (r"\ud800", r"\ufffd"),
            (r"\uDC00x", r"\ufffdx"),
            (r"a\ud83d\ud83d\ude00b", r"a\ufffd\ud83d\ude00b"),
            (r"\\\ud800", r"\\\ufffd"),
            (r"\ud800é\udfff", r"\ufffdé\ufffd"),
        ] {
            assert_eq!(replace_lone_surrogates(broken).as_deref(), Some(mended));
        }
    }

    #[test]
    fn whole_text_is_left_alone() {
        for whole in [
            "",
            r"\ud83d\ude00",
            r"\\ud800",
            r"\u0000",
            r"\uD7FF\uE000",
            r"\ud8",
            r"\ud8zz",
            "\\",
            "\\é\\ud",
        ] {
            assert_eq!(replace_lone_surrogates(whole), None, "{whole}");
        }
    }
}
