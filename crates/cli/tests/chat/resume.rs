//! Resuming from a summary, including when parts of it are missing.

use std::path::PathBuf;

use crate::assert_screen;
use crate::harness::Tl;
use crate::pty::Pty;

fn start_chained_chat(tl: &Tl) -> Pty {
    tl.terminal(&["--new", "--policy", "chain"])
        .env("TL_TRANSCRIPTS", "transcripts")
        .start_ready()
}

/// Creates a session with a summary and a transcript; returns the transcript's path.
fn create_summarized_session(tl: &Tl) -> PathBuf {
    let mut chat = start_chained_chat(tl);
    chat.send_line("We decided to use Redis for the session cache.");
    chat.send_line("TODO: write the integration tests");
    chat.send_line("/rename cache");
    chat.exit();
    let folder = std::fs::read_dir(tl.work().join("transcripts")).unwrap();
    folder.last().unwrap().unwrap().path()
}

#[test]
fn a_session_is_restored_from_its_summary_by_number_id_name_or_transcript() {
    let tl = Tl::new();
    let transcript = create_summarized_session(&tl);
    let id = transcript.file_stem().unwrap().to_str().unwrap().to_owned();
    let mut chat = start_chained_chat(&tl);
    chat.send_line("/sessions");
    chat.send_line("resume 1");
    chat.send_line("what tasks are open?");
    chat.exit();
    assert_screen!("restored", chat.scrollback());
    let card = &tl.json(&["show", "last"])["session"];
    assert_eq!(card["lineage"]["session"], id.as_str());

    for spec in [&id, "cache", transcript.to_str().unwrap()] {
        let mut chat = start_chained_chat(&tl);
        chat.send_line(&format!("resume {spec}"));
        let screen = chat.screen();
        assert!(screen.contains("✓ Found: cache - Mon"), "{screen}");
        assert!(
            screen.contains("I have reviewed our previous conversation."),
            "{screen}"
        );
    }
}

#[test]
fn a_transcript_is_enough_where_its_session_is_gone() {
    let tl = Tl::new();
    let transcript = create_summarized_session(&tl);
    tl.ok(&["delete", "cache"]);
    tl.ok(&["purge", "--older-than", "0d"]);
    let mut chat = start_chained_chat(&tl);
    chat.send_line(&format!("resume {}", transcript.display()));
    chat.send_line("what tasks are open?");
    chat.exit();
    assert_screen!("restored_from_transcript", chat.scrollback());
}

#[test]
fn a_session_without_a_summary_starts_fresh() {
    let tl = Tl::new();
    tl.session("plain", &["Nobody has summarized this."]);
    let mut chat = start_chained_chat(&tl);
    chat.send_line("/resume plain");
    assert_screen!("no_summary", chat.screen());
}

#[test]
fn a_transcript_with_damaged_markers_starts_fresh() {
    let tl = Tl::new();
    let transcript = create_summarized_session(&tl);
    tl.ok(&["delete", "cache"]);
    tl.ok(&["purge", "--older-than", "0d"]);
    let text = std::fs::read_to_string(&transcript).unwrap();
    let damaged = text.replace("<!-- SESSION_SUMMARY_END -->", "");
    std::fs::write(&transcript, damaged).unwrap();
    let mut chat = start_chained_chat(&tl);
    chat.send_line(&format!("resume {}", transcript.display()));
    let without = text
        .replace("<!-- SESSION_SUMMARY_END -->", "")
        .replace("<!-- SESSION_SUMMARY_START -->", "");
    std::fs::write(&transcript, without).unwrap();
    chat.send_line(&format!("resume {}", transcript.display()));
    assert_screen!("damaged_markers", chat.screen());
}

#[test]
fn what_is_missing_is_reported() {
    let tl = Tl::new();
    create_summarized_session(&tl);
    let mut chat = start_chained_chat(&tl);
    chat.send_line("/sessions");
    chat.send_line("resume transcripts/nothing.md");
    chat.send_line("resume 2026-01-01-00-00-00-000-abcdef");
    tl.ok(&["delete", "cache"]);
    chat.send_line("resume 1");
    tl.ok(&["purge", "--older-than", "0d"]);
    chat.send_line("resume 1");
    assert_screen!("not_there", chat.scrollback());
}

#[test]
fn only_the_last_summary_is_loaded_and_not_the_whole_chain() {
    let tl = Tl::new();
    let mut chat = start_chained_chat(&tl);
    chat.send_line("We decided to use Redis for the session cache.");
    chat.send_line("compact");
    chat.send_line("We decided on a token bucket.");
    chat.send_line("compact");
    chat.exit();
    let entries = tl.json(&["show", "last", "--all"]);
    let restored = &entries["entries"][0];
    let prompt = restored["prompt"].as_str().unwrap();
    assert_eq!(
        prompt.matches("<!-- SESSION_SUMMARY_START -->").count(),
        1,
        "{prompt}"
    );
    assert!(prompt.contains("token bucket"), "{prompt}");
}
