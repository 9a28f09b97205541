//! Faults to inject into a program.

use std::fmt;

/// A kind of system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// `fsync` and its like.
    Sync,
    /// A write to a file.
    Write,
    /// A change of a file's length.
    Truncate,
    /// Opening a file that is created where it does not exist.
    Create,
    /// A rename or a new link.
    Rename,
    /// A removal of a file or folder.
    Unlink,
    /// A new folder.
    Mkdir,
    /// A write to stdout or to a socket.
    Ack,
    /// All of these except writes to stdout and to sockets.
    Any,
}

/// What happens instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The call fails with EIO.
    Eio,
    /// The call fails with ENOSPC.
    Enospc,
    /// A write is done by half, and says so.
    Short,
    /// A write is done by half, and the program is killed.
    TornKill,
    /// The program is killed before the call.
    KillBefore,
    /// The program is killed after the call.
    KillAfter,
}

/// A fault to inject into the n-th call of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which kind of call.
    pub kind: CallKind,
    /// Which of them is the first, counted from 1.
    pub number: usize,
    /// Which of them is the last.
    pub last: usize,
    /// What happens.
    pub action: Action,
    /// Only calls whose path contains this are counted, if it is not empty.
    pub path_part: &'static str,
}

impl Fault {
    /// A fault in the n-th call of a kind, counted from 1.
    pub fn new(kind: CallKind, number: usize, action: Action) -> Self {
        Self {
            kind,
            number,
            last: number,
            action,
            path_part: "",
        }
    }

    /// The same, and in all calls that follow.
    #[must_use]
    pub fn from_then_on(mut self) -> Self {
        self.last = usize::MAX;
        self
    }

    /// The same, and in so many calls in all.
    #[must_use]
    pub fn times(mut self, count: usize) -> Self {
        self.last = self.number + count.saturating_sub(1);
        self
    }

    /// The same, counting only calls whose path contains this.
    #[must_use]
    pub fn in_path(mut self, part: &'static str) -> Self {
        self.path_part = part;
        self
    }
}

/// As the recorder takes it.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            CallKind::Sync => "sync",
            CallKind::Write => "write",
            CallKind::Truncate => "truncate",
            CallKind::Create => "create",
            CallKind::Rename => "rename",
            CallKind::Unlink => "unlink",
            CallKind::Mkdir => "mkdir",
            CallKind::Ack => "ack",
            CallKind::Any => "any",
        };
        let action = match self.action {
            Action::Eio => "eio",
            Action::Enospc => "enospc",
            Action::Short => "short",
            Action::TornKill => "torn-kill",
            Action::KillBefore => "kill-before",
            Action::KillAfter => "kill-after",
        };
        write!(f, "{kind}:{}", self.number)?;
        match self.last {
            usize::MAX => f.write_str("+")?,
            last if last == self.number => {}
            last => write!(f, "-{last}")?,
        }
        write!(f, ":{action}")?;
        if !self.path_part.is_empty() {
            write!(f, ":{}", self.path_part)?;
        }
        Ok(())
    }
}
