//! API keys: where they may be stored, and where they must never appear.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use throughline_mock_provider::{Fault, Reply};

use crate::assert_screen;
use crate::harness::Tl;
use crate::provider::{ANTHROPIC, KEY, WIRE_FORMATS, start_provider};

fn write_keys_file(tl: &Tl, mode: u32) -> PathBuf {
    std::fs::create_dir_all(tl.home()).unwrap();
    let file = tl.home().join("keys.toml");
    std::fs::write(&file, format!("anthropic = \"{KEY}\"\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    file
}

/// Lists the files under a folder that contain a text.
fn files_containing(folder: &Path, text: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| {
            if path.is_dir() {
                return files_containing(&path, text);
            }
            let bytes = std::fs::read(&path).unwrap();
            let found = bytes
                .windows(text.len())
                .any(|part| part == text.as_bytes());
            found.then_some(path).into_iter().collect()
        })
        .collect()
}

#[test]
fn a_file_of_keys_that_others_can_read_is_refused() {
    let tl = Tl::new();
    write_keys_file(&tl, 0o644);
    let mut chat = tl.terminal(&[]).start();
    assert_eq!(chat.exit_code(), Some(5));
    assert_screen!("keys_readable", chat.scrollback());
}

#[test]
fn a_file_of_keys_of_ones_own_connects() {
    let tl = Tl::new();
    let file = write_keys_file(&tl, 0o600);
    let provider = start_provider([Reply::text("It holds tokens.")]);
    let mut chat = tl
        .terminal(&[])
        .env(ANTHROPIC.address, &provider.url())
        .start_ready();
    chat.send_line("What is a token bucket?");
    chat.exit();
    assert!(
        chat.scrollback().contains("It holds tokens."),
        "{}",
        chat.scrollback()
    );
    assert!(!chat.raw().contains(KEY));
    assert_eq!(files_containing(&tl.home(), KEY), [file]);
}

#[test]
fn a_key_is_never_on_the_screen_nor_in_any_file() {
    for wire in WIRE_FORMATS {
        let tl = Tl::new();
        let provider = start_provider([
            Reply::text("It holds tokens."),
            Reply::fault(Fault::WrongKey),
            Reply::fault(Fault::NoSuchModel),
        ]);
        let mut chat = tl
            .connected_terminal(&["--policy", "chain"], &provider, wire)
            .env("TL_TRANSCRIPTS", "transcripts")
            .start_ready();
        chat.send_line("What is a token bucket?");
        chat.send_line("/model");
        chat.send_line("And then?");
        chat.send_line("/retry");
        chat.send_line("/stats");
        chat.send_line("/context");
        chat.send_line("compact");
        chat.exit();
        assert!(!chat.raw().contains(KEY), "{}", chat.scrollback());
        let folder = tl.work().parent().unwrap().to_owned();
        assert_eq!(files_containing(&folder, KEY), Vec::<PathBuf>::new());
    }
}

#[test]
fn a_missing_key_is_reported() {
    let tl = Tl::new();
    let mut chat = tl.terminal(&["--model", "anthropic"]).start();
    assert_eq!(chat.exit_code(), Some(5));
    assert_screen!("no_key", chat.scrollback());
}
