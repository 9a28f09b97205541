//! `tl migrate-store`: copies a whole store into another.

use std::process::ExitCode;

use anyhow::Result;
use throughline::format::{format_thousands, pluralize};
use throughline::{MigrationReport, StoreAddress};

use crate::app::App;
use crate::error_report::UserError;

/// Copy a whole store into another one
///
/// Copies all owners' sessions, forks, trash, projects and attachments while the store is in
/// use, then compares both digest by digest. Can be stopped and run again to copy newer
/// entries: `tl migrate-store sqlite:sessions.db postgres://tl@db/tl`. Exits with 6 if
/// anything differs.
#[derive(clap::Args, Debug)]
pub(crate) struct MigrateStoreArgs {
    /// The store to copy
    from: String,
    /// The store to copy into, created if it does not exist
    to: String,
}

pub(crate) async fn run(app: &App, args: MigrateStoreArgs) -> Result<ExitCode> {
    let (from, to): (StoreAddress, StoreAddress) = (args.from.parse()?, args.to.parse()?);
    if from == to {
        return Err(UserError::invalid("both are the same store").into());
    }
    for address in [&from, &to] {
        if let StoreAddress::Server(server) = address {
            return Err(UserError::invalid(format!(
                "{server} is shared by several users: migrate its store on the server itself"
            ))
            .with_hint("`tl export --format jsonl` and `tl import` copy your own sessions")
            .into());
        }
    }
    if let StoreAddress::Sqlite(path) = &from
        && !app.resolve_path(path).exists()
    {
        return Err(UserError {
            what: format!("there is no store at {}", path.display()),
            hint: None,
            kind: throughline::ErrorKind::NotFound,
        }
        .into());
    }
    let source = app.open(&args.from).await?;
    let target = app.open(&args.to).await?;
    let bar = app.ui.progress("Copying", "entries");
    let progress = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let migrated = throughline::migrate(source.store(), target.store(), &progress).await;
    bar.finish_and_clear();
    source.close().await?;
    target.close().await?;
    print_report(app, &migrated?)
}

fn print_report(app: &App, migrated: &MigrationReport) -> Result<ExitCode> {
    let same = migrated.differing.is_empty();
    if app.ui.json {
        let mut report = serde_json::to_value(migrated)?;
        report["ok"] = serde_json::json!(same);
        app.ui.json(&report)?;
    } else {
        for differing in migrated.differing.iter().chain(&migrated.only_there) {
            let (session, owner) = (&differing.session, &differing.owner);
            app.ui.data(format_args!(
                "session {session} ({owner}): {}",
                differing.what
            ))?;
        }
        app.ui.status(format_args!(
            "{} of {}, {} entries identical in both; {} copied now",
            pluralize(migrated.sessions, "session"),
            pluralize(migrated.owners, "owner"),
            format_thousands(migrated.entries),
            format_thousands(migrated.copied),
        ));
        if migrated.missing_blobs > 0 {
            app.ui.warn(format_args!(
                "{} referenced by entries are missing from the store",
                pluralize(migrated.missing_blobs, "attachment")
            ));
        }
        if !same {
            app.ui
                .status("The copy is incomplete: run the command again, or run `tl doctor`.");
        }
    }
    Ok(if same {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(6)
    })
}
