//! What the tests of faults share: stores with something in them, chance that repeats,
//! and processes that are this very test, run again in a role of its own.

#![allow(dead_code, reason = "each test uses some of it")]

pub(crate) mod sample;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use throughline_model::{
    Birth, EntryId, NewEntry, Owner, Role, Seq, SessionId, SessionRef, StoredEntry, Timestamp,
};
use throughline_sqlite::{Options, SqliteStore};
use throughline_store::{
    Append, Filter, Finding, LogStore, Read, Report, Scope, Store, StoreError,
};

/// Says which role a process was started for.
const ROLE: &str = "TL_TEST_ROLE";

/// Runs a test to its end.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(test)
}

pub(crate) fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, Options::default()).expect("the store opens")
}

pub(crate) fn owner() -> Owner {
    Owner::local()
}

pub(crate) fn session(id: &str) -> SessionRef {
    owner().session(&id.parse().expect("a session id"))
}

pub(crate) fn birth(id: &str) -> Birth {
    Birth::new(id.parse().expect("a session id"), at(0))
}

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("in range")
}

/// An entry whose id follows from its name.
pub(crate) fn entry(name: &str, text: &str) -> NewEntry {
    NewEntry::text(
        EntryId::derived(&[name.as_bytes()]),
        at(1),
        Role::User,
        text,
    )
}

pub(crate) async fn append(store: &SqliteStore, to: &SessionRef, new: NewEntry) -> Seq {
    let appended = store.append(to, Append::any(vec![new])).await;
    appended.expect("appended").entries[0].seq
}

/// A session with so many entries of about so many bytes.
pub(crate) async fn fill(
    store: &SqliteStore,
    id: &str,
    entries: usize,
    bytes: usize,
) -> SessionRef {
    let to = session(id);
    store.create(&owner(), birth(id)).await.expect("created");
    let new = (0..entries).map(|n| {
        let name = format!("{id}-{n}");
        entry(&name, &format!("{name} {}", "x".repeat(bytes)))
    });
    let append = Append::any(new.collect());
    store.append(&to, append).await.expect("appended");
    to
}

/// The whole log of a session, page by page.
pub(crate) async fn log(
    store: &dyn Store,
    of: &SessionRef,
) -> Result<Vec<StoredEntry>, StoreError> {
    let mut log: Vec<StoredEntry> = Vec::new();
    loop {
        let from = log.last().map_or(Seq(1), |last| last.seq.next());
        let page = store.read_stored(of, Read::from(from, 500)).await?;
        if page.is_empty() {
            return Ok(log);
        }
        log.extend(page);
    }
}

/// The logs of all sessions in use, by owner and id.
pub(crate) async fn logs(
    store: &dyn Store,
) -> Result<BTreeMap<(String, SessionId), Vec<StoredEntry>>, StoreError> {
    let mut logs = BTreeMap::new();
    for owner in store.owners().await? {
        let cards = store
            .list(&owner, &Filter::default(), None, 10_000)
            .await?
            .items;
        for card in cards {
            let log = log(store, &owner.session(&card.id)).await?;
            logs.insert((owner.to_string(), card.id), log);
        }
    }
    Ok(logs)
}

/// How many sessions are in the trash.
pub(crate) fn in_trash() -> Filter {
    Filter {
        scope: Scope::Trash,
        ..Filter::default()
    }
}

pub(crate) async fn check(store: &dyn Store) -> Report {
    store.check(&|_, _| ()).await.expect("checked")
}

pub(crate) async fn findings(store: &dyn Store) -> Vec<Finding> {
    check(store).await.findings
}

/// Chance that is the same each time.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        // The usual mixing of a counter.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count)
            .map(|_| u8::try_from(self.below(256)).expect("a byte"))
            .collect()
    }
}

/// This very program, to be run again as a process in `role`: its test `child` is what
/// it does then.
pub(crate) fn process(role: &str) -> Command {
    under(&[], role)
}

/// The same under another program, which runs it.
pub(crate) fn under(wrapper: &[&str], role: &str) -> Command {
    let this = std::env::current_exe().expect("this program");
    program_under(wrapper, &this, role)
}

/// The same with a copy of this program.
pub(crate) fn program_under(wrapper: &[&str], program: &Path, role: &str) -> Command {
    let mut words: Vec<std::ffi::OsString> = wrapper.iter().map(Into::into).collect();
    words.push(program.into());
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .args(["child", "--exact", "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::inherit());
    command
}

/// The words of the role this process was started in, if it was.
#[expect(clippy::disallowed_methods, reason = "how a process learns its role")]
pub(crate) fn role() -> Option<Vec<String>> {
    let role = std::env::var(ROLE).ok()?;
    // The name of the test precedes on the line.
    say("");
    Some(role.split('\n').map(ToOwned::to_owned).collect())
}

/// Says a line to whoever started this process, at once.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes())
        .and_then(|()| out.flush())
        .expect("somebody listens");
}

/// The acknowledgements in a process's output, by session: each number and id. A line
/// without an end was never said.
pub(crate) fn acknowledged(output: &[u8]) -> BTreeMap<String, Vec<(Seq, EntryId)>> {
    let mut acknowledged: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for line in String::from_utf8_lossy(output).split_inclusive('\n') {
        let words: Vec<_> = line.split_whitespace().collect();
        if let ["ack", session, seq, id] = words[..]
            && line.ends_with('\n')
        {
            let place = (seq.parse().expect("a number"), id.parse().expect("an id"));
            acknowledged
                .entry(session.to_owned())
                .or_default()
                .push(place);
        }
    }
    acknowledged
}

pub(crate) fn acknowledge(session: &SessionRef, seq: Seq, id: EntryId) {
    say(&format!("ack {} {seq} {id}", session.id));
}
