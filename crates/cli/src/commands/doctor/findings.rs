//! Formats findings of `tl doctor`: a description and a remedy for each.

use anyhow::Result;
use serde::Serialize;
use serde_json::Value;
use throughline::{CheckReport, Finding, HealthFinding, HealthReport, IndexProblem};

/// Converts every finding to JSON, with its remedy.
pub(super) fn findings_to_json(report: &CheckReport, health: &HealthReport) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for finding in &report.findings {
        all.push(with_remedy(finding, remedy(finding))?);
    }
    for finding in &health.findings {
        all.push(with_remedy(finding, &health_remedy(finding))?);
    }
    Ok(all)
}

fn with_remedy(finding: &impl Serialize, remedy: &str) -> Result<Value> {
    let mut value = serde_json::to_value(finding)?;
    value["remedy"] = remedy.into();
    Ok(value)
}

/// Describes a finding in the store.
pub(super) fn describe(finding: &Finding) -> String {
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
        } => format!("attachment {digest}: its bytes are missing"),
        Finding::Blob { digest, .. } => format!("attachment {digest}: its bytes have changed"),
    }
}

/// Returns the remedy for a finding in the store.
fn remedy(finding: &Finding) -> &'static str {
    match finding {
        Finding::File { .. } | Finding::Entry { .. } => {
            "`tl doctor --salvage FILE` copies everything readable into a new store"
        }
        Finding::Derived { .. } => "`tl doctor --rebuild` repairs it",
        Finding::Blob { .. } => "a backup or an export may contain its bytes",
    }
}

/// Describes a finding outside the store.
pub(super) fn describe_health(finding: &HealthFinding) -> String {
    match finding {
        HealthFinding::Index { what, .. } => format!("index: {what}"),
        HealthFinding::Lease {
            owner,
            name,
            holder,
            expires_at,
        } => format!("lease: {name} ({owner}) is held by {holder} until {expires_at}"),
        HealthFinding::Leftover { path, what } => format!("leftover: {} ({what})", path.display()),
        HealthFinding::Permissions { path, mode } => {
            format!(
                "permissions: {} is accessible to other users ({mode})",
                path.display()
            )
        }
    }
}

/// Returns the remedy for a finding outside the store.
pub(super) fn health_remedy(finding: &HealthFinding) -> String {
    match finding {
        HealthFinding::Index {
            problem: IndexProblem::Unreadable,
            ..
        } => "fix the cause, then check again".to_owned(),
        HealthFinding::Index { .. } => "`tl doctor --rebuild` rebuilds it".to_owned(),
        HealthFinding::Lease { .. } => {
            "the clock has been set back: correct the machine's clock".to_owned()
        }
        HealthFinding::Leftover { .. } => "it can be deleted".to_owned(),
        HealthFinding::Permissions { path, .. } => {
            let path = path.to_string_lossy();
            format!(
                "`chmod go= {}` restricts it to you",
                shell_words::quote(&path)
            )
        }
    }
}
