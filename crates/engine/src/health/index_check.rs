//! Compares the index with the store, passage by passage.
//!
//! Both are read once sequentially and summed up, so an index that matches takes no
//! memory however large it is. Only if the sums differ are the differences determined.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use throughline_model::{Digest, Owner, Seq, SessionId};
use throughline_recall::{ErrorKind, FolderIndex, Passage, RecallError};
use throughline_store::{Change, ChangeKind, Position};

use super::{HealthFinding, HealthReport, IndexProblem};
use crate::retrieval::{EntryLocation, OpenIndex, run_index_task, to_passage};
use crate::{Error, Throughline};

/// The number of changes read at a time.
const PAGE: usize = 500;

/// Identifies a passage.
type PassageKey = (Owner, SessionId, Seq);

impl Throughline {
    /// Checks the index as it is; a search would rebuild an unusable one.
    pub(super) async fn check_index(&self, report: &mut HealthReport) -> Result<(), Error> {
        match self.try_check_index(report).await {
            Err(Error::Recall(error)) => {
                let problem = match error.kind() {
                    ErrorKind::Rebuild => IndexProblem::Damaged,
                    ErrorKind::Invalid | ErrorKind::Unavailable => IndexProblem::Unreadable,
                };
                let what = match &error {
                    RecallError::Damaged { source, .. } => {
                        format!("its files are damaged: {}", format_error_chain(source))
                    }
                    error => format_error_chain(error),
                };
                report.findings.push(HealthFinding::Index { problem, what });
                Ok(())
            }
            checked => checked,
        }
    }

    async fn try_check_index(&self, report: &mut HealthReport) -> Result<(), Error> {
        let index = Arc::clone(&self.index);
        let Some(index) = run_index_task(move || index.open_existing()).await? else {
            return Ok(());
        };
        if let OpenIndex::Folder(folder) = &index {
            let folder = folder.clone();
            let leftovers = run_index_task(move || check_folder(&folder)).await?;
            report.findings.extend(leftovers);
        }
        let index_reader = index.clone();
        let state = run_index_task(move || Ok(index_reader.as_index().state()?)).await?;
        if !self.has_anchors(&state, state.anchors.len()).await? {
            report.findings.push(HealthFinding::Index {
                problem: IndexProblem::Mismatch,
                what: "it was built from entries that the store does not have, as after a backup \
                       was restored"
                    .to_owned(),
            });
            return Ok(());
        }
        let (upto, indexed) = checksum_index(index.clone()).await?;
        report.passages = Some(indexed.count);
        if self.checksum_store(upto).await? != indexed {
            report.findings.extend(self.find_differences(index).await?);
        }
        Ok(())
    }

    /// Computes the checksum of what an index up to a position should contain.
    async fn checksum_store(&self, upto: Position) -> Result<PassageChecksum, Error> {
        let mut sum = PassageChecksum::default();
        self.for_each_change(|change| {
            if change.position > upto {
                return false;
            }
            if let Some(passage) = expected_passage(&change) {
                sum.add(fingerprint(&passage));
            }
            true
        })
        .await?;
        Ok(sum)
    }

    /// Determines the differences. Entries erased meanwhile do not count: the index is
    /// read first, then the store to its end, which includes those erasures.
    async fn find_differences(&self, index: OpenIndex) -> Result<Vec<HealthFinding>, Error> {
        let (upto, mut indexed, duplicates) = run_index_task(move || {
            let mut indexed: HashMap<PassageKey, u128> = HashMap::new();
            let mut duplicates = Vec::new();
            let state = index.as_index().scan(&mut |passage| {
                let key = key_of(&passage);
                if indexed.insert(key.clone(), fingerprint(&passage)).is_some() {
                    duplicates.push(key);
                }
            })?;
            Ok((Position(state.upto), indexed, duplicates))
        })
        .await?;
        let (mut missing, mut different) = (Vec::new(), Vec::new());
        let mut removed = RemovedPassages::default();
        self.for_each_change(|change| {
            if change.position > upto {
                removed.record(change);
            } else if let Some(passage) = expected_passage(&change) {
                let key = key_of(&passage);
                match indexed.remove(&key) {
                    None => missing.push(key),
                    Some(hash) if hash != fingerprint(&passage) => different.push(key),
                    Some(_) => {}
                }
            }
            true
        })
        .await?;
        let orphaned: Vec<PassageKey> = indexed.into_keys().chain(duplicates).collect();
        let findings = [
            (IndexProblem::Missing, missing, "is missing", "are missing"),
            (
                IndexProblem::Orphaned,
                orphaned,
                "belongs to no entry",
                "belong to no entry",
            ),
            (
                IndexProblem::Different,
                different,
                "differs from its entry",
                "differ from their entries",
            ),
        ];
        let findings = findings.into_iter().filter_map(|(problem, mut keys, one, many)| {
            keys.retain(|key| !removed.contains(key));
            keys.sort();
            let (owner, session, seq) = keys.first()?;
            let what = match keys.len() {
                1 => format!("a passage {one}: entry {seq} of {session} ({owner})"),
                count => format!(
                    "{count} passages {many}; the first is of entry {seq} of {session} ({owner})"
                ),
            };
            Some(HealthFinding::Index { problem, what })
        });
        Ok(findings.collect())
    }

    /// Calls `each` for every change of the store in order, until it returns `false`.
    async fn for_each_change(
        &self,
        mut each: impl FnMut(Change) -> bool + Send,
    ) -> Result<(), Error> {
        let mut after = Position(0);
        loop {
            let page = self.store.changes(after, PAGE).await?;
            let Some(last) = page.last() else {
                return Ok(());
            };
            after = last.position;
            for change in page {
                if !each(change) {
                    return Ok(());
                }
            }
        }
    }
}

/// Verifies the files of an index; returns those that belong to nothing.
fn check_folder(index: &FolderIndex) -> Result<Vec<HealthFinding>, Error> {
    index.verify()?;
    // While the index is being updated, new files do not belong to it yet.
    let leftovers = index.leftovers()?.unwrap_or_default();
    let findings = leftovers.into_iter().map(|path| HealthFinding::Leftover {
        path,
        what: "an index file left by a killed process",
    });
    Ok(findings.collect())
}

async fn checksum_index(index: OpenIndex) -> Result<(Position, PassageChecksum), Error> {
    run_index_task(move || {
        let mut sum = PassageChecksum::default();
        let state = index
            .as_index()
            .scan(&mut |passage| sum.add(fingerprint(&passage)))?;
        Ok((Position(state.upto), sum))
    })
    .await
}

/// The number of passages and the sum of their fingerprints, independent of their
/// order.
#[derive(Debug, Default, PartialEq, Eq)]
struct PassageChecksum {
    count: u64,
    sum: u128,
}

impl PassageChecksum {
    fn add(&mut self, fingerprint: u128) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(fingerprint);
    }
}

/// Entries and sessions that were removed from a store.
#[derive(Debug, Default)]
struct RemovedPassages {
    sessions: HashSet<(Owner, SessionId)>,
    entries: HashSet<PassageKey>,
}

impl RemovedPassages {
    fn record(&mut self, change: Change) {
        let Change { owner, session, .. } = change;
        match change.kind {
            ChangeKind::Removed => {
                self.sessions.insert((owner, session));
            }
            ChangeKind::Erased(seq) => {
                self.entries.insert((owner, session, seq));
            }
            _ => {}
        }
    }

    fn contains(&self, key: &PassageKey) -> bool {
        let (owner, session, _) = key;
        self.entries.contains(key) || self.sessions.contains(&(owner.clone(), session.clone()))
    }
}

/// The passage that the index should contain for a change.
fn expected_passage(change: &Change) -> Option<Passage> {
    let ChangeKind::Appended(stored) = &change.kind else {
        return None;
    };
    let location = EntryLocation {
        position: change.position.0,
        owner: &change.owner,
        session: &change.session,
        origin: None,
    };
    to_passage(&stored.decode().ok()?, location)
}

fn key_of(passage: &Passage) -> PassageKey {
    (passage.owner.clone(), passage.session.clone(), passage.seq)
}

/// A hash of everything that is shown of a passage.
fn fingerprint(passage: &Passage) -> u128 {
    let description = format!(
        "{}\u{1f}{}\u{1f}{}\u{1f}{}\u{1f}{}\u{1f}{}\u{1f}{}",
        passage.position,
        passage.owner,
        passage.session,
        passage.seq,
        passage.role.as_str(),
        passage.at.as_microsecond(),
        passage.text
    );
    let digest = Digest::of(description.as_bytes());
    let bytes = digest.as_bytes().iter().take(16);
    bytes.fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// Formats an error and its causes on one line.
fn format_error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}
