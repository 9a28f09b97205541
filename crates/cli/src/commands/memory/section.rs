//! `tl memory export` and `import`

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;
use throughline::glance::counted;
use throughline::{AddedHow, Error, MemoryError, NewFact};
use throughline_formats::{
    MemoryLine, MemorySectionError, place_memory, read_memory, write_memory,
};

use super::Place;
use crate::app::App;
use crate::places::write_whole;
use crate::report::Refusal;

/// Write what is remembered as a section of an AGENTS.md
///
/// Grouped by file, between markers: in a file, only what stands between them changes.
#[derive(clap::Args, Debug)]
pub(super) struct ExportArgs {
    /// The file; the section goes into it [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// What is owner-wide instead
    #[arg(long)]
    owner_wide: bool,
}

/// Read such a section back
///
/// What is new in it is remembered. What is no longer in it is not forgotten.
#[derive(clap::Args, Debug)]
pub(super) struct ImportArgs {
    /// The file
    file: PathBuf,
    /// For all of your projects
    #[arg(long)]
    owner_wide: bool,
    /// Remember even what looks like a secret
    #[arg(long)]
    force: bool,
}

pub(super) async fn export(app: &App, place: &Place, args: ExportArgs) -> Result<()> {
    let facts = place.memory(args.owner_wide).list().await?;
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
    let file = app.path(&path);
    let before = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(unreadable(&path, &error)),
    };
    let after = place_memory(&before, &section).map_err(|error| broken(&path, error))?;
    write_like(&file, after.as_bytes())
        .with_context(|| format!("{} cannot be written", path.display()))?;
    if app.ui.json {
        app.ui.json(&json!({"facts": lines.len(), "file": path}))?;
    } else {
        let facts = counted(lines.len() as u64, "fact");
        app.ui
            .status(format_args!("Wrote {facts} to {}", path.display()));
    }
    Ok(())
}

/// Writes a file whole; who may read it stays as it was.
fn write_like(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    match std::fs::metadata(file) {
        Ok(before) => {
            write_whole(file, bytes)?;
            std::fs::set_permissions(file, before.permissions())
        }
        Err(_) => std::fs::write(file, bytes),
    }
}

pub(super) async fn import(app: &App, place: &Place, args: ImportArgs) -> Result<()> {
    let path = &args.file;
    let text = std::fs::read_to_string(app.path(path)).map_err(|error| unreadable(path, &error))?;
    let lines = read_memory(&text).map_err(|error| broken(path, error))?;
    let memory = place.memory(args.owner_wide);
    let (mut new, mut known, mut refused) = (0, 0, 0);
    for line in lines {
        let fact = NewFact {
            files: if args.owner_wide {
                Vec::new()
            } else {
                line.files
            },
            force: args.force,
            ..NewFact::said(line.text)
        };
        match memory.add(fact).await {
            Ok(added) if added.how == AddedHow::Known => known += 1,
            Ok(_) => new += 1,
            // One bad line is no reason to leave the others out.
            Err(Error::Memory(error)) => {
                refused += 1;
                let hint = match &error {
                    MemoryError::Secret(_) => "; --force remembers it all the same",
                    _ => "",
                };
                app.ui
                    .warn(format_args!("a fact was left out: {error}{hint}"));
            }
            Err(error) => return Err(error.into()),
        }
    }
    if app.ui.json {
        app.ui
            .json(&json!({"new": new, "known": known, "refused": refused}))?;
    } else {
        app.ui.status(format_args!(
            "{} new, {known} known already",
            counted(new, "fact")
        ));
    }
    Ok(())
}

fn unreadable(path: &Path, error: &std::io::Error) -> anyhow::Error {
    Refusal {
        what: format!("{} cannot be read: {error}", path.display()),
        hint: None,
        kind: throughline::ErrorKind::NotFound,
    }
    .into()
}

fn broken(path: &Path, error: MemorySectionError) -> anyhow::Error {
    let refusal = Refusal::invalid(format!("{}: {error}", path.display()));
    match error {
        MemorySectionError::Missing => refusal.hint(format!(
            "`tl memory export -o {}` writes one",
            path.display()
        )),
        _ => refusal.hint("put both markers back, or remove both and export again"),
    }
    .into()
}
