//! Verifies that everything derived matches the logs.
//!
//! Every log is read once, all in one snapshot. Logs are visited in the order in which they
//! were created, so that a fork's origin is folded before the fork, and its record at the
//! fork is available.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use throughline_model::{Digest, Owner, Record, Seq, SessionHeader};
use throughline_store::{
    CheckReport, Finding, LogChecker, ProgressCallback, ReadRange, StoreError,
};

use crate::error::{Fault, damaged};
use crate::open::error_chain;
use crate::rows::{self, SessionRow};
use crate::tx::Tx;
use crate::{append, read};

/// A log, as far as a check needs it.
#[derive(Debug)]
struct SessionLog {
    owner: Owner,
    session: SessionRow,
    header: String,
    /// The session was removed; the log is retained for forks that share its entries.
    is_removed: bool,
}

/// Lists all logs in the order in which they were created.
async fn list_logs(tx: &Tx) -> Result<Vec<SessionLog>, Fault> {
    let found = tx
        .query(
            "reading the sessions",
            "SELECT l.*,
                 ARRAY(SELECT i.upto FROM throughline.inherits i
                     WHERE i.owner = l.owner AND i.log = l.log ORDER BY i.upto),
                 ARRAY(SELECT i.base FROM throughline.inherits i
                     WHERE i.owner = l.owner AND i.log = l.log ORDER BY i.upto)
             FROM (
                 SELECT s.owner, s.log, s.id, s.shared, coalesce(h.head, 0) AS head, s.birth, false
                 FROM throughline.session s
                 LEFT JOIN throughline.head h ON h.owner = s.owner AND h.log = s.log
                 UNION ALL
                 SELECT k.owner, k.log, k.id, k.shared, k.head, k.birth, true
                 FROM throughline.kept k
             ) AS l ORDER BY l.log, l.owner",
            &[],
        )
        .await?;
    let logs = found.iter().map(|row| {
        let upto: Vec<i64> = rows::get(row, 7)?;
        let bases: Vec<i64> = rows::get(row, 8)?;
        Ok(SessionLog {
            owner: rows::parse_column(row, 0)?,
            session: SessionRow {
                log: rows::get(row, 1)?,
                id: rows::parse_column(row, 2)?,
                shared: rows::seq_from_i64(rows::get(row, 3)?),
                head: rows::seq_from_i64(rows::get(row, 4)?),
                trashed: false,
                segments: rows::to_segments(upto, bases),
            },
            header: rows::get(row, 5)?,
            is_removed: rows::get(row, 6)?,
        })
    });
    Ok(logs.collect::<Result<_, StoreError>>()?)
}

/// The owner and number of every log.
pub(crate) async fn list_log_numbers(tx: &Tx) -> Result<Vec<(Owner, i64)>, Fault> {
    let logs = list_logs(tx).await?.into_iter();
    Ok(logs.map(|log| (log.owner, log.session.log)).collect())
}

/// Checks all sessions and attachments.
pub(crate) async fn check(tx: &Tx, progress: ProgressCallback<'_>) -> Result<CheckReport, Fault> {
    let mut report = CheckReport::default();
    let logs = list_logs(tx).await?;
    let own = |log: &SessionLog| log.session.head.0.saturating_sub(log.session.shared.0);
    let total = logs.iter().map(own).sum();
    let forks = load_forks(tx).await?;
    let mut bases = HashMap::new();
    for listed in &logs {
        let mut checking = SessionCheck {
            tx,
            log: listed,
            forks: forks.get(&listed.session.log),
            fork_bases: &mut bases,
            report: &mut report,
        };
        match checking.check_session().await {
            Ok(()) => {}
            Err(Fault::Store(error)) => {
                let what = error_chain(&error);
                checking.report_derived(&what);
            }
            // The database failed, which says nothing about the data.
            Err(fault) => return Err(fault),
        }
        progress(report.entries, total);
    }
    find_stray_entries(tx, &logs, &mut report).await?;
    check_blobs(tx, &mut report).await?;
    progress(total, total);
    Ok(report)
}

/// Forks by the log and entry of their last shared entry: the fork's log and header.
type ForksByOrigin = HashMap<i64, BTreeMap<Seq, Vec<(i64, SessionHeader)>>>;

async fn load_forks(tx: &Tx) -> Result<ForksByOrigin, Fault> {
    let found = tx
        .query(
            "reading forks",
            "SELECT i.base, i.upto, i.log, l.birth FROM throughline.inherits i
             JOIN (
                 SELECT owner, log, shared, birth FROM throughline.session
                 UNION ALL SELECT owner, log, shared, birth FROM throughline.kept
             ) AS l ON l.owner = i.owner AND l.log = i.log AND l.shared = i.upto",
            &[],
        )
        .await?;
    let mut forks = ForksByOrigin::new();
    for row in &found {
        let at = rows::seq_from_i64(rows::get(row, 1)?);
        let header = rows::decode_header(rows::get(row, 3)?)?;
        let of: &mut BTreeMap<_, Vec<_>> = forks.entry(rows::get(row, 0)?).or_default();
        of.entry(at).or_default().push((rows::get(row, 2)?, header));
    }
    Ok(forks)
}

/// The check of one log.
struct SessionCheck<'a> {
    tx: &'a Tx,
    log: &'a SessionLog,
    forks: Option<&'a BTreeMap<Seq, Vec<(i64, SessionHeader)>>>,
    /// Records at which forks start, filled in as their origins are folded.
    fork_bases: &'a mut HashMap<i64, Record>,
    report: &'a mut CheckReport,
}

impl SessionCheck<'_> {
    async fn check_session(&mut self) -> Result<(), Fault> {
        let SessionLog {
            owner,
            session: found,
            ..
        } = self.log;
        let mut base = Record::new(&rows::decode_header(&self.log.header)?);
        match self.fork_bases.remove(&found.log) {
            Some(record) => base = record,
            None => {
                let shared = found.with_head(found.shared);
                let folding = read::fold_to(self.tx, owner, &mut base, &shared, |_| ());
                if let Err(fault) = folding.await {
                    return self.report_unreadable(base.info.head.next(), fault);
                }
            }
        }
        let snapshots = load_snapshots(self.tx, owner, found.log).await?;
        let mut attachments = BTreeSet::new();
        let mut check = LogChecker::new(owner.clone(), base);
        self.check_at_head(&check.record, &snapshots);
        let mut next = found.shared.next();
        loop {
            let read = ReadRange::starting_at(next, 1_000);
            let page = match read::read_page(self.tx, owner, found, read).await {
                Ok(page) => page,
                Err(fault) => {
                    return self.report_unreadable(check.record.info.head.next(), fault);
                }
            };
            let Some(last) = page.last() else {
                break;
            };
            next = last.seq.next();
            for stored in &page {
                self.report.entries += 1;
                self.report.findings.extend(check.check_entry(stored));
                if let Some(message) = stored.decode().ok().as_ref().and_then(|e| e.message()) {
                    attachments.extend(message.content.attachments().map(|a| a.blob));
                }
                self.check_at_head(&check.record, &snapshots);
            }
        }
        if check.record.info.head.next() == next {
            self.check_snapshot_positions(&snapshots, check.record.info.head);
        }
        if !self.log.is_removed {
            self.report.sessions += 1;
            self.compare_stored(check).await?;
        }
        self.compare_attachments(&attachments).await
    }

    /// Compares the stored record, tags and columns with the fold of the log.
    async fn compare_stored(&mut self, check: LogChecker) -> Result<(), Fault> {
        let SessionLog {
            owner,
            session: found,
            ..
        } = self.log;
        let record = rows::load_record(self.tx, owner, found.log).await?;
        let of = params![owner.as_str(), found.log];
        let tags = self
            .tx
            .query(
                "reading tags",
                "SELECT tag FROM throughline.session_tag WHERE owner = $1 AND log = $2",
                of,
            )
            .await?;
        let tags = tags
            .iter()
            .map(|row| rows::get::<String>(row, 0))
            .collect::<Result<BTreeSet<_>, _>>()?;
        let named = record.info.tags.iter();
        if tags
            != named
                .map(|tag| rows::escape_nul(tag.as_str()).into_owned())
                .collect()
        {
            self.report_derived("its tags differ from those in its session info");
        }
        let columns = self
            .tx
            .query_opt(
                "reading a session's row",
                "SELECT s.status, s.name, s.project, s.agent, h.id = s.id,
                     h.trashed = (s.trashed_at IS NOT NULL)
                 FROM throughline.session s
                 JOIN throughline.head h ON h.owner = s.owner AND h.log = s.log
                 WHERE s.owner = $1 AND s.log = $2",
                of,
            )
            .await?;
        if let Some(row) = columns {
            let shown = rows::SessionColumns::of(&record.info)?;
            let same = rows::get::<&str>(&row, 0)? == shown.status
                && rows::get::<Option<String>>(&row, 1)? == shown.name
                && rows::get::<Option<String>>(&row, 2)? == shown.project
                && rows::get::<Option<String>>(&row, 3)? == shown.agent
                && rows::get::<bool>(&row, 4)?
                && rows::get::<bool>(&row, 5)?;
            if !same {
                self.report_derived("its indexed columns do not match its session info");
            }
        }
        self.report.findings.extend(check.finish(&record));
        Ok(())
    }

    async fn compare_attachments(&mut self, named: &BTreeSet<Digest>) -> Result<(), Fault> {
        let SessionLog {
            owner,
            session: found,
            ..
        } = self.log;
        let uses = self
            .tx
            .query(
                "reading attachments",
                "SELECT digest FROM throughline.blob_use WHERE owner = $1 AND log = $2",
                params![owner.as_str(), found.log],
            )
            .await?;
        let recorded = uses
            .iter()
            .map(|row| rows::decode_digest(rows::get(row, 0)?))
            .collect::<Result<BTreeSet<_>, _>>()?;
        let mut unrecorded = false;
        for digest in named.difference(&recorded) {
            let here = self
                .tx
                .query_opt(
                    "looking up an attachment",
                    "SELECT FROM throughline.blob WHERE owner = $1 AND digest = $2",
                    params![owner.as_str(), digest.as_bytes().as_slice()],
                )
                .await?;
            if here.is_some() {
                unrecorded = true;
            } else {
                // Imported without it, or lost: a rebuild cannot restore it.
                self.report.findings.push(Finding::Blob {
                    digest: *digest,
                    missing: true,
                });
            }
        }
        if unrecorded || !recorded.is_subset(named) {
            self.report_derived("its recorded attachments differ from those its entries name");
        }
        Ok(())
    }

    /// Reports an entry that cannot be read: the one that the error names, else `next`.
    fn report_unreadable(&mut self, next: Seq, fault: Fault) -> Result<(), Fault> {
        let (seq, what) = match fault {
            Fault::Store(StoreError::MissingEntry { seq }) => (seq, "it is missing".to_owned()),
            Fault::Store(other) => (next, error_chain(&other)),
            fault => return Err(fault),
        };
        self.report.findings.push(Finding::Entry {
            owner: self.log.owner.clone(),
            session: self.log.session.id.clone(),
            seq,
            what,
        });
        Ok(())
    }

    fn report_derived(&mut self, what: &str) {
        self.report.findings.push(Finding::Derived {
            owner: self.log.owner.clone(),
            session: self.log.session.id.clone(),
            what: what.to_owned(),
        });
    }

    /// Reports snapshots that are missing or where none belongs.
    fn check_snapshot_positions(&mut self, snapshots: &BTreeMap<Seq, String>, head: Seq) {
        let shared = self.log.session.shared;
        for seq in snapshots.keys() {
            let own = *seq > shared && *seq <= head;
            if *seq != shared && !(own && append::is_snapshot_due(*seq)) {
                self.report_derived(&format!("unexpected record snapshot at entry {seq}"));
            }
        }
        let expected = (shared.0.max(1)..=head.0).map(Seq);
        for seq in expected.filter(|seq| *seq == shared || append::is_snapshot_due(*seq)) {
            if !snapshots.contains_key(&seq) {
                self.report_derived(&format!("missing record snapshot at entry {seq}"));
            }
        }
    }

    /// Checks the snapshot at this entry, and computes the base of the forks made here.
    fn check_at_head(&mut self, record: &Record, snapshots: &BTreeMap<Seq, String>) {
        let seq = record.info.head;
        if let Some(json) = snapshots.get(&seq)
            && serde_json::from_str::<Record>(json).ok().as_ref() != Some(record)
        {
            self.report_derived(&format!(
                "the record snapshot at entry {seq} differs from the fold of the log"
            ));
        }
        for (fork, header) in self.forks.and_then(|f| f.get(&seq)).into_iter().flatten() {
            let (completed, base) = record.fork(header.clone());
            // If they differ, inherited content was erased after the fork; the fork's own
            // fold decides.
            if completed == *header {
                self.fork_bases.insert(*fork, base);
            }
        }
    }
}

async fn load_snapshots(tx: &Tx, owner: &Owner, log: i64) -> Result<BTreeMap<Seq, String>, Fault> {
    let found = tx
        .query(
            "reading record snapshots",
            "SELECT seq, json FROM throughline.snapshot WHERE owner = $1 AND log = $2",
            params![owner.as_str(), log],
        )
        .await?;
    let snapshots = found
        .iter()
        .map(|row| Ok((rows::seq_from_i64(rows::get(row, 0)?), rows::get(row, 1)?)));
    Ok(snapshots.collect::<Result<_, StoreError>>()?)
}

/// Reports entries that belong to no log.
async fn find_stray_entries(
    tx: &Tx,
    logs: &[SessionLog],
    report: &mut CheckReport,
) -> Result<(), Fault> {
    let expected: HashMap<(&str, i64), u64> = logs
        .iter()
        .map(
            |SessionLog {
                 owner,
                 session: found,
                 ..
             }| {
                let own = found.head.0.saturating_sub(found.shared.0);
                ((owner.as_str(), found.log), own)
            },
        )
        .collect();
    let found = tx
        .query(
            "looking for stray entries",
            "SELECT owner, log, count(*) FROM throughline.entry GROUP BY owner, log",
            &[],
        )
        .await?;
    for row in &found {
        let (owner, log): (&str, i64) = (rows::get(row, 0)?, rows::get(row, 1)?);
        let count: i64 = rows::get(row, 2)?;
        let known = expected.get(&(owner, log)).copied().unwrap_or(0);
        let more = u64::try_from(count).unwrap_or(0).saturating_sub(known);
        if more > 0 {
            report.findings.push(Finding::File {
                what: format!("{more} entries of log {log} ({owner}) are in no session"),
            });
        }
    }
    Ok(())
}

/// Verifies attachments page by page, since they may be large.
async fn check_blobs(tx: &Tx, report: &mut CheckReport) -> Result<(), Fault> {
    let (mut owner, mut after) = (String::new(), Vec::<u8>::new());
    loop {
        let found = tx
            .query(
                "checking attachments",
                "SELECT owner, digest, data FROM throughline.blob
                 WHERE (owner, digest) > ($1, $2) ORDER BY owner, digest LIMIT 4",
                params![owner, after],
            )
            .await?;
        let Some(last) = found.last() else {
            return Ok(());
        };
        owner = rows::get(last, 0)?;
        after = rows::get(last, 1)?;
        for row in &found {
            report.blobs += 1;
            let digest = rows::decode_digest(rows::get(row, 1)?)
                .map_err(|error| damaged("an attachment", error))?;
            if Digest::of(rows::get(row, 2)?) != digest {
                report.findings.push(Finding::Blob {
                    digest,
                    missing: false,
                });
            }
        }
    }
}
