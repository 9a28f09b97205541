//! The log that the recorder writes.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use crate::CrashSimError;

const MAGIC: u32 = 0x4352_5348;

/// An operation of a program.
#[derive(Clone, PartialEq, Eq)]
pub enum Operation {
    /// Opened a file with creation, truncating it if `truncate`.
    Create {
        /// Whether the previous content is dropped.
        truncate: bool,
    },
    /// Wrote to a file.
    Write {
        /// The offset of the write.
        offset: u64,
        /// The bytes written.
        data: Vec<u8>,
    },
    /// Set a file's length.
    Truncate {
        /// The new length.
        length: u64,
    },
    /// Extended a file to at least this length.
    Allocate {
        /// The minimum length.
        length: u64,
    },
    /// Synced a file or folder.
    Sync {
        /// Whether it failed.
        failed: bool,
    },
    /// Synced everything.
    SyncAll,
    /// Renamed a file or folder.
    Rename {
        /// The new path.
        to: String,
    },
    /// Removed a file.
    Unlink,
    /// Created a folder.
    Mkdir,
    /// Removed a folder.
    Rmdir,
    /// Added a hard link to a file.
    Link {
        /// The new path.
        to: String,
    },
    /// Mapped a file into memory for writing.
    Map,
    /// Wrote to stdout, or to a socket if the record has a path.
    Ack {
        /// The bytes written.
        data: Vec<u8>,
    },
    /// Exited.
    Exit {
        /// The exit code; 137 if it was killed.
        code: i32,
    },
    /// A call that failed and changed nothing, because a fault was injected.
    Failed,
    /// Did something the model does not cover.
    Unsupported,
}

/// One operation in the log.
#[derive(Clone, PartialEq, Eq)]
pub struct Record {
    /// The process.
    pub process: u32,
    /// The operation.
    pub operation: Operation,
    /// The inode number of the file; 0 if it is identified by its path only.
    pub inode: u64,
    /// The path at that time.
    pub path: String,
    /// Whether a fault was injected.
    pub injected: bool,
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        write!(f, "[{}] ", self.process)?;
        match &self.operation {
            Operation::Create { truncate: false } => write!(f, "create {name}"),
            Operation::Create { truncate: true } => write!(f, "create and truncate {name}"),
            Operation::Write { offset, data } => {
                write!(f, "write {name} {offset}+{}", data.len())
            }
            Operation::Truncate { length } => write!(f, "truncate {name} to {length}"),
            Operation::Allocate { length } => write!(f, "allocate {name} to {length}"),
            Operation::Sync { failed: false } => write!(f, "sync {name}"),
            Operation::Sync { failed: true } => write!(f, "failed sync {name}"),
            Operation::SyncAll => write!(f, "sync everything"),
            Operation::Rename { to } => write!(f, "rename {name} to {to}"),
            Operation::Unlink => write!(f, "unlink {name}"),
            Operation::Mkdir => write!(f, "mkdir {name}"),
            Operation::Rmdir => write!(f, "rmdir {name}"),
            Operation::Link { to } => write!(f, "link {name} to {to}"),
            Operation::Map => write!(f, "map {name}"),
            Operation::Ack { data } => {
                let text = String::from_utf8_lossy(data);
                let short: String = text.chars().take(120).collect();
                write!(f, "ack {short:?}")
            }
            Operation::Exit { code } => write!(f, "exit {code}"),
            Operation::Failed => write!(f, "failed call on {name}"),
            Operation::Unsupported => write!(f, "unsupported call on {name}"),
        }?;
        if self.injected {
            f.write_str(" (fault injected)")?;
        }
        Ok(())
    }
}

/// All records of one log.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The records, in order.
    pub records: Vec<Record>,
}

impl Trace {
    /// Reads a log.
    pub fn read(log: &Path) -> Result<Self, CrashSimError> {
        let bytes = std::fs::read(log).map_err(CrashSimError::io(log))?;
        let mut records = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let (record, next) = parse(&bytes, at).ok_or(CrashSimError::Log(at))?;
            records.push(record);
            at = next;
        }
        Ok(Self { records })
    }

    /// Returns what each process had written to stdout and to each socket before the record
    /// with this number, ordered by first write.
    pub fn acknowledged_output(&self, before: usize) -> Vec<Vec<u8>> {
        let mut outputs: Vec<((u32, &str), Vec<u8>)> = Vec::new();
        for record in &self.records[..before] {
            if let Operation::Ack { data } = &record.operation {
                let channel = (record.process, record.path.as_str());
                match outputs.iter_mut().find(|(known, _)| *known == channel) {
                    Some((_, output)) => output.extend_from_slice(data),
                    None => outputs.push((channel, data.clone())),
                }
            }
        }
        outputs.into_iter().map(|(_, output)| output).collect()
    }

    /// Returns the number of injected faults. A kill before a call leaves only the exit of its
    /// process.
    pub fn injected_count(&self) -> usize {
        let is_kill = |record: &&Record| record.operation == Operation::Exit { code: 137 };
        let killed = self.records.iter().filter(is_kill);
        let killed: BTreeSet<u32> = killed.map(|record| record.process).collect();
        let is_other = |record: &&Record| record.injected && !killed.contains(&record.process);
        killed.len() + self.records.iter().filter(is_other).count()
    }

    /// Returns the last few records before one, for a message.
    pub fn context(&self, before: usize) -> String {
        let first = before.saturating_sub(12);
        let lines = self.records[first..before].iter().enumerate();
        lines
            .map(|(n, record)| format!("  {}: {record}\n", first + n))
            .collect()
    }
}

fn parse(bytes: &[u8], at: usize) -> Option<(Record, usize)> {
    let word = |n: usize| -> Option<u32> {
        let word = bytes.get(at + n..at + n + 4)?;
        Some(u32::from_ne_bytes(word.try_into().ok()?))
    };
    let long = |n: usize| -> Option<u64> {
        let long = bytes.get(at + n..at + n + 8)?;
        Some(u64::from_ne_bytes(long.try_into().ok()?))
    };
    if word(0)? != MAGIC {
        return None;
    }
    let result = word(12)?.cast_signed();
    let (inode, offset) = (long(16)?, long(24)?);
    let mut next = at + 48;
    let mut part = |n: usize| -> Option<&[u8]> {
        let length = usize::try_from(word(n)?).ok()?;
        let part = bytes.get(next..next + length)?;
        next += length;
        Some(part)
    };
    let (path, path2, data) = (part(36)?, part(40)?, part(44)?);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    let operation = match word(4)? {
        5 => Operation::Sync { failed: result < 0 },
        14 => Operation::Exit { code: result },
        15 => Operation::Unsupported,
        _ if result < 0 => Operation::Failed,
        1 => Operation::Create {
            truncate: offset != 0,
        },
        2 => Operation::Write {
            offset,
            data: data.to_vec(),
        },
        3 => Operation::Truncate { length: offset },
        4 => Operation::Allocate { length: offset },
        6 => Operation::SyncAll,
        7 => Operation::Rename { to: text(path2)? },
        8 => Operation::Unlink,
        9 => Operation::Mkdir,
        10 => Operation::Rmdir,
        11 => Operation::Link { to: text(path2)? },
        12 => Operation::Map,
        13 => Operation::Ack {
            data: data.to_vec(),
        },
        _ => return None,
    };
    let record = Record {
        process: word(8)?,
        operation,
        inode,
        path: text(path)?,
        injected: word(32)? != 0,
    };
    Some((record, next))
}
