//! `tl models remove`

use std::fs;

use anyhow::{Context, Result};
use serde_json::json;

use super::add::STAGING_PREFIX;
use super::check_name;
use crate::app::App;
use crate::error_report::UserError;
use crate::semantic::{MINILM, minilm_folder};

/// Remove a model that was added
#[derive(clap::Args, Debug)]
pub(super) struct RemoveArgs {
    /// Which: minilm
    name: String,
}

pub(super) fn run(app: &App, args: &RemoveArgs) -> Result<()> {
    check_name(&args.name)?;
    let place = minilm_folder(&app.paths);
    if !place.try_exists()? {
        return Err(UserError {
            what: format!("{MINILM} is not installed"),
            hint: None,
            kind: throughline::ErrorKind::NotFound,
        }
        .into());
    }
    // Out of its place at once, so that nobody finds half of it.
    let models = app.paths.models_folder();
    let aside = models.join(format!("{STAGING_PREFIX}removed"));
    let removed = fs::rename(&place, &aside);
    removed.with_context(|| format!("{} cannot be removed", place.display()))?;
    for left in fs::read_dir(&models)? {
        let left = left?;
        // What was given up half-way goes, too.
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
            "semantic is still {MINILM} by {}: searches will say that it is missing",
            app.config.semantic().origin
        ));
    }
    Ok(())
}
