//! Faults to inject into a program.

use std::fmt;

/// A kind of system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyscallKind {
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
pub enum FaultAction {
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
    pub kind: SyscallKind,
    /// Which of them is the first, counted from 1.
    pub first: usize,
    /// Which of them is the last.
    pub last: usize,
    /// What happens.
    pub action: FaultAction,
    /// Only calls whose path contains this are counted, if it is not empty.
    pub path_contains: &'static str,
}

impl Fault {
    /// A fault in the n-th call of a kind, counted from 1.
    pub fn new(kind: SyscallKind, first: usize, action: FaultAction) -> Self {
        Self {
            kind,
            first,
            last: first,
            action,
            path_contains: "",
        }
    }

    /// The same, and in all calls that follow.
    #[must_use]
    pub fn repeating(mut self) -> Self {
        self.last = usize::MAX;
        self
    }

    /// The same, and in so many calls in all.
    #[must_use]
    pub fn times(mut self, count: usize) -> Self {
        self.last = self.first + count.saturating_sub(1);
        self
    }

    /// The same, counting only calls whose path contains this.
    #[must_use]
    pub fn in_path(mut self, part: &'static str) -> Self {
        self.path_contains = part;
        self
    }
}

/// As the recorder takes it.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            SyscallKind::Sync => "sync",
            SyscallKind::Write => "write",
            SyscallKind::Truncate => "truncate",
            SyscallKind::Create => "create",
            SyscallKind::Rename => "rename",
            SyscallKind::Unlink => "unlink",
            SyscallKind::Mkdir => "mkdir",
            SyscallKind::Ack => "ack",
            SyscallKind::Any => "any",
        };
        let action = match self.action {
            FaultAction::Eio => "eio",
            FaultAction::Enospc => "enospc",
            FaultAction::Short => "short",
            FaultAction::TornKill => "torn-kill",
            FaultAction::KillBefore => "kill-before",
            FaultAction::KillAfter => "kill-after",
        };
        write!(f, "{kind}:{}", self.first)?;
        match self.last {
            usize::MAX => f.write_str("+")?,
            last if last == self.first => {}
            last => write!(f, "-{last}")?,
        }
        write!(f, ":{action}")?;
        if !self.path_contains.is_empty() {
            write!(f, ":{}", self.path_contains)?;
        }
        Ok(())
    }
}
