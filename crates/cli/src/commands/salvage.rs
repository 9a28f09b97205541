//! `tl doctor --salvage`: copies everything readable from a damaged store into a new one.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;
use throughline::format::pluralize;
use throughline::{SalvageReport, Seq, StoreAddress};

use crate::app::{App, store_exists};
use crate::error_report::UserError;

/// Copies everything readable from the store's file into a new one.
pub(crate) async fn run(app: &App, into: &Path) -> Result<ExitCode> {
    let StoreAddress::Sqlite(damaged) = app.config.store().parse()? else {
        return Err(UserError::invalid("only a store in a file can be salvaged").into());
    };
    let damaged = app.resolve_path(&damaged);
    if !store_exists(&damaged) {
        return Err(UserError {
            what: format!("there is no store at {}", damaged.display()),
            hint: None,
            kind: throughline::ErrorKind::NotFound,
        }
        .into());
    }
    let file = app.resolve_path(into);
    if file.exists() {
        return Err(
            UserError::invalid(format!("{} already exists", into.display()))
                .with_hint("choose another name; nothing is overwritten")
                .into(),
        );
    }
    let new = app.open(&format!("sqlite:{}", file.display())).await?;
    let bar = app.ui.progress("Salvaging", "entries");
    let progress = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let salvaged = throughline::salvage(&damaged, new.store(), &progress).await;
    bar.finish_and_clear();
    let salvaged = salvaged?;
    new.close().await?;
    print_report(app, into, &salvaged)
}

fn print_report(app: &App, into: &Path, salvaged: &SalvageReport) -> Result<ExitCode> {
    // A note reports something that differs from the original.
    let ok = salvaged.lost.is_empty() && salvaged.notes.is_empty();
    if app.ui.json {
        let mut report = serde_json::to_value(salvaged)?;
        report["ok"] = json!(ok);
        report["into"] = json!(into);
        app.ui.json(&report)?;
    } else {
        for loss in &salvaged.lost {
            let ranges: Vec<_> = loss
                .entries
                .iter()
                .map(|range| format_range(*range))
                .collect();
            app.ui.data(format_args!(
                "lost: entries {} of {} ({}): {}",
                ranges.join(", "),
                loss.session,
                loss.owner,
                loss.why
            ))?;
        }
        for note in &salvaged.notes {
            app.ui.status(note);
        }
        app.ui.status(format_args!(
            "{}, {} entries and {} are in {}",
            pluralize(salvaged.sessions, "session"),
            throughline::format::format_thousands(salvaged.entries),
            pluralize(salvaged.blobs, "attachment"),
            into.display()
        ));
        if salvaged.unverified > 0 {
            app.ui.status(format_args!(
                "{} of the entries follow a lost one and cannot be verified",
                salvaged.unverified
            ));
        }
        if ok {
            app.ui.status("Nothing was lost.");
        }
    }
    Ok(if ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(6)
    })
}

fn format_range((first, last): (Seq, Seq)) -> String {
    if first == last {
        first.to_string()
    } else {
        format!("{first}–{last}")
    }
}
