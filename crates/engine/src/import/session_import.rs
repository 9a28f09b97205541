//! Reconciles the entries imported for one session with those already stored.
//!
//! Entries seen before are skipped and new ones are appended in order. If the source
//! was rewritten, or the session was also continued locally, the difference becomes a
//! fork. Appends are pipelined: while one is being written, the next entries are
//! prepared.
//!
//! Invariant: nothing stored is ever changed.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;

use futures_util::poll;
use throughline_model::{
    Digest, Entry, EntryId, EntryIdNamespace, EntryIdentity, ImportEvent, IncomingEntry,
    IncomingOrigin, IncomingSession, Lineage, NewEntry, Seq, SessionHeader, SessionId, SessionRef,
    Timestamp,
};
use throughline_store::{AppendOutcome, EntryIds, ReadRange, StoreError};

use super::append_batch::{AppendBatch, PendingAppend};
use super::import_record::external_id;
use super::in_flight::InFlight;
use super::pending_entry::{PendingEntry, content_bytes, entry_ids, has_same_content};
use super::resolve_references::resolve_body;
use super::resolve_target::{self, ImportTarget};
use super::shared_prefix::SharedPrefix;
use super::{ImportReport, PAGE};
use crate::throughline::find_record;
use crate::{Error, NewSession, Throughline};

/// The most ids of a newly created session that are cached, to know what is not stored
/// yet without asking the store.
const MAX_CACHED_IDS: usize = 1 << 18;

/// The most appends of a session in progress at once: one being written and one for the
/// store to continue with.
const MAX_PENDING_APPENDS: usize = 2;

/// The import of one session: where its entries go, and what is in progress.
#[derive(Debug)]
pub(super) struct SessionImport {
    session: IncomingSession,
    /// The session that entries are appended to, once known.
    target: Option<SessionRef>,
    /// The ids of all stored entries, if this import created the session.
    known_ids: Option<EntryIds>,
    /// Why entries cannot be appended.
    error: Option<Arc<Error>>,
    /// The time of the last entry.
    last_time: Option<Timestamp>,
    /// The last stored entry that came from the source, once known.
    last_imported: Option<Seq>,
    /// The session whose beginning this one repeats, until they diverge.
    shared_prefix: Option<SharedPrefix>,
    /// The creation of the session in progress; its result tells whether the session
    /// existed.
    creating: Option<InFlight<Result<bool, Error>>>,
    /// The appends in progress, in order.
    pending_appends: VecDeque<PendingAppend>,
    /// The head of the session after the pending appends, if nobody else writes to it.
    expected_head: Seq,
}

/// The result of comparing entries with the stored ones.
enum ComparisonResult {
    /// No entry differs.
    Same,
    /// The entry with this index differs.
    DiffersAt(usize),
}

impl SessionImport {
    pub(super) fn new(session: IncomingSession) -> Self {
        Self {
            session,
            target: None,
            known_ids: None,
            error: None,
            last_time: None,
            last_imported: None,
            shared_prefix: None,
            creating: None,
            pending_appends: VecDeque::new(),
            expected_head: Seq::ZERO,
        }
    }

    /// Whether the session is being created or appends are in progress.
    pub(super) fn is_busy(&self) -> bool {
        self.creating.is_some() || !self.pending_appends.is_empty()
    }

    /// Drops the id cache once the session is no longer being imported.
    pub(super) fn release_id_cache(&mut self) {
        self.known_ids = None;
    }

    /// Whether the session exists, or these entries justify creating it. A session
    /// without any content is not created just for a title.
    pub(super) async fn should_import(
        &mut self,
        tl: &Throughline,
        pending: &[PendingEntry],
    ) -> bool {
        self.target.is_some()
            || pending.iter().any(PendingEntry::has_content)
            || !matches!(
                resolve_target::find_target(tl, &self.session).await,
                Ok(ImportTarget::New(_))
            )
    }

    /// Waits until everything in progress is durable, and reports the results.
    pub(super) async fn flush(&mut self, report: &mut ImportReport) {
        while self.is_busy() {
            self.flush_first(report).await;
        }
    }

    /// Waits for the first operation in progress. May be cancelled without losing
    /// anything.
    async fn flush_first(&mut self, report: &mut ImportReport) {
        if let Some(creation) = &mut self.creating {
            let created = creation.outcome().await;
            self.handle_created(created, report);
        } else if let Some(first) = self.pending_appends.front_mut() {
            let outcome = first.append.outcome().await;
            if let Some(first) = self.pending_appends.pop_front() {
                self.handle_appended(&first, outcome, report);
            }
        }
    }

    /// Handles completed operations without waiting.
    async fn poll_completed(&mut self, report: &mut ImportReport) {
        while self.is_busy() && poll!(pin!(self.flush_first(report))).is_ready() {}
    }

    fn handle_created(&mut self, created: Result<bool, Error>, report: &mut ImportReport) {
        self.creating = None;
        match created {
            Ok(existed) => report.created += u64::from(!existed),
            Err(error) => self.error = Some(Arc::new(error)),
        }
    }

    fn handle_appended(
        &mut self,
        appended: &PendingAppend,
        outcome: Result<AppendOutcome, StoreError>,
        report: &mut ImportReport,
    ) {
        match outcome {
            Ok(outcome) => {
                self.last_imported = outcome
                    .entries
                    .last()
                    .map(|entry| entry.seq)
                    .or(self.last_imported);
                report.appended += appended.messages;
            }
            Err(error) => {
                let error = Arc::new(Error::from(error));
                if appended.is_chained {
                    // Later entries must not be appended without this one.
                    self.error = Some(Arc::clone(&error));
                    report.should_retry = true;
                }
                report.failed.push((appended.source_position, error));
            }
        }
    }

    /// Prepares entries and starts to append them. Reports what was done so far; the
    /// result of the append is reported by [`flush`](Self::flush).
    pub(super) async fn append(
        &mut self,
        tl: &Throughline,
        pending: Vec<PendingEntry>,
        report: &mut ImportReport,
    ) {
        self.poll_completed(report).await;
        let positions: Vec<u64> = pending
            .iter()
            .map(|pending| pending.entry.position)
            .collect();
        if self.error.is_none()
            && let Err(error) = self.resolve_target(tl, report).await
        {
            self.error = Some(Arc::new(error));
        }
        let trashed = |error: &Arc<Error>| matches!(**error, Error::Store(StoreError::InTrash(_)));
        if self.session.source_system.is_some() && self.error.as_ref().is_some_and(trashed) {
            // A session that the user moved to the trash is not imported again.
            let what = "entry of a session in the trash".to_owned();
            *report.skipped.entry(what).or_default() += positions.len() as u64;
        } else if let Err(error) = self.import_entries(tl, pending, report).await {
            let first = positions.first().copied().unwrap_or_default();
            report.failed.push((first, Arc::new(error)));
        }
    }

    /// Determines the session to append to, and creates it if necessary.
    async fn resolve_target(
        &mut self,
        tl: &Throughline,
        report: &mut ImportReport,
    ) -> Result<(), Error> {
        if self.target.is_some() || self.shared_prefix.is_some() {
            return Ok(());
        }
        let (from, origin) = (
            self.session.source_system.clone(),
            self.session.origin.clone(),
        );
        match resolve_target::find_target(tl, &self.session).await? {
            ImportTarget::Existing(existing) => {
                // The shared entries of a fork are in the origin's log.
                if let Lineage::Forked { session, at } = tl.store.header(&existing).await?.lineage {
                    self.shared_prefix = Some(SharedPrefix {
                        origin: tl.owner.session(&session),
                        last_matched: Seq::ZERO,
                        limit: Some(at),
                    });
                    // The shared entries come before the fork's own.
                    self.last_imported = Some(at);
                }
                self.target = Some(existing);
            }
            ImportTarget::New(new) => {
                if let (Some(from), Some(IncomingOrigin::Forked { session, .. })) = (from, origin)
                    && let Ok(Some(origin_ref)) =
                        resolve_target::find_imported(tl, &from, &session).await
                {
                    self.shared_prefix = Some(SharedPrefix {
                        origin: origin_ref,
                        last_matched: Seq::ZERO,
                        limit: None,
                    });
                    return Ok(());
                }
                match (&new.id, &self.session.source_system) {
                    (Some(id), Some(_)) => {
                        let id = id.clone();
                        self.start_create(tl, &id, *new).await;
                    }
                    _ => self.create(tl, *new, report).await?,
                }
            }
        }
        Ok(())
    }

    async fn import_entries(
        &mut self,
        tl: &Throughline,
        pending: Vec<PendingEntry>,
        report: &mut ImportReport,
    ) -> Result<(), Error> {
        let mut rest = match self.error {
            Some(_) => pending,
            None => self.skip_shared_prefix(tl, pending, report).await?,
        };
        while !rest.is_empty() {
            if let Some(refused) = &self.error {
                let failed = |pending: PendingEntry| (pending.entry.position, Arc::clone(refused));
                report.failed.extend(rest.into_iter().map(failed));
                return Ok(());
            }
            let Some(to) = self.target.clone() else {
                return Ok(());
            };
            let ids = entry_ids(&to.id, &rest)?;
            let known = self.locate_stored(tl, &to, &ids, report).await?;
            let later = match self.compare_stored(tl, &to, &rest, &known, report).await? {
                ComparisonResult::Same => Vec::new(),
                ComparisonResult::DiffersAt(index) => rest.split_off(index),
            };
            let mut remaining = self
                .append_new_entries(tl, &to, rest, (&ids, &known), report)
                .await?;
            if let (true, Some(first)) = (remaining.is_empty(), later.first()) {
                self.flush(report).await;
                if self.error.is_none() {
                    let at = self.last_imported.unwrap_or(Seq::ZERO);
                    self.switch_to_fork(tl, &to, at, first, report).await?;
                }
            }
            remaining.extend(later);
            rest = remaining;
        }
        Ok(())
    }

    /// Returns the numbers of those entries that are stored already.
    async fn locate_stored(
        &mut self,
        tl: &Throughline,
        to: &SessionRef,
        ids: &[EntryId],
        report: &mut ImportReport,
    ) -> Result<Vec<Option<Seq>>, Error> {
        if let Some(known_ids) = &mut self.known_ids {
            let fits = known_ids.len() + ids.len() <= MAX_CACHED_IDS;
            if fits && !ids.iter().any(|id| known_ids.contains(id)) {
                known_ids.extend(ids);
                return Ok(vec![None; ids.len()]);
            }
            self.known_ids = None;
        }
        self.flush(report).await;
        Ok(tl.store.locate(to, ids).await?)
    }

    /// Starts to create the session. It is expected to be empty: if another process
    /// creates it too, the first append fails.
    async fn start_create(&mut self, tl: &Throughline, id: &SessionId, new: NewSession) {
        let of = tl.clone();
        let creation = InFlight::start(async move {
            let (_, existed) = of.get_or_create(new).await?;
            Ok(existed)
        });
        self.creating = Some(creation.await);
        self.known_ids = Some(EntryIds::default());
        self.expected_head = Seq::ZERO;
        self.target = Some(tl.owner.session(id));
    }

    /// Creates the session, unless it exists by now.
    async fn create(
        &mut self,
        tl: &Throughline,
        new: NewSession,
        report: &mut ImportReport,
    ) -> Result<(), Error> {
        let (session, existed) = tl.get_or_create(new).await?;
        report.created += u64::from(!existed);
        self.known_ids = (!existed).then(EntryIds::default);
        self.target = Some(tl.owner.session(session.id()));
        Ok(())
    }

    /// Removes the entries that this session shares with the one it was forked from;
    /// creates the fork where they diverge.
    async fn skip_shared_prefix(
        &mut self,
        tl: &Throughline,
        mut pending: Vec<PendingEntry>,
        report: &mut ImportReport,
    ) -> Result<Vec<PendingEntry>, Error> {
        let Some(mut shared_prefix) = self.shared_prefix.take() else {
            return Ok(pending);
        };
        let common = shared_prefix.count_matching(tl, &pending, report).await?;
        let rest = pending.split_off(common);
        if rest.is_empty() {
            self.shared_prefix = Some(shared_prefix);
        } else if self.target.is_none() {
            self.fork_at_divergence(tl, &shared_prefix, report).await?;
        }
        Ok(rest)
    }

    /// Creates the fork, at the last entry that was equal.
    async fn fork_at_divergence(
        &mut self,
        tl: &Throughline,
        shared_prefix: &SharedPrefix,
        report: &mut ImportReport,
    ) -> Result<(), Error> {
        let ImportTarget::New(mut new) = resolve_target::find_target(tl, &self.session).await?
        else {
            return Ok(());
        };
        let at = shared_prefix
            .fork_point(tl, self.session.origin.as_ref())
            .await?;
        if at == Seq::ZERO {
            // They share no entries: this session continues from the other one.
            new.continued_from = Some(shared_prefix.origin.id.clone());
            return self.create(tl, *new, report).await;
        }
        let header = new.into_header(&*tl.environment);
        let id = header.id.clone();
        tl.store.fork(&shared_prefix.origin, at, header).await?;
        report.created += 1;
        self.target = Some(tl.owner.session(&id));
        self.last_imported = Some(at);
        Ok(())
    }

    /// Compares repeated entries with the stored ones.
    async fn compare_stored(
        &mut self,
        tl: &Throughline,
        to: &SessionRef,
        pending: &[PendingEntry],
        known: &[Option<Seq>],
        report: &mut ImportReport,
    ) -> Result<ComparisonResult, Error> {
        let mut page: Vec<Entry> = Vec::new();
        let reject_changes = self.session.source_system.is_none();
        for (index, (pending, seq)) in pending.iter().zip(known).enumerate() {
            let (Some(seq), false) = (*seq, pending.entry.identity == EntryIdentity::Content)
            else {
                continue;
            };
            let Some(body) = pending.standalone_body() else {
                continue;
            };
            if page.last().is_none_or(|last| seq > last.seq) || seq < page[0].seq {
                page = tl.store.read(to, ReadRange::starting_at(seq, PAGE)).await?;
            }
            let stored = page.iter().find(|stored| stored.seq == seq);
            if stored.is_none_or(|stored| has_same_content(&stored.body, &body)) {
                continue;
            }
            if !reject_changes {
                return Ok(ComparisonResult::DiffersAt(index));
            }
            let reused = StoreError::EntryIdReused {
                id: to.id.clone(),
                entry: pending.id(&EntryIdNamespace::of(&to.id))?,
            };
            report
                .failed
                .push((pending.entry.position, Arc::new(reused.into())));
        }
        Ok(ComparisonResult::Same)
    }

    /// Appends the entries that are not stored yet. Returns those that remain for a
    /// fork, which was created because the session was also continued locally.
    async fn append_new_entries(
        &mut self,
        tl: &Throughline,
        to: &SessionRef,
        pending: Vec<PendingEntry>,
        (ids, known): (&[EntryId], &[Option<Seq>]),
        report: &mut ImportReport,
    ) -> Result<Vec<PendingEntry>, Error> {
        let mut seen = EntryIds::default();
        let mut batch = AppendBatch::with_capacity(pending.len());
        let mut is_chained = false;
        let mut all = pending.into_iter().zip(ids.iter().zip(known));
        while let Some((mut next, (id, known))) = all.next() {
            if known.is_some() || !seen.insert(*id) {
                report.already_stored += u64::from(next.is_message());
                self.last_imported = self.last_imported.max(*known);
                continue;
            }
            if batch.is_empty() {
                is_chained = self.is_busy();
            }
            if batch.is_empty() && !is_chained && self.has_local_messages(tl, to).await? {
                let at = self.last_imported.unwrap_or(Seq::ZERO);
                self.switch_to_fork(tl, to, at, &next, report).await?;
                return Ok(collect_remaining(next, all, report));
            }
            let at = self.entry_time(&next.entry).unwrap_or_else(|| tl.now());
            let (position, author) = (next.entry.position, next.entry.author.take());
            let external_id = external_id(&next.entry).map(ToOwned::to_owned);
            let encoded = next.encoded.take();
            let body = match next.entry.event {
                ImportEvent::Body(body) => body,
                _ => match next.standalone_body() {
                    Some(body) => body,
                    None => {
                        // An entry that refers to others can be resolved only once they
                        // are stored.
                        self.start_append(tl, to, std::mem::take(&mut batch), is_chained)
                            .await;
                        self.flush(report).await;
                        if self.error.is_some() {
                            return Ok(collect_remaining(next, all, report));
                        }
                        match resolve_body(tl, to, &next.entry).await? {
                            Some(body) => body,
                            None => continue,
                        }
                    }
                },
            };
            let new = NewEntry {
                external_id,
                author,
                ..NewEntry::new(*id, at, body)
            };
            batch.push(new, encoded, position)?;
        }
        while self.pending_appends.len() >= MAX_PENDING_APPENDS {
            self.flush_first(report).await;
        }
        self.start_append(tl, to, batch, is_chained).await;
        Ok(Vec::new())
    }

    /// Starts to append entries. If they follow a pending append, they are rejected
    /// should that one fail or another writer append in between: they then have to be
    /// compared with the new state, which happens when the source is imported again.
    async fn start_append(
        &mut self,
        tl: &Throughline,
        to: &SessionRef,
        batch: AppendBatch,
        is_chained: bool,
    ) {
        if batch.is_empty() {
            return;
        }
        let after =
            (is_chained && self.session.source_system.is_some()).then_some(self.expected_head);
        self.expected_head = Seq(self.expected_head.0 + batch.len());
        let append = batch.append(tl, to, after).await;
        self.pending_appends.push_back(append);
    }

    /// Returns the time of an entry; if it has none, that of the previous entry.
    fn entry_time(&mut self, entry: &IncomingEntry) -> Option<Timestamp> {
        if self.session.source_system.is_none() {
            return entry.at;
        }
        let at = entry.at.or(self.last_time).or(self.session.at);
        self.last_time = at;
        at
    }

    /// Whether messages were added locally after the last entry that came from the
    /// source.
    async fn has_local_messages(
        &mut self,
        tl: &Throughline,
        to: &SessionRef,
    ) -> Result<bool, Error> {
        if self.session.source_system.is_none() {
            return Ok(false);
        }
        self.expected_head = tl.store.record(to).await?.info.head;
        let mut before = self.expected_head;
        while self.last_imported.is_none_or(|last| last < before) && before > Seq::ZERO {
            let page = tl
                .store
                .read(to, ReadRange::up_to(Some(before), PAGE))
                .await?;
            let Some(first) = page.first().map(|entry| entry.seq) else {
                break;
            };
            for entry in page.iter().rev() {
                if self.last_imported.is_some_and(|last| entry.seq <= last) {
                    return Ok(false);
                }
                if entry.id.is_derived() {
                    // Imported from a file that was read before this one.
                    if self.last_imported.is_none_or(|last| last < entry.seq) {
                        let messages = page.iter().filter(|later| later.seq > entry.seq);
                        let has_messages =
                            messages.filter(|later| later.message().is_some()).count() > 0;
                        self.last_imported = Some(entry.seq);
                        return Ok(has_messages);
                    }
                } else if entry.message().is_some() && self.last_imported.is_some() {
                    return Ok(true);
                }
            }
            before = Seq(first.0.saturating_sub(1));
        }
        Ok(false)
    }

    /// Switches to a fork, whose id is the same on every import.
    async fn switch_to_fork(
        &mut self,
        tl: &Throughline,
        of: &SessionRef,
        at: Seq,
        because: &PendingEntry,
        report: &mut ImportReport,
    ) -> Result<(), Error> {
        let mut identity = format!("{at}\0").into_bytes();
        identity.extend(content_bytes(&because.entry).unwrap_or_default());
        let digest = Digest::of(&identity).to_string();
        let base: String = of.id.as_str().chars().take(SessionId::MAX - 9).collect();
        let id: SessionId = format!("{base}-{}", &digest[..8]).parse()?;
        if find_record(tl, &id).await?.is_none() {
            let created_at = because.entry.at.or(self.session.at);
            let header = SessionHeader::new(id.clone(), created_at.unwrap_or_else(|| tl.now()));
            tl.store.fork(of, at, header).await?;
            report.created += 1;
            report.forked += 1;
        }
        self.target = Some(tl.owner.session(&id));
        self.known_ids = None;
        self.last_imported = Some(at);
        Ok(())
    }
}

/// Returns this entry and all later ones that are not stored yet.
fn collect_remaining<'a>(
    first: PendingEntry,
    later: impl Iterator<Item = (PendingEntry, (&'a EntryId, &'a Option<Seq>))>,
    report: &mut ImportReport,
) -> Vec<PendingEntry> {
    let mut remaining = vec![first];
    for (later, (_, known)) in later {
        match known {
            Some(_) => report.already_stored += u64::from(later.is_message()),
            None => remaining.push(later),
        }
    }
    remaining
}
