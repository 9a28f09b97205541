//! `tl doctor --salvage`

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;
use throughline::glance::counted;
use throughline::{Address, Salvaged, Seq};

use crate::app::{App, is_there};
use crate::report::Refusal;

/// Gets everything readable out of the store's file into a new one.
pub(crate) async fn run(app: &App, into: &Path) -> Result<ExitCode> {
    let Address::Sqlite(damaged) = app.config.store().parse()? else {
        return Err(Refusal::invalid("only a store in a file can be salvaged").into());
    };
    let damaged = app.path(&damaged);
    if !is_there(&damaged) {
        return Err(Refusal {
            what: format!("there is no store at {}", damaged.display()),
            hint: None,
            kind: throughline::ErrorKind::NotFound,
        }
        .into());
    }
    let file = app.path(into);
    if file.exists() {
        return Err(
            Refusal::invalid(format!("{} is there already", into.display()))
                .hint("choose another name; nothing is overwritten")
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
    tell(app, into, &salvaged)
}

fn tell(app: &App, into: &Path, salvaged: &Salvaged) -> Result<ExitCode> {
    // A note tells of something that is not as it was.
    let ok = salvaged.lost.is_empty() && salvaged.notes.is_empty();
    if app.ui.json {
        let mut report = serde_json::to_value(salvaged)?;
        report["ok"] = json!(ok);
        report["into"] = json!(into);
        app.ui.json(&report)?;
    } else {
        for loss in &salvaged.lost {
            let ranges: Vec<_> = loss.entries.iter().map(|range| span(*range)).collect();
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
            counted(salvaged.sessions, "session"),
            throughline::glance::thousands(salvaged.entries),
            counted(salvaged.blobs, "attachment"),
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

fn span((first, last): (Seq, Seq)) -> String {
    if first == last {
        first.to_string()
    } else {
        format!("{first}–{last}")
    }
}
