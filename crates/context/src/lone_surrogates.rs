//! Replaces lone surrogates in JSON text.
//!
//! Other systems write half a surrogate pair, such as `\ud83d` without its second half.
//! The log preserves it byte for byte, but no provider accepts it.

use throughline_model::Json;

/// Returns the JSON with lone surrogates replaced, if it has any.
pub(crate) fn replace_lone_surrogates(json: &Json) -> Option<Json> {
    let text = json.as_str();
    if !text.contains("\\u") {
        return None;
    }
    let mut mended = String::with_capacity(text.len());
    let mut changed = false;
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        mended.push_str(&rest[..at]);
        rest = &rest[at..];
        let taken = match (
            parse_unicode_escape(rest),
            rest.get(6..).and_then(parse_unicode_escape),
        ) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                mended.push_str("\\ufffd");
                changed = true;
                rest = &rest[6..];
                continue;
            }
            // Any other escape: skip the escaped character.
            _ => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        mended.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    mended.push_str(rest);
    if changed {
        Json::parse(mended).ok()
    } else {
        None
    }
}

/// Parses the `\u` escape at the start of a text into a code unit.
fn parse_unicode_escape(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(text: &str) -> Option<String> {
        replace_lone_surrogates(&Json::parse(text).unwrap()).map(|json| json.as_str().to_owned())
    }

    #[test]
    fn only_lone_halves_are_replaced() {
        assert_eq!(replaced(r#""\ud83d\ude00 é \n \u00e9""#), None);
        assert_eq!(replaced(r#""\\ud83d is text""#), None);
        assert_eq!(
            replaced(r#"["\ud83d", "x\udc00y"]"#).unwrap(),
            r#"["\ufffd", "x\ufffdy"]"#
        );
        assert_eq!(
            replaced(r#""\ud83d\ud83d\ude00""#).unwrap(),
            r#""\ufffd\ud83d\ude00""#
        );
    }
}
