//! The documentation: `cargo xtask docs` updates the generated references, `cargo xtask book`
//! builds the book, `cargo xtask man` writes man pages and completions.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::openapi;
use crate::process::{self, built_path, cargo, workspace};
use crate::tools::ensure_cargo_program;

/// The generated references, relative to the workspace.
const HTTP_REFERENCE: &str = "docs/reference/http.md";
const CLI_REFERENCE: &str = "docs/reference/cli.md";

/// Updates the generated references.
pub(crate) fn update_references() -> Result<()> {
    let output = build_tl()?.args(["generate", "reference"]).output()?;
    ensure!(output.status.success(), "tl generate reference failed");
    write(CLI_REFERENCE, &String::from_utf8(output.stdout)?)?;
    write(HTTP_REFERENCE, &http_reference()?)
}

/// Builds the book, from current references.
pub(crate) fn build_book() -> Result<()> {
    update_references()?;
    ensure_cargo_program("mdbook")?;
    process::run(Command::new("mdbook").arg("build").current_dir(workspace()))
}

/// Writes the man pages and completions that packages contain.
pub(crate) fn write_man_pages() -> Result<()> {
    for what in ["man", "completions"] {
        let folder = workspace().join("target/package").join(what);
        process::run(build_tl()?.args(["generate", what]).arg(&folder))?;
    }
    Ok(())
}

/// Builds `tl` with the features that the tests build it with.
fn build_tl() -> Result<Command> {
    let build = [
        "build",
        "--quiet",
        "--workspace",
        "--all-features",
        "--bin",
        "tl",
    ];
    process::run(cargo().args(build))?;
    Ok(Command::new(built_path("debug", "tl")))
}

fn http_reference() -> Result<String> {
    openapi::render(&read("docs/openapi.json")?)
}

fn read(name: &str) -> Result<String> {
    std::fs::read_to_string(workspace().join(name)).with_context(|| format!("cannot read {name}"))
}

fn write(name: &str, text: &str) -> Result<()> {
    let path = workspace().join(name);
    std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    std::fs::write(&path, text)?;
    eprintln!("Wrote {name}");
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_http_reference_is_current() {
        assert!(
            read(HTTP_REFERENCE).unwrap() == http_reference().unwrap(),
            "{HTTP_REFERENCE} is out of date: run `cargo xtask docs`"
        );
    }

    #[test]
    fn the_http_reference_has_every_operation_and_type() {
        let page = http_reference().unwrap();
        let document: serde_json::Value =
            serde_json::from_str(&read("docs/openapi.json").unwrap()).unwrap();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for method in methods.as_object().unwrap().keys() {
                let title = format!("\n### `{} {path}`\n", method.to_uppercase());
                assert!(page.contains(&title), "{title} is missing");
            }
        }
        for name in document["components"]["schemas"]
            .as_object()
            .unwrap()
            .keys()
        {
            assert!(
                page.contains(&format!("\n### {name}\n")),
                "{name} is missing"
            );
        }
    }

    /// The pages that the book's summary links to.
    fn chapters() -> BTreeSet<String> {
        let summary = read("docs/SUMMARY.md").unwrap();
        let links = summary
            .lines()
            .filter_map(|line| line.split_once("](")?.1.split_once(')'));
        links.map(|(link, _)| link.to_owned()).collect()
    }

    #[test]
    fn the_book_links_only_to_pages_that_exist() {
        for chapter in chapters() {
            let path = workspace().join("docs").join(&chapter);
            assert!(
                path.is_file(),
                "docs/SUMMARY.md links to {chapter}, which does not exist"
            );
        }
    }

    #[test]
    fn every_page_is_in_the_book() {
        let chapters = chapters();
        for folder in ["", "reference/"] {
            for file in std::fs::read_dir(workspace().join("docs").join(folder)).unwrap() {
                let name = file.unwrap().file_name().into_string().unwrap();
                let page = format!("{folder}{name}");
                let is_page = Path::new(&name).extension().is_some_and(|end| end == "md");
                if is_page && name != "SUMMARY.md" {
                    assert!(
                        chapters.contains(&page),
                        "docs/SUMMARY.md does not link to {page}"
                    );
                }
            }
        }
    }

    #[test]
    fn links_between_pages_lead_somewhere() {
        for chapter in chapters() {
            let page = workspace().join("docs").join(&chapter);
            let text = std::fs::read_to_string(&page).unwrap();
            for link in text.split("](").skip(1) {
                let link = link.split([')', '#']).next().unwrap();
                if link.is_empty() || link.contains("://") {
                    continue;
                }
                let target = page.parent().unwrap().join(link);
                assert!(
                    target.exists(),
                    "{chapter} links to {link}, which does not exist"
                );
            }
        }
    }
}
