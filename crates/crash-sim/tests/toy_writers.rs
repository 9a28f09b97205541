//! Runs the simulator on programs with known faults: one that acknowledges before it syncs is
//! caught, one that syncs first passes; and the recording agrees with strace.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use throughline_crash_sim::{
    Disk, DiskState, DurabilityModel, Fault, FaultAction, Loss, Operation, Recorder, SyscallKind,
    Trace, power_cuts,
};

const ROLE: &str = "TL_TEST_ROLE";
const ENTRIES: usize = 12;

/// Appends numbered lines to a file and acknowledges each; how carefully depends on the role.
#[test]
#[allow(clippy::disallowed_methods, reason = "how a process learns its role")]
fn child() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let (role, folder) = role.split_once(' ').unwrap();
    let folder = Path::new(folder).join("data");
    let mut stdout = std::io::stdout();
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("log");
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .unwrap();
    if role != "names-not-synced" {
        File::open(&folder).unwrap().sync_all().unwrap();
        File::open(folder.parent().unwrap())
            .unwrap()
            .sync_all()
            .unwrap();
    }
    for number in 0..ENTRIES {
        file.write_all(format!("entry {number} {}\n", "x".repeat(number * 90)).as_bytes())
            .unwrap();
        if role != "content-not-synced" {
            file.sync_data().unwrap();
        }
        stdout
            .write_all(format!("\nack {number}\n").as_bytes())
            .unwrap();
        stdout.flush().unwrap();
    }
    // Replace a file correctly, so that the log contains renames, too.
    let new = folder.join("new");
    std::fs::write(&new, "whole").unwrap();
    File::open(&new).unwrap().sync_all().unwrap();
    std::fs::rename(&new, folder.join("whole")).unwrap();
}

fn child_command(role: &str, root: &Path, wrapper: Command) -> Command {
    let mut command = wrapper;
    command
        .args(["child", "--exact", "--nocapture", "--test-threads=1"])
        .env(ROLE, format!("{role} {}", root.display()))
        .stdout(Stdio::piped())
        .stdin(Stdio::null());
    command
}

/// Records a toy writer and counts the states in which an acknowledged line is missing.
fn count_losses(role: &str, faults: &[Fault]) -> (usize, usize) {
    let folder = tempfile::tempdir().unwrap();
    let (root, log) = (folder.path().join("root"), folder.path().join("log"));
    std::fs::create_dir(&root).unwrap();
    let recorder = Recorder::build(folder.path()).unwrap();
    let disk = Disk::read(&root, DurabilityModel::Posix).unwrap();
    let this = std::env::current_exe().unwrap();
    let command = recorder.command(&log, &root, faults, this);
    child_command(role, &root, command).output().unwrap();
    let trace = Trace::read(&log).unwrap();

    // With nothing lost, the model equals the real folder.
    let mut all = disk.clone();
    for record in &trace.records {
        all.apply(record).unwrap();
    }
    assert_eq!(
        all.after_loss(&Loss::Nothing),
        DiskState::read(&root).unwrap()
    );

    let mut lost = 0;
    let cuts = power_cuts(&trace, 0, 1, 400);
    let states = disk
        .simulate(&trace, &cuts, |cut, state| {
            let outputs = trace.acknowledged_output(cut.after);
            let output: String = outputs
                .iter()
                .map(|output| String::from_utf8_lossy(output).into_owned())
                .collect();
            let acknowledged = output
                .lines()
                .filter(|line| line.starts_with("ack "))
                .count();
            let log = state.entries.get("data/log").cloned().flatten();
            let log = String::from_utf8(log.unwrap_or_default()).unwrap();
            let is_in_log = |number: &usize| log.contains(&format!("entry {number} "));
            lost += usize::from((0..acknowledged).any(|number| !is_in_log(&number)));
        })
        .unwrap();
    (states, lost)
}

#[test]
fn a_writer_that_syncs_before_it_acknowledges_passes() {
    let (states, lost) = count_losses("careful", &[]);
    assert!(states > 30, "{states}");
    assert_eq!(lost, 0);
}

#[test]
fn a_writer_that_does_not_sync_is_caught() {
    let (_, lost) = count_losses("content-not-synced", &[]);
    assert!(lost > 10, "{lost}");
}

#[test]
fn a_writer_that_does_not_sync_its_new_folder_is_caught() {
    let (_, lost) = count_losses("names-not-synced", &[]);
    assert!(lost > 10, "{lost}");
}

#[test]
fn a_killed_writer_has_acknowledged_nothing_that_is_lost() {
    for action in [
        FaultAction::KillBefore,
        FaultAction::KillAfter,
        FaultAction::TornKill,
    ] {
        let (_, lost) = count_losses("careful", &[Fault::new(SyscallKind::Write, 5, action)]);
        assert_eq!(lost, 0);
    }
}

#[test]
fn a_failed_sync_is_seen_by_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let (root, log) = (folder.path().join("root"), folder.path().join("log"));
    std::fs::create_dir(&root).unwrap();
    let recorder = Recorder::build(folder.path()).unwrap();
    let fault = Fault::new(SyscallKind::Sync, 3, FaultAction::Eio).in_path("log");
    let this = std::env::current_exe().unwrap();
    let command = recorder.command(&log, &root, &[fault], this);
    let output = child_command("careful", &root, command)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert!(!output.status.success());
    let trace = Trace::read(&log).unwrap();
    assert_eq!(trace.injected_count(), 1);
    let acks = trace.acknowledged_output(trace.records.len());
    let output = String::from_utf8_lossy(&acks[0]).into_owned();
    assert!(
        output.contains("ack 1\n") && !output.contains("ack 2\n"),
        "{output}"
    );
}

/// Compares the recorded writes, syncs and renames with strace, if it is installed.
#[test]
#[allow(clippy::disallowed_methods, reason = "whether a test may be skipped")]
fn the_record_agrees_with_strace() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::build(folder.path()).unwrap();
    let this = std::env::current_exe().unwrap();
    let roots = ["one", "two"].map(|name| folder.path().join(name));
    for root in &roots {
        std::fs::create_dir(root).unwrap();
    }
    let (log, other) = (folder.path().join("log"), folder.path().join("strace"));
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-qq", "-s", "0", "-e"]);
    strace.arg("trace=write,fsync,fdatasync,rename").arg("-o");
    strace.arg(&other).arg(&this);
    if child_command("careful", &roots[1], strace)
        .output()
        .is_err()
    {
        assert!(std::env::var_os("CI").is_none(), "strace is not installed");
        eprintln!("SKIPPED: strace is not installed");
        return;
    }
    let command = recorder.command(&log, &roots[0], &[], &this);
    child_command("careful", &roots[0], command)
        .output()
        .unwrap();

    let trace = Trace::read(&log).unwrap();
    let recorded = trace
        .records
        .iter()
        .filter_map(|record| match &record.operation {
            Operation::Write { data, .. } => Some(format!("write {}", data.len())),
            Operation::Sync { failed: false } => Some("sync".to_owned()),
            Operation::Rename { .. } => Some("rename".to_owned()),
            _ => None,
        });
    let text = std::fs::read_to_string(&other).unwrap();
    let watched = roots[1].display().to_string();
    let seen = text
        .lines()
        .filter(|line| line.contains(&watched))
        .filter_map(|line| {
            let result = line.rsplit("= ").next().unwrap_or_default();
            if line.contains(" write(") {
                Some(format!("write {result}"))
            } else if line.contains("sync(") {
                Some("sync".to_owned())
            } else if line.contains(" rename(") {
                Some("rename".to_owned())
            } else {
                None
            }
        });
    assert_eq!(recorded.collect::<Vec<_>>(), seen.collect::<Vec<_>>());
}
