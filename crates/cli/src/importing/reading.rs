//! Reading sources on a thread of its own, while what was read is being stored.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::Result;
use throughline::{Arriving, Digest, Incoming, LedgerRow};
use throughline_formats::{Bookmark, Source, read_source};
use tokio::sync::mpsc;

use crate::threads::spawn_thread;

/// How much is handed over at once.
const AT_ONCE: usize = 512;
/// And how many bytes of it, about: entries may be large.
const AT_ONCE_BYTES: u64 = 1 << 20;
/// How many such handfuls may wait: enough for neither side to stand still, and no more, since
/// room that was never used before costs as much as reading into it.
const WAITING: usize = 4;

/// A source that is to be read.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) source: Source,
    /// What was noted of it.
    pub(super) row: Option<LedgerRow>,
    /// Where the last reading ended.
    pub(super) bookmark: Option<Bookmark>,
}

/// What the thread tells.
pub(super) enum Told {
    Items(Vec<Arriving>),
    /// About how many bytes of the current source were read.
    Read(u64),
    /// A source was read to its end.
    Done {
        job: usize,
        end: Box<End>,
    },
}

/// How the reading of a source ended.
pub(super) struct End {
    pub(super) next: Option<Bookmark>,
    /// The hash of everything before the bookmark.
    pub(super) digest: Digest,
    /// Whether it was read from where the last reading had ended.
    pub(super) resumed: bool,
    pub(super) error: Option<String>,
}

/// Reads sources one after the other. What is read to be stored is encoded right away.
pub(super) fn start(jobs: Vec<Job>, dry: bool) -> Result<mpsc::Receiver<Told>> {
    let (sender, receiver) = mpsc::channel(WAITING);
    spawn_thread("reading what is imported", move || {
        for (index, job) in jobs.iter().enumerate() {
            let end = Box::new(read(job, dry, &sender));
            if sender
                .blocking_send(Told::Done { job: index, end })
                .is_err()
            {
                return;
            }
        }
    })?;
    Ok(receiver)
}

fn read(job: &Job, dry: bool, sender: &mpsc::Sender<Told>) -> End {
    let path = &job.source.path;
    // What was read before must still be there for the reader to go on after it.
    let same = |bookmark: &&Bookmark| {
        let known = job.row.as_ref().map(|row| row.digest);
        known.is_some() && prefix(path, bookmark.offset).ok() == known
    };
    let bookmark = job.bookmark.as_ref().filter(same);
    let mut handful = Vec::with_capacity(AT_ONCE);
    let (mut bytes, mut told) = (0_u64, 0_u64);
    let mut heard = |incoming: Incoming| {
        bytes += weight(&incoming);
        handful.push(if dry {
            incoming.into()
        } else {
            Arriving::encoded(incoming)
        });
        if handful.len() < AT_ONCE && bytes - told < AT_ONCE_BYTES {
            return true;
        }
        told = bytes;
        let full = std::mem::replace(&mut handful, Vec::with_capacity(AT_ONCE));
        sender.blocking_send(Told::Items(full)).is_ok()
            && sender
                .blocking_send(Told::Read(bytes.min(job.source.bytes)))
                .is_ok()
    };
    let ended = read_source(job.source.agent, path, bookmark, &mut heard);
    let _ = sender.blocking_send(Told::Items(handful));
    let resumed = bookmark.is_some();
    match ended {
        Ok(next) => {
            let offset = next.as_ref().map_or(0, |next| next.offset);
            match prefix(path, offset) {
                Ok(digest) => End {
                    next,
                    digest,
                    resumed,
                    error: None,
                },
                Err(error) => failed(resumed, error.to_string()),
            }
        }
        Err(error) => failed(resumed, format!("{:#}", anyhow::Error::from(error))),
    }
}

fn failed(resumed: bool, error: String) -> End {
    End {
        next: None,
        digest: Digest::of(b""),
        resumed,
        error: Some(error),
    }
}

/// The hash of the beginning of a file.
pub(super) fn prefix(path: &Path, bytes: u64) -> std::io::Result<Digest> {
    if bytes == 0 {
        return Ok(Digest::of(b""));
    }
    Digest::of_reader(File::open(path)?.take(bytes))
}

/// About how much of a source something took; only for showing progress.
fn weight(incoming: &Incoming) -> u64 {
    match incoming {
        Incoming::Blob(bytes) => bytes.len() as u64 * 4 / 3,
        Incoming::Entry(entry) => match &entry.what {
            throughline::Happened::Body(body) => body.bytes() as u64 + 400,
            _ => 400,
        },
        Incoming::Session(_) | Incoming::Passed(_) => 200,
    }
}
