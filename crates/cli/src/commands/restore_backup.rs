//! `tl restore-backup`: replaces the store's content with a backup.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::json;
use throughline::format::{format_thousands, pluralize};
use throughline::{Environment as _, ErrorKind, RestoreError, RestoreOptions, StoreAddress};

use crate::app::App;
use crate::error_report::UserError;

/// Restore a backup into the store while it is in use
///
/// Verifies the whole backup first. Servers can keep running: they see either the old or the
/// restored content. The old content is saved in a file beside the store. The search index
/// is rebuilt on next use.
#[derive(clap::Args, Debug)]
pub(crate) struct RestoreBackupArgs {
    /// The file that `tl backup` wrote
    file: PathBuf,
    /// Restore even a backup of another store
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(app: &App, args: &RestoreBackupArgs) -> Result<()> {
    let StoreAddress::Sqlite(store) = app.config.store().parse()? else {
        return Err(
            UserError::invalid("only a store in a file can be restored by this command")
                .with_hint("use PostgreSQL's tools, or run this command on the server")
                .into(),
        );
    };
    let (store, file) = (app.resolve_path(&store), app.resolve_path(&args.file));
    if !file.is_file() {
        return Err(UserError {
            what: format!("{} does not exist", args.file.display()),
            hint: None,
            kind: ErrorKind::NotFound,
        }
        .into());
    }
    if let (Ok(store), Ok(file)) = (store.canonicalize(), file.canonicalize())
        && store == file
    {
        return Err(UserError::invalid("the backup is the store itself").into());
    }
    let options = RestoreOptions {
        keep_as: name_for_replaced(&store),
        allow_other_store: args.force,
    };
    let bar = app.ui.progress("Restoring", "steps");
    let progress = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let restored = throughline::restore_backup(&store, &file, &options, &progress);
    bar.finish_and_clear();
    let report = restored.map_err(|error| restore_error(&error))?;
    if app.ui.json {
        app.ui.json(&json!({
            "restored": file,
            "sessions": report.sessions,
            "entries": report.entries,
            "replaced": report.replaced,
            "in_place": report.in_place,
        }))?;
        return Ok(());
    }
    app.ui.status(format_args!(
        "Restored {} and {} entries from {}",
        pluralize(report.sessions, "session"),
        format_thousands(report.entries),
        args.file.display()
    ));
    if let Some(replaced) = &report.replaced {
        app.ui.status(format_args!(
            "The previous content is in {}",
            replaced.display()
        ));
    }
    if !report.in_place {
        app.ui
            .status("The store is now a new file: restart running servers.");
    }
    Ok(())
}

/// Returns an unused file name beside the store.
fn name_for_replaced(store: &Path) -> PathBuf {
    let now = throughline::SystemEnvironment.now();
    let name = format!(
        "{}.before-restore-{}",
        store.display(),
        now.strftime("%Y-%m-%d-%H-%M-%S")
    );
    let mut path = PathBuf::from(&name);
    let mut number = 1;
    while path.exists() {
        number += 1;
        path = PathBuf::from(format!("{name}-{number}"));
    }
    path
}

fn restore_error(error: &RestoreError) -> anyhow::Error {
    let hint = match &error {
        RestoreError::Damaged { file, .. } => Some(format!(
            "`tl --store sqlite:{} doctor --salvage FILE` recovers what is readable",
            file.display()
        )),
        RestoreError::OtherStore { .. } => Some("--force restores it anyway".to_owned()),
        RestoreError::InUse { .. } => Some("stop them and try again".to_owned()),
        RestoreError::NotABackup { .. } => Some("`tl backup FILE` creates one".to_owned()),
        _ => None,
    };
    let mut what = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        what = format!("{what}: {inner}");
        cause = inner.source();
    }
    UserError {
        what,
        hint,
        kind: error.kind(),
    }
    .into()
}
