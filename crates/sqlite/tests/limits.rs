//! Full disks and read-only folders.

#![allow(clippy::unwrap_used, reason = "a test")]
#![cfg(unix)]

mod common;

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Output;

use common::{
    append, check, fill_session, header, named_entry, open, parse_acknowledgements,
    print_acknowledgement, read_log, run, session,
};
use throughline_sqlite::{Options, SqliteStore};
use throughline_store::{Append, Catalog, ErrorKind, LogStore, Maintenance, ReadRange, StoreError};

#[test]
fn child() {
    let Some(role) = common::role() else {
        return;
    };
    let path = Path::new(&role[1]);
    match role[0].as_str() {
        "fill" => run(append_until_it_fails(path)),
        "read" => run(read_read_only_store(path)),
        "purge" => run(purge_once(path)),
        other => panic!("no such role: {other}"),
    }
}

/// Appends until the disk is full, and asserts that reading still works.
async fn append_until_it_fails(path: &Path) {
    let store = open(path);
    let to = session("s");
    for count in 0.. {
        let new = named_entry(&format!("limited-{count}"), &"z".repeat(2_000));
        match store.append(&to, Append::unconditional(vec![new])).await {
            Ok(appended) => {
                print_acknowledgement(&to, appended.entries[0].seq, appended.entries[0].id);
            }
            Err(error) => {
                common::print_line(&format!("failed {:?} {error:?}", error.kind()));
                break;
            }
        }
    }
    let head = store.record(&to).await.unwrap().info.head;
    common::print_line(&format!("head {head}"));
}

/// Asserts that everything acknowledged is stored, the failure was reported as transient, and
/// appending continues where it stopped.
fn assert_nothing_lost(path: &Path, output: &Output) {
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{printed}");
    assert!(printed.contains("\nfailed Unavailable "), "{printed}");
    let acknowledged = parse_acknowledgements(&output.stdout)
        .remove("s")
        .expect("something fitted");
    run(async {
        let store = open(path);
        let stored = read_log(&store, &session("s")).await.unwrap();
        let stored: Vec<_> = stored.iter().map(|entry| (entry.seq, entry.id)).collect();
        assert!(stored.ends_with(&acknowledged));
        let (head, _) = acknowledged.last().unwrap();
        assert!(printed.contains(&format!("\nhead {head}\n")), "{printed}");
        assert_eq!(check(&store).await.findings, []);
        let next = append(&store, &session("s"), named_entry("after", "room again")).await;
        assert_eq!(next, head.next());
        assert_eq!(check(&store).await.findings, []);
        store.close().await.unwrap();
    });
}

#[test]
fn a_limit_on_the_files_size_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    run(fill_session(&open(&path), "s", 1, 10));
    // The signal that comes with the limit would end the process before the error.
    let limited = [
        "bash",
        "-c",
        "trap '' XFSZ; ulimit -f 400; exec \"$@\"",
        "limited",
    ];
    let role = format!("fill\n{}", path.display());
    let output = common::child_process_under(&limited, &role)
        .output()
        .unwrap();

    assert_nothing_lost(&path, &output);
}

/// A small temporary disk, unmounted on drop.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount(kilobytes: u32) -> Result<Self, String> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={kilobytes}k"), "tmpfs"])
            .arg(folder.path())
            .output()
            .map_err(|error| error.to_string())?;
        if mounted.status.success() {
            Ok(Self(folder))
        } else {
            Err(String::from_utf8_lossy(&mounted.stderr).trim().to_owned())
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazy unmount: detached at once, released when its last file is closed.
        let unmount = std::process::Command::new("umount")
            .arg("--lazy")
            .arg(self.0.path())
            .status();
        if !unmount.is_ok_and(|status| status.success()) {
            eprintln!("{} is still mounted", self.0.path().display());
        }
    }
}

#[test]
fn a_full_disk_is_reported_as_such_and_loses_nothing() {
    let disk = match SmallDisk::mount(600) {
        Ok(disk) => disk,
        Err(why) => {
            // Only root may mount, and not in every environment.
            let refused = ["permission denied", "must be superuser", "not permitted"];
            let message = why.to_lowercase();
            assert!(refused.iter().any(|text| message.contains(text)), "{why}");
            eprintln!("skipped: no disk can be mounted here ({why})");
            return;
        }
    };
    let path = disk.0.path().join("sessions.db");
    let room = disk.0.path().join("room");
    std::fs::write(&room, vec![0; 100 * 1024]).unwrap();
    run(async {
        let store = open(&path);
        fill_session(&store, "s", 1, 10).await;
        store.close().await.unwrap();
    });
    let role = format!("fill\n{}", path.display());
    let output = common::child_process(&role).output().unwrap();
    std::fs::remove_file(room).unwrap();

    assert!(String::from_utf8_lossy(&output.stdout).contains("Full {"));
    assert_nothing_lost(&path, &output);
}

/// Reads, and asserts that a write fails as read-only.
async fn read_read_only_store(path: &Path) {
    let store = SqliteStore::open(path, Options::default()).unwrap();
    let to = session("s");
    let tail = store.read(&to, ReadRange::tail(10)).await.unwrap();
    assert_eq!(tail.len(), 5);
    assert_eq!(check(&store).await.findings, []);
    let new = vec![named_entry("late", "late")];
    let append = store
        .append(&to, Append::unconditional(new))
        .await
        .unwrap_err();
    let create = store.create(&to.owner, header("other")).await.unwrap_err();
    for error in [append, create] {
        assert!(matches!(error, StoreError::ReadOnly { .. }), "{error:?}");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
    let beside = path.with_file_name("new.db");
    let none = SqliteStore::open(beside, Options::default()).unwrap_err();
    assert!(matches!(none, StoreError::ReadOnly { .. }), "{none:?}");
    common::print_line("read");
}

/// Returns the program, wrapped to run as an unprivileged user if this is root, whom
/// permissions do not bind.
fn unprivileged_wrapper(folder: &Path) -> (Vec<String>, Option<PathBuf>) {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0);
    if !is_root {
        return (Vec::new(), None);
    }
    // Another user may not be able to access the program where it is. Another process copies
    // it: if it were open for writing here, a process started meanwhile could inherit it, and
    // it could not be run.
    let program = folder.join("program");
    let copied = std::process::Command::new("cp")
        .arg(std::env::current_exe().unwrap())
        .arg(&program)
        .status();
    assert!(copied.unwrap().success());
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let words = ["setpriv", "--reuid", "65534", "--regid", "65534"];
    let mut words: Vec<_> = words.map(ToOwned::to_owned).to_vec();
    words.push("--clear-groups".to_owned());
    (words, Some(program))
}

fn assert_readable_when_read_only(folder: &Path, path: &Path) {
    let (wrapper, program) = unprivileged_wrapper(folder);
    let wrapper: Vec<&str> = wrapper.iter().map(String::as_str).collect();
    let role = format!("read\n{}", path.display());
    let mut command = match &program {
        Some(program) => common::program_process_under(&wrapper, program, &role),
        None => common::child_process_under(&wrapper, &role),
    };
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    for file in std::fs::read_dir(path.parent().unwrap()).unwrap() {
        mode(&file.unwrap().path(), 0o444);
    }
    mode(path.parent().unwrap(), 0o555);
    mode(folder, 0o755);

    let output = command.output().unwrap();

    mode(path.parent().unwrap(), 0o755);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && printed.contains("\nread\n"),
        "{printed}"
    );
}

#[test]
fn a_store_in_a_folder_that_cannot_be_written_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store/sessions.db");
    run(async {
        let store = open(&path);
        fill_session(&store, "s", 5, 10).await;
        store.close().await.unwrap();
    });

    assert_readable_when_read_only(folder.path(), &path);
}

#[test]
fn a_closed_store_is_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    run(async {
        let store = open(&path);
        fill_session(&store, "s", 5, 10).await;
        read_log(&store, &session("s")).await.unwrap();
        store.close().await.unwrap();
    });
    let files = std::fs::read_dir(folder.path()).unwrap();
    let files: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
    assert_eq!(files, ["sessions.db"]);
}

/// Removes a session where the commit fits on the disk and the checkpoint does not.
async fn purge_once(path: &Path) {
    let store = open(path);
    let removed = store.remove(&session("s")).await;
    common::print_line(&format!("removed {removed:?}"));
    let again = store.remove(&session("s")).await;
    common::print_line(&format!("again {again:?}"));
}

#[test]
fn a_purge_that_is_committed_is_not_run_again_when_the_log_cannot_be_emptied() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    run(async {
        let store = open(&path);
        fill_session(&store, "large", 40, 100_000).await;
        let purged = fill_session(&store, "s", 3, 100).await;
        store.trash(&purged, common::at(50)).await.unwrap();
        store.close().await.unwrap();
    });
    // The log stays below the limit; the end of the main file is above it.
    let limited = [
        "bash",
        "-c",
        "trap '' XFSZ; ulimit -f 2000; exec \"$@\"",
        "limited",
    ];
    let role = format!("purge\n{}", path.display());
    let output = common::child_process_under(&limited, &role)
        .output()
        .unwrap();

    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(printed.contains("\nremoved Ok(())"), "{printed}");
    assert!(printed.contains("\nagain Err(NoSuchSession"), "{printed}");
    run(async {
        let store = open(&path);
        assert_eq!(check(&store).await.findings, []);
        let gone = read_log(&store, &session("s")).await.unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::NotFound);
    });
}
