//! Records what a program does to its files, injects faults, and simulates power cuts.
//!
//! [`Recorder`] runs an unmodified program and appends every write, sync, rename and removal
//! below one folder, and everything written to stdout and to sockets, to one ordered log. A
//! program acknowledges data by writing there, so the log contains acknowledgements in order.
//! [`Fault`]s make a call fail, or kill the program before or after it.
//!
//! [`Trace`] reads the log. [`Disk`] replays it and tracks what is durable and what is only in
//! the page cache: content is durable once its file is synced, a name once its folder is. From
//! that it derives the [`DiskState`]s that a power cut could leave at any point of the log:
//! unsynced writes dropped, reordered, torn at 512 bytes. A killed program does not lose the
//! page cache: the log continues with the next process. [`power_cuts`] chooses points and
//! losses from a seed.
//!
//! The caller decides what to check in each state. Linux only: the recorder uses ptrace.
//!
//! Invariant: with nothing lost, the state at the end of a log equals the content of the
//! folder (except files mapped into memory for writing, whose content is arbitrary after a
//! cut).

#![cfg(target_os = "linux")]

mod dir_entries;
mod disk;
mod disk_state;
mod error;
mod fault;
mod file;
mod power_cut;
mod recorder;
mod rng;
mod trace;

pub use disk::{Disk, DurabilityModel};
pub use disk_state::DiskState;
pub use error::CrashSimError;
pub use fault::{Fault, FaultAction, SyscallKind};
pub use power_cut::{Loss, PowerCut, power_cuts};
pub use recorder::Recorder;
pub use rng::Rng;
pub use trace::{Operation, Record, Trace};
