//! How what comes in for one session meets what is there.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;

use futures_util::poll;
use throughline_model::{
    Birth, Digest, Entry, EntryId, Happened, Identity, IdsWithin, IncomingEntry, IncomingSession,
    Lineage, NewEntry, Origin, Seq, SessionId, SessionRef, Timestamp,
};
use throughline_store::{Appended, EntryIds, Read, StoreError};

use super::arriving::own_id;
use super::asked::Asked;
use super::bundle::{Bundle, UnderWay};
use super::place::{self, Place};
use super::resolving::resolved;
use super::sharing::Sharing;
use super::waiting::{Waiting, content, ids, says_the_same};
use super::{ImportReport, PAGE};
use crate::throughline::record_if_any;
use crate::{Error, NewSession, Throughline};

/// How many ids of a session that was made are remembered, to know what is not there.
const REMEMBERED: usize = 1 << 18;

/// How many appends of a session are under way at once: one that is being written, and one
/// that the store can go on with.
const AT_ONCE: usize = 2;

/// A session of another system, and where its entries go here.
#[derive(Debug)]
pub(super) struct Meeting {
    session: IncomingSession,
    /// Where it goes, once that is known.
    to: Option<SessionRef>,
    /// The ids of all that is there, where this import made the session and knows them.
    made: Option<EntryIds>,
    /// Why it can go nowhere.
    refused: Option<Arc<Error>>,
    /// When the last entry happened.
    at: Option<Timestamp>,
    /// The last entry here that came from there, once that is known.
    last: Option<Seq>,
    /// The session this one shares its beginning with, while it does.
    sharing: Option<Sharing>,
    /// The session is being made, while its first entries are made ready; whether it existed.
    making: Option<Asked<Result<bool, Error>>>,
    /// What is being appended while more is made ready, in order.
    under_way: VecDeque<UnderWay>,
    /// The head of the session once that is done, if nobody else writes to it.
    head: Seq,
}

/// What becomes of a stretch of entries that is compared with what is there.
enum Met {
    /// Nothing says otherwise.
    Whole,
    /// The entry with this index says otherwise.
    Otherwise(usize),
}

impl Meeting {
    pub(super) fn new(session: IncomingSession) -> Self {
        Self {
            session,
            to: None,
            made: None,
            refused: None,
            at: None,
            last: None,
            sharing: None,
            making: None,
            under_way: VecDeque::new(),
            head: Seq::ZERO,
        }
    }

    /// Whether the session is being made or something appended to it.
    pub(super) fn is_busy(&self) -> bool {
        self.making.is_some() || !self.under_way.is_empty()
    }

    /// Lets go of what need not be remembered.
    pub(super) fn rest(&mut self) {
        self.made = None;
    }

    /// Whether there is a session for these entries, or they are reason to make one. One in
    /// which nothing was said is not made for a title's sake.
    pub(super) async fn is_wanted(&mut self, tl: &Throughline, waiting: &[Waiting]) -> bool {
        self.to.is_some()
            || waiting.iter().any(Waiting::is_said)
            || !matches!(place::find(tl, &self.session).await, Ok(Place::New(_)))
    }

    /// Waits until what is being appended is there, and tells what came of it.
    pub(super) async fn settle(&mut self, report: &mut ImportReport) {
        while self.is_busy() {
            self.settle_first(report).await;
        }
    }

    /// Waits for the first of it. Nothing is lost if that is given up.
    async fn settle_first(&mut self, report: &mut ImportReport) {
        if let Some(making) = &mut self.making {
            let made = making.outcome().await;
            self.was_made(made, report);
        } else if let Some(first) = self.under_way.front_mut() {
            let outcome = first.append.outcome().await;
            if let Some(first) = self.under_way.pop_front() {
                self.settled(&first, outcome, report);
            }
        }
    }

    /// Settles what is there by now, without waiting.
    async fn look(&mut self, report: &mut ImportReport) {
        while self.is_busy() && poll!(pin!(self.settle_first(report))).is_ready() {}
    }

    fn was_made(&mut self, made: Result<bool, Error>, report: &mut ImportReport) {
        self.making = None;
        match made {
            Ok(existed) => report.created += u64::from(!existed),
            Err(error) => self.refused = Some(Arc::new(error)),
        }
    }

    fn settled(
        &mut self,
        appended: &UnderWay,
        outcome: Result<Appended, StoreError>,
        report: &mut ImportReport,
    ) {
        match outcome {
            Ok(there) => {
                self.last = there.entries.last().map(|entry| entry.seq).or(self.last);
                report.appended += appended.messages;
            }
            Err(error) => {
                let error = Arc::new(Error::from(error));
                if appended.follows {
                    // What comes after it must not come in before it.
                    self.refused = Some(Arc::clone(&error));
                    report.disturbed = true;
                }
                report.failed.push((appended.place, error));
            }
        }
    }

    /// Makes ready what waits and begins to append it, and tells what was done; what came of
    /// the append is told when it [settles](Self::settle).
    pub(super) async fn append(
        &mut self,
        tl: &Throughline,
        waiting: Vec<Waiting>,
        report: &mut ImportReport,
    ) {
        self.look(report).await;
        let places: Vec<u64> = waiting.iter().map(|waiting| waiting.entry.place).collect();
        if self.refused.is_none()
            && let Err(error) = self.place(tl, report).await
        {
            self.refused = Some(Arc::new(error));
        }
        let trashed = |error: &Arc<Error>| matches!(**error, Error::Store(StoreError::InTrash(_)));
        if self.session.from.is_some() && self.refused.as_ref().is_some_and(trashed) {
            // Whoever threw it away does not want it back.
            let what = "entry of a session in the trash".to_owned();
            *report.passed.entry(what).or_default() += places.len() as u64;
        } else if let Err(error) = self.bring(tl, waiting, report).await {
            let first = places.first().copied().unwrap_or_default();
            report.failed.push((first, Arc::new(error)));
        }
    }

    /// Finds out where the entries go, and makes the session if need be.
    async fn place(&mut self, tl: &Throughline, report: &mut ImportReport) -> Result<(), Error> {
        if self.to.is_some() || self.sharing.is_some() {
            return Ok(());
        }
        let (from, origin) = (self.session.from.clone(), self.session.origin.clone());
        match place::find(tl, &self.session).await? {
            Place::There(there) => {
                // What a fork shares is in the other session's log, not in its own.
                if let Lineage::Forked { session, at } = tl.store.birth(&there).await?.lineage {
                    self.sharing = Some(Sharing {
                        with: tl.owner.session(&session),
                        at: Seq::ZERO,
                        until: Some(at),
                    });
                    // Whatever is shared came before what it goes on with.
                    self.last = Some(at);
                }
                self.to = Some(there);
            }
            Place::New(new) => {
                if let (Some(from), Some(Origin::Forked { session, .. })) = (from, origin)
                    && let Ok(Some(with)) = place::imported(tl, &from, &session).await
                {
                    self.sharing = Some(Sharing {
                        with,
                        at: Seq::ZERO,
                        until: None,
                    });
                    return Ok(());
                }
                match (&new.id, &self.session.from) {
                    (Some(id), Some(_)) => {
                        let id = id.clone();
                        self.begin_to_make(tl, &id, *new).await;
                    }
                    _ => self.make(tl, *new, report).await?,
                }
            }
        }
        Ok(())
    }

    async fn bring(
        &mut self,
        tl: &Throughline,
        waiting: Vec<Waiting>,
        report: &mut ImportReport,
    ) -> Result<(), Error> {
        let mut rest = match self.refused {
            Some(_) => waiting,
            None => self.past_shared(tl, waiting, report).await?,
        };
        while !rest.is_empty() {
            if let Some(refused) = &self.refused {
                let failed = |waiting: Waiting| (waiting.entry.place, Arc::clone(refused));
                report.failed.extend(rest.into_iter().map(failed));
                return Ok(());
            }
            let Some(to) = self.to.clone() else {
                return Ok(());
            };
            let ids = ids(&to.id, &rest)?;
            let known = self.known(tl, &to, &ids, report).await?;
            let later = match self.compare(tl, &to, &rest, &known, report).await? {
                Met::Whole => Vec::new(),
                Met::Otherwise(index) => rest.split_off(index),
            };
            let mut left = self.push(tl, &to, rest, (&ids, &known), report).await?;
            if let (true, Some(first)) = (left.is_empty(), later.first()) {
                self.settle(report).await;
                if self.refused.is_none() {
                    let at = self.last.unwrap_or(Seq::ZERO);
                    self.fork(tl, &to, at, first, report).await?;
                }
            }
            left.extend(later);
            rest = left;
        }
        Ok(())
    }

    /// Where those entries are that are there already.
    async fn known(
        &mut self,
        tl: &Throughline,
        to: &SessionRef,
        ids: &[EntryId],
        report: &mut ImportReport,
    ) -> Result<Vec<Option<Seq>>, Error> {
        if let Some(made) = &mut self.made {
            let few = made.len() + ids.len() <= REMEMBERED;
            if few && !ids.iter().any(|id| made.contains(id)) {
                made.extend(ids);
                return Ok(vec![None; ids.len()]);
            }
            self.made = None;
        }
        self.settle(report).await;
        Ok(tl.store.locate(to, ids).await?)
    }

    /// Begins to make the session, which is empty if nobody else makes it too: the first
    /// entries are refused if it is not.
    async fn begin_to_make(&mut self, tl: &Throughline, id: &SessionId, new: NewSession) {
        let of = tl.clone();
        let making = Asked::new(async move {
            let (_, existed) = of.get_or_create(new).await?;
            Ok(existed)
        });
        self.making = Some(making.await);
        self.made = Some(EntryIds::default());
        self.head = Seq::ZERO;
        self.to = Some(tl.owner.session(id));
    }

    /// Makes the session, if it is not there by now.
    async fn make(
        &mut self,
        tl: &Throughline,
        new: NewSession,
        report: &mut ImportReport,
    ) -> Result<(), Error> {
        let (session, existed) = tl.get_or_create(new).await?;
        report.created += u64::from(!existed);
        self.made = (!existed).then(EntryIds::default);
        self.to = Some(tl.owner.session(session.id()));
        Ok(())
    }

    /// What is left after what this session shares with the one it was forked from; the
    /// fork is made where they part.
    async fn past_shared(
        &mut self,
        tl: &Throughline,
        mut waiting: Vec<Waiting>,
        report: &mut ImportReport,
    ) -> Result<Vec<Waiting>, Error> {
        let Some(mut sharing) = self.sharing.take() else {
            return Ok(waiting);
        };
        let common = sharing.common(tl, &waiting, report).await?;
        let rest = waiting.split_off(common);
        if rest.is_empty() {
            self.sharing = Some(sharing);
        } else if self.to.is_none() {
            self.part(tl, &sharing, report).await?;
        }
        Ok(rest)
    }

    /// Makes the fork, at the last entry that was the same.
    async fn part(
        &mut self,
        tl: &Throughline,
        sharing: &Sharing,
        report: &mut ImportReport,
    ) -> Result<(), Error> {
        let Place::New(mut new) = place::find(tl, &self.session).await? else {
            return Ok(());
        };
        let at = sharing.parts_at(tl, self.session.origin.as_ref()).await?;
        if at == Seq::ZERO {
            // They share nothing: one goes on from the other.
            new.continued_from = Some(sharing.with.id.clone());
            return self.make(tl, *new, report).await;
        }
        let birth = new.birth(&*tl.world);
        let id = birth.id.clone();
        tl.store.fork(&sharing.with, at, birth).await?;
        report.created += 1;
        self.to = Some(tl.owner.session(&id));
        self.last = Some(at);
        Ok(())
    }

    /// Compares what comes again with what is there.
    async fn compare(
        &mut self,
        tl: &Throughline,
        to: &SessionRef,
        waiting: &[Waiting],
        known: &[Option<Seq>],
        report: &mut ImportReport,
    ) -> Result<Met, Error> {
        let mut page: Vec<Entry> = Vec::new();
        let refuse = self.session.from.is_none();
        for (index, (waiting, seq)) in waiting.iter().zip(known).enumerate() {
            let (Some(seq), false) = (*seq, waiting.entry.identity == Identity::Content) else {
                continue;
            };
            let Some(body) = waiting.plain_body() else {
                continue;
            };
            if page.last().is_none_or(|last| seq > last.seq) || seq < page[0].seq {
                page = tl.store.read(to, Read::from(seq, PAGE)).await?;
            }
            let there = page.iter().find(|there| there.seq == seq);
            if there.is_none_or(|there| says_the_same(&there.body, &body)) {
                continue;
            }
            if !refuse {
                return Ok(Met::Otherwise(index));
            }
            let reused = StoreError::EntryIdReused {
                id: to.id.clone(),
                entry: waiting.id(&IdsWithin::of(&to.id))?,
            };
            report
                .failed
                .push((waiting.entry.place, Arc::new(reused.into())));
        }
        Ok(Met::Whole)
    }

    /// Appends what is not there yet. What is left is for the fork that was made because
    /// somebody here has gone on too.
    async fn push(
        &mut self,
        tl: &Throughline,
        to: &SessionRef,
        waiting: Vec<Waiting>,
        (ids, known): (&[EntryId], &[Option<Seq>]),
        report: &mut ImportReport,
    ) -> Result<Vec<Waiting>, Error> {
        let mut taken = EntryIds::default();
        let mut bundle = Bundle::with_room(waiting.len());
        let mut follows = false;
        let mut all = waiting.into_iter().zip(ids.iter().zip(known));
        while let Some((mut next, (id, known))) = all.next() {
            if known.is_some() || !taken.insert(*id) {
                report.known += u64::from(next.is_message());
                self.last = self.last.max(*known);
                continue;
            }
            if bundle.is_empty() {
                follows = self.is_busy();
            }
            if bundle.is_empty() && !follows && self.gone_on(tl, to).await? {
                let at = self.last.unwrap_or(Seq::ZERO);
                self.fork(tl, to, at, &next, report).await?;
                return Ok(left_of(next, all, report));
            }
            let at = self.time(&next.entry).unwrap_or_else(|| tl.now());
            let (place, author) = (next.entry.place, next.entry.author.take());
            let external_id = own_id(&next.entry).map(ToOwned::to_owned);
            let encoded = next.encoded.take();
            let body = match next.entry.what {
                Happened::Body(body) => body,
                _ => match next.plain_body() {
                    Some(body) => body,
                    None => {
                        // What speaks of other entries needs them to be there.
                        self.begin(tl, to, std::mem::take(&mut bundle), follows)
                            .await;
                        self.settle(report).await;
                        if self.refused.is_some() {
                            return Ok(left_of(next, all, report));
                        }
                        match resolved(tl, to, &next.entry).await? {
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
        while self.under_way.len() >= AT_ONCE {
            self.settle_first(report).await;
        }
        self.begin(tl, to, bundle, follows).await;
        Ok(Vec::new())
    }

    /// Begins to append entries. If they follow others that are not there yet, and somebody else
    /// writes in between or those before them fail, they are refused: they must be compared
    /// with what is there by then, and come in when their source is taken again.
    async fn begin(&mut self, tl: &Throughline, to: &SessionRef, bundle: Bundle, follows: bool) {
        if bundle.is_empty() {
            return;
        }
        let after = (follows && self.session.from.is_some()).then_some(self.head);
        self.head = Seq(self.head.0 + bundle.len());
        let under_way = bundle.append(tl, to, after).await;
        self.under_way.push_back(under_way);
    }

    /// When something happened; where that is not told, when the last thing did.
    fn time(&mut self, entry: &IncomingEntry) -> Option<Timestamp> {
        if self.session.from.is_none() {
            return entry.at;
        }
        let at = entry.at.or(self.at).or(self.session.at);
        self.at = at;
        at
    }

    /// Whether somebody here has said something after the last entry that came from there.
    async fn gone_on(&mut self, tl: &Throughline, to: &SessionRef) -> Result<bool, Error> {
        if self.session.from.is_none() {
            return Ok(false);
        }
        self.head = tl.store.record(to).await?.card.head;
        let mut before = self.head;
        while self.last.is_none_or(|last| last < before) && before > Seq::ZERO {
            let page = tl.store.read(to, Read::before(Some(before), PAGE)).await?;
            let Some(first) = page.first().map(|entry| entry.seq) else {
                break;
            };
            for entry in page.iter().rev() {
                if self.last.is_some_and(|last| entry.seq <= last) {
                    return Ok(false);
                }
                if entry.id.is_derived() {
                    // Said there, in a file that was read before this one.
                    if self.last.is_none_or(|last| last < entry.seq) {
                        let said = page.iter().filter(|later| later.seq > entry.seq);
                        let here = said.filter(|later| later.message().is_some()).count() > 0;
                        self.last = Some(entry.seq);
                        return Ok(here);
                    }
                } else if entry.message().is_some() && self.last.is_some() {
                    return Ok(true);
                }
            }
            before = Seq(first.0.saturating_sub(1));
        }
        Ok(false)
    }

    /// Goes on in a fork, which is the same one every time.
    async fn fork(
        &mut self,
        tl: &Throughline,
        of: &SessionRef,
        at: Seq,
        because: &Waiting,
        report: &mut ImportReport,
    ) -> Result<(), Error> {
        let mut said = format!("{at}\0").into_bytes();
        said.extend(content(&because.entry).unwrap_or_default());
        let digest = Digest::of(&said).to_string();
        let base: String = of.id.as_str().chars().take(SessionId::MAX - 9).collect();
        let id: SessionId = format!("{base}-{}", &digest[..8]).parse()?;
        if record_if_any(tl, &id).await?.is_none() {
            let born = because.entry.at.or(self.session.at);
            let birth = Birth::new(id.clone(), born.unwrap_or_else(|| tl.now()));
            tl.store.fork(of, at, birth).await?;
            report.created += 1;
            report.forked += 1;
        }
        self.to = Some(tl.owner.session(&id));
        self.made = None;
        self.last = Some(at);
        Ok(())
    }
}

/// This one, and what is not there of all that comes after it.
fn left_of<'a>(
    first: Waiting,
    later: impl Iterator<Item = (Waiting, (&'a EntryId, &'a Option<Seq>))>,
    report: &mut ImportReport,
) -> Vec<Waiting> {
    let mut left = vec![first];
    for (later, (_, known)) in later {
        match known {
            Some(_) => report.known += u64::from(later.is_message()),
            None => left.push(later),
        }
    }
    left
}
