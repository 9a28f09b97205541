//! `tl doctor`: checks the store, the search index and the program's files.

mod findings;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;
use throughline::format::pluralize;
use throughline::{
    CheckReport, Environment as _, Finding, HealthOptions, HealthReport, StoreAddress,
    SystemEnvironment,
};

use crate::app::App;

/// Check the store, the index and the program's files
///
/// Verifies the database file, every session's digest chain, that derived data matches the
/// logs, and that the search index is complete; looks for leftover files and for files that
/// other users can open. Reports a remedy for each finding and exits with 6 if there are any.
#[derive(clap::Args, Debug)]
pub(crate) struct DoctorArgs {
    /// First rebuild all derived data from the logs
    #[arg(long, conflicts_with = "salvage")]
    rebuild: bool,
    /// Copy every readable entry of a damaged store into this new file
    #[arg(long, value_name = "FILE")]
    salvage: Option<PathBuf>,
}

pub(crate) async fn run(app: &App, args: DoctorArgs) -> Result<ExitCode> {
    if let Some(into) = &args.salvage {
        return super::salvage::run(app, into).await;
    }
    let options = health_options(app)?;
    let tl = match app.tl().await {
        Ok(tl) => tl,
        Err(error) => return report_damaged_store(app, error, &options),
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
    let health = tl.check_health(&options).await?;
    print_report(app, &report, &health)
}

/// Returns which files and folders to check besides the store.
fn health_options(app: &App) -> Result<HealthOptions> {
    let store_file = match app.config.store().parse()? {
        StoreAddress::Sqlite(path) => Some(app.resolve_path(&path)),
        StoreAddress::Postgres(_) | StoreAddress::Server(_) | StoreAddress::Memory => None,
    };
    Ok(HealthOptions {
        store_file,
        shared_folders: app.paths.shared_folders(),
        own_folders: app.paths.own_folders(),
    })
}

/// Reports a file too damaged to be opened as a finding.
fn report_damaged_store(
    app: &App,
    error: anyhow::Error,
    options: &HealthOptions,
) -> Result<ExitCode> {
    let damaged = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<throughline::Error>())
        .any(|error| error.kind() == throughline::ErrorKind::Damaged);
    if !damaged {
        return Err(error);
    }
    let what = format!("{error:#}");
    let report = CheckReport {
        findings: vec![Finding::File { what }],
        ..CheckReport::default()
    };
    let health = HealthReport {
        findings: throughline::check_files(options, SystemEnvironment.now()),
        ..HealthReport::default()
    };
    print_report(app, &report, &health)
}

fn print_report(app: &App, report: &CheckReport, health: &HealthReport) -> Result<ExitCode> {
    let count = report.findings.len() + health.findings.len();
    let ok = count == 0;
    if app.ui.json {
        app.ui.json(&json!({
            "ok": ok,
            "store": throughline::redact_url(app.config.store()),
            "sessions": report.sessions,
            "entries": report.entries,
            "blobs": report.blobs,
            "passages": health.passages,
            "leases": health.leases,
            "findings": findings::findings_to_json(report, health)?,
        }))?;
    } else {
        for finding in &report.findings {
            app.ui.data(findings::describe(finding))?;
        }
        for finding in &health.findings {
            app.ui.data(format_args!(
                "{}; {}",
                findings::describe_health(finding),
                findings::health_remedy(finding)
            ))?;
        }
        let looked = format!(
            "{}, {}, {} checked",
            pluralize(report.sessions, "session"),
            if report.entries == 1 {
                "1 entry".to_owned()
            } else {
                format!(
                    "{} entries",
                    throughline::format::format_thousands(report.entries)
                )
            },
            pluralize(report.blobs, "attachment"),
        );
        let found = if ok {
            "no problems found".to_owned()
        } else {
            pluralize(count as u64, "finding")
        };
        app.ui.status(format_args!("{looked}: {found}"));
        let expired = health.expired_leases().count() as u64;
        if expired > 0 {
            app.ui.status(format_args!(
                "{} expired without being released: the holder exited early. Nothing is blocked.",
                pluralize(expired, "lease")
            ));
        }
        if report.findings.iter().any(Finding::is_rebuildable) {
            app.ui.status("`tl doctor --rebuild` repairs derived data.");
        }
        let broken =
            |finding: &Finding| matches!(finding, Finding::File { .. } | Finding::Entry { .. });
        if report.findings.iter().any(broken) {
            app.ui
                .status("`tl doctor --salvage FILE` copies everything readable into a new store.");
        }
    }
    Ok(if ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(6)
    })
}
