//! Writes a turn in the format of each agent.

use serde_json::{Value, json};
use throughline_formats::SourceFormat;

use super::turn::Turn;

pub(super) fn file_name(agent: SourceFormat, session: &str) -> String {
    match agent {
        SourceFormat::Codex => format!("rollout-2026-01-02T10-00-00-{session}.jsonl"),
        SourceFormat::Pi => format!("2026-01-02T10-00-00-000Z_{session}.jsonl"),
        SourceFormat::Gemini => format!("chats/session-2026-01-02T10-00-{session}.jsonl"),
        _ => format!("{session}.jsonl"),
    }
}

/// Returns the record at the beginning of a session, if the format has one.
pub(super) fn session_header(agent: SourceFormat, session: &str) -> Option<Value> {
    let at = "2026-01-02T10:00:00.000Z";
    match agent {
        SourceFormat::Codex => Some(json!({"timestamp": at, "type": "session_meta",
            "payload": {"id": session, "timestamp": at, "cwd": "/nowhere/app"}})),
        SourceFormat::Pi => Some(json!({"type": "session", "version": 3, "id": session,
            "timestamp": at, "cwd": "/nowhere/app"})),
        SourceFormat::Gemini => Some(
            json!({"sessionId": session, "projectHash": "0", "startTime": at,
            "lastUpdated": at, "kind": "main", "directories": ["/nowhere/app"]}),
        ),
        _ => None,
    }
}

/// Returns how many messages a turn has: Codex's reasoning is a separate one.
pub(super) fn messages_per_turn(agent: SourceFormat) -> u64 {
    match agent {
        SourceFormat::Codex => Turn::MESSAGES + 1,
        _ => Turn::MESSAGES,
    }
}

/// Returns the records of a turn.
pub(super) fn turn_records(agent: SourceFormat, session: &str, turn: &Turn) -> Vec<Value> {
    match agent {
        SourceFormat::Codex => codex(turn),
        SourceFormat::Pi => pi(turn),
        SourceFormat::Gemini => gemini(session, turn),
        _ => claude_code(session, turn),
    }
}

fn claude_code(session: &str, turn: &Turn) -> Vec<Value> {
    let call = format!("toolu_{:08x}", turn.number);
    let answer = |content: Value, stop: &str| {
        json!({"id": format!("msg_{:08x}_{stop}", turn.number), "type": "message",
            "role": "assistant", "model": "claude-x", "content": content, "stop_reason": stop,
            "usage": {"input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0}})
    };
    let messages = [
        json!({"role": "user", "content": turn.prompt}),
        answer(
            json!([{"type": "thinking", "thinking": turn.thinking, "signature": "c2lnbmVk"},
                {"type": "tool_use", "id": call, "name": "Read",
                    "input": {"file_path": turn.file}}]),
            "tool_use",
        ),
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": call,
            "content": turn.tool_output}]}),
        answer(json!([{"type": "text", "text": turn.answer}]), "end_turn"),
    ];
    let id = |number: u64| format!("{number:08x}-{}", &session[..8]);
    let first = turn.number * Turn::MESSAGES;
    let records = (0..).zip(messages).map(|(index, message)| {
        let parent = (first + index > Turn::MESSAGES).then(|| id(first + index - 1));
        json!({"parentUuid": parent, "isSidechain": false, "userType": "external",
            "cwd": "/nowhere/app", "sessionId": session, "version": "2.1.0", "gitBranch": "main",
            "type": message["role"], "message": message, "uuid": id(first + index),
            "timestamp": turn.timestamp(index)})
    });
    records.collect()
}

/// Codex writes each message as an item and as an event, and the token counts with each answer.
fn codex(turn: &Turn) -> Vec<Value> {
    let call = format!("call_{:08x}", turn.number);
    let arguments = json!({"command": ["cat", "-n", turn.file]}).to_string();
    let cost = |output: u64| {
        let used = json!({"input_tokens": 12_000 + turn.number, "cached_input_tokens": 11_000,
            "output_tokens": output, "reasoning_output_tokens": 64,
            "total_tokens": 12_000 + turn.number + output});
        let limit = |minutes: u64| {
            json!({"used_percent": 12.0, "window_minutes": minutes,
            "resets_at": 1_767_400_000})
        };
        json!({"type": "token_count", "info": {"total_token_usage": used,
            "last_token_usage": used, "model_context_window": 272_000},
            "rate_limits": {"primary": limit(300), "secondary": limit(10_080)}})
    };
    let records = [
        (
            "event_msg",
            json!({"type": "task_started", "model_context_window": 272_000}),
        ),
        (
            "turn_context",
            json!({"cwd": "/nowhere/app", "approval_policy": "on-request",
            "sandbox_policy": {"mode": "workspace-write", "network_access": false,
                "exclude_tmpdir_env_var": false, "exclude_slash_tmp": false},
            "model": "gpt-x", "effort": "medium", "summary": "auto"}),
        ),
        (
            "response_item",
            json!({"type": "message", "role": "user",
            "content": [{"type": "input_text", "text": turn.prompt}]}),
        ),
        (
            "event_msg",
            json!({"type": "user_message", "message": turn.prompt}),
        ),
        (
            "event_msg",
            json!({"type": "agent_reasoning", "text": turn.thinking}),
        ),
        (
            "response_item",
            json!({"type": "reasoning",
            "summary": [{"type": "summary_text", "text": turn.thinking}],
            "encrypted_content": turn.encrypted_thinking()}),
        ),
        (
            "response_item",
            json!({"type": "function_call", "name": "shell", "call_id": call,
            "arguments": arguments}),
        ),
        ("event_msg", cost(80)),
        (
            "response_item",
            json!({"type": "function_call_output", "call_id": call,
            "output": turn.tool_output}),
        ),
        (
            "event_msg",
            json!({"type": "agent_message", "message": turn.answer}),
        ),
        (
            "response_item",
            json!({"type": "message", "role": "assistant",
            "content": [{"type": "output_text", "text": turn.answer}]}),
        ),
        ("event_msg", cost(150)),
        (
            "event_msg",
            json!({"type": "task_complete", "last_agent_message": turn.answer}),
        ),
    ];
    let count = records.len() as u64;
    let records = (0..).zip(records).map(|(index, (kind, payload))| {
        // Spreads the turn's messages, a second each, over its records.
        json!({"timestamp": turn.timestamp(index * Turn::MESSAGES / count), "type": kind,
            "payload": payload})
    });
    records.collect()
}

/// Gemini CLI writes a message when it arrives, and again when its tools have answered.
fn gemini(session: &str, turn: &Turn) -> Vec<Value> {
    let id = |index: u64| format!("{:08x}-{}-{index}", turn.number, &session[..8]);
    let tokens = json!({"input": 10, "output": 5, "cached": 0, "thoughts": 3, "tool": 0,
        "total": 18});
    let called = json!({"id": id(1), "timestamp": turn.timestamp(1), "type": "gemini", "content": "",
        "thoughts": [{"subject": "The port", "description": turn.thinking,
            "timestamp": turn.timestamp(1)}],
        "tokens": tokens, "model": "gemini-x"});
    let mut answered = called.clone();
    answered["toolCalls"] = json!([{"id": format!("read-{}", turn.number), "name": "read_file",
        "args": {"absolute_path": turn.file}, "status": "success",
        "timestamp": turn.timestamp(2), "result": [{"functionResponse": {
            "id": format!("read-{}", turn.number), "name": "read_file",
            "response": {"output": turn.tool_output}}}]}]);
    vec![
        json!({"id": id(0), "timestamp": turn.timestamp(0), "type": "user", "content": turn.prompt}),
        called,
        answered,
        json!({"id": id(3), "timestamp": turn.timestamp(3), "type": "gemini", "content": turn.answer,
            "tokens": tokens, "model": "gemini-x"}),
    ]
}

fn pi(turn: &Turn) -> Vec<Value> {
    let call = format!("call_{:08x}", turn.number);
    let answer = |content: Value, stop: &str| {
        json!({"role": "assistant", "content": content, "api": "anthropic-messages",
            "provider": "anthropic", "model": "claude-x", "stopReason": stop,
            "usage": {"input": 10, "output": 5, "cacheRead": 0, "cacheWrite": 0}})
    };
    let messages = [
        json!({"role": "user", "content": [{"type": "text", "text": turn.prompt}]}),
        answer(
            json!([{"type": "thinking", "thinking": turn.thinking, "thinkingSignature": "c2ln"},
                {"type": "toolCall", "id": call, "name": "read",
                    "arguments": {"path": turn.file}}]),
            "toolUse",
        ),
        json!({"role": "toolResult", "toolCallId": call, "toolName": "read", "isError": false,
            "content": [{"type": "text", "text": turn.tool_output}]}),
        answer(json!([{"type": "text", "text": turn.answer}]), "stop"),
    ];
    let first = turn.number * Turn::MESSAGES;
    let records = (0..).zip(messages).map(|(index, mut message)| {
        let number = first + index;
        message["timestamp"] = json!(1_767_348_000_000 + number);
        let parent = (number > Turn::MESSAGES).then(|| format!("{:08x}", number - 1));
        json!({"type": "message", "id": format!("{number:08x}"), "parentId": parent,
            "timestamp": turn.timestamp(index), "message": message})
    });
    records.collect()
}
