//! `tl memory export` and `import`: facts as a section of AGENTS.md.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;
use throughline::format::pluralize;
use throughline::{AddFactStatus, Error, MemoryError, NewFact};
use throughline_formats::{
    MemoryLine, MemorySectionError, read_memory, replace_memory, write_memory,
};

use super::MemoryTarget;
use crate::app::App;
use crate::error_report::UserError;
use crate::paths::write_atomically;

/// Write facts as a section of an AGENTS.md
///
/// Grouped by file, between markers: in an existing file, only the text between them changes.
#[derive(clap::Args, Debug)]
pub(super) struct ExportArgs {
    /// The file to update [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Owner-wide facts instead
    #[arg(long)]
    owner_wide: bool,
}

/// Read a section written by `tl memory export`
///
/// Adds new facts. Facts that are no longer in the section are not forgotten.
#[derive(clap::Args, Debug)]
pub(super) struct ImportArgs {
    /// The file
    file: PathBuf,
    /// For all of your projects
    #[arg(long)]
    owner_wide: bool,
    /// Store even what looks like a secret
    #[arg(long)]
    force: bool,
}

pub(super) async fn export(app: &App, target: &MemoryTarget, args: ExportArgs) -> Result<()> {
    let facts = target.memory(args.owner_wide).list().await?;
    let lines: Vec<_> = facts
        .into_iter()
        .map(|fact| MemoryLine {
            text: fact.text,
            files: fact.files,
        })
        .collect();
    let section = write_memory(&lines);
    let Some(path) = args.output else {
        if app.ui.json {
            app.ui
                .json(&json!({"facts": lines.len(), "markdown": section}))?;
        } else {
            app.ui.page(&section)?;
        }
        return Ok(());
    };
    let file = app.resolve_path(&path);
    let before = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(read_error(&path, &error)),
    };
    let after = replace_memory(&before, &section).map_err(|error| section_error(&path, error))?;
    write_preserving_permissions(&file, after.as_bytes())
        .with_context(|| format!("{} cannot be written", path.display()))?;
    if app.ui.json {
        app.ui.json(&json!({"facts": lines.len(), "file": path}))?;
    } else {
        let facts = pluralize(lines.len() as u64, "fact");
        app.ui
            .status(format_args!("Wrote {facts} to {}", path.display()));
    }
    Ok(())
}

/// Writes a file atomically and preserves its permissions.
fn write_preserving_permissions(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    match std::fs::metadata(file) {
        Ok(before) => {
            write_atomically(file, bytes)?;
            std::fs::set_permissions(file, before.permissions())
        }
        Err(_) => std::fs::write(file, bytes),
    }
}

pub(super) async fn import(app: &App, target: &MemoryTarget, args: ImportArgs) -> Result<()> {
    let path = &args.file;
    let text = std::fs::read_to_string(app.resolve_path(path))
        .map_err(|error| read_error(path, &error))?;
    let lines = read_memory(&text).map_err(|error| section_error(path, error))?;
    let memory = target.memory(args.owner_wide);
    let (mut new, mut known, mut refused) = (0, 0, 0);
    for line in lines {
        let fact = NewFact {
            files: if args.owner_wide {
                Vec::new()
            } else {
                line.files
            },
            force: args.force,
            ..NewFact::from_person(line.text)
        };
        match memory.add(fact).await {
            Ok(added) if added.status == AddFactStatus::Known => known += 1,
            Ok(_) => new += 1,
            // An invalid line does not prevent the others from being added.
            Err(Error::Memory(error)) => {
                refused += 1;
                let hint = match &error {
                    MemoryError::Secret(_) => "; --force stores it anyway",
                    _ => "",
                };
                app.ui.warn(format_args!("skipped a fact: {error}{hint}"));
            }
            Err(error) => return Err(error.into()),
        }
    }
    if app.ui.json {
        app.ui
            .json(&json!({"new": new, "known": known, "refused": refused}))?;
    } else {
        app.ui.status(format_args!(
            "{} new, {known} already known",
            pluralize(new, "fact")
        ));
    }
    Ok(())
}

fn read_error(path: &Path, error: &std::io::Error) -> anyhow::Error {
    UserError {
        what: format!("{} cannot be read: {error}", path.display()),
        hint: None,
        kind: throughline::ErrorKind::NotFound,
    }
    .into()
}

fn section_error(path: &Path, error: MemorySectionError) -> anyhow::Error {
    let refusal = UserError::invalid(format!("{}: {error}", path.display()));
    match error {
        MemorySectionError::Missing => refusal.with_hint(format!(
            "`tl memory export -o {}` writes one",
            path.display()
        )),
        _ => refusal.with_hint("put both markers back, or remove both and export again"),
    }
    .into()
}
