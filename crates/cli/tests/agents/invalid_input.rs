//! Tests every tool, resource and prompt of `tl mcp` with invalid input: each is refused
//! with a message that names the problem, and the server keeps running.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::Home;

/// An MCP server process, driven line by line.
struct McpClient {
    server: Child,
    to: ChildStdin,
    from: Lines<BufReader<ChildStdout>>,
    last_id: u64,
}

impl McpClient {
    fn start(home: &Home) -> Self {
        let mut tl = Command::new(env!("CARGO_BIN_EXE_tl"));
        let mut server = home
            .configure(tl.arg("mcp"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let to = server.stdin.take().unwrap();
        let from = BufReader::new(server.stdout.take().unwrap()).lines();
        let mut talking = Self {
            server,
            to,
            from,
            last_id: 0,
        };
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"}});
        talking.request("initialize", &hello);
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        writeln!(talking.to, "{ready}").unwrap();
        talking
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(self.to, "{request}").unwrap();
        loop {
            let line = self.from.next().unwrap().unwrap();
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == id {
                return answer;
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.request("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    fn close(mut self) {
        drop(self.to);
        assert!(self.server.wait().unwrap().success());
    }
}

/// Returns the reason for a refusal, whether by the protocol or by the tool.
fn refusal_message(answer: &Value) -> String {
    if let Some(message) = answer["error"]["message"].as_str() {
        return message.to_owned();
    }
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let text = answer["result"]["content"][0]["text"].as_str();
    text.unwrap().to_owned()
}

#[test]
fn every_tool_refuses_what_makes_no_sense_and_says_why() {
    let home = Home::new();
    let mut talking = McpClient::start(&home);
    let said = json!([{"role": "user", "text": "Hello"}]);
    let made = talking.call("append_messages", &json!({"key": "k", "messages": said}));
    assert_eq!(made["result"]["structuredContent"]["head"], 1, "{made}");
    let mut unclear = Vec::new();
    for (tool, arguments, why) in [
        ("list_sessions", json!({"limit": 0}), "from 1 to"),
        ("list_sessions", json!({"limit": 1_000_000}), "from 1 to"),
        ("list_sessions", json!({"limit": "many"}), "many"),
        ("list_sessions", json!({"cursor": "?"}), "cursor"),
        ("list_sessions", json!({"project": "nowhere"}), "nowhere"),
        ("list_sessions", json!({"colour": "red"}), "colour"),
        ("search_sessions", json!({}), "query"),
        (
            "search_sessions",
            json!({"query": "x", "limit": 51}),
            "from 1 to 50",
        ),
        ("search_sessions", json!({"query": 7}), "string"),
        ("read_session", json!({}), "session"),
        ("read_session", json!({"session": ""}), "session is empty"),
        (
            "read_session",
            json!({"session": "nowhere"}),
            "list_sessions",
        ),
        (
            "read_session",
            json!({"session": "../../etc/passwd"}),
            "named by its id",
        ),
        (
            "read_session",
            json!({"session": "k", "longest": 0}),
            "longest",
        ),
        (
            "read_session",
            json!({"session": "k", "from": 1, "before": 2}),
            "not both",
        ),
        ("read_session", json!({"session": "k", "from": -1}), "-1"),
        ("build_context", json!({"session": "k"}), "task"),
        ("build_context", json!({"task": "x", "budget": 1}), "budget"),
        (
            "build_context",
            json!({"task": "x", "session": "nowhere"}),
            "list_sessions",
        ),
        (
            "append_messages",
            json!({"key": "k", "messages": []}),
            "messages is empty",
        ),
        (
            "append_messages",
            json!({"messages": said}),
            "session or key",
        ),
        (
            "append_messages",
            json!({"key": "k", "session": "k", "messages": said}),
            "not both",
        ),
        (
            "append_messages",
            json!({"key": "a\nb", "messages": said}),
            "key",
        ),
        (
            "append_messages",
            json!({"key": "k", "messages": [{"role": "nobody", "text": "x"}]}),
            "nobody",
        ),
        (
            "append_messages",
            json!({"key": "k", "messages": said, "head": 7}),
            "no entry 7",
        ),
        ("save_checkpoint", json!({"session": "k"}), "is empty"),
        (
            "save_checkpoint",
            json!({"session": "nowhere", "background": "x"}),
            "list_sessions",
        ),
        (
            "save_checkpoint",
            json!({"session": "k", "background": "x", "head": 7}),
            "no entry 7",
        ),
        ("remember", json!({}), "fact"),
        ("remember", json!({"fact": "  "}), "fact is empty"),
        ("remember", json!({"fact": "x", "scope": "world"}), "world"),
        (
            "remember",
            json!({"fact": "x", "scope": "owner", "project": "p"}),
            "give one of them",
        ),
        ("recall", json!({"limit": 0}), "from 1 to"),
        ("recall", json!({"project": "nowhere"}), "nowhere"),
        ("forget", json!({}), "fact"),
        ("forget", json!({"fact": 999}), "999"),
        ("conjure", json!({}), "tool not found"),
    ] {
        let refused = refusal_message(&talking.call(tool, &arguments));
        if !refused.contains(why) {
            unclear.push(format!("{tool} {arguments}: {refused}"));
        }
    }
    assert!(unclear.is_empty(), "{unclear:#?}");
    // None of it was stored.
    let read = talking.call("read_session", &json!({"session": "k"}));
    let entries = &read["result"]["structuredContent"]["entries"];
    assert_eq!(entries.as_array().unwrap().len(), 1, "{read}");
    let recalled = talking.call("recall", &json!({}));
    assert_eq!(recalled["result"]["structuredContent"]["facts"], json!([]));
    talking.close();
}

#[test]
fn resources_and_prompts_that_are_not_there_are_refused_by_name() {
    let home = Home::new();
    let mut talking = McpClient::start(&home);
    let said = json!([{"role": "user", "text": "Hello"}]);
    talking.call("append_messages", &json!({"key": "k", "messages": said}));
    for uri in [
        "throughline://sessions/nowhere",
        "throughline://sessions/nowhere/from/1",
        "throughline://sessions/",
        "throughline://sessions/../secret",
        "throughline://else",
        "file:///etc/passwd",
        "",
    ] {
        let refused = refusal_message(&talking.request("resources/read", &json!({"uri": uri})));
        assert!(refused.contains(uri), "{uri}: {refused}");
    }
    let listed = talking.request("resources/list", &json!({}));
    let resources = listed["result"]["resources"].as_array().unwrap();
    let session = resources.iter().find_map(|one| {
        let uri = one["uri"].as_str().unwrap();
        uri.starts_with("throughline://sessions/")
            .then(|| uri.to_owned())
    });
    let uri = format!("{}/from/soon", session.unwrap());
    let refused = refusal_message(&talking.request("resources/read", &json!({"uri": uri})));
    assert!(refused.contains("/from/soon"), "{refused}");
    let uri = "throughline://memory/nowhere";
    let refused = refusal_message(&talking.request("resources/read", &json!({"uri": uri})));
    assert!(refused.contains("nowhere"), "{refused}");
    for (name, arguments, why) in [
        ("resume", json!({"session": "nowhere"}), "nowhere"),
        ("resume", json!({"sesion": "k"}), "sesion"),
        ("handoff", json!({"session": ""}), "session is empty"),
        ("handoff", json!({"session": "k", "at": "once"}), "at"),
        ("sing", json!({}), "prompt"),
    ] {
        let asked = json!({"name": name, "arguments": arguments});
        let refused = refusal_message(&talking.request("prompts/get", &asked));
        assert!(refused.contains(why), "{name} {arguments}: {refused}");
    }
    let answer = talking.request("tools/imagine", &json!({}));
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    talking.close();
}
