//! Limits the nesting depth of JSON, without parsing it.

use crate::{Block, Body, Content};

/// The maximum nesting of a JSON value from outside.
pub const MAX_JSON_DEPTH: usize = 256;

/// The maximum nesting of a whole payload: a value from outside within the members and
/// blocks of an entry.
pub const MAX_PAYLOAD_DEPTH: usize = MAX_JSON_DEPTH + 16;

impl Body {
    /// Whether it contains JSON from outside that is nested too deeply.
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
    /// Whether it contains JSON from outside that is nested too deeply.
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

/// Whether arrays and objects are nested more than `levels` deep.
///
/// Recursive parsers have their own limit, but text that is passed on unparsed has
/// none. This scans the text once. The result is unspecified for text that is not JSON,
/// which the parser rejects anyway.
pub fn is_nested_deeper_than(json: &[u8], levels: usize) -> bool {
    // Each level needs an opening bracket, so a short text cannot be too deep.
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

/// Returns what follows a string whose opening quote has been read.
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
