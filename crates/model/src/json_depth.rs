//! How deeply JSON is nested, without parsing it.

use crate::{Block, Body, Content};

/// How deeply JSON from outside may be nested.
pub const MAX_JSON_DEPTH: usize = 256;

/// How deeply a whole payload may be nested: a value from outside, within the members and
/// blocks of an entry.
pub const MAX_PAYLOAD_DEPTH: usize = MAX_JSON_DEPTH + 16;

impl Body {
    /// Whether it has JSON from outside that is nested too deeply to be accepted.
    pub fn is_too_deep(&self) -> bool {
        match self {
            Self::Message(message) => message.content.is_too_deep(),
            Self::ContextSet { content, .. } => content
                .as_ref()
                .is_some_and(|json| exceeds_max_depth(json.as_str())),
            Self::Foreign { data, .. } => exceeds_max_depth(data.as_str()),
            Self::Unknown { payload, .. } => exceeds_max_depth(payload.as_str()),
            _ => false,
        }
    }
}

impl Content {
    /// Whether it has JSON from outside that is nested too deeply to be accepted.
    pub fn is_too_deep(&self) -> bool {
        self.0.iter().any(|block| match block {
            Block::ToolCall(call) => exceeds_max_depth(call.input.as_str()),
            Block::Foreign(json) => exceeds_max_depth(json.as_str()),
            Block::ToolResult(result) => result.content.is_too_deep(),
            _ => false,
        })
    }
}

fn exceeds_max_depth(json: &str) -> bool {
    is_nested_deeper_than(json.as_bytes(), MAX_JSON_DEPTH)
}

/// Whether arrays and objects within each other are more levels deep than this.
///
/// Parsers that recurse have a limit of their own, and texts that are passed on unparsed
/// have none: this looks at the text once, whatever it will be parsed as. Of text that is
/// not JSON it says something, and the parser will refuse it anyway.
pub fn is_nested_deeper_than(json: &[u8], levels: usize) -> bool {
    // Each level has a bracket that opens it; most texts are too short to be so deep.
    if json.len() <= levels {
        return false;
    }
    let mut depth = 0_usize;
    let mut rest = json;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'"' => rest = skip_string(after),
            b'[' | b'{' => {
                depth += 1;
                if depth > levels {
                    return true;
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// What comes after a string, of which the quote that opens it is read.
fn skip_string(mut json: &[u8]) -> &[u8] {
    while let Some(at) = memchr::memchr2(b'"', b'\\', json) {
        let escaped = usize::from(json[at] == b'\\');
        json = json.get(at + 1 + escaped..).unwrap_or_default();
        if escaped == 0 {
            return json;
        }
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::is_nested_deeper_than;

    #[test]
    fn only_brackets_outside_of_strings_count() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(!is_nested_deeper_than(nested(256).as_bytes(), 256));
        assert!(is_nested_deeper_than(nested(257).as_bytes(), 256));
        assert!(is_nested_deeper_than(r#"{"a":[{"b":[1]}]}"#.as_bytes(), 3));
        assert!(!is_nested_deeper_than(
            br#"["[[[", "\"[[[", {"{{{": 1}]"#,
            2
        ));
        assert!(!is_nested_deeper_than(b"[[],[],[],[]]", 2));
    }
}
