//! Reads import sources on a separate thread while entries are being stored.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::Result;
use throughline::{Digest, ImportRecord, IncomingItem, LedgerRow};
use throughline_formats::{Source, SourceCursor, read_source};
use tokio::sync::mpsc;

use crate::threads::spawn_thread;

/// Maximum items per batch.
const BATCH_ITEMS: usize = 512;
/// Approximate maximum bytes per batch, because entries may be large.
const BATCH_BYTES: u64 = 1 << 20;
/// Maximum queued batches: enough to keep both sides busy, and no more, because touching new
/// memory costs as much as reading into it.
const MAX_PENDING_BATCHES: usize = 4;

/// A source to read.
#[derive(Clone, Debug)]
pub(super) struct ReadJob {
    pub(super) source: Source,
    /// Its ledger row, if any.
    pub(super) row: Option<LedgerRow>,
    /// Where the last read ended.
    pub(super) bookmark: Option<SourceCursor>,
}

/// An event from the reader thread.
pub(super) enum ReaderEvent {
    Items(Vec<ImportRecord>),
    /// Approximate number of bytes read of the current source.
    Progress(u64),
    /// A source was read completely.
    Done {
        job: usize,
        outcome: Box<ReadOutcome>,
    },
}

/// The outcome of reading a source.
pub(super) struct ReadOutcome {
    pub(super) next: Option<SourceCursor>,
    /// The hash of everything before the bookmark.
    pub(super) digest: Digest,
    /// Whether it was read from where the last read ended.
    pub(super) resumed: bool,
    pub(super) error: Option<String>,
}

/// Starts a thread that reads sources in order and encodes entries for storing.
pub(super) fn start_reader(jobs: Vec<ReadJob>, dry: bool) -> Result<mpsc::Receiver<ReaderEvent>> {
    let (sender, receiver) = mpsc::channel(MAX_PENDING_BATCHES);
    spawn_thread("reading the import", move || {
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
    // The part that was read before must be unchanged to continue after it.
    let same = |bookmark: &&SourceCursor| {
        let known = job.row.as_ref().map(|row| row.digest);
        known.is_some() && prefix_digest(path, bookmark.offset).ok() == known
    };
    let bookmark = job.bookmark.as_ref().filter(same);
    let mut handful = Vec::with_capacity(BATCH_ITEMS);
    let (mut bytes, mut reported) = (0_u64, 0_u64);
    let mut heard = |incoming: IncomingItem| {
        bytes += approximate_bytes(&incoming);
        handful.push(if dry {
            incoming.into()
        } else {
            ImportRecord::with_encoding(incoming)
        });
        if handful.len() < BATCH_ITEMS && bytes - reported < BATCH_BYTES {
            return true;
        }
        reported = bytes;
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

/// Returns the hash of the beginning of a file.
pub(super) fn prefix_digest(path: &Path, bytes: u64) -> std::io::Result<Digest> {
    if bytes == 0 {
        return Ok(Digest::of(b""));
    }
    Digest::of_reader(File::open(path)?.take(bytes))
}

/// Returns the approximate size of an item in its source, for progress only.
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
