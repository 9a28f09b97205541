//! Something between a program and its database that cuts connections.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How a commit is told in the wire's simple form.
const COMMIT_MESSAGE: &[u8] = b"Q\x00\x00\x00\x0bCOMMIT\x00";

/// How the statement begins that appends and commits by itself.
const APPEND_STATEMENT: &[u8] = b"SELECT throughline.append";

/// How the start of a transaction is written in the wire's simple form, after the length.
const BEGIN_STATEMENT: &[u8] = b"BEGIN ISOLATION LEVEL";

/// Long enough for a database to commit what nobody will hear of.
const COMMIT_GRACE: Duration = Duration::from_millis(30);

/// Stands between a program and its database. Of every three commits that pass it cuts the
/// connection of one, by turns before the database hears of it and before the program hears
/// what became of it.
#[derive(Debug)]
pub struct FaultProxy {
    port: u16,
    shared: Arc<ProxyState>,
}

#[derive(Debug, Default)]
struct ProxyState {
    /// Whether commits are cut.
    is_cutting: AtomicBool,
    commits: AtomicUsize,
    cuts: AtomicUsize,
    /// Whether every `BEGIN` is made to fail.
    is_failing_begins: AtomicBool,
    /// Whether the answer to the next commit is lost, and nobody gets through after it.
    is_losing_next: AtomicBool,
    /// Nobody gets through.
    is_refusing: AtomicBool,
    /// Nothing that the database answers gets through.
    is_holding_responses: AtomicBool,
    connections: Mutex<Vec<TcpStream>>,
}

impl ProxyState {
    /// Whether to cut here, and if so whether the database hears of the commit.
    fn decide_cut(&self) -> Option<bool> {
        if self.is_losing_next.swap(false, Ordering::Relaxed) {
            self.is_refusing.store(true, Ordering::Relaxed);
            self.cuts.fetch_add(1, Ordering::Relaxed);
            return Some(true);
        }
        if !self.is_cutting.load(Ordering::Relaxed) {
            return None;
        }
        let commit = self.commits.fetch_add(1, Ordering::Relaxed);
        let cut = (commit % 3 == 2).then_some(commit.is_multiple_of(2));
        if cut.is_some() {
            self.cuts.fetch_add(1, Ordering::Relaxed);
        }
        cut
    }
}

/// Where a database is.
#[derive(Clone, Debug)]
pub enum Upstream {
    /// Behind a socket of this machine.
    Socket(PathBuf),
    /// At a host and a port.
    Host(String, u16),
}

/// A connection to it.
trait Connection: Read + Write + Send {
    fn try_clone_boxed(&self) -> io::Result<Box<dyn Connection>>;
    fn close(&self);
}

impl Connection for TcpStream {
    fn try_clone_boxed(&self) -> io::Result<Box<dyn Connection>> {
        Ok(Box::new(self.try_clone()?))
    }

    fn close(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}

impl Connection for UnixStream {
    fn try_clone_boxed(&self) -> io::Result<Box<dyn Connection>> {
        Ok(Box::new(self.try_clone()?))
    }

    fn close(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}

impl Upstream {
    fn connect(&self) -> io::Result<Box<dyn Connection>> {
        Ok(match self {
            Self::Socket(path) => Box::new(UnixStream::connect(path)?),
            Self::Host(name, port) => Box::new(TcpStream::connect((name.as_str(), *port))?),
        })
    }
}

impl FaultProxy {
    /// Stands before a database, on a port of this machine.
    pub fn start(database: Upstream) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(ProxyState::default());
        shared.is_cutting.store(true, Ordering::Relaxed);
        let passing = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if passing.is_refusing.load(Ordering::Relaxed) {
                    continue;
                }
                if let Ok(server) = database.connect() {
                    // A connection that cannot be passed on is one that is cut.
                    let _ = forward(client, server, &passing);
                }
            }
        });
        Ok(Self { port, shared })
    }

    /// The port to connect to instead of the database.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// How many commits have been cut.
    pub fn cuts(&self) -> usize {
        self.shared.cuts.load(Ordering::Relaxed)
    }

    /// Whether commits are cut from now on.
    pub fn cut_commits(&self, cutting: bool) {
        self.shared.is_cutting.store(cutting, Ordering::Relaxed);
    }

    /// Whether every `BEGIN` fails from now on, as one does that is cancelled: the database
    /// answers it with an error and goes on with the statements sent after it.
    pub fn fail_begins(&self, failing: bool) {
        self.shared
            .is_failing_begins
            .store(failing, Ordering::Relaxed);
    }

    /// Has the database commit what comes next, loses its answer, and lets nobody through from
    /// then on.
    pub fn lose_next_commit(&self) {
        self.shared.is_losing_next.store(true, Ordering::Relaxed);
    }

    /// Whether the database seems to hang: it hears everything, and its answers are held back
    /// until this is over.
    pub fn hold_responses(&self, silent: bool) {
        self.shared
            .is_holding_responses
            .store(silent, Ordering::Relaxed);
    }

    /// Lets nobody through from now on, or everybody again.
    pub fn refuse_connections(&self, shut: bool) {
        self.shared.is_refusing.store(shut, Ordering::Relaxed);
    }

    /// Cuts every connection there is.
    pub fn close_connections(&self) {
        for client in self.shared.connections().drain(..) {
            client.close();
        }
    }
}

impl ProxyState {
    fn connections(&self) -> std::sync::MutexGuard<'_, Vec<TcpStream>> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Passes on what both say, each way in a thread of its own, until one is silent or is cut.
fn forward(
    client: TcpStream,
    server: Box<dyn Connection>,
    shared: &Arc<ProxyState>,
) -> io::Result<()> {
    shared.connections().push(client.try_clone()?);
    let (mut to_client, mut from_server) = (client.try_clone()?, server.try_clone_boxed()?);
    let answering = Arc::clone(shared);
    std::thread::spawn(move || {
        let _ = forward_responses(&mut *from_server, &mut to_client, &answering);
        to_client.close();
        from_server.close();
    });
    let shared = Arc::clone(shared);
    std::thread::spawn(move || {
        let (mut client, mut server) = (client, server);
        let _ = forward_requests(&mut client, &mut *server, &shared);
        client.close();
        server.close();
    });
    Ok(())
}

fn forward_responses(
    server: &mut dyn Connection,
    client: &mut TcpStream,
    shared: &ProxyState,
) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = server.read(&mut buffer)?;
        while shared.is_holding_responses.load(Ordering::Relaxed) {
            std::thread::sleep(COMMIT_GRACE);
        }
        if read == 0 {
            return Ok(());
        }
        client.write_all(&buffer[..read])?;
    }
}

fn forward_requests(
    client: &mut TcpStream,
    server: &mut dyn Connection,
    shared: &ProxyState,
) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    let mut commits = CommitDetector::default();
    loop {
        let read = client.read(&mut buffer)?;
        if read == 0 || shared.is_refusing.load(Ordering::Relaxed) {
            return Ok(());
        }
        if shared.is_failing_begins.load(Ordering::Relaxed) {
            corrupt_begins(&mut buffer[..read]);
        }
        let asked = &buffer[..read];
        let commits = commits.detect(asked);
        match if commits { shared.decide_cut() } else { None } {
            Some(false) => return Ok(()),
            Some(true) => {
                // The answer comes too late for the client.
                client.close();
                server.write_all(asked)?;
                std::thread::sleep(COMMIT_GRACE);
                return Ok(());
            }
            None => server.write_all(asked)?,
        }
    }
}

/// Turns every `BEGIN` into something of the same length that the database refuses.
fn corrupt_begins(asked: &mut [u8]) {
    let begins = |asked: &[u8]| {
        asked
            .windows(BEGIN_STATEMENT.len())
            .position(|here| here == BEGIN_STATEMENT)
    };
    while let Some(at) = begins(asked) {
        asked[at] = b'b';
        asked[at + 4] = b'x';
    }
}

/// What commits on a connection: the word, and the statements that do so by themselves, by the
/// names they were prepared under here.
#[derive(Default)]
struct CommitDetector {
    statements: Vec<Vec<u8>>,
}

impl CommitDetector {
    fn detect(&mut self, asked: &[u8]) -> bool {
        let find = |part: &[u8]| asked.windows(part.len()).position(|here| here == part);
        if let Some(at) = find(APPEND_STATEMENT) {
            // "P", the length, the name, a zero, and then the statement.
            let before = &asked[..at.saturating_sub(1)];
            let name = before.iter().rposition(|byte| *byte == b'P');
            let name = name.and_then(|start| before.get(start + 5..));
            let name = name.map(|name| [b"\0", name, b"\0"].concat());
            self.statements.extend(name);
        }
        // "B", the length, no portal's name, and then the statement's.
        let bound = |name: &Vec<u8>| {
            let at = find(name)?;
            at.checked_sub(5).filter(|start| asked[*start] == b'B')
        };
        find(COMMIT_MESSAGE).is_some() || self.statements.iter().any(|name| bound(name).is_some())
    }
}
