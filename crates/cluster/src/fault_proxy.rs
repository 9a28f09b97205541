//! A proxy between a program and its database that injects connection faults.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A commit in the simple query protocol.
const COMMIT_MESSAGE: &[u8] = b"Q\x00\x00\x00\x0bCOMMIT\x00";

/// The beginning of the statement that appends and commits by itself.
const APPEND_STATEMENT: &[u8] = b"SELECT throughline.append";

/// The beginning of a transaction in the simple query protocol, after the length.
const BEGIN_STATEMENT: &[u8] = b"BEGIN ISOLATION LEVEL";

/// Long enough for the database to commit before the connection is cut.
const COMMIT_GRACE: Duration = Duration::from_millis(30);

/// A proxy between a program and its database. It cuts the connection at one of every three
/// commits, alternately before the database receives the commit and before the program
/// receives the response.
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
    /// Whether every `BEGIN` fails.
    is_failing_begins: AtomicBool,
    /// Whether the response to the next commit is lost and all connections after it are
    /// refused.
    is_losing_next: AtomicBool,
    /// Whether all connections are refused.
    is_refusing: AtomicBool,
    /// Whether the database's responses are held back.
    is_holding_responses: AtomicBool,
    connections: Mutex<Vec<TcpStream>>,
}

impl ProxyState {
    /// Returns whether to cut here, and if so whether the database still receives the commit.
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

/// The address of a database.
#[derive(Clone, Debug)]
pub enum Upstream {
    /// A local socket.
    Socket(PathBuf),
    /// A host and a port.
    Host(String, u16),
}

/// A connection to the database.
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
    /// Starts a proxy for a database, on a local port.
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
                    // A connection that cannot be forwarded counts as cut.
                    let _ = forward(client, server, &passing);
                }
            }
        });
        Ok(Self { port, shared })
    }

    /// Returns the port to connect to instead of the database.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns how many commits have been cut.
    pub fn cuts(&self) -> usize {
        self.shared.cuts.load(Ordering::Relaxed)
    }

    /// Sets whether commits are cut from now on.
    pub fn cut_commits(&self, cutting: bool) {
        self.shared.is_cutting.store(cutting, Ordering::Relaxed);
    }

    /// Sets whether every `BEGIN` fails from now on, as if it were canceled: the database
    /// returns an error and continues with the statements sent after it.
    pub fn fail_begins(&self, failing: bool) {
        self.shared
            .is_failing_begins
            .store(failing, Ordering::Relaxed);
    }

    /// Lets the database commit the next transaction, drops its response, and refuses all
    /// connections from then on.
    pub fn lose_next_commit(&self) {
        self.shared.is_losing_next.store(true, Ordering::Relaxed);
    }

    /// Sets whether the database seems to hang: it receives everything, but its responses are
    /// held back until this is reset.
    pub fn hold_responses(&self, silent: bool) {
        self.shared
            .is_holding_responses
            .store(silent, Ordering::Relaxed);
    }

    /// Sets whether connections are refused from now on.
    pub fn refuse_connections(&self, shut: bool) {
        self.shared.is_refusing.store(shut, Ordering::Relaxed);
    }

    /// Closes every open connection.
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

/// Forwards both directions, each in its own thread, until one side closes or is cut.
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
        let bytes = &buffer[..read];
        let commits = commits.detect(bytes);
        match if commits { shared.decide_cut() } else { None } {
            Some(false) => return Ok(()),
            Some(true) => {
                // Close first, so that the response comes too late for the client.
                client.close();
                server.write_all(bytes)?;
                std::thread::sleep(COMMIT_GRACE);
                return Ok(());
            }
            None => server.write_all(bytes)?,
        }
    }
}

/// Turns every `BEGIN` into something of the same length that the database rejects.
fn corrupt_begins(bytes: &mut [u8]) {
    let begins = |bytes: &[u8]| {
        bytes
            .windows(BEGIN_STATEMENT.len())
            .position(|here| here == BEGIN_STATEMENT)
    };
    while let Some(at) = begins(bytes) {
        bytes[at] = b'b';
        bytes[at + 4] = b'x';
    }
}

/// Detects commits on a connection: `COMMIT` itself, and statements that commit by themselves,
/// by the names they were prepared under.
#[derive(Default)]
struct CommitDetector {
    statements: Vec<Vec<u8>>,
}

impl CommitDetector {
    fn detect(&mut self, bytes: &[u8]) -> bool {
        let find = |part: &[u8]| bytes.windows(part.len()).position(|here| here == part);
        if let Some(at) = find(APPEND_STATEMENT) {
            // A parse message: "P", the length, the name, a zero, and then the statement.
            let before = &bytes[..at.saturating_sub(1)];
            let name = before.iter().rposition(|byte| *byte == b'P');
            let name = name.and_then(|start| before.get(start + 5..));
            let name = name.map(|name| [b"\0", name, b"\0"].concat());
            self.statements.extend(name);
        }
        // A bind message: "B", the length, an empty portal name, and then the statement's
        // name.
        let bound = |name: &Vec<u8>| {
            let at = find(name)?;
            at.checked_sub(5).filter(|start| bytes[*start] == b'B')
        };
        find(COMMIT_MESSAGE).is_some() || self.statements.iter().any(|name| bound(name).is_some())
    }
}
