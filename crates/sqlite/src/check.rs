//! Checks that everything derived (records, snapshots, links, tags, attachment references)
//! follows from the logs.
//!
//! Every log is read once. Sessions are checked in creation order, so that a fork's origin has
//! been folded before the fork and its record at the fork point is available.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rusqlite::{Connection, params};
use throughline_model::{Digest, Owner, Record, Seq, SessionId};
use throughline_store::{CheckReport, Finding, LogChecker, ReadRange, StoreError, decode_entry};

use crate::error::{damaged, during, is_environment_failure};
use crate::read::{self, LinkedEntry};
use crate::rows;
use crate::skip_list::{self, JumpPointers, LogEnd};

/// The columns of a session's row that a check needs.
#[derive(Debug)]
struct SessionLog {
    pk: i64,
    owner: Owner,
    id: SessionId,
    shared: Seq,
    end: LogEnd,
    gone: bool,
}

fn load_sessions(connection: &Connection) -> Result<Vec<SessionLog>, StoreError> {
    let failed = during("reading the sessions");
    let mut query = connection
        .prepare(
            "SELECT session.pk, owner.id, session.id, shared, ifnull(entry.seq, head), gone,
                 head_entry
             FROM session JOIN owner ON owner.pk = session.owner
             LEFT JOIN entry ON entry.pk = head_entry ORDER BY session.pk",
        )
        .map_err(failed)?;
    let mut found = query.query([]).map_err(failed)?;
    let mut sessions = Vec::new();
    while let Some(row) = found.next().map_err(failed)? {
        let text = |column| row.get::<_, String>(column).map_err(failed);
        sessions.push(SessionLog {
            pk: row.get(0).map_err(failed)?,
            owner: text(1)?
                .parse()
                .map_err(|e| damaged("an owner cannot be decoded", e))?,
            id: text(2)?
                .parse()
                .map_err(|e| damaged("a session's id cannot be decoded", e))?,
            shared: rows::seq_from_i64(row.get(3).map_err(failed)?),
            end: LogEnd {
                head: rows::seq_from_i64(row.get(4).map_err(failed)?),
                entry: row.get(6).map_err(failed)?,
            },
            gone: row.get(5).map_err(failed)?,
        });
    }
    Ok(sessions)
}

/// Checks the whole store. Damage is reported as a finding; an error means that the check could
/// not be completed.
pub(crate) fn check(
    connection: &Connection,
    progress: &dyn Fn(u64, u64),
) -> Result<CheckReport, StoreError> {
    let mut report = CheckReport::default();
    report.findings.extend(check_file(connection)?);
    let sessions = match load_sessions(connection) {
        Ok(sessions) => sessions,
        Err(error) => {
            report
                .findings
                .push(unreadable_finding(&damage_or_fail(error)?));
            return Ok(report);
        }
    };
    let total = sessions
        .iter()
        .map(|s| s.end.head.0.saturating_sub(s.shared.0))
        .sum();
    let mut bases = HashMap::new();
    for session in &sessions {
        let mut checking = SessionCheck {
            connection,
            session,
            fork_bases: &mut bases,
            report: &mut report,
        };
        if let Err(error) = checking.check_session(&|done| progress(done, total)) {
            report.findings.push(Finding::Derived {
                owner: session.owner.clone(),
                session: session.id.clone(),
                what: error_chain(&damage_or_fail(error)?),
            });
        }
    }
    if let Err(error) = find_stray_entries(connection, &sessions, &mut report)
        .and_then(|()| check_blobs(connection, &mut report))
    {
        report
            .findings
            .push(unreadable_finding(&damage_or_fail(error)?));
    }
    progress(total, total);
    Ok(report)
}

/// Returns the error if it is evidence of damage; otherwise fails the check with it.
fn damage_or_fail(error: StoreError) -> Result<StoreError, StoreError> {
    if is_environment_failure(&error) {
        Err(error)
    } else {
        Ok(error)
    }
}

fn unreadable_finding(error: &StoreError) -> Finding {
    Finding::File {
        what: error_chain(error),
    }
}

/// Formats an error and its sources on one line.
fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

/// Runs SQLite's own integrity check on the file.
pub(crate) fn check_file(connection: &Connection) -> Result<Vec<Finding>, StoreError> {
    let lines = connection
        .prepare("PRAGMA integrity_check(20)")
        .and_then(|mut query| {
            query
                .query_map([], |row| row.get::<_, String>(0))?
                .collect::<Result<Vec<_>, _>>()
        });
    match lines {
        Ok(lines) => Ok(lines
            .into_iter()
            .filter(|line| line != "ok")
            .map(|what| Finding::File { what })
            .collect()),
        Err(error) => Ok(vec![unreadable_finding(&damage_or_fail(during(
            "checking the file",
        )(error))?)]),
    }
}

/// The check of one session.
struct SessionCheck<'a> {
    connection: &'a Connection,
    session: &'a SessionLog,
    /// Records at fork points, collected while folding the forks' origins.
    fork_bases: &'a mut HashMap<i64, Record>,
    report: &'a mut CheckReport,
}

impl SessionCheck<'_> {
    fn check_session(&mut self, progress: &dyn Fn(u64)) -> Result<(), StoreError> {
        let session = self.session;
        let header = rows::load_header(self.connection, session.pk)?;
        let mut base = Record::new(&header);
        match self.fork_bases.remove(&session.pk) {
            Some(record) => base = record,
            None => {
                let inherited = find_shared_end(self.connection, session)
                    .and_then(|end| fold_to(self.connection, &mut base, end, |_| Ok(())));
                if let Err(error) = inherited {
                    return self.report_unreadable(base.info.head.next(), error);
                }
            }
        }
        let snapshots = load_snapshots(self.connection, session.pk)?;
        let forks = load_forks(self.connection, session.pk)?;
        let mut attachments = BTreeSet::new();
        let mut anchors = match find_shared_end(self.connection, session)
            .and_then(|shared| JumpPointers::load(self.connection, shared))
        {
            Ok(anchors) => anchors,
            Err(error) => return self.report_unreadable(session.shared.next(), error),
        };
        let mut check = LogChecker::new(session.owner.clone(), base);
        self.check_at_head(&check.record, &snapshots, &forks)?;
        let mut next = session.shared.next();
        loop {
            let read = ReadRange::starting_at(next, 1_000);
            let page = match read::read_page(self.connection, session.end, read) {
                Ok(page) => page,
                Err(error) => {
                    return self.report_unreadable(check.record.info.head.next(), error);
                }
            };
            let Some(last) = page.last() else {
                break;
            };
            next = last.link.seq.next();
            for LinkedEntry { link, stored } in &page {
                self.report.entries += 1;
                if anchors.next_links() != (link.back, link.jump) {
                    self.report_derived(&format!("entry {} has wrong skip-list links", link.seq));
                }
                anchors.push(link.seq, link.pk);
                self.report.findings.extend(check.check_entry(stored));
                if let Some(message) = stored.decode().ok().as_ref().and_then(|e| e.message()) {
                    attachments.extend(message.content.attachments().map(|a| a.blob));
                }
                self.check_at_head(&check.record, &snapshots, &forks)?;
            }
            progress(self.report.entries);
        }
        if check.record.info.head.next() == next {
            self.check_snapshot_positions(&snapshots, check.record.info.head);
        }
        if !session.gone {
            self.report.sessions += 1;
            let kept = rows::load_record(self.connection, session.pk)?;
            if load_tags(self.connection, session.pk)?
                != kept.info.tags.iter().map(ToString::to_string).collect()
            {
                self.report_derived("its tags differ from those in its session info");
            }
            self.report.findings.extend(check.finish(&kept));
        }
        let noted = load_blob_uses(self.connection, session.pk)?;
        let mut not_noted = false;
        for digest in attachments.difference(&noted) {
            if has_blob(self.connection, &session.owner, digest)? {
                not_noted = true;
            } else {
                // Imported without it, or lost: a rebuild cannot restore it.
                let digest = *digest;
                self.report.findings.push(Finding::Blob {
                    digest,
                    missing: true,
                });
            }
        }
        if not_noted || !noted.is_subset(&attachments) {
            self.report_derived("its recorded attachments differ from those its entries name");
        }
        Ok(())
    }

    /// Reports an unreadable entry, at the position the error names or else at `next`.
    fn report_unreadable(&mut self, next: Seq, error: StoreError) -> Result<(), StoreError> {
        let (seq, what) = match damage_or_fail(error)? {
            StoreError::MissingEntry { seq } => (seq, "it is missing".to_owned()),
            other => (next, error_chain(&other)),
        };
        self.report.findings.push(Finding::Entry {
            owner: self.session.owner.clone(),
            session: self.session.id.clone(),
            seq,
            what,
        });
        Ok(())
    }

    fn report_derived(&mut self, what: &str) {
        self.report.findings.push(Finding::Derived {
            owner: self.session.owner.clone(),
            session: self.session.id.clone(),
            what: what.to_owned(),
        });
    }

    /// Snapshots must exist exactly where they are due.
    fn check_snapshot_positions(&mut self, snapshots: &BTreeMap<Seq, String>, head: Seq) {
        let shared = self.session.shared;
        for seq in snapshots.keys() {
            let own = *seq > shared && *seq <= head;
            if *seq != shared && !(own && crate::append::is_snapshot_due(*seq)) {
                self.report_derived(&format!("unexpected record snapshot at entry {seq}"));
            }
        }
        let expected = (shared.0.max(1)..=head.0).map(Seq);
        for seq in expected.filter(|seq| *seq == shared || crate::append::is_snapshot_due(*seq)) {
            if !snapshots.contains_key(&seq) {
                self.report_derived(&format!("missing record snapshot at entry {seq}"));
            }
        }
    }

    /// Checks the snapshot and the forks at this entry against the folded record.
    fn check_at_head(
        &mut self,
        record: &Record,
        snapshots: &BTreeMap<Seq, String>,
        forks: &BTreeMap<Seq, Vec<i64>>,
    ) -> Result<(), StoreError> {
        let seq = record.info.head;
        if let Some(json) = snapshots.get(&seq)
            && serde_json::from_str::<Record>(json).ok().as_ref() != Some(record)
        {
            self.report_derived(&format!(
                "the record snapshot at entry {seq} differs from the fold of the log"
            ));
        }
        for fork in forks.get(&seq).into_iter().flatten() {
            let header = rows::load_header(self.connection, *fork)?;
            let (completed, base) = record.fork(header.clone());
            // If the content that completed the header has been erased since, the fork's own
            // fold decides.
            if completed == header {
                self.fork_bases.insert(*fork, base);
            }
        }
        Ok(())
    }
}

/// Returns the end of the part of a session's log that it shares with its origin.
fn find_shared_end(connection: &Connection, session: &SessionLog) -> Result<LogEnd, StoreError> {
    if session.shared == Seq::ZERO {
        return Ok(LogEnd::EMPTY);
    }
    let link = skip_list::seek(connection, session.end, session.shared)?;
    Ok(LogEnd {
        head: link.seq,
        entry: Some(link.pk),
    })
}

/// Folds a log into a record, from the record's head to the log's end, and calls back for each
/// entry. Fails if an entry is missing.
pub(crate) fn fold_to(
    connection: &Connection,
    record: &mut Record,
    end: LogEnd,
    mut each: impl FnMut(&Record) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    while record.info.head < end.head {
        let next = record.info.head.next();
        for stored in read::read_stored(connection, end, ReadRange::starting_at(next, 1_000))? {
            record.apply(&decode_entry(&record.info.id, &stored)?);
            each(record)?;
        }
    }
    Ok(())
}

fn load_snapshots(connection: &Connection, pk: i64) -> Result<BTreeMap<Seq, String>, StoreError> {
    connection
        .prepare_cached("SELECT seq, json FROM snapshot WHERE session = ?1")
        .and_then(|mut query| {
            query
                .query_map([pk], |row| {
                    Ok((rows::seq_from_i64(row.get(0)?), row.get(1)?))
                })?
                .collect()
        })
        .map_err(during("reading record snapshots"))
}

/// Returns the forks whose last shared entry belongs to this session, grouped by that entry.
fn load_forks(connection: &Connection, pk: i64) -> Result<BTreeMap<Seq, Vec<i64>>, StoreError> {
    let pairs: Vec<(Seq, i64)> = connection
        .prepare_cached(
            "SELECT upto, session.pk FROM inherits JOIN session ON session.pk = inherits.session
             WHERE base = ?1 AND upto = shared",
        )
        .and_then(|mut query| {
            query
                .query_map([pk], |row| {
                    Ok((rows::seq_from_i64(row.get(0)?), row.get(1)?))
                })?
                .collect()
        })
        .map_err(during("reading forks"))?;
    let mut forks: BTreeMap<Seq, Vec<i64>> = BTreeMap::new();
    for (seq, fork) in pairs {
        forks.entry(seq).or_default().push(fork);
    }
    Ok(forks)
}

fn load_tags(connection: &Connection, pk: i64) -> Result<BTreeSet<String>, StoreError> {
    connection
        .prepare_cached("SELECT tag FROM session_tag WHERE session = ?1")
        .and_then(|mut query| query.query_map([pk], |row| row.get(0))?.collect())
        .map_err(during("reading tags"))
}

fn load_blob_uses(connection: &Connection, pk: i64) -> Result<BTreeSet<Digest>, StoreError> {
    connection
        .prepare_cached(
            "SELECT digest FROM blob_use JOIN blob ON blob.pk = blob_use.blob WHERE session = ?1",
        )
        .and_then(|mut query| {
            query
                .query_map([pk], |row| row.get(0).map(Digest::from_bytes))?
                .collect()
        })
        .map_err(during("reading attachments"))
}

fn has_blob(connection: &Connection, owner: &Owner, digest: &Digest) -> Result<bool, StoreError> {
    connection
        .prepare_cached(
            "SELECT 1 FROM blob JOIN owner ON owner.pk = blob.owner
             WHERE owner.id = ?1 AND digest = ?2",
        )
        .and_then(|mut query| query.exists(params![owner.as_str(), digest.as_bytes()]))
        .map_err(during("looking up an attachment"))
}

/// Finds entries that belong to no session's log.
fn find_stray_entries(
    connection: &Connection,
    sessions: &[SessionLog],
    report: &mut CheckReport,
) -> Result<(), StoreError> {
    let own = |session: &SessionLog| {
        (
            session.pk,
            session.end.head.0.saturating_sub(session.shared.0),
        )
    };
    let expected: BTreeMap<i64, u64> = sessions.iter().map(own).collect();
    let failed = during("looking for stray entries");
    let mut query = connection
        .prepare("SELECT session, count(*) FROM entry GROUP BY session")
        .map_err(failed)?;
    let mut found = query.query([]).map_err(failed)?;
    while let Some(row) = found.next().map_err(failed)? {
        let session: i64 = row.get(0).map_err(failed)?;
        let count: i64 = row.get(1).map_err(failed)?;
        let known = expected.get(&session).copied().unwrap_or(0);
        let more = u64::try_from(count).unwrap_or(0).saturating_sub(known);
        if more > 0 {
            report.findings.push(Finding::File {
                what: format!("{more} entries of session number {session} belong to no log"),
            });
        }
    }
    Ok(())
}

fn check_blobs(connection: &Connection, report: &mut CheckReport) -> Result<(), StoreError> {
    let failed = during("checking attachments");
    let mut query = connection
        .prepare("SELECT digest, data FROM blob")
        .map_err(failed)?;
    let mut found = query.query([]).map_err(failed)?;
    while let Some(row) = found.next().map_err(failed)? {
        report.blobs += 1;
        let digest = Digest::from_bytes(row.get(0).map_err(failed)?);
        let data = row.get_ref(1).map_err(failed)?;
        if data.as_blob().ok().map(Digest::of) != Some(digest) {
            report.findings.push(Finding::Blob {
                digest,
                missing: false,
            });
        }
    }
    Ok(())
}
