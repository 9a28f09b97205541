//! A project keeps its sessions when its folder is moved.

use std::path::Path;
use std::process::Command;

use crate::harness::{Tl, run_to_end};

fn git(folder: &Path, args: &[&str]) {
    let done = Command::new("git")
        .current_dir(folder)
        .args([
            "-c",
            "user.name=x",
            "-c",
            "user.email=x@example.org",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(args)
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
}

fn in_folder(tl: &Tl, folder: &Path, args: &[&str]) -> String {
    run_to_end(tl.command_in(folder, args), args, b"").ok()
}

fn names(tl: &Tl, folder: &Path) -> Vec<String> {
    let listing = in_folder(tl, folder, &["sessions", "--project", ".", "--json"]);
    let listing: serde_json::Value = serde_json::from_str(&listing).unwrap();
    let sessions = listing["sessions"].as_array().unwrap();
    sessions
        .iter()
        .map(|s| s["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_repository_is_recognised_by_its_remote_in_any_clone() {
    let tl = Tl::new();
    let (one, two, other) = (
        tl.work().join("one"),
        tl.work().join("two"),
        tl.work().join("other"),
    );
    for (folder, url) in [
        (&one, "https://example.org/team/app.git"),
        (&two, "git@example.org:team/app"),
        (&other, "https://example.org/team/else.git"),
    ] {
        std::fs::create_dir_all(folder.join("src")).unwrap();
        git(folder, &["init", "-q"]);
        git(folder, &["remote", "add", "origin", url]);
    }
    in_folder(&tl, &one.join("src"), &["new", "--name", "a"]);
    assert_eq!(names(&tl, &two), ["a"]);
    assert!(names(&tl, &other).is_empty());
}

#[test]
fn a_repository_without_a_remote_is_recognised_by_its_first_commit() {
    let tl = Tl::new();
    let old = tl.work().join("old");
    std::fs::create_dir(&old).unwrap();
    git(&old, &["init", "-q"]);
    git(&old, &["commit", "-q", "--allow-empty", "-m", "first"]);
    in_folder(&tl, &old, &["new", "--name", "a"]);
    // Copied, not moved: another folder with another inode.
    let copy = tl.work().join("copy");
    git(&tl.work(), &["clone", "-q", "old", "copy"]);
    git(&copy, &["remote", "remove", "origin"]);
    std::fs::remove_dir_all(&old).unwrap();
    assert_eq!(names(&tl, &copy), ["a"]);
}

#[test]
fn a_renamed_folder_still_lists_its_sessions() {
    let tl = Tl::new();
    let (old, new) = (tl.work().join("old"), tl.work().join("new"));
    std::fs::create_dir(&old).unwrap();
    in_folder(&tl, &old, &["new", "--name", "a"]);
    std::fs::rename(&old, &new).unwrap();
    assert_eq!(names(&tl, &new), ["a"]);
    // A new folder at the old path is a different project.
    std::fs::create_dir(&old).unwrap();
    assert!(names(&tl, &old).is_empty());
    assert_eq!(names(&tl, &new), ["a"]);
}
