//! Files generated from the definition of the command line: reference, man pages,
//! completions.

use std::path::Path;

use crate::harness::Tl;

/// Every command, as `tl COMMAND SUBCOMMAND`.
fn commands() -> Vec<String> {
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/contract/commands.txt");
    let text = std::fs::read_to_string(list).unwrap();
    let lines = text.lines().map(|line| line.split_once(':').unwrap().0);
    lines.map(ToOwned::to_owned).collect()
}

#[test]
fn the_command_reference_is_current_and_complete() {
    let reference = Tl::new().ok(&["generate", "reference"]);
    for command in commands() {
        assert!(
            reference.contains(&format!("## `{command}`\n")),
            "{command} is missing"
        );
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cli.md");
    assert!(
        std::fs::read_to_string(path).unwrap() == reference,
        "docs/reference/cli.md is out of date: run `cargo xtask docs`"
    );
}

#[test]
fn every_command_has_a_man_page() {
    let tl = Tl::new();
    let folder = tl.work().join("man");
    tl.ok(&["generate", "man", folder.to_str().unwrap()]);
    for command in commands() {
        let page = folder.join(format!("{}.1", command.replace(' ', "-")));
        let text = std::fs::read_to_string(&page).unwrap();
        assert!(text.contains(".SH SYNOPSIS"), "{}", page.display());
    }
    let main = std::fs::read_to_string(folder.join("tl.1")).unwrap();
    assert!(main.contains("Exit codes"), "{main}");
}

#[test]
fn every_shell_completes_every_command() {
    let tl = Tl::new();
    let folder = tl.work().join("completions");
    tl.ok(&["generate", "completions", folder.to_str().unwrap()]);
    for (shell, file) in [
        ("bash", "tl.bash"),
        ("elvish", "tl.elv"),
        ("fish", "tl.fish"),
        ("powershell", "_tl.ps1"),
        ("zsh", "_tl"),
    ] {
        let script = std::fs::read_to_string(folder.join(file)).unwrap();
        assert_eq!(script, tl.ok(&["completions", shell]));
        for command in commands() {
            let name = command.rsplit(' ').next().unwrap();
            assert!(script.contains(name), "{shell} does not complete {command}");
        }
    }
}
