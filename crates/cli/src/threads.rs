//! Starts threads. A system that has none to give is an error for the person, not a panic.

use std::thread::{Builder, JoinHandle};

use anyhow::Result;
use tokio::runtime::Runtime;

use crate::error_report::UserError;

/// Makes a runtime that has a thread for what blocks. Without one it panics when it is first
/// asked to run such a thing, so that a system without threads is found out here.
pub(crate) fn build_runtime(builder: &mut tokio::runtime::Builder) -> Result<Runtime> {
    let probe = spawn_thread("the program", || ())?;
    // It has nothing to do, and so nothing to panic about.
    let _ = probe.join();
    let runtime = builder.build().map_err(|error| UserError {
        what: format!("the program cannot start: {error}"),
        hint: None,
        kind: throughline::ErrorKind::Unavailable,
    })?;
    runtime.spawn_blocking(|| ());
    Ok(runtime)
}

/// Runs something on a thread of its own; `what` says what it is for.
pub(crate) fn spawn_thread<T: Send + 'static>(
    what: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    let spawned = Builder::new().spawn(work);
    Ok(spawned.map_err(|error| UserError {
        what: format!("no thread can be started for {what}: {error}"),
        hint: Some("end other programs, or raise the limit on processes (`ulimit -u`)".into()),
        kind: throughline::ErrorKind::Unavailable,
    })?)
}
