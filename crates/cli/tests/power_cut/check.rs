//! The checks after a power cut, and after everything has been sent again.
//!
//! Most states are checked here with the library, which is much faster than running the
//! program; a sample goes through `program_check.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

use throughline::recall::Mode;
use throughline::{
    Append, AppendKind, EntryId, Error, ErrorKind, IndexWait, NewEntry, NewSession, PurgeOptions,
    ReadRange, Role, SearchOptions, Seq, SessionId, Throughline, Timestamp,
};
use throughline_crash_sim::DiskState;
use tokio::runtime::Runtime;

use crate::acknowledgements::Acknowledgements;
use crate::traced_home::{MessageLine, fast_folder};

/// A word that every message contains.
pub(crate) const SEARCH_WORD: &str = "harbour";

/// What was requested in the course of a trace. Removals have the number of the trace
/// record from which on they may have happened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Workload {
    pub(crate) sessions: BTreeMap<String, SessionWorkload>,
}

/// What was requested in one session.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionWorkload {
    /// The messages, in no order.
    pub(crate) lines: Vec<MessageLine>,
    /// The external ids of the imported messages.
    pub(crate) imported: BTreeSet<String>,
    pub(crate) erased: BTreeMap<u64, usize>,
    pub(crate) deleted: Option<usize>,
    pub(crate) purged: Option<usize>,
    /// Whether there may be checkpoints.
    pub(crate) compacted: bool,
}

impl Workload {
    /// A workload with these sessions, all empty.
    pub(crate) fn new(sessions: &[&str]) -> Self {
        let sessions = sessions
            .iter()
            .map(|id| ((*id).to_owned(), SessionWorkload::default()));
        Self {
            sessions: sessions.collect(),
        }
    }

    pub(crate) fn session(&mut self, id: &str) -> &mut SessionWorkload {
        self.sessions.entry(id.to_owned()).or_default()
    }
}

/// How much of a state is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The store.
    Store,
    /// The store and the search index.
    StoreAndIndex,
}

pub(crate) type CheckResult = Result<(), String>;

/// A state to check, and what is known about how it came about.
#[derive(Clone, Copy)]
pub(crate) struct CrashCase<'a> {
    pub(crate) state: &'a DiskState,
    pub(crate) acknowledged: &'a Acknowledgements,
    pub(crate) sent: &'a Workload,
    /// How many trace records precede it.
    pub(crate) after: usize,
}

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(1).enable_all().build().unwrap()
});

impl CrashCase<'_> {
    /// Restarts from the state, sends everything again, and returns what is wrong.
    pub(crate) fn check(self, scope: Scope) -> CheckResult {
        let folder = fast_folder();
        let written = self.state.write_to(folder.path());
        written.map_err(describe("writing the state"))?;
        let file = folder.path().join("home").join("sessions.db");
        let is_there = file.metadata().is_ok_and(|found| found.len() > 0);
        if !is_there && self.acknowledged.count() > 0 {
            return Err("the store is gone, and something was acknowledged".to_owned());
        }
        RUNTIME.block_on(self.check_store(&file, scope))
    }

    async fn check_store(self, file: &Path, scope: Scope) -> CheckResult {
        let open = Throughline::open(&format!("sqlite:{}", file.display())).await;
        let tl = open.map_err(describe("opening"))?;
        check_doctor(&tl).await?;
        let before = StoredSessions::read(&tl, self.sent).await?;
        before.check_acknowledged(self)?;
        before.check_only_sent(self)?;
        if scope == Scope::StoreAndIndex {
            before.check_search(&tl).await?;
        }
        resend(&tl, self.sent, &before).await?;
        check_doctor(&tl).await?;
        let after = StoredSessions::read(&tl, self.sent).await?;
        let all = CrashCase {
            after: usize::MAX,
            ..self
        };
        after.check_acknowledged(all)?;
        after.check_only_sent(all)?;
        after.check_complete(self.sent)?;
        if scope == Scope::StoreAndIndex {
            after.check_search(&tl).await?;
        }
        tl.close().await.map_err(describe("closing"))
    }
}

fn describe<E: std::error::Error>(during: &'static str) -> impl Fn(E) -> String {
    move |error| {
        let mut text = format!("{during}: {error}");
        let mut source = error.source();
        while let Some(cause) = source {
            text += &format!(": {cause}");
            source = cause.source();
        }
        text
    }
}

async fn check_doctor(tl: &Throughline) -> CheckResult {
    let report = tl.check(&|_, _| ()).await.map_err(describe("checking"))?;
    if report.findings.is_empty() {
        Ok(())
    } else {
        Err(format!("doctor: {:?}", report.findings))
    }
}

/// Whether an entry of a session was made from a line; an erased one still has its id.
fn is_entry_of(session: &str, line: &MessageLine, entry: &StoredEntry) -> bool {
    entry.id == EntryId::from_external(&session_id(session), &line.id)
}

fn session_id(session: &str) -> SessionId {
    session.parse().expect("an id")
}

/// Converts "not found" errors to `None`.
fn if_found<T>(result: Result<T, Error>, during: &'static str) -> Result<Option<T>, String> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(describe(during)(error)),
    }
}

#[derive(Debug)]
struct StoredEntry {
    seq: u64,
    id: EntryId,
    /// Empty once erased.
    external_id: String,
    /// `None` once erased, and for entries that are not messages.
    text: Option<String>,
    digest: String,
}

/// The live sessions of a store.
struct StoredSessions {
    sessions: BTreeMap<String, Vec<StoredEntry>>,
}

impl StoredSessions {
    async fn read(tl: &Throughline, sent: &Workload) -> Result<Self, String> {
        let mut sessions = BTreeMap::new();
        for id in sent.sessions.keys() {
            let opened = tl.session(&session_id(id)).await;
            let Some(opened) = if_found(opened, "opening a session")? else {
                continue;
            };
            let entries = opened.read(ReadRange::starting_at(Seq(1), 10_000)).await;
            let entries = entries.map_err(describe("reading"))?.into_iter();
            let stored = entries.map(|entry| StoredEntry {
                seq: entry.seq.0,
                id: entry.id,
                external_id: entry.external_id.clone().unwrap_or_default(),
                text: entry
                    .message()
                    .map(|message| message.content.to_text().into_owned()),
                digest: entry.digest.to_string(),
            });
            sessions.insert(id.clone(), stored.collect());
        }
        Ok(Self { sessions })
    }

    fn entry(&self, session: &str, seq: u64) -> Option<&StoredEntry> {
        self.sessions
            .get(session)?
            .iter()
            .find(|entry| entry.seq == seq)
    }

    /// Checks that everything acknowledged is stored.
    fn check_acknowledged(&self, case: CrashCase<'_>) -> CheckResult {
        let acknowledged = case.acknowledged;
        let may_be_gone = |session: &str| {
            let deleted = case.sent.sessions[session].deleted;
            deleted.is_some_and(|from| from <= case.after) && !self.sessions.contains_key(session)
        };
        for session in acknowledged
            .created
            .iter()
            .filter(|session| !may_be_gone(session))
        {
            if !self.sessions.contains_key(session) {
                return Err(format!("session {session} was acknowledged and is gone"));
            }
        }
        for entry in acknowledged
            .appended
            .iter()
            .filter(|entry| !may_be_gone(&entry.session))
        {
            let kept = self.entry(&entry.session, entry.seq);
            let id = EntryId::from_external(&session_id(&entry.session), &entry.external_id);
            if !kept.is_some_and(|kept| kept.id == id && kept.digest == entry.digest) {
                return Err(format!("acknowledged: {entry:?}, stored: {kept:?}"));
            }
        }
        for (session, seq) in acknowledged
            .erased
            .iter()
            .filter(|one| !may_be_gone(&one.0))
        {
            if self
                .entry(session, *seq)
                .is_none_or(|entry| entry.text.is_some())
            {
                return Err(format!("{seq} of {session} was erased and is back"));
            }
        }
        for session in acknowledged.deleted.iter().chain(&acknowledged.purged) {
            if self.sessions.contains_key(session) {
                return Err(format!("{session} was deleted and is back"));
            }
        }
        for (id, session) in &case.sent.sessions {
            let entries = self.sessions.get(id);
            if session.compacted {
                for seq in &acknowledged.checkpoints {
                    if self.entry(id, *seq).is_none() {
                        return Err(format!("checkpoint {seq} was acknowledged and is gone"));
                    }
                }
            }
            for imported in session.imported.iter().filter(|_| acknowledged.imported) {
                let mut entries = entries.into_iter().flatten();
                if !may_be_gone(id) && !entries.any(|entry| entry.external_id == *imported) {
                    return Err(format!("{imported} was imported into {id} and is gone"));
                }
            }
        }
        Ok(())
    }

    /// Checks that nothing else is stored: the numbers have no gaps, and every text is as
    /// it was sent.
    fn check_only_sent(&self, case: CrashCase<'_>) -> CheckResult {
        for (id, entries) in &self.sessions {
            let sent = &case.sent.sessions[id];
            for (number, entry) in (1..).zip(entries) {
                let mut lines = sent.lines.iter();
                let line = lines.find(|line| is_entry_of(id, line, entry));
                let erased = sent.erased.get(&entry.seq);
                let is_expected = match (line, &entry.text) {
                    (Some(line), Some(text)) => line.text == *text,
                    (Some(_), None) => erased.is_some_and(|from| *from <= case.after),
                    (None, _) => sent.compacted && entry.external_id.is_empty(),
                };
                if entry.seq != number || !is_expected {
                    return Err(format!("entry {number} of {id} is {entry:?}"));
                }
            }
        }
        Ok(())
    }

    /// Checks that everything sent again is stored once.
    fn check_complete(&self, sent: &Workload) -> CheckResult {
        for (id, session) in &sent.sessions {
            if session.deleted.is_some() {
                if self.sessions.contains_key(id) {
                    return Err(format!("{id} is still there after it was deleted again"));
                }
                continue;
            }
            for line in &session.lines {
                let entries = self.sessions[id].iter();
                let count = entries.filter(|entry| is_entry_of(id, line, entry)).count();
                if count != 1 {
                    return Err(format!("{} is {count} times in {id}, sent again", line.id));
                }
            }
            for seq in session.erased.keys() {
                if self
                    .entry(id, *seq)
                    .is_some_and(|entry| entry.text.is_some())
                {
                    return Err(format!("{seq} of {id} is there after it was erased again"));
                }
            }
        }
        Ok(())
    }

    /// Checks that search finds what is stored and nothing else. It may also find
    /// checkpoints.
    async fn check_search(&self, tl: &Throughline) -> CheckResult {
        let searching = SearchOptions {
            query: SEARCH_WORD,
            mode: Mode::Text,
            limit: 1_000,
            typing: false,
            project: None,
            listing: &[],
            zone: &jiff::tz::TimeZone::UTC,
            index_wait: IndexWait::Unlimited,
        };
        let searched = tl.search(&searching).await.map_err(describe("searching"))?;
        let found: BTreeSet<(String, u64, String)> = searched
            .found
            .hits
            .iter()
            .map(|hit| (hit.session.to_string(), hit.seq.0, hit.text.clone()))
            .collect();
        let mut kept = BTreeSet::new();
        for (session, entries) in &self.sessions {
            for entry in entries {
                let text = entry.text.clone().filter(|text| text.contains(SEARCH_WORD));
                kept.extend(text.map(|text| (session.clone(), entry.seq, text)));
            }
        }
        let missing: Vec<_> = kept.difference(&found).take(3).collect();
        let extra = found.difference(&kept).filter(|(session, seq, _)| {
            let entry = self.entry(session, *seq);
            !entry.is_some_and(|entry| entry.external_id.is_empty())
        });
        let extra: Vec<_> = extra.take(3).collect();
        if missing.is_empty() && extra.is_empty() {
            return Ok(());
        }
        Err(format!("search misses {missing:?} and finds {extra:?}"))
    }
}

/// Sends everything again, with the same ids.
async fn resend(tl: &Throughline, sent: &Workload, before: &StoredSessions) -> CheckResult {
    for (session, sent) in &sent.sessions {
        let id = session_id(session);
        if sent.deleted.is_some() {
            if before.sessions.contains_key(session) {
                tl.trash(&id).await.map_err(describe("deleting again"))?;
            }
            if sent.purged.is_some() {
                let purge = PurgeOptions {
                    grace: Some(jiff::SignedDuration::ZERO),
                    max_sessions: None,
                    dry_run: false,
                };
                tl.purge(purge).await.map_err(describe("purging again"))?;
            }
            continue;
        }
        let new = NewSession {
            id: Some(id.clone()),
            ..NewSession::default()
        };
        if !before.sessions.contains_key(session) {
            tl.create(new).await.map_err(describe("creating again"))?;
        }
        for line in &sent.lines {
            resend_line(tl, &id, line, before.sessions.get(session)).await?;
        }
        for seq in sent.erased.keys() {
            let erased = tl.session_unchecked(&id).erase(&[Seq(*seq)], None).await;
            erased.map_err(describe("erasing again"))?;
        }
    }
    Ok(())
}

async fn resend_line(
    tl: &Throughline,
    id: &SessionId,
    line: &MessageLine,
    before: Option<&Vec<StoredEntry>>,
) -> CheckResult {
    let entry = EntryId::from_external(id, &line.id);
    let mut new = NewEntry::text(entry, Timestamp::UNIX_EPOCH, Role::User, line.text.clone());
    new.external_id = Some(line.id.clone());
    let to = tl.owner().session(id);
    let appended = tl
        .store()
        .append(&to, Append::unconditional(vec![new]))
        .await;
    let mut entries = before.into_iter().flatten();
    let known = entries.find(|known| known.id == entry);
    match (appended, known) {
        (Ok(appended), Some(known)) => {
            let seq = appended.entries[0].seq.0;
            if appended.kind != AppendKind::Repeated || seq != known.seq {
                return Err(format!("{} again: {:?} as {seq}", line.id, appended.kind));
            }
        }
        (Ok(appended), None) if appended.kind == AppendKind::Appended => {}
        (Ok(appended), None) => return Err(format!("{} again: {:?}", line.id, appended.kind)),
        // An erased entry cannot be compared with what is sent again.
        (Err(_), Some(StoredEntry { text: None, .. })) => {}
        (Err(error), _) => return Err(describe("sending again")(error)),
    }
    Ok(())
}
