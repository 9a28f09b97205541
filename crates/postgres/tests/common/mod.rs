//! What the tests share.

#![allow(dead_code, reason = "each test uses some of it")]

use throughline_model::{
    Birth, EntryId, NewEntry, Owner, Role, Seq, SessionRef, StoredEntry, Timestamp,
};
use throughline_postgres::{Options, PostgresStore};
use throughline_store::{Append, LogStore, Read};

/// Runs a test to its end.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(test)
}

pub(crate) async fn open(url: &str) -> PostgresStore {
    PostgresStore::open(url, Options::default())
        .await
        .expect("the store opens")
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

pub(crate) async fn append(store: &PostgresStore, to: &SessionRef, new: NewEntry) -> Seq {
    let appended = store.append(to, Append::any(vec![new])).await;
    appended.expect("appended").entries[0].seq
}

/// The whole log of a session, page by page.
pub(crate) async fn log(store: &PostgresStore, of: &SessionRef) -> Vec<StoredEntry> {
    let mut log: Vec<StoredEntry> = Vec::new();
    loop {
        let from = log.last().map_or(Seq(1), |last| last.seq.next());
        let page = store.read_stored(of, Read::from(from, 500)).await;
        let page = page.expect("read");
        if page.is_empty() {
            return log;
        }
        log.extend(page);
    }
}

/// Says which role a process was started for.
const ROLE: &str = "TL_TEST_ROLE";

/// This very program, to be run again as a process in `role`: its test `child` is what
/// it does then.
pub(crate) fn process(role: &str) -> std::process::Command {
    let this = std::env::current_exe().expect("this program");
    let mut command = std::process::Command::new(this);
    command
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
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes())
        .and_then(|()| out.flush())
        .expect("somebody listens");
}

pub(crate) fn acknowledge(session: &SessionRef, seq: Seq, id: EntryId) {
    say(&format!("ack {} {seq} {id}", session.id));
}

/// The acknowledgements in a process's output, by session: each number and id. A line
/// without an end was never said.
pub(crate) fn acknowledged(
    output: &[u8],
) -> std::collections::BTreeMap<String, Vec<(Seq, EntryId)>> {
    let mut acknowledged = std::collections::BTreeMap::<String, Vec<_>>::new();
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
