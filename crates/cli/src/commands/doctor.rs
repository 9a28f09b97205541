//! `tl doctor`

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;
use throughline::glance::counted;
use throughline::{Finding, Report};

use crate::app::App;

/// Check that everything is as it should be
///
/// Checks the file, every session's chain of digests, and that everything derived
/// follows from the logs. Exits with 6 if anything is wrong.
#[derive(clap::Args, Debug)]
pub(crate) struct DoctorArgs {
    /// Make everything derived anew from the logs first
    #[arg(long, conflicts_with = "salvage")]
    rebuild: bool,
    /// Get every readable entry out of a damaged store into this new file
    #[arg(long, value_name = "FILE")]
    salvage: Option<PathBuf>,
}

pub(crate) async fn run(app: &App, args: DoctorArgs) -> Result<ExitCode> {
    if let Some(into) = &args.salvage {
        return super::salvage::run(app, into).await;
    }
    let tl = match app.tl().await {
        Ok(tl) => tl,
        Err(error) => return unopened(app, error),
    };
    let bar = app.ui.progress("Checking", "entries");
    let progress = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let report = if args.rebuild {
        tl.rebuild(&progress).await
    } else {
        tl.check(&progress).await
    };
    bar.finish_and_clear();
    let report = report?;
    if args.rebuild {
        let bar = app.ui.progress("Indexing", "changes");
        let mut fed = |done: u64, all: u64| {
            bar.set_length(all);
            bar.set_position(done);
        };
        tl.reindex(&mut fed).await?;
        bar.finish_and_clear();
    }
    tell(app, &report)
}

/// A file too damaged to be opened is a finding like any other.
fn unopened(app: &App, error: anyhow::Error) -> Result<ExitCode> {
    let damaged = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<throughline::Error>())
        .any(|error| error.kind() == throughline::ErrorKind::Damaged);
    if !damaged {
        return Err(error);
    }
    let what = format!("{error:#}");
    let findings = vec![Finding::File { what }];
    tell(
        app,
        &Report {
            findings,
            ..Report::default()
        },
    )
}

fn tell(app: &App, report: &Report) -> Result<ExitCode> {
    let ok = report.findings.is_empty();
    if app.ui.json {
        app.ui.json(&json!({
            "ok": ok,
            "store": throughline::redacted(app.config.store()),
            "sessions": report.sessions,
            "entries": report.entries,
            "blobs": report.blobs,
            "findings": report.findings,
        }))?;
    } else {
        for finding in &report.findings {
            app.ui.data(describe(finding))?;
        }
        let looked = format!(
            "{}, {}, {} checked",
            counted(report.sessions, "session"),
            if report.entries == 1 {
                "1 entry".to_owned()
            } else {
                format!("{} entries", throughline::glance::thousands(report.entries))
            },
            counted(report.blobs, "attachment"),
        );
        let found = if ok {
            "all is well".to_owned()
        } else {
            counted(report.findings.len() as u64, "finding")
        };
        app.ui.status(format_args!("{looked}: {found}"));
        if report.findings.iter().any(Finding::can_be_rebuilt) {
            app.ui
                .status("`tl doctor --rebuild` mends what is derived.");
        }
        let broken =
            |finding: &Finding| matches!(finding, Finding::File { .. } | Finding::Entry { .. });
        if report.findings.iter().any(broken) {
            app.ui
                .status("`tl doctor --salvage FILE` gets everything readable into a new store.");
        }
    }
    Ok(if ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(6)
    })
}

fn describe(finding: &Finding) -> String {
    match finding {
        Finding::File { what } => format!("file: {what}"),
        Finding::Entry {
            owner,
            session,
            seq,
            what,
        } => format!("entry {seq} of {session} ({owner}): {what}"),
        Finding::Derived {
            owner,
            session,
            what,
        } => format!("session {session} ({owner}): {what}"),
        Finding::Blob {
            digest,
            missing: true,
        } => format!("attachment {digest}: its bytes are not here"),
        Finding::Blob { digest, .. } => format!("attachment {digest}: its bytes have changed"),
    }
}
