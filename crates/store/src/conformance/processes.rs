//! Support for tests with several processes on one store: the test program runs itself
//! as a child process in a given role, which prints the acknowledgements it received.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use throughline_model::{EntryId, NewEntry, Role, Seq, SessionRef, StoredEntry};

use super::{at, header, owner, session_id};
use crate::{Append, ReadRange, Store, StoreError};

/// The environment variable with the role of a child process.
const ROLE_VARIABLE: &str = "TL_TEST_ROLE";

/// The number of entries that each process appends to each of its sessions, in each
/// way.
const ENTRIES: usize = 12;

/// A session of the owner used by these tests.
pub fn session(id: &str) -> SessionRef {
    owner().session(&session_id(id))
}

/// An entry whose id is derived from its name.
pub fn named_entry(name: &str, text: &str) -> NewEntry {
    let id = EntryId::derive(&[name.as_bytes()]);
    NewEntry::text(id, at(1), Role::User, text)
}

/// Appends an entry and returns its number.
pub async fn append(store: &dyn Store, to: &SessionRef, new: NewEntry) -> Seq {
    let appended = store.append(to, Append::unconditional(vec![new])).await;
    appended.expect("appended").entries[0].seq
}

/// Reads the whole log of a session, page by page.
pub async fn read_log(store: &dyn Store, of: &SessionRef) -> Result<Vec<StoredEntry>, StoreError> {
    let mut log: Vec<StoredEntry> = Vec::new();
    loop {
        let from = log.last().map_or(Seq(1), |last| last.seq.next());
        let page = store
            .read_stored(of, ReadRange::starting_at(from, 500))
            .await?;
        if page.is_empty() {
            return Ok(log);
        }
        log.extend(page);
    }
}

/// A command that runs this program as a child process in `role`; it runs the test
/// `child`.
pub fn child_process(role: &str) -> Command {
    child_process_under(&[], role)
}

/// The same under a wrapper program.
pub fn child_process_under(wrapper: &[&str], role: &str) -> Command {
    let this = std::env::current_exe().expect("this program");
    program_process_under(wrapper, &this, role)
}

/// The same with a copy of this program.
pub fn program_process_under(wrapper: &[&str], program: &Path, role: &str) -> Command {
    let mut words: Vec<std::ffi::OsString> = wrapper.iter().map(Into::into).collect();
    words.push(program.into());
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .args(["child", "--exact", "--nocapture", "--test-threads=1"])
        .env(ROLE_VARIABLE, role)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    command
}

/// The words of this process's role, if it is a child process.
#[expect(
    clippy::disallowed_methods,
    reason = "a child process reads its role from the environment"
)]
pub fn role() -> Option<Vec<String>> {
    let role = std::env::var(ROLE_VARIABLE).ok()?;
    // The test harness has already printed the test name on this line.
    print_line("");
    Some(role.split('\n').map(ToOwned::to_owned).collect())
}

/// Prints a line for the parent process and flushes it.
pub fn print_line(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes())
        .and_then(|()| out.flush())
        .expect("somebody listens");
}

/// Prints that an entry was acknowledged.
pub fn print_acknowledgement(session: &SessionRef, seq: Seq, id: EntryId) {
    print_line(&format!("ack {} {seq} {id}", session.id));
}

/// Parses the acknowledgements in a process's output, by session: each number and id.
/// An unterminated line is ignored.
pub fn parse_acknowledgements(output: &[u8]) -> BTreeMap<String, Vec<(Seq, EntryId)>> {
    let mut acknowledged: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for line in String::from_utf8_lossy(output).split_inclusive('\n') {
        let words: Vec<_> = line.split_whitespace().collect();
        if let ["ack", session, seq, id] = words[..]
            && line.ends_with('\n')
        {
            let position = (seq.parse().expect("a number"), id.parse().expect("an id"));
            acknowledged
                .entry(session.to_owned())
                .or_default()
                .push(position);
        }
    }
    acknowledged
}

/// The work of one of several processes: appends concurrently to a session that all
/// share and to some that only some share, so that their batches contend for the same
/// sessions.
pub async fn append_concurrently(store: &dyn Store, me: &str) {
    let number: usize = me.parse().expect("a number");
    let many = [format!("many-{}", number % 3), format!("own-{me}")];
    let ids = ["one", &many[0], &many[1]];
    for id in ids {
        store.create(&owner(), header(id)).await.expect("made");
    }
    for count in 0..ENTRIES {
        let way = async |id: &str| {
            let to = session(id);
            let name = format!("{me}-{id}-{count}");
            let new = named_entry(&format!("{name}-any"), &name);
            let id = new.id;
            print_acknowledgement(&to, append(store, &to, new).await, id);
            append_at_head(store, &to, &name).await;
        };
        tokio::join!(way(ids[0]), way(ids[1]), way(ids[2]));
    }
}

/// Appends at the expected head, and retries until it matches.
async fn append_at_head(store: &dyn Store, to: &SessionRef, name: &str) {
    let mut head = store.record(to).await.expect("there").info.head;
    loop {
        let new = vec![named_entry(&format!("{name}-at"), name)];
        match store.append(to, Append::after(head, new)).await {
            Ok(appended) => {
                let entry = &appended.entries[0];
                assert_eq!(entry.seq, head.next());
                return print_acknowledgement(to, entry.seq, entry.id);
            }
            Err(StoreError::Moved { found, .. }) => head = found,
            Err(error) => panic!("{error}"),
        }
    }
}

/// The acknowledgements received by several processes.
#[derive(Debug, Default)]
pub struct ConsistentAppends {
    sessions: BTreeMap<String, BTreeSet<(Seq, EntryId)>>,
    count: usize,
}

impl ConsistentAppends {
    /// Runs several processes at once, each in the role given by its number.
    pub fn run(processes: usize, role: impl Fn(usize) -> String) -> Self {
        let running: Vec<_> = (0..processes)
            .map(|number| child_process(&role(number)).spawn().expect("started"))
            .collect();
        let mut appends = Self::default();
        for process in running {
            let output = process.wait_with_output().expect("ended");
            let printed = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "a process failed: {printed}");
            for (id, positions) in parse_acknowledgements(&output.stdout) {
                appends.count += positions.len();
                appends.sessions.entry(id).or_default().extend(positions);
            }
        }
        assert_eq!(appends.count, processes * 3 * 2 * ENTRIES);
        appends
    }

    /// Asserts that the store contains exactly these entries and is sound.
    pub async fn assert_stored(&self, store: &dyn Store) {
        for (id, positions) in &self.sessions {
            let log = read_log(store, &session(id)).await.expect("read");
            let stored: Vec<_> = log.iter().map(|entry| (entry.seq, entry.id)).collect();
            assert_eq!(
                stored,
                positions.iter().copied().collect::<Vec<_>>(),
                "{id}"
            );
            let mut numbers = (1..).map(Seq).zip(positions);
            assert!(numbers.all(|(seq, position)| seq == position.0), "{id}");
        }
        let report = store.check(&|_, _| ()).await.expect("checked");
        assert_eq!(report.findings, []);
        assert_eq!(report.entries, self.count as u64);
    }
}
