//! Starts threads and the async runtime, reporting a lack of threads as an error instead of
//! panicking.

use std::thread::{Builder, JoinHandle};

use anyhow::Result;
use tokio::runtime::Runtime;

use crate::error_report::UserError;

/// Builds the runtime after checking that a thread can be started. The runtime would panic
/// later if it could not start a thread for blocking work.
pub(crate) fn build_runtime(builder: &mut tokio::runtime::Builder) -> Result<Runtime> {
    let probe = spawn_thread("the program", || ())?;
    // The thread does nothing and cannot panic.
    let _ = probe.join();
    let runtime = builder.build().map_err(|error| UserError {
        what: format!("the program cannot start: {error}"),
        hint: None,
        kind: throughline::ErrorKind::Unavailable,
    })?;
    runtime.spawn_blocking(|| ());
    Ok(runtime)
}

/// Runs a function on a new thread; `what` describes its purpose for the error message.
pub(crate) fn spawn_thread<T: Send + 'static>(
    what: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    let spawned = Builder::new().spawn(work);
    Ok(spawned.map_err(|error| UserError {
        what: format!("cannot start a thread for {what}: {error}"),
        hint: Some("stop other programs, or raise the process limit (`ulimit -u`)".into()),
        kind: throughline::ErrorKind::Unavailable,
    })?)
}
