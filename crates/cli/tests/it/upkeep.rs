//! Doctor, salvage and backup.

use std::process::Stdio;

use crate::assert_said;
use crate::harness::{Tl, regex_escape};

#[test]
fn a_damaged_store_is_diagnosed_and_salvaged() {
    let tl = Tl::new();
    let id = tl.session("s", &[]);
    let lines: String = (0..500)
        .map(|n| {
            format!(
                "{{\"role\":\"user\",\"content\":\"message {n} {}\"}}\n",
                "x".repeat(300)
            )
        })
        .collect();
    tl.run_with(&["append", &id, "--json"], lines.as_bytes())
        .ok();
    tl.ok(&["backup", "whole.db"]);
    let mut bytes = std::fs::read(tl.work().join("whole.db")).unwrap();
    let middle = bytes
        .windows(12)
        .position(|w| w == b"message 250 ")
        .unwrap();
    let page = middle / 4096 * 4096;
    bytes[page..page + 4096].fill(0xa5);
    std::fs::write(tl.work().join("damaged.db"), &bytes).unwrap();

    let report = tl.run(&["--store", "sqlite:damaged.db", "doctor", "--json"]);
    assert_eq!(report.code(), Some(6));
    let report: serde_json::Value = serde_json::from_str(&report.stdout()).unwrap();
    assert_eq!(report["ok"], false);

    let salvaged = tl.run(&[
        "--store",
        "sqlite:damaged.db",
        "doctor",
        "--salvage",
        "saved.db",
    ]);
    assert_eq!(salvaged.code(), Some(6), "{salvaged}");
    assert!(
        salvaged.stdout().starts_with("lost: entries 2"),
        "{salvaged}"
    );
    let sound: serde_json::Value =
        serde_json::from_str(&tl.ok(&["--store", "sqlite:saved.db", "doctor", "--json"])).unwrap();
    assert_eq!(sound["ok"], true);
    let saved = tl.ok(&["--store", "sqlite:saved.db", "show", &id, "--all", "--json"]);
    let saved: serde_json::Value = serde_json::from_str(&saved).unwrap();
    let entries = saved["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 500);
    let kept = entries
        .iter()
        .filter(|entry| entry["kind"] == "message")
        .count();
    assert!((480..500).contains(&kept), "{kept} kept");
    assert_eq!(entries[499]["seq"], 500);
}

#[test]
fn a_sound_store_is_said_to_be_sound() {
    let tl = Tl::new();
    tl.session("s", &["one"]);
    assert_said!(
        tl,
        "doctor",
        tl.run(&["doctor"]),
        tl.run(&["doctor", "--rebuild"]),
        tl.run(&["doctor", "--json"]),
    );
}

#[test]
fn a_backup_is_whole_while_others_write() {
    let tl = Tl::new();
    let id = tl.session("s", &["first"]);
    let mut writer = tl
        .command(&["append", &id, "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = writer.stdin.take().unwrap();
    let feeding = std::thread::spawn(move || {
        for n in 0..3_000 {
            let line = format!("{{\"role\":\"user\",\"content\":\"{n}\"}}\n");
            std::io::Write::write_all(&mut stdin, line.as_bytes()).unwrap();
        }
    });
    for n in 0..3 {
        let file = format!("copy{n}.db");
        tl.ok(&["backup", &file]);
        let store = format!("sqlite:{file}");
        let doctor = tl.ok(&["--store", &store, "doctor", "--json"]);
        assert!(doctor.contains("\"ok\": true"));
    }
    feeding.join().unwrap();
    assert!(writer.wait().unwrap().success());
    assert_eq!(tl.run(&["backup", "copy0.db"]).code(), Some(5));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(tl.work().join("copy0.db"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn a_file_that_cannot_be_opened_still_gets_a_report() {
    let tl = Tl::new();
    tl.session("s", &["one"]);
    tl.ok(&["backup", "b.db"]);
    let mut bytes = std::fs::read(tl.work().join("b.db")).unwrap();
    bytes[..4096].fill(0x5a);
    std::fs::write(tl.work().join("b.db"), bytes).unwrap();
    let said = tl.run(&["--store", "sqlite:b.db", "doctor", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&said.stdout()).unwrap();
    assert_eq!((said.code(), &report["ok"]), (Some(6), &false.into()));
}
