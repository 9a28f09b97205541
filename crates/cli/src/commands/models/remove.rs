//! `tl models remove`: removes the contextual model.

use std::fs;

use anyhow::{Context, Result};
use serde_json::json;

use super::add::STAGING_PREFIX;
use super::check_name;
use crate::app::App;
use crate::error_report::UserError;
use crate::semantic::{MINILM, minilm_folder};

/// Remove an installed model
#[derive(clap::Args, Debug)]
pub(super) struct RemoveArgs {
    /// The model: minilm
    name: String,
}

pub(super) fn run(app: &App, args: &RemoveArgs) -> Result<()> {
    check_name(&args.name)?;
    let folder = minilm_folder(&app.paths);
    if !folder.try_exists()? {
        return Err(UserError {
            what: format!("{MINILM} is not installed"),
            hint: None,
            kind: throughline::ErrorKind::NotFound,
        }
        .into());
    }
    // Rename first, so that no process finds a partial model.
    let models = app.paths.models_folder();
    let aside = models.join(format!("{STAGING_PREFIX}removed"));
    let removed = fs::rename(&folder, &aside);
    removed.with_context(|| format!("{} cannot be removed", folder.display()))?;
    for left in fs::read_dir(&models)? {
        let left = left?;
        // Also remove what interrupted runs left behind.
        if left
            .file_name()
            .to_string_lossy()
            .starts_with(STAGING_PREFIX)
        {
            fs::remove_dir_all(left.path())
                .with_context(|| format!("{} cannot be removed", left.path().display()))?;
        }
    }
    if app.ui.json {
        app.ui.json(&json!({"name": MINILM, "removed": true}))?;
    } else {
        app.ui.status(format_args!("Removed {MINILM}"));
    }
    if app.config.is_set("semantic") && app.config.semantic().value == MINILM {
        app.ui.warn(format_args!(
            "the setting semantic is still {MINILM} ({}): searches will report that it is missing",
            app.config.semantic().origin
        ));
    }
    Ok(())
}
