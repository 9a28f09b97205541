//! Faults to inject into a traced program.

use std::fmt;

/// A kind of system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyscallKind {
    /// `fsync` and similar calls.
    Sync,
    /// A write to a file.
    Write,
    /// A change of a file's length.
    Truncate,
    /// Opening a file with creation.
    Create,
    /// A rename or a new link.
    Rename,
    /// A removal of a file or folder.
    Unlink,
    /// A new folder.
    Mkdir,
    /// A write to stdout or to a socket.
    Ack,
    /// All of these except `Ack`.
    Any,
}

/// What happens instead of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultAction {
    /// The call fails with EIO.
    Eio,
    /// The call fails with ENOSPC.
    Enospc,
    /// Half of a write is done, and the short count is returned.
    Short,
    /// Half of a write is done, and the program is killed.
    TornKill,
    /// The program is killed before the call.
    KillBefore,
    /// The program is killed after the call.
    KillAfter,
}

/// A fault to inject into the n-th call of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind of call.
    pub kind: SyscallKind,
    /// The first call to affect, counted from 1.
    pub first: usize,
    /// The last call to affect.
    pub last: usize,
    /// What happens.
    pub action: FaultAction,
    /// Only calls whose path contains this are counted; empty means all.
    pub path_contains: &'static str,
}

impl Fault {
    /// Creates a fault in the n-th call of a kind, counted from 1.
    pub fn new(kind: SyscallKind, first: usize, action: FaultAction) -> Self {
        Self {
            kind,
            first,
            last: first,
            action,
            path_contains: "",
        }
    }

    /// Repeats the fault in all calls that follow.
    #[must_use]
    pub fn repeating(mut self) -> Self {
        self.last = usize::MAX;
        self
    }

    /// Repeats the fault in `count` calls in total.
    #[must_use]
    pub fn times(mut self, count: usize) -> Self {
        self.last = self.first + count.saturating_sub(1);
        self
    }

    /// Counts only calls whose path contains this.
    #[must_use]
    pub fn in_path(mut self, part: &'static str) -> Self {
        self.path_contains = part;
        self
    }
}

/// Formats the fault as a recorder argument.
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
