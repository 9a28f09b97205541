//! Tests of `message_parser`: JSON messages of this and other systems.

use throughline_model::{Json, ToolCall, Usage};

use super::*;

fn parse(line: &str) -> MessageLine {
    parse_message(line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn parse_content(json: &str) -> Vec<Block> {
    parse(&format!(r#"{{"role":"user","content":{json}}}"#))
        .message
        .content
        .0
}

fn parse_time(json: &str) -> String {
    let line = parse(&format!(r#"{{"role":"user","content":"x","at":{json}}}"#));
    line.at.unwrap().to_string()
}

fn tool_call(id: &str, name: &str, input: &str) -> Block {
    Block::ToolCall(ToolCall {
        id: id.into(),
        name: name.into(),
        input: Json::parse(input).unwrap(),
    })
}

#[test]
fn every_member_is_read() {
    let line = parse(
        r#"{"session":"s1","role":"assistant","content":"hello","at":"2026-11-15T10:00:00.1234567+01:00","id":"m1","author":"ada","name":"Auth","project":"git:x","model":"m","provider":"p","usage":{"input":3,"output":4},"latency_ms":12,"incomplete":true,"other":[[1]]}"#,
    );
    let mut message = Message::text(Role::Assistant, "hello");
    message.model = Some("m".into());
    message.provider = Some("p".into());
    message.usage = Some(Usage {
        input: 3,
        output: 4,
        ..Usage::default()
    });
    message.latency_ms = Some(12);
    message.incomplete = true;
    assert_eq!(
        line,
        MessageLine {
            session: Some("s1".into()),
            name: Some("Auth".into()),
            project: Some("git:x".into()),
            external_id: Some("m1".into()),
            author: Some("ada".into()),
            at: Some("2026-11-15T09:00:00.123456Z".parse().unwrap()),
            message,
            repaired: false,
        }
    );
}

#[test]
fn roles_of_other_systems_are_understood() {
    for (theirs, ours) in [
        ("human", Role::User),
        ("Human", Role::User),
        ("ai", Role::Assistant),
        ("model", Role::Assistant),
        ("developer", Role::System),
        ("function", Role::Tool),
    ] {
        let line = parse(&format!(r#"{{"role":"{theirs}","content":"x"}}"#));
        assert_eq!(line.message.role, ours);
    }
}

#[test]
fn a_number_is_as_good_an_id_as_a_text() {
    let line = parse(r#"{"session":-100123,"id":7,"role":"user","content":"x"}"#);
    assert_eq!(line.external_id.as_deref(), Some("7"));
    assert_eq!(line.session.as_deref(), Some("-100123"));
    let line = parse(r#"{"id":"","role":"user","content":"x"}"#);
    assert_eq!(line.external_id, None);
}

#[test]
fn a_time_may_be_a_number() {
    assert_eq!(parse_time("1700000000"), "2023-11-14T22:13:20Z");
    assert_eq!(
        parse_time("1700000000.123456"),
        "2023-11-14T22:13:20.123456Z"
    );
    assert_eq!(parse_time("1700000000123"), "2023-11-14T22:13:20.123Z");
    assert_eq!(parse_time("1700000000123.5"), "2023-11-14T22:13:20.1235Z");
    assert_eq!(parse_time("-1"), "1969-12-31T23:59:59Z");
    assert_eq!(parse_time("1.7e9"), "2023-11-14T22:13:20Z");
    assert_eq!(parse_time("0"), "1970-01-01T00:00:00Z");
}

#[test]
fn blocks_of_ours_and_of_others_become_blocks() {
    let result = |content| {
        Block::ToolResult(ToolResult {
            call_id: "c".into(),
            content,
            is_error: true,
        })
    };
    assert_eq!(
        parse_content(
            r#"["bare",{"type":"text","text":"a"},{"type":"input_text","text":"b"},{"type":"output_text","text":"c","annotations":[]}]"#
        ),
        ["bare", "a", "b", "c"].map(|text| Block::Text(text.into()))
    );
    let thought = Block::Thinking {
        text: "hm".into(),
        signature: Some("s".into()),
    };
    assert_eq!(
        parse_content(
            r#"[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"thinking","text":"hm","signature":"s"}]"#
        ),
        [thought.clone(), thought]
    );
    assert_eq!(
        parse_content(
            r#"[{"type":"tool_use","id":"c","name":"n","input":{"b": 1.0}},{"type":"tool_call","id":"c","name":"n","input":7},{"type":"tool_use","id":"c","name":"n"}]"#
        ),
        [
            tool_call("c", "n", r#"{"b": 1.0}"#),
            tool_call("c", "n", "7"),
            tool_call("c", "n", "{}")
        ]
    );
    assert_eq!(
        parse_content(
            r#"[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"x"}],"is_error":true},{"type":"tool_result","call_id":"c","is_error":true}]"#
        ),
        [result(Content::text("x")), result(Content::default())]
    );
}

#[test]
fn an_unknown_block_is_kept_to_the_byte() {
    let image = r#"{"source": {"n":1e400},"type":"image"}"#;
    assert_eq!(
        parse_content(&format!("[{image}]")),
        [Block::Foreign(Json::parse(image).unwrap())]
    );
}

#[test]
fn calls_in_the_manner_of_chat_completions_become_blocks() {
    let line = parse(
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"path\": \"a\"}"}},{"id":"c2","function":{"name":"now","arguments":""}},{"id":"c3","function":{"name":"say","arguments":"plain"}},{"name":"flat","args":{"a":1}}]}"#,
    );
    assert_eq!(
        line.message.content.0,
        [
            tool_call("c1", "read", r#"{"path": "a"}"#),
            tool_call("c2", "now", "{}"),
            tool_call("c3", "say", r#""plain""#),
            tool_call("", "flat", r#"{"a":1}"#),
        ]
    );
    let line = parse(
        r#"{"role":"assistant","content":"so","tool_calls":[{"id":"c","function":{"name":"n"}}]}"#,
    );
    assert_eq!(
        line.message.content.0,
        [Block::Text("so".into()), tool_call("c", "n", "{}")]
    );
}

#[test]
fn the_answer_of_a_tool_becomes_a_result() {
    let line = parse(r#"{"role":"tool","tool_call_id":"c1","content":"out"}"#);
    assert_eq!(
        line.message.content.0,
        [Block::ToolResult(ToolResult {
            call_id: "c1".into(),
            content: Content::text("out"),
            is_error: false,
        })]
    );
    let already = parse(
        r#"{"role":"tool","tool_call_id":"c1","content":[{"type":"tool_result","call_id":"c1","content":"out"}]}"#,
    );
    assert_eq!(already.message.content, line.message.content);
}

#[test]
fn tokens_are_counted_alike_whoever_counted_them() {
    let usage = |json: &str| {
        parse(&format!(r#"{{"role":"ai","content":"x","usage":{json}}}"#))
            .message
            .usage
    };
    let figures = |input, output, cache_read, cache_write| {
        Some(Usage {
            input,
            output,
            cache_read,
            cache_write,
        })
    };
    assert_eq!(
        usage(r#"{"input":10,"output":2,"cache_read":4}"#),
        figures(10, 2, 4, 0)
    );
    assert_eq!(
        usage(
            r#"{"input_tokens":10,"output_tokens":2,"cache_read_input_tokens":4,"cache_creation_input_tokens":1}"#
        ),
        figures(15, 2, 4, 1)
    );
    assert_eq!(
        usage(
            r#"{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12,"prompt_tokens_details":{"cached_tokens":3}}"#
        ),
        figures(10, 2, 3, 0)
    );
    assert_eq!(
        usage(r#"{"prompt_tokens":10,"input_tokens":10,"output_tokens":2,"completion_tokens":2}"#),
        figures(10, 2, 0, 0)
    );
    assert_eq!(usage(r#"{"total_tokens":12}"#), None);
    assert_eq!(usage("null"), None);
}

#[test]
fn half_characters_are_mended_and_nul_is_kept() {
    let line = parse(r#"{"role":"user","content":"a\ud800b\u0000"}"#);
    assert_eq!(line.message.content.to_text(), "a\u{fffd}b\0");
    assert!(line.repaired);

    let line = parse(
        r#"{"role":"ai","tool_calls":[{"id":"c","function":{"name":"n","arguments":"{\"a\":\"\\ud800\"}"}}]}"#,
    );
    assert_eq!(
        line.message.content.0,
        [tool_call("c", "n", r#"{"a":"\ufffd"}"#)]
    );
    assert!(line.repaired);

    let line = parse(r#"{"role":"user","content":"\ud83d\ude00 \u0000"}"#);
    assert_eq!(line.message.content.to_text(), "😀 \0");
    assert!(!line.repaired);
}

#[test]
fn what_is_nested_too_deeply_is_refused() {
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    let deep = nested(250);
    let blocks = parse_content(&format!(
        r#"[{{"type":"tool_use","id":"c","name":"n","input":{deep}}},{{"type":"odd","x":{deep}}}]"#
    ));
    assert_eq!(blocks[0], tool_call("c", "n", &deep));

    let results = r#"[{"type":"tool_result","call_id":"c","content":"#.repeat(20_000);
    for deep in [
        nested(257),
        nested(100_000),
        results + "[]" + &"}]".repeat(20_000),
    ] {
        for line in [
            format!(r#"{{"role":"user","content":{deep}}}"#),
            format!(r#"{{"role":"user","content":"x","other":{deep}}}"#),
            format!(
                r#"{{"role":"user","content":[{{"type":"tool_use","id":"c","name":"n","input":{deep}}}]}}"#
            ),
        ] {
            assert_eq!(parse_message(&line), Err(LineError::TooDeep));
        }
    }
    // JSON within a string stays a string.
    let deep = nested(300);
    let line = parse(&format!(
        r#"{{"role":"assistant","tool_calls":[{{"id":"c","name":"n","arguments":"{deep}"}}]}}"#
    ));
    assert_eq!(
        line.message.content.0,
        [tool_call("c", "n", &format!("\"{deep}\""))]
    );
}
