//! Settings and their sources.

use crate::assert_output;
use crate::harness::{Tl, regex_escape, run_to_end};

#[test]
fn each_value_tells_where_it_came_from() {
    let tl = Tl::new();
    let project = tl.work().join(".throughline");
    std::fs::create_dir_all(&project).unwrap();
    std::fs::create_dir_all(tl.home()).unwrap();
    std::fs::write(
        tl.home().join("config.toml"),
        "trash_grace = \"7d\"\ncolor = \"never\"\nmax_sessions = 50\n",
    )
    .unwrap();
    std::fs::write(
        project.join("config.toml"),
        "store = \"sqlite:here.db\"\ncolor = \"auto\"\n",
    )
    .unwrap();
    let mut command = tl.command(&["config", "--owner", "ada"]);
    command.env("TL_TRASH_GRACE", "3d");
    assert_output!(
        tl,
        "config",
        run_to_end(command, &["config", "--owner", "ada"], b"")
    );
    tl.ok(&["new"]);
    assert!(project.join("here.db").exists());
    assert_eq!(tl.ok(&["config", "trash_grace"]), "7d\n");
}

#[test]
fn a_setting_that_makes_no_sense_is_refused() {
    let tl = Tl::new();
    std::fs::create_dir_all(tl.home()).unwrap();
    let with = |text: &str| {
        std::fs::write(tl.home().join("config.toml"), text).unwrap();
        tl.run(&["sessions"])
    };
    assert_output!(
        tl,
        "config_errors",
        with("stroe = \"memory:\""),
        with("trash_grace = \"soon\""),
        with("max_sessions = 0"),
        with("store = [1]"),
        with("= broken"),
        tl.run(&["config", "nothing"]),
    );
}

#[test]
fn a_project_cannot_decide_what_is_thrown_away() {
    let tl = Tl::new();
    std::fs::create_dir_all(tl.work().join(".throughline")).unwrap();
    std::fs::write(
        tl.work().join(".throughline/config.toml"),
        "max_sessions = 1",
    )
    .unwrap();
    assert_output!(tl, "config_project", tl.run(&["sessions"]));
}

#[test]
fn no_color_and_a_pipe_mean_no_escapes() {
    let tl = Tl::new();
    tl.session("s", &["**bold**"]);
    assert!(!tl.ok(&["show"]).contains('\u{1b}'));
    assert!(tl.ok(&["show", "--color", "always"]).contains('\u{1b}'));
}

#[test]
fn completions_are_printed() {
    let tl = Tl::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(tl.ok(&["completions", shell]).contains("unarchive"));
    }
}
