//! `tl backup`: copies the whole store into a file.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::json;

use crate::app::App;
use crate::error_report::UserError;
use throughline::format::abbreviate;

/// Back up the whole store to a file while it is in use
///
/// The copy is consistent, appears only when complete, and is itself a store:
/// `tl --store sqlite:FILE sessions`.
#[derive(clap::Args, Debug)]
pub(crate) struct BackupArgs {
    /// The file to create
    file: PathBuf,
}

pub(crate) async fn run(app: &App, args: BackupArgs) -> Result<()> {
    let file = app.resolve_path(&args.file);
    if file.exists() {
        return Err(
            UserError::invalid(format!("{} already exists", args.file.display()))
                .with_hint("choose another name; a backup never overwrites")
                .into(),
        );
    }
    let tl = app.tl().await?;
    let bar = app.ui.progress("Backing up", "files");
    bar.enable_steady_tick(std::time::Duration::from_millis(100));
    let progress = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let backed = tl.backup(&file, &progress).await;
    bar.finish_and_clear();
    backed?;
    let bytes = std::fs::metadata(&file)?.len();
    if app.ui.json {
        app.ui.json(&json!({"file": file, "bytes": bytes}))?;
    } else {
        app.ui.status(format_args!(
            "Wrote {}B to {}",
            abbreviate(bytes),
            args.file.display()
        ));
    }
    Ok(())
}
