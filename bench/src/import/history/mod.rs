//! Generates history in the formats of agents: turns of a question, a tool call, its output and
//! an answer.

mod formats;
mod turn;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};
use throughline_formats::SourceFormat;

use turn::Turn;

/// Messages per session.
const MESSAGES_PER_SESSION: u64 = 10_000;
const ID: &str = "00000001-0000-4000-8000-000000000000";

/// Writes a history of that many messages; returns its size in bytes.
pub(super) fn write_history(agent: SourceFormat, folder: &Path, messages: u64) -> Result<u64> {
    let mut bytes = 0;
    let mut written = 0;
    let mut session = 0;
    let each = formats::messages_per_turn(agent);
    while written < messages {
        session += 1;
        let turns = MESSAGES_PER_SESSION.min(messages - written) / each;
        let id = format!("{session:08x}-0000-4000-8000-000000000000");
        let path = folder.join(formats::file_name(agent, &id));
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        let mut out = BufWriter::new(File::create(&path)?);
        if let Some(head) = formats::session_header(agent, &id) {
            write_line(&mut out, &head)?;
        }
        for number in 1..=turns {
            for record in formats::turn_records(agent, &id, &Turn::new(number)) {
                write_line(&mut out, &record)?;
            }
        }
        out.flush()?;
        bytes += fs::metadata(&path)?.len();
        written += turns * each;
    }
    Ok(bytes)
}

/// Writes one Claude Code session of about that many bytes, as the only file in the folder.
pub(super) fn write_long_session(folder: &Path, bytes: u64) -> Result<()> {
    let mut out = create_claude_code_file(folder)?;
    let mut written = 0;
    for number in 1.. {
        for record in formats::turn_records(SourceFormat::ClaudeCode, ID, &Turn::new(number)) {
            written += write_line(&mut out, &record)?;
        }
        if written >= bytes {
            break;
        }
    }
    Ok(out.flush()?)
}

/// Writes a Claude Code session with one user message of that many bytes on one line.
pub(super) fn write_long_line(folder: &Path, bytes: usize) -> Result<()> {
    let mut out = create_claude_code_file(folder)?;
    let wide = "All of it on one line. ".repeat(bytes / 23);
    let wide = json!({"parentUuid": null, "isSidechain": false, "sessionId": ID, "type": "user",
        "message": {"role": "user", "content": wide}, "uuid": "wide",
        "timestamp": "2026-01-02T10:00:02.000Z"});
    write_line(&mut out, &wide)?;
    for record in formats::turn_records(SourceFormat::ClaudeCode, ID, &Turn::new(1)) {
        write_line(&mut out, &record)?;
    }
    Ok(out.flush()?)
}

fn create_claude_code_file(folder: &Path) -> Result<BufWriter<File>> {
    fs::create_dir_all(folder)?;
    let name = formats::file_name(SourceFormat::ClaudeCode, ID);
    Ok(BufWriter::new(File::create(folder.join(name))?))
}

/// Writes a record as a line; returns the number of bytes.
fn write_line(out: &mut impl Write, record: &Value) -> Result<u64> {
    let mut text = serde_json::to_vec(record)?;
    text.push(b'\n');
    out.write_all(&text)?;
    Ok(text.len() as u64)
}
