//! Waits for file locks that other processes hold (SQLite's busy handler).

use std::cell::Cell;
use std::time::{Duration, Instant};

/// How long a connection waits for other processes unless a deadline is set.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

thread_local! {
    /// Until when this thread's connections wait for locks, if a deadline is set.
    static WAIT_DEADLINE: Cell<Option<Instant>> = const { Cell::new(None) };
    /// When the current wait began.
    static WAIT_STARTED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Runs `work` with a deadline for the lock waits of this thread's connections.
pub(crate) fn with_busy_deadline<T>(deadline: Instant, work: impl FnOnce() -> T) -> T {
    let before = WAIT_DEADLINE.replace(Some(deadline));
    let done = work();
    WAIT_DEADLINE.set(before);
    done
}

/// SQLite's busy handler: sleeps briefly and returns whether to retry.
///
/// The sleeps are short and randomised: a write transaction takes about a millisecond, SQLite's
/// own handler soon sleeps a hundred, and waiting processes must not run in lockstep.
pub(crate) fn handle_busy(attempt: i32) -> bool {
    const MEAN_MICROS: u64 = 1_000;
    let now = Instant::now();
    if attempt == 0 {
        WAIT_STARTED.set(Some(now));
    }
    let until = WAIT_DEADLINE
        .get()
        .unwrap_or_else(|| WAIT_STARTED.get().unwrap_or(now) + DEFAULT_TIMEOUT);
    if now >= until {
        return false;
    }
    let attempt = u64::try_from(attempt).unwrap_or(0);
    let spread =
        (attempt ^ u64::from(std::process::id())).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
    let pause = Duration::from_micros(MEAN_MICROS / 2 + spread);
    std::thread::sleep(pause.min(until - now));
    true
}

/// Retries while the file is locked, for operations that SQLite fails without calling the busy
/// handler, such as several processes creating the store at once.
pub(crate) fn retry_while_busy<T, E>(
    is_busy: impl Fn(&E) -> bool,
    mut work: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let until = Instant::now() + DEFAULT_TIMEOUT;
    with_busy_deadline(until, || {
        let mut attempt = 0;
        loop {
            match work() {
                Err(error) if is_busy(&error) && handle_busy(attempt) => attempt += 1,
                done => return done,
            }
        }
    })
}
