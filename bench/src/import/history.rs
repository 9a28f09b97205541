//! History as agents write it, made up.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Result;
use serde_json::json;
use throughline_formats::Agent;

/// Messages a session has.
const A_SESSION: u64 = 10_000;

/// Writes a history of so many messages; how many bytes it has.
pub(super) fn write(agent: Agent, folder: &Path, messages: u64) -> Result<u64> {
    fs::create_dir_all(folder)?;
    let mut bytes = 0;
    let mut written = 0;
    let mut session = 0;
    while written < messages {
        session += 1;
        let count = A_SESSION.min(messages - written);
        let id = format!("{session:08x}-0000-4000-8000-000000000000");
        let name = match agent {
            Agent::Codex => format!("rollout-2026-01-02T10-00-00-{id}.jsonl"),
            Agent::Pi => format!("2026-01-02T10-00-00-000Z_{id}.jsonl"),
            Agent::Gemini => format!("chats/session-2026-01-02T10-00-{id}.jsonl"),
            _ => format!("{id}.jsonl"),
        };
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        let mut out = BufWriter::new(File::create(&path)?);
        head(agent, &id, &mut out)?;
        for number in 1..=count {
            message(agent, &id, number, &mut out)?;
        }
        out.flush()?;
        bytes += fs::metadata(&path)?.len();
        written += count;
    }
    Ok(bytes)
}

/// Writes one session of Claude Code of about so many bytes; its file is the only one there.
pub(super) fn write_long(folder: &Path, bytes: u64) -> Result<()> {
    fs::create_dir_all(folder)?;
    let id = "00000001-0000-4000-8000-000000000000";
    let mut out = BufWriter::new(File::create(folder.join(format!("{id}.jsonl")))?);
    let mut line = Vec::new();
    let mut written = 0;
    for number in 1.. {
        line.clear();
        message(Agent::ClaudeCode, id, number, &mut line)?;
        out.write_all(&line)?;
        written += line.len() as u64;
        if written >= bytes {
            break;
        }
    }
    Ok(out.flush()?)
}

/// Writes a session of Claude Code in which one line has so many bytes of a tool's output.
pub(super) fn write_wide(folder: &Path, bytes: usize) -> Result<()> {
    fs::create_dir_all(folder)?;
    let id = "00000001-0000-4000-8000-000000000000";
    let mut out = BufWriter::new(File::create(folder.join(format!("{id}.jsonl")))?);
    message(Agent::ClaudeCode, id, 1, &mut out)?;
    let wide = "All of it on one line. ".repeat(bytes / 23);
    let line = json!({"parentUuid": format!("00000001-{}", &id[..8]), "isSidechain": false,
        "sessionId": id, "type": "user", "message": {"role": "user", "content": wide},
        "uuid": "wide", "timestamp": "2026-01-02T10:00:02.000Z"});
    serde_json::to_writer(&mut out, &line)?;
    out.write_all(b"\n")?;
    message(Agent::ClaudeCode, id, 2, &mut out)?;
    Ok(out.flush()?)
}

fn head(agent: Agent, id: &str, out: &mut impl Write) -> Result<()> {
    let at = "2026-01-02T10:00:00.000Z";
    let line = match agent {
        Agent::Codex => json!({"timestamp": at, "type": "session_meta",
            "payload": {"id": id, "timestamp": at, "cwd": "/nowhere/app"}}),
        Agent::Pi => json!({"type": "session", "version": 3, "id": id, "timestamp": at,
            "cwd": "/nowhere/app"}),
        Agent::Gemini => json!({"sessionId": id, "projectHash": "0", "startTime": at,
            "lastUpdated": at, "kind": "main", "directories": ["/nowhere/app"]}),
        _ => return Ok(()),
    };
    serde_json::to_writer(&mut *out, &line)?;
    Ok(out.write_all(b"\n")?)
}

fn message(agent: Agent, session: &str, number: u64, out: &mut impl Write) -> Result<()> {
    let at = format!(
        "2026-01-02T{:02}:{:02}:{:02}.000Z",
        10 + number / 3600 % 12,
        number / 60 % 60,
        number % 60
    );
    let said = format!(
        "Step {number}: module {} of the gateway listens on port {} and logs to file {}. The change \
         touches src/module_{}.rs and its tests; run them before the next step, and write down what \
         failed and why, so that nobody has to find it out again.",
        number % 977,
        1_024 + number % 60_000,
        number % 4_099,
        number % 977,
    );
    let user = number % 2 == 1;
    let role = if user { "user" } else { "assistant" };
    let line = match agent {
        Agent::Codex => {
            let kind = if user { "input_text" } else { "output_text" };
            json!({"timestamp": at, "type": "response_item", "payload": {"type": "message",
                "role": role, "content": [{"type": kind, "text": said}]}})
        }
        Agent::Gemini => {
            let kind = if user { "user" } else { "gemini" };
            json!({"id": format!("{number:08x}-{}", &session[..8]), "timestamp": at, "type": kind,
                "content": said, "model": (!user).then_some("gemini-x")})
        }
        Agent::Pi => {
            let parent = (number > 1).then(|| format!("{:08x}", number - 1));
            let mut said = json!({"role": role, "content": [{"type": "text", "text": said}],
                "timestamp": 1_767_348_000_000_u64 + number});
            if !user {
                said["provider"] = json!("anthropic");
                said["model"] = json!("claude-x");
                said["usage"] = json!({"input": 10, "output": 5, "cacheRead": 0, "cacheWrite": 0});
                said["stopReason"] = json!("stop");
            }
            json!({"type": "message", "id": format!("{number:08x}"), "parentId": parent,
                "timestamp": at, "message": said})
        }
        _ => {
            let parent = (number > 1).then(|| format!("{:08x}-{}", number - 1, &session[..8]));
            let message = if user {
                json!({"role": "user", "content": said})
            } else {
                json!({"id": format!("msg_{number}"), "type": "message", "role": "assistant",
                    "model": "claude-x", "content": [{"type": "text", "text": said}],
                    "stop_reason": "end_turn", "usage": {"input_tokens": 10, "output_tokens": 5,
                    "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}})
            };
            json!({"parentUuid": parent, "isSidechain": false, "userType": "external",
                "cwd": "/nowhere/app", "sessionId": session, "version": "2.1.0", "gitBranch": "main",
                "type": role, "message": message, "uuid": format!("{number:08x}-{}", &session[..8]),
                "timestamp": at})
        }
    };
    serde_json::to_writer(&mut *out, &line)?;
    Ok(out.write_all(b"\n")?)
}
