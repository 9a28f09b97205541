//! Tests the error messages for invalid message lines.

use throughline_formats::parse_message;

fn error_message(line: &str) -> String {
    match parse_message(line) {
        Ok(read) => panic!("{line} was read as {read:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_is_wrong_is_said_precisely() {
    for (line, expected) in [
        ("nonsense", "not JSON: expected ident at column 2"),
        (
            r#"{"role":"user""#,
            "not JSON: EOF while parsing an object at column 14",
        ),
        ("[1]", "not a JSON object"),
        (r#"["user","hi"]"#, "not a JSON object"),
        ("7", "not a JSON object"),
        (
            r#"{"role":"user","role":"ai"}"#,
            "not a message: duplicate field `role`",
        ),
        (r#"{"content":"x"}"#, "there is no `role`"),
        (r#"{"role":7,"content":"x"}"#, "`role` is not a string"),
        (
            r#"{"role":"oracle","content":"x"}"#,
            r#""oracle" is not a role: use user, assistant, system or tool"#,
        ),
        (
            r#"{"role":"user"}"#,
            "there is neither `content` nor `tool_calls`",
        ),
        (
            r#"{"role":"user","content":null,"tool_calls":[]}"#,
            "there is neither `content` nor `tool_calls`",
        ),
        (
            r#"{"role":"user","content":7}"#,
            "`content` is not a string or an array of blocks",
        ),
        (
            r#"{"role":"user","content":["a",{"type":"text"}]}"#,
            "block 2 of `content` cannot be read: missing field `text`",
        ),
        (
            r#"{"role":"user","content":[["text"]]}"#,
            "block 1 of `content` cannot be read: not an object",
        ),
        (
            r#"{"role":"ai","tool_calls":[{"id":"c"}]}"#,
            "call 1 of `tool_calls` cannot be read: it has no name",
        ),
        (
            r#"{"role":"user","content":"x","at":"yesterday"}"#,
            r#"`at` is "yesterday", which is neither an RFC 3339 time nor a number of seconds"#,
        ),
        (
            r#"{"role":"user","content":"x","at":1e300}"#,
            "`at` is 1e300, which is neither an RFC 3339 time nor a number of seconds",
        ),
        (
            r#"{"role":"user","content":"x","id":[]}"#,
            "`id` is not a string or a number",
        ),
        (
            r#"{"role":"user","content":"x","usage":[1,2]}"#,
            "`usage` is not an object of token counts",
        ),
        (
            r#"{"role":"user","content":"x","latency_ms":-1}"#,
            "`latency_ms` is not a number of milliseconds",
        ),
    ] {
        assert_eq!(error_message(line), expected, "{line}");
    }
}
