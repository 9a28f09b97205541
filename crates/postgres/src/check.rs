//! Proving that what is derived follows from the logs.
//!
//! Every log is read once, all in one state of the database. Logs are taken in the order
//! they were made, so that a fork's origin has been folded before the fork, and its
//! record at the fork is at hand when the fork's turn comes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use throughline_model::{Birth, Digest, Owner, Record, Seq};
use throughline_store::{Finding, LogCheck, Progress, Read, Report, StoreError};

use crate::error::{Fault, damaged};
use crate::open::chain;
use crate::rows::{self, Found};
use crate::tx::Tx;
use crate::{append, read};

/// A log, as far as a check needs it.
#[derive(Debug)]
struct Listed {
    owner: Owner,
    found: Found,
    birth: String,
    /// Removed, and kept for what forks share.
    kept: bool,
}

/// All logs, in the order they were made.
async fn logs(tx: &Tx) -> Result<Vec<Listed>, Fault> {
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
        Ok(Listed {
            owner: rows::parsed(row, 0)?,
            found: Found {
                log: rows::get(row, 1)?,
                id: rows::parsed(row, 2)?,
                shared: rows::to_seq(rows::get(row, 3)?),
                head: rows::to_seq(rows::get(row, 4)?),
                trashed: false,
                parts: rows::parts(upto, bases),
            },
            birth: rows::get(row, 5)?,
            kept: rows::get(row, 6)?,
        })
    });
    Ok(logs.collect::<Result<_, StoreError>>()?)
}

/// The number and owner of every log.
pub(crate) async fn numbers(tx: &Tx) -> Result<Vec<(Owner, i64)>, Fault> {
    let logs = logs(tx).await?.into_iter();
    Ok(logs.map(|log| (log.owner, log.found.log)).collect())
}

/// Checks everything there is.
pub(crate) async fn check(tx: &Tx, progress: Progress<'_>) -> Result<Report, Fault> {
    let mut report = Report::default();
    let logs = logs(tx).await?;
    let own = |log: &Listed| log.found.head.0.saturating_sub(log.found.shared.0);
    let total = logs.iter().map(own).sum();
    let forks = forks(tx).await?;
    let mut bases = HashMap::new();
    for listed in &logs {
        let mut checking = Checking {
            tx,
            listed,
            forks: forks.get(&listed.found.log),
            bases: &mut bases,
            report: &mut report,
        };
        match checking.run().await {
            Ok(()) => {}
            Err(Fault::Store(error)) => {
                let what = chain(&error);
                checking.derived(&what);
            }
            // The database does not answer: that is no finding of what is in it.
            Err(fault) => return Err(fault),
        }
        progress(report.entries, total);
    }
    strays(tx, &logs, &mut report).await?;
    blobs(tx, &mut report).await?;
    progress(total, total);
    Ok(report)
}

/// The forks whose last shared entry is in a log, by that log and entry: their logs, and
/// how they were born.
type Forks = HashMap<i64, BTreeMap<Seq, Vec<(i64, Birth)>>>;

async fn forks(tx: &Tx) -> Result<Forks, Fault> {
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
    let mut forks = Forks::new();
    for row in &found {
        let at = rows::to_seq(rows::get(row, 1)?);
        let birth = rows::birth_from(rows::get(row, 3)?)?;
        let of: &mut BTreeMap<_, Vec<_>> = forks.entry(rows::get(row, 0)?).or_default();
        of.entry(at).or_default().push((rows::get(row, 2)?, birth));
    }
    Ok(forks)
}

/// The check of one log.
struct Checking<'a> {
    tx: &'a Tx,
    listed: &'a Listed,
    forks: Option<&'a BTreeMap<Seq, Vec<(i64, Birth)>>>,
    /// Records that forks start from, as far as their origins have been folded.
    bases: &'a mut HashMap<i64, Record>,
    report: &'a mut Report,
}

impl Checking<'_> {
    async fn run(&mut self) -> Result<(), Fault> {
        let Listed { owner, found, .. } = self.listed;
        let mut base = Record::new(&rows::birth_from(&self.listed.birth)?);
        match self.bases.remove(&found.log) {
            Some(record) => base = record,
            None => {
                let shared = found.upto(found.shared);
                let folding = read::fold_to(self.tx, owner, &mut base, &shared, |_| ());
                if let Err(fault) = folding.await {
                    return self.unreadable_from(base.card.head.next(), fault);
                }
            }
        }
        let snapshots = snapshots(self.tx, owner, found.log).await?;
        let mut attachments = BTreeSet::new();
        let mut check = LogCheck::new(owner.clone(), base);
        self.at(&check.record, &snapshots);
        let mut next = found.shared.next();
        loop {
            let read = Read::from(next, 1_000);
            let page = match read::page(self.tx, owner, found, read).await {
                Ok(page) => page,
                Err(fault) => {
                    return self.unreadable_from(check.record.card.head.next(), fault);
                }
            };
            let Some(last) = page.last() else {
                break;
            };
            next = last.seq.next();
            for stored in &page {
                self.report.entries += 1;
                self.report.findings.extend(check.entry(stored));
                if let Some(message) = stored.decode().ok().as_ref().and_then(|e| e.message()) {
                    attachments.extend(message.content.attachments().map(|a| a.blob));
                }
                self.at(&check.record, &snapshots);
            }
        }
        if check.record.card.head.next() == next {
            self.places_of_snapshots(&snapshots, check.record.card.head);
        }
        if !self.listed.kept {
            self.report.sessions += 1;
            self.compare(check).await?;
        }
        self.compare_attachments(&attachments).await
    }

    /// Compares what is kept beside the log with what follows from it.
    async fn compare(&mut self, check: LogCheck) -> Result<(), Fault> {
        let Listed { owner, found, .. } = self.listed;
        let kept = rows::record(self.tx, owner, found.log).await?;
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
        let named = kept.card.tags.iter();
        if tags
            != named
                .map(|tag| rows::plain(tag.as_str()).into_owned())
                .collect()
        {
            self.derived("its tags are not those of its card");
        }
        let columns = self
            .tx
            .optional(
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
            let shown = rows::Shown::of(&kept.card)?;
            let same = rows::get::<&str>(&row, 0)? == shown.status
                && rows::get::<Option<String>>(&row, 1)? == shown.name
                && rows::get::<Option<String>>(&row, 2)? == shown.project
                && rows::get::<Option<String>>(&row, 3)? == shown.agent
                && rows::get::<bool>(&row, 4)?
                && rows::get::<bool>(&row, 5)?;
            if !same {
                self.derived("what it is found by is not what its card says");
            }
        }
        self.report.findings.extend(check.finish(&kept));
        Ok(())
    }

    async fn compare_attachments(&mut self, named: &BTreeSet<Digest>) -> Result<(), Fault> {
        let Listed { owner, found, .. } = self.listed;
        let uses = self
            .tx
            .query(
                "reading attachments",
                "SELECT digest FROM throughline.blob_use WHERE owner = $1 AND log = $2",
                params![owner.as_str(), found.log],
            )
            .await?;
        let noted = uses
            .iter()
            .map(|row| rows::digest(rows::get(row, 0)?))
            .collect::<Result<BTreeSet<_>, _>>()?;
        let mut not_noted = false;
        for digest in named.difference(&noted) {
            let here = self
                .tx
                .optional(
                    "looking up an attachment",
                    "SELECT FROM throughline.blob WHERE owner = $1 AND digest = $2",
                    params![owner.as_str(), digest.as_bytes().as_slice()],
                )
                .await?;
            if here.is_some() {
                not_noted = true;
            } else {
                // Adopted without it, or lost: no rebuild brings it back.
                self.report.findings.push(Finding::Blob {
                    digest: *digest,
                    missing: true,
                });
            }
        }
        if not_noted || !noted.is_subset(named) {
            self.derived("the attachments noted for it are not those its entries name");
        }
        Ok(())
    }

    /// Tells of the entry that cannot be read, which the error knows where it knows it.
    fn unreadable_from(&mut self, next: Seq, fault: Fault) -> Result<(), Fault> {
        let (seq, what) = match fault {
            Fault::Store(StoreError::Missing { seq }) => (seq, "it is missing".to_owned()),
            Fault::Store(other) => (next, chain(&other)),
            fault => return Err(fault),
        };
        self.report.findings.push(Finding::Entry {
            owner: self.listed.owner.clone(),
            session: self.listed.found.id.clone(),
            seq,
            what,
        });
        Ok(())
    }

    fn derived(&mut self, what: &str) {
        self.report.findings.push(Finding::Derived {
            owner: self.listed.owner.clone(),
            session: self.listed.found.id.clone(),
            what: what.to_owned(),
        });
    }

    /// Records are kept where they are looked for, and nowhere else.
    fn places_of_snapshots(&mut self, snapshots: &BTreeMap<Seq, String>, head: Seq) {
        let shared = self.listed.found.shared;
        for seq in snapshots.keys() {
            let own = *seq > shared && *seq <= head;
            if *seq != shared && !(own && append::is_kept(*seq)) {
                self.derived(&format!("a record is kept at entry {seq}, out of place"));
            }
        }
        let expected = (shared.0.max(1)..=head.0).map(Seq);
        for seq in expected.filter(|seq| *seq == shared || append::is_kept(*seq)) {
            if !snapshots.contains_key(&seq) {
                self.derived(&format!("no record is kept at entry {seq}"));
            }
        }
    }

    /// What hangs on the record as it is at this entry.
    fn at(&mut self, record: &Record, snapshots: &BTreeMap<Seq, String>) {
        let seq = record.card.head;
        if let Some(json) = snapshots.get(&seq)
            && serde_json::from_str::<Record>(json).ok().as_ref() != Some(record)
        {
            self.derived(&format!(
                "the record kept at entry {seq} is not the fold up to there"
            ));
        }
        for (fork, birth) in self.forks.and_then(|f| f.get(&seq)).into_iter().flatten() {
            let (completed, base) = record.fork(birth.clone());
            // If what the birth was completed with has been erased since, the fork's
            // own fold is the judge.
            if completed == *birth {
                self.bases.insert(*fork, base);
            }
        }
    }
}

async fn snapshots(tx: &Tx, owner: &Owner, log: i64) -> Result<BTreeMap<Seq, String>, Fault> {
    let found = tx
        .query(
            "reading records that were kept",
            "SELECT seq, json FROM throughline.snapshot WHERE owner = $1 AND log = $2",
            params![owner.as_str(), log],
        )
        .await?;
    let snapshots = found
        .iter()
        .map(|row| Ok((rows::to_seq(rows::get(row, 0)?), rows::get(row, 1)?)));
    Ok(snapshots.collect::<Result<_, StoreError>>()?)
}

/// Entries that no log has.
async fn strays(tx: &Tx, logs: &[Listed], report: &mut Report) -> Result<(), Fault> {
    let expected: HashMap<(&str, i64), u64> = logs
        .iter()
        .map(|Listed { owner, found, .. }| {
            let own = found.head.0.saturating_sub(found.shared.0);
            ((owner.as_str(), found.log), own)
        })
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

/// Attachments a page at a time: they may be large.
async fn blobs(tx: &Tx, report: &mut Report) -> Result<(), Fault> {
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
            let digest = rows::digest(rows::get(row, 1)?)
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
