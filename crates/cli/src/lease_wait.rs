//! Messages about waiting for a lease held by another process, and this process's own
//! description for others.

use jiff::tz::TimeZone;
use throughline::LeaseWait;

use crate::markdown::sanitize;
use crate::paths::Paths;

/// Describes this process for others that wait for it: `tl serve, process 12 on host`.
pub(crate) fn describe_process(program: &str, paths: &Paths) -> String {
    let process = std::process::id();
    match &paths.host {
        Some(host) => format!("{program}, process {process} on {host}"),
        None => format!("{program}, process {process}"),
    }
}

/// Formats which process a command waits for, and until when.
pub(crate) fn format_wait(wait: &LeaseWait, zone: &TimeZone) -> String {
    let work = match wait.name.split_once(' ') {
        Some(("compact", session)) => format!("which is summarizing session {session}"),
        Some(("turn", session)) => {
            let session = session.strip_prefix("in ").unwrap_or(session);
            format!("which is answering in session {session}")
        }
        _ if wait.name == "purge" => "which is emptying the trash".to_owned(),
        _ => format!("which holds the lease {:?}", wait.name),
    };
    let until = wait.until.to_zoned(zone.clone()).strftime("%H:%M:%S");
    let notice = format!(
        "Waiting for {}, {work}. If that process has died, this continues at {until}.",
        wait.holder.name()
    );
    sanitize(&notice).into_owned()
}

#[cfg(test)]
mod tests {
    use throughline::LeaseHolder;

    use super::*;

    fn wait_for(name: &str, holder: &str) -> String {
        let wait = LeaseWait {
            name: name.to_owned(),
            holder: LeaseHolder::parse(holder),
            until: "2026-11-18T12:03:04Z".parse().unwrap(),
        };
        format_wait(&wait, &TimeZone::UTC)
    }

    #[test]
    fn a_notice_says_who_does_what_until_when() {
        assert_eq!(
            wait_for("turn in s1", "tl serve, process 12 on host (01K)"),
            "Waiting for tl serve, process 12 on host, which is answering in session s1. \
             If that process has died, this continues at 12:03:04."
        );
        assert!(wait_for("compact s1", "01K").contains("01K, which is summarizing session s1"));
        assert!(wait_for("purge", "01K").contains("which is emptying the trash"));
        assert!(!wait_for("purge", "\u{1b}[2J").contains('\u{1b}'));
    }
}
