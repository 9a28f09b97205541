//! Kills the process when an input takes too long.
//!
//! The CPU time of the process is what counts: on a busy machine an input may wait for seconds
//! without being slow. A deadlock takes no CPU time and is left to the test runner's timeout.

use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// The CPU time one input may take before it counts as a hang.
pub const CPU_TIME_LIMIT: Duration = Duration::from_secs(20);

/// How often the time is checked.
const INTERVAL: Duration = Duration::from_secs(1);

/// Watches one input until it is dropped.
pub(crate) struct Watchdog {
    _stop: Sender<()>,
}

impl Watchdog {
    /// Starts watching an input; `current` is the file that contains it.
    pub(crate) fn start(current: PathBuf) -> Self {
        let (stop, stopped) = channel();
        let start = cpu_time();
        std::thread::spawn(move || {
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                if cpu_time().saturating_sub(start) > CPU_TIME_LIMIT {
                    let current = current.display();
                    eprintln!("an input took more than {CPU_TIME_LIMIT:?} of CPU time: {current}");
                    std::process::abort();
                }
            }
        });
        Self { _stop: stop }
    }
}

/// Returns the CPU time this process has taken.
#[cfg(unix)]
fn cpu_time() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Not available on this platform, so no input counts as a hang.
#[cfg(not(unix))]
fn cpu_time() -> Duration {
    Duration::ZERO
}
