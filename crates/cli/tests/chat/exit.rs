//! Starting and leaving the chat: transcripts, session limits, and chats that are not saved.

use crate::assert_screen;
use crate::harness::Tl;

#[test]
fn a_transcript_is_written_where_that_is_configured() {
    let tl = Tl::new();
    let mut chat = tl
        .terminal(&[])
        .env("TL_TRANSCRIPTS", "transcripts")
        .start_ready();
    chat.send_line("We decided to use Redis for the session cache.");
    assert_eq!(chat.exit(), Some(0));
    assert_screen!("transcript_written", chat.scrollback());

    let folder = std::fs::read_dir(tl.work().join("transcripts")).unwrap();
    let files: Vec<_> = folder.map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 1);
    let text = std::fs::read_to_string(&files[0]).unwrap();
    assert!(text.contains("<!-- SESSION_SUMMARY_START -->"), "{text}");
    assert!(text.contains("**You:** We decided to use Redis"), "{text}");
}

#[test]
fn a_transcript_that_cannot_be_written_is_reported_and_nothing_else_is_lost() {
    let tl = Tl::new();
    std::fs::write(tl.work().join("taken"), "a file").unwrap();
    let mut chat = tl
        .terminal(&[])
        .env("TL_TRANSCRIPTS", "taken")
        .start_ready();
    chat.send_line("We decided to use Redis for the session cache.");
    assert_eq!(chat.exit(), Some(0));
    assert_screen!("transcript_not_written", chat.scrollback());
    assert_eq!(tl.texts("last").len(), 2);
}

#[test]
fn more_sessions_than_allowed_go_to_the_trash_with_one_line() {
    let tl = Tl::new();
    for name in ["one", "two", "three", "four"] {
        tl.session(name, &[name]);
    }
    let chat = tl.terminal(&[]).env("TL_MAX_SESSIONS", "2").start_ready();
    assert_screen!("purged", chat.screen());
    let listed = tl.json(&["sessions", "--all"]);
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 2);
}

#[test]
fn without_saving_nothing_is_kept_and_nothing_else_is_claimed() {
    let tl = Tl::new();
    let mut chat = tl
        .terminal(&["--no-save", "--policy", "chain"])
        .env("TL_TRANSCRIPTS", "transcripts")
        .start_ready();
    chat.send_line("A secret that is not to be kept");
    chat.send_line("/history");
    chat.send_line("compact");
    assert_eq!(chat.exit(), Some(0));
    assert_screen!("no_save", chat.scrollback());
    assert!(!tl.work().join("transcripts").exists());
    for file in walk(&tl.home()) {
        let bytes = std::fs::read(&file).unwrap();
        let found = bytes.windows(8).any(|bytes| bytes == b"A secret");
        assert!(!found, "{}", file.display());
    }
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| {
            if path.is_dir() {
                walk(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

#[test]
fn continuing_where_there_is_nothing_to_continue_says_so() {
    let tl = Tl::new();
    let chat = tl.chat(&["--continue"]);
    assert_screen!("nothing_to_continue", chat.screen());
}

#[test]
fn a_new_session_is_started_on_request_and_the_last_one_continued_otherwise() {
    let tl = Tl::new();
    let mut chat = tl.chat(&["--new-session"]);
    chat.send_line("Something about the first thing");
    chat.exit();
    let mut chat = tl.chat(&["--new"]);
    chat.send_line("Something about the second thing");
    chat.exit();
    let mut chat = tl.chat(&["--continue"]);
    assert!(
        chat.screen()
            .contains("Session: something-about-second-thing")
    );
    chat.send_line("/resume something-about-first-thing");
    chat.send_line("And more of the first thing");
    chat.exit();
    let chat = tl.chat(&[]);
    assert!(
        chat.screen()
            .contains("Session: something-about-first-thing")
    );
    assert_eq!(
        tl.json(&["sessions", "--all"])["sessions"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn lines_through_a_pipe_are_a_chat_too() {
    let tl = Tl::new();
    let said = tl.run_with(&["chat"], b"We decided to use Redis.\n/tasks\nexit\n");
    assert_eq!(said.code(), Some(0), "{said}");
    assert!(!said.stdout().contains("You:"), "{said}");
    assert_eq!(tl.texts("last").len(), 2);
}

#[test]
fn a_chat_is_not_json() {
    let tl = Tl::new();
    let said = tl.run(&["chat", "--json"]);
    assert_eq!(said.code(), Some(5), "{said}");
    assert!(said.stderr().contains("tl -p PROMPT --json"), "{said}");
}
