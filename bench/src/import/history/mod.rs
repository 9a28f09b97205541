//! History as agents write it, made up: turns of a question, a look into a file, what was in
//! it, and an answer.

mod formats;
mod turn;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};
use throughline_formats::Agent;

use turn::Turn;

/// Messages a session has.
const A_SESSION: u64 = 10_000;
const ID: &str = "00000001-0000-4000-8000-000000000000";

/// Writes a history of so many messages; how many bytes it has.
pub(super) fn write(agent: Agent, folder: &Path, messages: u64) -> Result<u64> {
    let mut bytes = 0;
    let mut written = 0;
    let mut session = 0;
    let each = formats::messages(agent);
    while written < messages {
        session += 1;
        let turns = A_SESSION.min(messages - written) / each;
        let id = format!("{session:08x}-0000-4000-8000-000000000000");
        let path = folder.join(formats::file_name(agent, &id));
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        let mut out = BufWriter::new(File::create(&path)?);
        if let Some(head) = formats::head(agent, &id) {
            line(&mut out, &head)?;
        }
        for number in 1..=turns {
            for record in formats::turn(agent, &id, &Turn::new(number)) {
                line(&mut out, &record)?;
            }
        }
        out.flush()?;
        bytes += fs::metadata(&path)?.len();
        written += turns * each;
    }
    Ok(bytes)
}

/// Writes one session of Claude Code of about so many bytes; its file is the only one there.
pub(super) fn write_long(folder: &Path, bytes: u64) -> Result<()> {
    let mut out = claude_code(folder)?;
    let mut written = 0;
    for number in 1.. {
        for record in formats::turn(Agent::ClaudeCode, ID, &Turn::new(number)) {
            written += line(&mut out, &record)?;
        }
        if written >= bytes {
            break;
        }
    }
    Ok(out.flush()?)
}

/// Writes a session of Claude Code in which one line has so many bytes of a person's words.
pub(super) fn write_wide(folder: &Path, bytes: usize) -> Result<()> {
    let mut out = claude_code(folder)?;
    let wide = "All of it on one line. ".repeat(bytes / 23);
    let wide = json!({"parentUuid": null, "isSidechain": false, "sessionId": ID, "type": "user",
        "message": {"role": "user", "content": wide}, "uuid": "wide",
        "timestamp": "2026-01-02T10:00:02.000Z"});
    line(&mut out, &wide)?;
    for record in formats::turn(Agent::ClaudeCode, ID, &Turn::new(1)) {
        line(&mut out, &record)?;
    }
    Ok(out.flush()?)
}

fn claude_code(folder: &Path) -> Result<BufWriter<File>> {
    fs::create_dir_all(folder)?;
    let name = formats::file_name(Agent::ClaudeCode, ID);
    Ok(BufWriter::new(File::create(folder.join(name))?))
}

/// Writes a record on a line; how many bytes that were.
fn line(out: &mut impl Write, record: &Value) -> Result<u64> {
    let mut text = serde_json::to_vec(record)?;
    text.push(b'\n');
    out.write_all(&text)?;
    Ok(text.len() as u64)
}
