//! How findings are told: what was found, and what to do about it.

use anyhow::Result;
use serde::Serialize;
use serde_json::Value;
use throughline::{CheckReport, Finding, HealthFinding, HealthReport, IndexProblem};

/// Every finding as JSON, each with its remedy.
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

/// What was found in the store.
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
        } => format!("attachment {digest}: its bytes are not here"),
        Finding::Blob { digest, .. } => format!("attachment {digest}: its bytes have changed"),
    }
}

/// What to do about what was found in the store.
fn remedy(finding: &Finding) -> &'static str {
    match finding {
        Finding::File { .. } | Finding::Entry { .. } => {
            "`tl doctor --salvage FILE` gets everything readable into a new store"
        }
        Finding::Derived { .. } => "`tl doctor --rebuild` mends it",
        Finding::Blob { .. } => "a backup or an export may have its bytes",
    }
}

/// What was found beside the store.
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
            format!("permissions: {} is open to others ({mode})", path.display())
        }
    }
}

/// What to do about what was found beside the store.
pub(super) fn health_remedy(finding: &HealthFinding) -> String {
    match finding {
        HealthFinding::Index {
            problem: IndexProblem::Unreadable,
            ..
        } => "see to that, and check again".to_owned(),
        HealthFinding::Index { .. } => "`tl doctor --rebuild` makes it again".to_owned(),
        HealthFinding::Lease { .. } => {
            "the clock was set back since: correct the machine's clock".to_owned()
        }
        HealthFinding::Leftover { .. } => "it can be deleted".to_owned(),
        HealthFinding::Permissions { path, .. } => {
            let path = path.to_string_lossy();
            format!("`chmod go= {}` closes it", shell_words::quote(&path))
        }
    }
}
