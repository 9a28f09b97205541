//! `tl restore-backup`

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::json;
use throughline::format::{format_thousands, pluralize};
use throughline::{Environment as _, ErrorKind, RestoreError, RestoreOptions, StoreAddress};

use crate::app::App;
use crate::error_report::UserError;

/// Restore a backup into the store while it is in use
///
/// Checks the whole backup first. Servers may go on running: they see either everything from
/// before or everything that was restored. What the store held until now is kept in a file
/// beside it. The search index is rebuilt when it is next used.
#[derive(clap::Args, Debug)]
pub(crate) struct RestoreBackupArgs {
    /// The file that `tl backup` made
    file: PathBuf,
    /// Restore it even if it is a backup of another store
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(app: &App, args: &RestoreBackupArgs) -> Result<()> {
    let StoreAddress::Sqlite(store) = app.config.store().parse()? else {
        return Err(
            UserError::invalid("only a store in a file can be restored by this command")
                .with_hint(
                    "use the tools of PostgreSQL, or run it where the server keeps its store",
                )
                .into(),
        );
    };
    let (store, file) = (app.resolve_path(&store), app.resolve_path(&args.file));
    if !file.is_file() {
        return Err(UserError {
            what: format!("there is no file {}", args.file.display()),
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
            "What the store held before is in {}",
            replaced.display()
        ));
    }
    if !report.in_place {
        app.ui
            .status("The store's file is a new one: restart servers that were running.");
    }
    Ok(())
}

/// A name beside the store that nothing has yet.
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
            "`tl --store sqlite:{} doctor --salvage FILE` gets what is readable out of it",
            file.display()
        )),
        RestoreError::OtherStore { .. } => Some("--force restores it all the same".to_owned()),
        RestoreError::InUse { .. } => Some("stop them and try again".to_owned()),
        RestoreError::NotABackup { .. } => Some("`tl backup FILE` makes one".to_owned()),
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
