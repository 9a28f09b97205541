//! What comes in for one session, and how it meets what is there.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use throughline_model::{
    Birth, Body, Checkpoint, Digest, Entry, EntryId, Happened, Identity, IncomingEntry,
    IncomingSession, Lineage, NamedBy, NewEntry, Origin, Seq, SessionId, SessionRef, Tag,
    Timestamp,
};
use throughline_store::{Append, Read, StoreError};

use super::ImportReport;
use super::place::{self, Place};
use crate::throughline::record_if_any;
use crate::{Error, Throughline};

/// Entries read at a time.
const PAGE: usize = 500;

/// What is gathered for one session.
#[derive(Debug)]
pub(super) struct Gathering {
    session: IncomingSession,
    /// Where it goes, once that is known.
    to: Option<SessionRef>,
    /// Why it can go nowhere.
    refused: Option<Arc<Error>>,
    waiting: Vec<Waiting>,
    /// How often each entry without an id of its own has come.
    seen: HashMap<Digest, u32>,
    /// When the last entry happened.
    at: Option<Timestamp>,
    /// The last entry here that came from there, once that is known.
    last: Option<Seq>,
    /// The session this one shares its beginning with, while it does.
    sharing: Option<Sharing>,
}

/// An entry that waits to be appended.
#[derive(Clone, Debug)]
struct Waiting {
    entry: IncomingEntry,
    /// Which of those that are the same.
    times: u32,
}

/// A session whose beginning another one repeats.
#[derive(Debug)]
struct Sharing {
    with: SessionRef,
    /// The last entry that was the same.
    at: Seq,
    /// The last entry that is known to be shared, where that is settled.
    until: Option<Seq>,
}

/// What becomes of a stretch of entries that is compared with what is there.
enum Met {
    /// Nothing says otherwise.
    Whole,
    /// The entry with this index says otherwise.
    Otherwise(usize),
}

impl Gathering {
    pub(super) fn new(session: IncomingSession) -> Self {
        Self {
            session,
            to: None,
            refused: None,
            waiting: Vec::new(),
            seen: HashMap::new(),
            at: None,
            last: None,
            sharing: None,
        }
    }

    pub(super) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes an entry, which waits until the next append.
    pub(super) fn take(&mut self, entry: IncomingEntry) {
        let mut times = 0;
        if entry.identity == Identity::Content
            && let Some(content) = content(&entry)
        {
            // The same words may be said twice; the second time is another message.
            let seen = self.seen.entry(Digest::of(&content)).or_default();
            *seen += 1;
            times = *seen;
        }
        if let Happened::Titled { title, .. } = &entry.what
            && place::name(title).is_some_and(|name| name.as_str() != title)
        {
            // A name has no capitals and no spaces; the title keeps them.
            let identity = match &entry.identity {
                Identity::Own(id) | Identity::Place(id) => Identity::Place(format!("{id}/title")),
                Identity::Content => Identity::Content,
            };
            let description = Some(title.clone());
            self.waiting.push(Waiting {
                entry: IncomingEntry {
                    identity,
                    what: Happened::Body(Body::Described { description }),
                    ..entry.clone()
                },
                times: 0,
            });
        }
        self.waiting.push(Waiting { entry, times });
    }

    /// Appends what waits and tells what was done.
    pub(super) async fn append(&mut self, tl: &Throughline) -> ImportReport {
        let mut report = ImportReport::default();
        let said = |waiting: &Waiting| match &waiting.entry.what {
            Happened::Body(body) => matches!(body, Body::Message(_) | Body::ContextSet { .. }),
            Happened::Compacted { .. } | Happened::Summarized { .. } => true,
            _ => false,
        };
        let waiting = std::mem::take(&mut self.waiting);
        // A session in which nothing was said is not made for a title's sake.
        if self.to.is_none() && !waiting.iter().any(said) {
            match place::find(tl, &self.session).await {
                Ok(Place::New(_)) => {
                    self.waiting = waiting;
                    return report;
                }
                Ok(Place::There(_)) | Err(_) => {}
            }
        }
        let places: Vec<u64> = waiting.iter().map(|waiting| waiting.entry.place).collect();
        if self.refused.is_none()
            && let Err(error) = self.place(tl, &mut report).await
        {
            self.refused = Some(Arc::new(error));
        }
        let trashed = |error: &Arc<Error>| matches!(**error, Error::Store(StoreError::InTrash(_)));
        if self.session.from.is_some() && self.refused.as_ref().is_some_and(trashed) {
            // Whoever threw it away does not want it back.
            let what = "entry of a session in the trash".to_owned();
            *report.passed.entry(what).or_default() += places.len() as u64;
        } else if let Some(refused) = &self.refused {
            let all = places.iter().map(|place| (*place, Arc::clone(refused)));
            report.failed.extend(all);
        } else if let Err(error) = self.bring(tl, waiting, &mut report).await {
            let first = places.first().copied().unwrap_or_default();
            report.failed.push((first, Arc::new(error)));
        }
        report
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
                let (session, existed) = tl.get_or_create(*new).await?;
                report.created += u64::from(!existed);
                self.to = Some(tl.owner.session(session.id()));
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
        let mut rest = self.pass_shared(tl, waiting, report).await?;
        while !rest.is_empty() {
            let Some(to) = self.to.clone() else {
                return Ok(());
            };
            let known = tl.store.locate(&to, &ids(&to.id, &rest)?).await?;
            match self.compare(tl, &to, &rest, &known, report).await? {
                Met::Whole => return self.push(tl, rest, &known, report).await,
                Met::Otherwise(index) => {
                    let later = rest.split_off(index);
                    self.push(tl, rest, &known[..index], report).await?;
                    let at = self.last.unwrap_or(Seq::ZERO);
                    self.fork(tl, &to, at, &later[0], report).await?;
                    rest = later;
                }
            }
        }
        Ok(())
    }

    /// Passes over what this session shares with the one it was forked from, and makes the
    /// fork where they part.
    async fn pass_shared(
        &mut self,
        tl: &Throughline,
        mut waiting: Vec<Waiting>,
        report: &mut ImportReport,
    ) -> Result<Vec<Waiting>, Error> {
        let Some(mut sharing) = self.sharing.take() else {
            return Ok(waiting);
        };
        let mut same = 0;
        let mut page: std::collections::VecDeque<Entry> = std::collections::VecDeque::new();
        'all: for next in &waiting {
            let Some(body) = plain_body(&next.entry) else {
                same += 1;
                continue;
            };
            if !matches!(body, Body::Message(_)) {
                same += 1;
                continue;
            }
            loop {
                if page.is_empty() {
                    let from = sharing.at.next();
                    page = tl
                        .store
                        .read(&sharing.with, Read::from(from, PAGE))
                        .await?
                        .into();
                }
                let Some(there) = page.pop_front() else {
                    break 'all;
                };
                if sharing.until.is_some_and(|until| there.seq > until) {
                    break 'all;
                }
                if there.message().is_none() {
                    sharing.at = there.seq;
                    continue;
                }
                if !says_the_same(&there.body, &body) {
                    break 'all;
                }
                sharing.at = there.seq;
                same += 1;
                report.known += 1;
                break;
            }
        }
        let rest = waiting.split_off(same);
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
        let mut at = sharing.at;
        if let Some(Origin::Forked {
            at: Some(named), ..
        }) = &self.session.origin
            && at == Seq::ZERO
        {
            at = shared(tl, &sharing.with, named).await?.unwrap_or(at);
        }
        if at == Seq::ZERO {
            // They share nothing: one goes on from the other.
            new.continued_from = Some(sharing.with.id.clone());
            let (session, existed) = tl.get_or_create(*new).await?;
            report.created += u64::from(!existed);
            self.to = Some(tl.owner.session(session.id()));
            return Ok(());
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
            let Some(body) = plain_body(&waiting.entry) else {
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
                entry: id(&to.id, waiting)?,
            };
            report
                .failed
                .push((waiting.entry.place, Arc::new(reused.into())));
        }
        Ok(Met::Whole)
    }

    /// Appends what is not there yet.
    async fn push(
        &mut self,
        tl: &Throughline,
        waiting: Vec<Waiting>,
        known: &[Option<Seq>],
        report: &mut ImportReport,
    ) -> Result<(), Error> {
        let mut taken = HashSet::new();
        let mut new: Vec<NewEntry> = Vec::new();
        for (waiting, known) in waiting.into_iter().zip(known) {
            let Some(to) = self.to.clone() else {
                return Ok(());
            };
            let message = matches!(&waiting.entry.what, Happened::Body(Body::Message(_)));
            if let Some(known) = known {
                report.known += u64::from(message);
                self.last = Some(self.last.map_or(*known, |last| last.max(*known)));
                continue;
            }
            let id = id(&to.id, &waiting)?;
            if !taken.insert(id) {
                report.known += u64::from(message);
                continue;
            }
            if new.is_empty() && self.gone_on(tl, &to).await? {
                let at = self.last.unwrap_or(Seq::ZERO);
                self.fork(tl, &to, at, &waiting, report).await?;
                let fork = self.to.clone().unwrap_or(to);
                let there = tl
                    .store
                    .locate(&fork, &[self::id(&fork.id, &waiting)?])
                    .await?;
                if there[0].is_some() {
                    report.known += u64::from(message);
                    self.last = there[0];
                    continue;
                }
            }
            let Some(to) = self.to.clone() else {
                return Ok(());
            };
            let id = self::id(&to.id, &waiting)?;
            let at = self.time(&waiting.entry).unwrap_or_else(|| tl.now());
            let body = match plain_body(&waiting.entry) {
                Some(body) => body,
                None => {
                    // What speaks of other entries needs them to be there.
                    self.append_now(tl, &to, std::mem::take(&mut new), report)
                        .await?;
                    match self.resolved(tl, &to, &waiting.entry).await? {
                        Some(body) => body,
                        None => continue,
                    }
                }
            };
            let mut entry = NewEntry::new(id, at, body);
            if let Identity::Own(own) = waiting.entry.identity {
                entry.external_id = Some(own);
            }
            entry.author = waiting.entry.author;
            new.push(entry);
        }
        match self.to.clone() {
            Some(to) => self.append_now(tl, &to, new, report).await,
            None => Ok(()),
        }
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

    async fn append_now(
        &mut self,
        tl: &Throughline,
        to: &SessionRef,
        new: Vec<NewEntry>,
        report: &mut ImportReport,
    ) -> Result<(), Error> {
        if new.is_empty() {
            return Ok(());
        }
        let messages = new
            .iter()
            .filter(|new| new.body.message().is_some())
            .count();
        let appended = tl.store.append(to, Append::any(new)).await?;
        self.last = appended.entries.last().map(|entry| entry.seq).or(self.last);
        report.appended += messages as u64;
        Ok(())
    }

    /// Whether somebody here has said something after the last entry that came from there.
    async fn gone_on(&mut self, tl: &Throughline, to: &SessionRef) -> Result<bool, Error> {
        if self.session.from.is_none() {
            return Ok(false);
        }
        let head = tl.store.record(to).await?.card.head;
        let mut before = head;
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
        self.last = Some(at);
        Ok(())
    }

    /// What can only be said with numbers of ours.
    async fn resolved(
        &self,
        tl: &Throughline,
        to: &SessionRef,
        entry: &IncomingEntry,
    ) -> Result<Option<Body>, Error> {
        match &entry.what {
            Happened::Rewound { to: named } => {
                let seq = match named {
                    None => Some(Seq::ZERO),
                    Some(named) => find(tl, to, named).await?,
                };
                let head = tl.store.record(to).await?.card.head;
                // Back to the last entry is no way back.
                let seq = seq.filter(|seq| *seq < head);
                Ok(seq.map(|to| Body::Rewound { to }))
            }
            Happened::Compacted {
                summary,
                by,
                keeps,
                usage,
            } => {
                let record = tl.store.record(to).await?;
                let kept = match keeps {
                    None => None,
                    Some(named) => find(tl, to, named).await?,
                };
                let covers = kept.map_or(record.card.head, |kept| Seq(kept.0.saturating_sub(1)));
                let before = record.standing.checkpoint().map_or(Seq::ZERO, |c| c.covers);
                let (messages, oldest, newest) = count(tl, to, before, covers).await?;
                Ok(Some(Body::Checkpoint(Box::new(Checkpoint {
                    covers,
                    summary: summary.clone(),
                    by: by.clone(),
                    messages,
                    oldest,
                    newest,
                    usage: *usage,
                }))))
            }
            Happened::Summarized { summary, by } => {
                let head = tl.store.record(to).await?.card.head;
                let (messages, oldest, newest) = count(tl, to, Seq::ZERO, head).await?;
                Ok(Some(Body::Summarized(Box::new(Checkpoint {
                    covers: head,
                    summary: summary.clone(),
                    by: by.clone(),
                    messages,
                    oldest,
                    newest,
                    usage: None,
                }))))
            }
            Happened::Body(_)
            | Happened::Titled { .. }
            | Happened::Tagged(_)
            | Happened::Untagged(_) => Ok(None),
        }
    }
}

/// The messages between two entries: how many, and when the first and the last were said.
async fn count(
    tl: &Throughline,
    of: &SessionRef,
    after: Seq,
    to: Seq,
) -> Result<(u64, Option<Timestamp>, Option<Timestamp>), Error> {
    let (mut messages, mut oldest, mut newest) = (0, None, None);
    let mut next = after.next();
    while next <= to {
        let page = tl.store.read(of, Read::between(next, to, PAGE)).await?;
        let Some(last) = page.last() else {
            break;
        };
        next = last.seq.next();
        for entry in page.iter().filter(|entry| entry.message().is_some()) {
            messages += 1;
            oldest = oldest.or(Some(entry.at));
            newest = Some(entry.at);
        }
    }
    Ok((messages, oldest, newest))
}

/// Where an entry is that another system has a name for: in the session, or in those it
/// was forked from.
async fn find(tl: &Throughline, of: &SessionRef, own: &str) -> Result<Option<Seq>, Error> {
    let mut session = of.clone();
    let mut until = Seq(u64::MAX);
    loop {
        let name = session.id.as_str().as_bytes();
        let ids = [
            EntryId::from_external(&session.id, own),
            EntryId::derived(&[b"place", name, own.as_bytes()]),
        ];
        let found = tl.store.locate(&session, &ids).await?;
        if let Some(seq) = found[0].or(found[1]) {
            return Ok(Some(seq).filter(|seq| *seq <= until));
        }
        match tl.store.birth(&session).await?.lineage {
            Lineage::Forked { session: of, at } => {
                until = until.min(at);
                session = tl.owner.session(&of);
            }
            Lineage::Root | Lineage::Continued { .. } => return Ok(None),
        }
    }
}

/// The last entry that a fork shares which does not repeat them. Not every record is an
/// entry: where the one that is named is none, the nearest before it is meant.
async fn shared(tl: &Throughline, of: &SessionRef, named: &str) -> Result<Option<Seq>, Error> {
    if let Some(seq) = find(tl, of, named).await? {
        return Ok(Some(seq));
    }
    let Ok(number) = named.parse::<u64>() else {
        return Ok(None);
    };
    for before in (number.saturating_sub(256)..number).rev() {
        if let Some(seq) = find(tl, of, &before.to_string()).await? {
            return Ok(Some(seq));
        }
    }
    Ok(None)
}

/// Whether two bodies say the same. Where a summary ends is told anew each time, and may
/// be told otherwise once there is more.
fn says_the_same(there: &Body, new: &Body) -> bool {
    match (there, new) {
        // What was erased here is not brought back.
        (Body::Erased(_), _) => true,
        // What an answer cost may become known after it was brought in.
        (Body::Message(there), Body::Message(new)) => {
            there.role == new.role && there.content == new.content
        }
        (there, new) => there == new,
    }
}

/// What can be said without numbers of ours.
fn plain_body(entry: &IncomingEntry) -> Option<Body> {
    let tags = |words: &[String]| -> Vec<Tag> {
        let word = |word: &String| word.split_whitespace().collect::<Vec<_>>().join("-");
        words.iter().filter_map(|w| word(w).parse().ok()).collect()
    };
    match &entry.what {
        Happened::Body(body) => Some(body.clone()),
        Happened::Titled { title, by_person } => Some(match place::name(title) {
            Some(name) => Body::Renamed {
                name: Some(name),
                by: if *by_person {
                    NamedBy::Person
                } else {
                    NamedBy::Program
                },
            },
            None => Body::Described {
                description: Some(title.clone()),
            },
        }),
        Happened::Tagged(words) => Some(Body::Tagged { tags: tags(words) }),
        Happened::Untagged(words) => Some(Body::Untagged { tags: tags(words) }),
        Happened::Compacted { .. } | Happened::Summarized { .. } | Happened::Rewound { .. } => None,
    }
}

fn ids(session: &SessionId, waiting: &[Waiting]) -> Result<Vec<EntryId>, Error> {
    waiting.iter().map(|waiting| id(session, waiting)).collect()
}

/// The id of an entry in a session: a function of what it is.
fn id(session: &SessionId, waiting: &Waiting) -> Result<EntryId, Error> {
    let name = session.as_str().as_bytes();
    Ok(match &waiting.entry.identity {
        Identity::Own(own) => EntryId::from_external(session, own),
        Identity::Place(place) => EntryId::derived(&[b"place", name, place.as_bytes()]),
        Identity::Content => {
            let body = encoded(&waiting.entry).ok_or_else(|| StoreError::Backend {
                during: "encoding a message",
                source: "it has no JSON".into(),
            })?;
            let at = waiting.entry.at.map_or(0, Timestamp::as_microsecond);
            let same = EntryId::derived(&[b"import", name, &body, &at.to_le_bytes()]);
            EntryId::derived(&[same.as_bytes(), &waiting.times.to_le_bytes()])
        }
    })
}

/// What an entry says and when, to tell it from others.
fn content(entry: &IncomingEntry) -> Option<Vec<u8>> {
    let mut content = encoded(entry)?;
    let at = entry.at.map_or(0, Timestamp::as_microsecond);
    content.extend(at.to_le_bytes());
    Some(content)
}

fn encoded(entry: &IncomingEntry) -> Option<Vec<u8>> {
    match &entry.what {
        Happened::Body(Body::Message(message)) => serde_json::to_vec(message).ok(),
        Happened::Body(body) => serde_json::to_vec(body).ok(),
        other => Some(format!("{other:?}").into_bytes()),
    }
}
