//! How what comes in for one session meets what is there.

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

/// How many ids of a session that was made are remembered, to know what is not there.
const MAX_CACHED_IDS: usize = 1 << 18;

/// How many appends of a session are under way at once: one that is being written, and one
/// that the store can go on with.
const MAX_PENDING_APPENDS: usize = 2;

/// A session of another system, and where its entries go here.
#[derive(Debug)]
pub(super) struct SessionImport {
    session: IncomingSession,
    /// Where it goes, once that is known.
    target: Option<SessionRef>,
    /// The ids of all that is there, where this import made the session and knows them.
    known_ids: Option<EntryIds>,
    /// Why it can go nowhere.
    error: Option<Arc<Error>>,
    /// When the last entry happened.
    last_time: Option<Timestamp>,
    /// The last entry here that came from there, once that is known.
    last_imported: Option<Seq>,
    /// The session this one shares its beginning with, while it does.
    shared_prefix: Option<SharedPrefix>,
    /// The session is being made, while its first entries are made ready; whether it existed.
    creating: Option<InFlight<Result<bool, Error>>>,
    /// What is being appended while more is made ready, in order.
    pending_appends: VecDeque<PendingAppend>,
    /// The head of the session once that is done, if nobody else writes to it.
    expected_head: Seq,
}

/// What becomes of a stretch of entries that is compared with what is there.
enum ComparisonResult {
    /// Nothing says otherwise.
    Same,
    /// The entry with this index says otherwise.
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

    /// Whether the session is being made or something appended to it.
    pub(super) fn is_busy(&self) -> bool {
        self.creating.is_some() || !self.pending_appends.is_empty()
    }

    /// Lets go of what need not be remembered.
    pub(super) fn release_id_cache(&mut self) {
        self.known_ids = None;
    }

    /// Whether there is a session for these entries, or they are reason to make one. One in
    /// which nothing was said is not made for a title's sake.
    pub(super) async fn should_import(
        &mut self,
        tl: &Throughline,
        waiting: &[PendingEntry],
    ) -> bool {
        self.target.is_some()
            || waiting.iter().any(PendingEntry::has_content)
            || !matches!(
                resolve_target::find_target(tl, &self.session).await,
                Ok(ImportTarget::New(_))
            )
    }

    /// Waits until what is being appended is there, and tells what came of it.
    pub(super) async fn flush(&mut self, report: &mut ImportReport) {
        while self.is_busy() {
            self.flush_first(report).await;
        }
    }

    /// Waits for the first of it. Nothing is lost if that is given up.
    async fn flush_first(&mut self, report: &mut ImportReport) {
        if let Some(making) = &mut self.creating {
            let made = making.outcome().await;
            self.handle_created(made, report);
        } else if let Some(first) = self.pending_appends.front_mut() {
            let outcome = first.append.outcome().await;
            if let Some(first) = self.pending_appends.pop_front() {
                self.handle_appended(&first, outcome, report);
            }
        }
    }

    /// Settles what is there by now, without waiting.
    async fn poll_completed(&mut self, report: &mut ImportReport) {
        while self.is_busy() && poll!(pin!(self.flush_first(report))).is_ready() {}
    }

    fn handle_created(&mut self, made: Result<bool, Error>, report: &mut ImportReport) {
        self.creating = None;
        match made {
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
            Ok(there) => {
                self.last_imported = there
                    .entries
                    .last()
                    .map(|entry| entry.seq)
                    .or(self.last_imported);
                report.appended += appended.messages;
            }
            Err(error) => {
                let error = Arc::new(Error::from(error));
                if appended.is_chained {
                    // What comes after it must not come in before it.
                    self.error = Some(Arc::clone(&error));
                    report.should_retry = true;
                }
                report.failed.push((appended.source_position, error));
            }
        }
    }

    /// Makes ready what waits and begins to append it, and tells what was done; what came of
    /// the append is told when it [settles](Self::settle).
    pub(super) async fn append(
        &mut self,
        tl: &Throughline,
        waiting: Vec<PendingEntry>,
        report: &mut ImportReport,
    ) {
        self.poll_completed(report).await;
        let places: Vec<u64> = waiting
            .iter()
            .map(|waiting| waiting.entry.position)
            .collect();
        if self.error.is_none()
            && let Err(error) = self.resolve_target(tl, report).await
        {
            self.error = Some(Arc::new(error));
        }
        let trashed = |error: &Arc<Error>| matches!(**error, Error::Store(StoreError::InTrash(_)));
        if self.session.source_system.is_some() && self.error.as_ref().is_some_and(trashed) {
            // Whoever threw it away does not want it back.
            let what = "entry of a session in the trash".to_owned();
            *report.skipped.entry(what).or_default() += places.len() as u64;
        } else if let Err(error) = self.import_entries(tl, waiting, report).await {
            let first = places.first().copied().unwrap_or_default();
            report.failed.push((first, Arc::new(error)));
        }
    }

    /// Finds out where the entries go, and makes the session if need be.
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
            ImportTarget::Existing(there) => {
                // What a fork shares is in the other session's log, not in its own.
                if let Lineage::Forked { session, at } = tl.store.header(&there).await?.lineage {
                    self.shared_prefix = Some(SharedPrefix {
                        origin: tl.owner.session(&session),
                        last_matched: Seq::ZERO,
                        limit: Some(at),
                    });
                    // Whatever is shared came before what it goes on with.
                    self.last_imported = Some(at);
                }
                self.target = Some(there);
            }
            ImportTarget::New(new) => {
                if let (Some(from), Some(IncomingOrigin::Forked { session, .. })) = (from, origin)
                    && let Ok(Some(with)) = resolve_target::find_imported(tl, &from, &session).await
                {
                    self.shared_prefix = Some(SharedPrefix {
                        origin: with,
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
        waiting: Vec<PendingEntry>,
        report: &mut ImportReport,
    ) -> Result<(), Error> {
        let mut rest = match self.error {
            Some(_) => waiting,
            None => self.skip_shared_prefix(tl, waiting, report).await?,
        };
        while !rest.is_empty() {
            if let Some(refused) = &self.error {
                let failed = |waiting: PendingEntry| (waiting.entry.position, Arc::clone(refused));
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
            let mut left = self
                .append_new_entries(tl, &to, rest, (&ids, &known), report)
                .await?;
            if let (true, Some(first)) = (left.is_empty(), later.first()) {
                self.flush(report).await;
                if self.error.is_none() {
                    let at = self.last_imported.unwrap_or(Seq::ZERO);
                    self.switch_to_fork(tl, &to, at, first, report).await?;
                }
            }
            left.extend(later);
            rest = left;
        }
        Ok(())
    }

    /// Where those entries are that are there already.
    async fn locate_stored(
        &mut self,
        tl: &Throughline,
        to: &SessionRef,
        ids: &[EntryId],
        report: &mut ImportReport,
    ) -> Result<Vec<Option<Seq>>, Error> {
        if let Some(made) = &mut self.known_ids {
            let few = made.len() + ids.len() <= MAX_CACHED_IDS;
            if few && !ids.iter().any(|id| made.contains(id)) {
                made.extend(ids);
                return Ok(vec![None; ids.len()]);
            }
            self.known_ids = None;
        }
        self.flush(report).await;
        Ok(tl.store.locate(to, ids).await?)
    }

    /// Begins to make the session, which is empty if nobody else makes it too: the first
    /// entries are refused if it is not.
    async fn start_create(&mut self, tl: &Throughline, id: &SessionId, new: NewSession) {
        let of = tl.clone();
        let making = InFlight::start(async move {
            let (_, existed) = of.get_or_create(new).await?;
            Ok(existed)
        });
        self.creating = Some(making.await);
        self.known_ids = Some(EntryIds::default());
        self.expected_head = Seq::ZERO;
        self.target = Some(tl.owner.session(id));
    }

    /// Makes the session, if it is not there by now.
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

    /// What is left after what this session shares with the one it was forked from; the
    /// fork is made where they part.
    async fn skip_shared_prefix(
        &mut self,
        tl: &Throughline,
        mut waiting: Vec<PendingEntry>,
        report: &mut ImportReport,
    ) -> Result<Vec<PendingEntry>, Error> {
        let Some(mut sharing) = self.shared_prefix.take() else {
            return Ok(waiting);
        };
        let common = sharing.count_matching(tl, &waiting, report).await?;
        let rest = waiting.split_off(common);
        if rest.is_empty() {
            self.shared_prefix = Some(sharing);
        } else if self.target.is_none() {
            self.fork_at_divergence(tl, &sharing, report).await?;
        }
        Ok(rest)
    }

    /// Makes the fork, at the last entry that was the same.
    async fn fork_at_divergence(
        &mut self,
        tl: &Throughline,
        sharing: &SharedPrefix,
        report: &mut ImportReport,
    ) -> Result<(), Error> {
        let ImportTarget::New(mut new) = resolve_target::find_target(tl, &self.session).await?
        else {
            return Ok(());
        };
        let at = sharing.fork_point(tl, self.session.origin.as_ref()).await?;
        if at == Seq::ZERO {
            // They share nothing: one goes on from the other.
            new.continued_from = Some(sharing.origin.id.clone());
            return self.create(tl, *new, report).await;
        }
        let birth = new.into_header(&*tl.environment);
        let id = birth.id.clone();
        tl.store.fork(&sharing.origin, at, birth).await?;
        report.created += 1;
        self.target = Some(tl.owner.session(&id));
        self.last_imported = Some(at);
        Ok(())
    }

    /// Compares what comes again with what is there.
    async fn compare_stored(
        &mut self,
        tl: &Throughline,
        to: &SessionRef,
        waiting: &[PendingEntry],
        known: &[Option<Seq>],
        report: &mut ImportReport,
    ) -> Result<ComparisonResult, Error> {
        let mut page: Vec<Entry> = Vec::new();
        let refuse = self.session.source_system.is_none();
        for (index, (waiting, seq)) in waiting.iter().zip(known).enumerate() {
            let (Some(seq), false) = (*seq, waiting.entry.identity == EntryIdentity::Content)
            else {
                continue;
            };
            let Some(body) = waiting.standalone_body() else {
                continue;
            };
            if page.last().is_none_or(|last| seq > last.seq) || seq < page[0].seq {
                page = tl.store.read(to, ReadRange::starting_at(seq, PAGE)).await?;
            }
            let there = page.iter().find(|there| there.seq == seq);
            if there.is_none_or(|there| has_same_content(&there.body, &body)) {
                continue;
            }
            if !refuse {
                return Ok(ComparisonResult::DiffersAt(index));
            }
            let reused = StoreError::EntryIdReused {
                id: to.id.clone(),
                entry: waiting.id(&EntryIdNamespace::of(&to.id))?,
            };
            report
                .failed
                .push((waiting.entry.position, Arc::new(reused.into())));
        }
        Ok(ComparisonResult::Same)
    }

    /// Appends what is not there yet. What is left is for the fork that was made because
    /// somebody here has gone on too.
    async fn append_new_entries(
        &mut self,
        tl: &Throughline,
        to: &SessionRef,
        waiting: Vec<PendingEntry>,
        (ids, known): (&[EntryId], &[Option<Seq>]),
        report: &mut ImportReport,
    ) -> Result<Vec<PendingEntry>, Error> {
        let mut taken = EntryIds::default();
        let mut bundle = AppendBatch::with_capacity(waiting.len());
        let mut follows = false;
        let mut all = waiting.into_iter().zip(ids.iter().zip(known));
        while let Some((mut next, (id, known))) = all.next() {
            if known.is_some() || !taken.insert(*id) {
                report.already_stored += u64::from(next.is_message());
                self.last_imported = self.last_imported.max(*known);
                continue;
            }
            if bundle.is_empty() {
                follows = self.is_busy();
            }
            if bundle.is_empty() && !follows && self.has_local_messages(tl, to).await? {
                let at = self.last_imported.unwrap_or(Seq::ZERO);
                self.switch_to_fork(tl, to, at, &next, report).await?;
                return Ok(collect_remaining(next, all, report));
            }
            let at = self.entry_time(&next.entry).unwrap_or_else(|| tl.now());
            let (place, author) = (next.entry.position, next.entry.author.take());
            let external_id = external_id(&next.entry).map(ToOwned::to_owned);
            let encoded = next.encoded.take();
            let body = match next.entry.event {
                ImportEvent::Body(body) => body,
                _ => match next.standalone_body() {
                    Some(body) => body,
                    None => {
                        // What speaks of other entries needs them to be there.
                        self.start_append(tl, to, std::mem::take(&mut bundle), follows)
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
            bundle.push(new, encoded, place)?;
        }
        while self.pending_appends.len() >= MAX_PENDING_APPENDS {
            self.flush_first(report).await;
        }
        self.start_append(tl, to, bundle, follows).await;
        Ok(Vec::new())
    }

    /// Begins to append entries. If they follow others that are not there yet, and somebody else
    /// writes in between or those before them fail, they are refused: they must be compared
    /// with what is there by then, and come in when their source is taken again.
    async fn start_append(
        &mut self,
        tl: &Throughline,
        to: &SessionRef,
        bundle: AppendBatch,
        follows: bool,
    ) {
        if bundle.is_empty() {
            return;
        }
        let after = (follows && self.session.source_system.is_some()).then_some(self.expected_head);
        self.expected_head = Seq(self.expected_head.0 + bundle.len());
        let under_way = bundle.append(tl, to, after).await;
        self.pending_appends.push_back(under_way);
    }

    /// When something happened; where that is not told, when the last thing did.
    fn entry_time(&mut self, entry: &IncomingEntry) -> Option<Timestamp> {
        if self.session.source_system.is_none() {
            return entry.at;
        }
        let at = entry.at.or(self.last_time).or(self.session.at);
        self.last_time = at;
        at
    }

    /// Whether somebody here has said something after the last entry that came from there.
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
                    // Said there, in a file that was read before this one.
                    if self.last_imported.is_none_or(|last| last < entry.seq) {
                        let said = page.iter().filter(|later| later.seq > entry.seq);
                        let here = said.filter(|later| later.message().is_some()).count() > 0;
                        self.last_imported = Some(entry.seq);
                        return Ok(here);
                    }
                } else if entry.message().is_some() && self.last_imported.is_some() {
                    return Ok(true);
                }
            }
            before = Seq(first.0.saturating_sub(1));
        }
        Ok(false)
    }

    /// Goes on in a fork, which is the same one every time.
    async fn switch_to_fork(
        &mut self,
        tl: &Throughline,
        of: &SessionRef,
        at: Seq,
        because: &PendingEntry,
        report: &mut ImportReport,
    ) -> Result<(), Error> {
        let mut said = format!("{at}\0").into_bytes();
        said.extend(content_bytes(&because.entry).unwrap_or_default());
        let digest = Digest::of(&said).to_string();
        let base: String = of.id.as_str().chars().take(SessionId::MAX - 9).collect();
        let id: SessionId = format!("{base}-{}", &digest[..8]).parse()?;
        if find_record(tl, &id).await?.is_none() {
            let born = because.entry.at.or(self.session.at);
            let birth = SessionHeader::new(id.clone(), born.unwrap_or_else(|| tl.now()));
            tl.store.fork(of, at, birth).await?;
            report.created += 1;
            report.forked += 1;
        }
        self.target = Some(tl.owner.session(&id));
        self.known_ids = None;
        self.last_imported = Some(at);
        Ok(())
    }
}

/// This one, and what is not there of all that comes after it.
fn collect_remaining<'a>(
    first: PendingEntry,
    later: impl Iterator<Item = (PendingEntry, (&'a EntryId, &'a Option<Seq>))>,
    report: &mut ImportReport,
) -> Vec<PendingEntry> {
    let mut left = vec![first];
    for (later, (_, known)) in later {
        match known {
            Some(_) => report.already_stored += u64::from(later.is_message()),
            None => left.push(later),
        }
    }
    left
}
