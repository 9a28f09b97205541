//! Reading sources on a thread of its own, while what was read is being stored.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::Result;
use throughline::{Digest, ImportRecord, IncomingItem, LedgerRow};
use throughline_formats::{Source, SourceCursor, read_source};
use tokio::sync::mpsc;

use crate::threads::spawn_thread;

/// How much is handed over at once.
const BATCH_ITEMS: usize = 512;
/// And how many bytes of it, about: entries may be large.
const BATCH_BYTES: u64 = 1 << 20;
/// How many such handfuls may wait: enough for neither side to stand still, and no more, since
/// room that was never used before costs as much as reading into it.
const MAX_PENDING_BATCHES: usize = 4;

/// A source that is to be read.
#[derive(Clone, Debug)]
pub(super) struct ReadJob {
    pub(super) source: Source,
    /// What was noted of it.
    pub(super) row: Option<LedgerRow>,
    /// Where the last reading ended.
    pub(super) bookmark: Option<SourceCursor>,
}

/// What the thread tells.
pub(super) enum ReaderEvent {
    Items(Vec<ImportRecord>),
    /// About how many bytes of the current source were read.
    Progress(u64),
    /// A source was read to its end.
    Done {
        job: usize,
        outcome: Box<ReadOutcome>,
    },
}

/// How the reading of a source ended.
pub(super) struct ReadOutcome {
    pub(super) next: Option<SourceCursor>,
    /// The hash of everything before the bookmark.
    pub(super) digest: Digest,
    /// Whether it was read from where the last reading had ended.
    pub(super) resumed: bool,
    pub(super) error: Option<String>,
}

/// Reads sources one after the other. What is read to be stored is encoded right away.
pub(super) fn start_reader(jobs: Vec<ReadJob>, dry: bool) -> Result<mpsc::Receiver<ReaderEvent>> {
    let (sender, receiver) = mpsc::channel(MAX_PENDING_BATCHES);
    spawn_thread("reading what is imported", move || {
        for (index, job) in jobs.iter().enumerate() {
            let end = Box::new(read_job(job, dry, &sender));
            if sender
                .blocking_send(ReaderEvent::Done {
                    job: index,
                    outcome: end,
                })
                .is_err()
            {
                return;
            }
        }
    })?;
    Ok(receiver)
}

fn read_job(job: &ReadJob, dry: bool, sender: &mpsc::Sender<ReaderEvent>) -> ReadOutcome {
    let path = &job.source.path;
    // What was read before must still be there for the reader to go on after it.
    let same = |bookmark: &&SourceCursor| {
        let known = job.row.as_ref().map(|row| row.digest);
        known.is_some() && prefix_digest(path, bookmark.offset).ok() == known
    };
    let bookmark = job.bookmark.as_ref().filter(same);
    let mut handful = Vec::with_capacity(BATCH_ITEMS);
    let (mut bytes, mut told) = (0_u64, 0_u64);
    let mut heard = |incoming: IncomingItem| {
        bytes += approximate_bytes(&incoming);
        handful.push(if dry {
            incoming.into()
        } else {
            ImportRecord::with_encoding(incoming)
        });
        if handful.len() < BATCH_ITEMS && bytes - told < BATCH_BYTES {
            return true;
        }
        told = bytes;
        let full = std::mem::replace(&mut handful, Vec::with_capacity(BATCH_ITEMS));
        sender.blocking_send(ReaderEvent::Items(full)).is_ok()
            && sender
                .blocking_send(ReaderEvent::Progress(bytes.min(job.source.bytes)))
                .is_ok()
    };
    let ended = read_source(job.source.format, path, bookmark, &mut heard);
    let _ = sender.blocking_send(ReaderEvent::Items(handful));
    let resumed = bookmark.is_some();
    match ended {
        Ok(next) => {
            let offset = next.as_ref().map_or(0, |next| next.offset);
            match prefix_digest(path, offset) {
                Ok(digest) => ReadOutcome {
                    next,
                    digest,
                    resumed,
                    error: None,
                },
                Err(error) => failed_outcome(resumed, error.to_string()),
            }
        }
        Err(error) => failed_outcome(resumed, format!("{:#}", anyhow::Error::from(error))),
    }
}

fn failed_outcome(resumed: bool, error: String) -> ReadOutcome {
    ReadOutcome {
        next: None,
        digest: Digest::of(b""),
        resumed,
        error: Some(error),
    }
}

/// The hash of the beginning of a file.
pub(super) fn prefix_digest(path: &Path, bytes: u64) -> std::io::Result<Digest> {
    if bytes == 0 {
        return Ok(Digest::of(b""));
    }
    Digest::of_reader(File::open(path)?.take(bytes))
}

/// About how much of a source something took; only for showing progress.
fn approximate_bytes(incoming: &IncomingItem) -> u64 {
    match incoming {
        IncomingItem::Blob(bytes) => bytes.len() as u64 * 4 / 3,
        IncomingItem::Entry(entry) => match &entry.event {
            throughline::ImportEvent::Body(body) => body.estimate_bytes() as u64 + 400,
            _ => 400,
        },
        IncomingItem::Session(_) | IncomingItem::Skipped(_) => 200,
    }
}
