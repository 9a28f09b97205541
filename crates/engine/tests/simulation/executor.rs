//! A seeded scheduler with a simulated clock.
//!
//! Tasks belong to processes. The seed decides which of the ready tasks runs next; if none is
//! ready, the clock advances to the next timer. A stalled process runs nothing until its stall
//! is over, while time continues for the others; the tasks of a killed process are dropped.
//! Nothing here waits in real time, and everything depends on the seed alone.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use throughline::{Environment, Timestamp};

type BoxedFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A simulated process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProcessId(pub(crate) usize);

struct Task {
    process: ProcessId,
    future: BoxedFuture,
}

struct State {
    random: fastrand::Rng,
    /// The time since the start, by a monotonic clock.
    elapsed: Duration,
    /// The offset of the wall clock, in microseconds.
    clock_offset: i64,
    timers: BTreeMap<(Duration, u64), Waker>,
    ready: BTreeSet<u64>,
    spawned: Vec<(u64, Task)>,
    killed: BTreeSet<ProcessId>,
    stalled: BTreeMap<ProcessId, Duration>,
    /// The total time that a process has been stalled.
    stalls: BTreeMap<ProcessId, Duration>,
    next_id: u64,
    trace: Vec<String>,
    violations: Vec<String>,
}

/// The simulated machine. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Simulation {
    state: Arc<Mutex<State>>,
    /// The `Instant` at which the simulation starts, for code that needs one.
    start: Instant,
}

impl std::fmt::Debug for Simulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Simulation")
    }
}

struct TaskWaker {
    id: u64,
    state: Arc<Mutex<State>>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.state.lock().unwrap().ready.insert(self.id);
    }
}

impl Simulation {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            state: Arc::new(Mutex::new(State {
                random: fastrand::Rng::with_seed(seed),
                elapsed: Duration::ZERO,
                clock_offset: 0,
                timers: BTreeMap::new(),
                ready: BTreeSet::new(),
                spawned: Vec::new(),
                killed: BTreeSet::new(),
                stalled: BTreeMap::new(),
                stalls: BTreeMap::new(),
                next_id: 0,
                trace: Vec::new(),
                violations: Vec::new(),
            })),
            start: Instant::now(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Returns a random number below `bound`.
    pub(crate) fn random(&self, bound: u64) -> u64 {
        self.state().random.u64(0..bound)
    }

    /// Returns `true` with a probability of `percent`.
    pub(crate) fn chance(&self, percent: u64) -> bool {
        self.random(100) < percent
    }

    pub(crate) fn random_duration(&self, bound: u64) -> Duration {
        Duration::from_micros(self.random(bound * 1_000))
    }

    /// The time since the start, by a monotonic clock.
    pub(crate) fn elapsed(&self) -> Duration {
        self.state().elapsed
    }

    pub(crate) fn instant(&self) -> Instant {
        self.start + self.elapsed()
    }

    /// The time by the wall clock.
    pub(crate) fn time_of_day(&self) -> Timestamp {
        const START: i64 = 1_800_000_000_000_000;
        let state = self.state();
        let elapsed = i64::try_from(state.elapsed.as_micros()).unwrap();
        Timestamp::from_microsecond(START + elapsed + state.clock_offset).unwrap()
    }

    pub(crate) fn set_clock(&self, by_seconds: i64) {
        self.log(&format!("the clock is set by {by_seconds} s"));
        self.state().clock_offset += by_seconds * 1_000_000;
    }

    /// Runs a task as part of a process.
    pub(crate) fn spawn(
        &self,
        process: ProcessId,
        future: impl Future<Output = ()> + Send + 'static,
    ) {
        let mut state = self.state();
        state.next_id += 1;
        let id = state.next_id;
        let future = Box::pin(future);
        state.spawned.push((id, Task { process, future }));
        state.ready.insert(id);
    }

    pub(crate) fn stall(&self, process: ProcessId, duration: Duration) {
        self.log(&format!("{process:?} is stalled for {duration:?}"));
        let mut state = self.state();
        let until = state.elapsed + duration;
        state.stalled.insert(process, until);
        *state.stalls.entry(process).or_default() += duration;
    }

    /// The total time that a process was stalled.
    pub(crate) fn stalls(&self, process: ProcessId) -> Duration {
        self.state()
            .stalls
            .get(&process)
            .copied()
            .unwrap_or_default()
    }

    /// Kills a process. Tasks spawned for it from now on belong to its successor.
    pub(crate) fn kill(&self, process: ProcessId) {
        self.log(&format!("{process:?} is killed"));
        let mut state = self.state();
        state.killed.insert(process);
        state.stalled.remove(&process);
    }

    pub(crate) fn log(&self, what: &str) {
        let mut state = self.state();
        let line = format!("{:>12.6} {what}", state.elapsed.as_secs_f64());
        state.trace.push(line);
    }

    /// Records the violation of an invariant.
    pub(crate) fn record_violation(&self, what: String) {
        self.log(&format!("VIOLATION: {what}"));
        self.state().violations.push(what);
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.state().violations.clone()
    }

    pub(crate) fn trace(&self) -> Vec<String> {
        self.state().trace.clone()
    }

    pub(crate) fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send + use<> {
        let simulation = self.clone();
        let until = self.elapsed() + duration;
        poll_fn(move |context| {
            let mut state = simulation.state();
            if state.elapsed >= until {
                return Poll::Ready(());
            }
            state.next_id += 1;
            let key = (until, state.next_id);
            state.timers.insert(key, context.waker().clone());
            Poll::Pending
        })
    }

    /// Runs until `limit` has passed or nothing is left to do.
    pub(crate) fn run(&self, limit: Duration) {
        let mut tasks: BTreeMap<u64, Task> = BTreeMap::new();
        while self.elapsed() < limit {
            let killed = {
                let mut state = self.state();
                let killed = std::mem::take(&mut state.killed);
                let is_dead = |task: &Task| killed.contains(&task.process);
                let dead = tasks.iter().filter(|(_, task)| is_dead(task));
                let dead: Vec<u64> = dead.map(|(id, _)| *id).collect();
                // Dropped below, without the lock.
                let dead: Vec<_> = dead.iter().filter_map(|id| tasks.remove(id)).collect();
                tasks.extend(state.spawned.drain(..));
                dead
            };
            drop(killed);
            let Some(id) = self.next_task(&tasks) else {
                if !self.advance() {
                    return;
                }
                continue;
            };
            let Some(task) = tasks.get_mut(&id) else {
                continue;
            };
            let state = Arc::clone(&self.state);
            let waker = Waker::from(Arc::new(TaskWaker { id, state }));
            let polled = task.future.as_mut().poll(&mut Context::from_waker(&waker));
            if polled.is_ready() {
                tasks.remove(&id);
            }
        }
    }

    /// Picks a random task among those that are ready.
    fn next_task(&self, tasks: &BTreeMap<u64, Task>) -> Option<u64> {
        let mut state = self.state();
        let State {
            ready,
            stalled,
            elapsed,
            random,
            ..
        } = &mut *state;
        stalled.retain(|_, until| *until > *elapsed);
        ready.retain(|id| tasks.contains_key(id));
        let runnable: Vec<u64> = ready
            .iter()
            .filter(|id| !stalled.contains_key(&tasks[*id].process))
            .copied()
            .collect();
        let chosen = *runnable.get(random.usize(0..runnable.len().max(1)))?;
        ready.remove(&chosen);
        Some(chosen)
    }

    /// Advances the clock to the next event; returns `false` if there is none.
    fn advance(&self) -> bool {
        let mut state = self.state();
        let timer = state.timers.keys().next().map(|(at, _)| *at);
        let stall = state.stalled.values().min().copied();
        let Some(next) = timer.into_iter().chain(stall).min() else {
            return !state.spawned.is_empty();
        };
        state.elapsed = state.elapsed.max(next);
        let now = state.elapsed;
        let later = state.timers.split_off(&(now + Duration::from_nanos(1), 0));
        let due = std::mem::replace(&mut state.timers, later);
        drop(state);
        for waker in due.into_values() {
            waker.wake();
        }
        true
    }
}

/// The environment of a simulated process: clock and randomness.
#[derive(Debug)]
pub(crate) struct SimulatedEnvironment(pub(crate) Simulation);

impl Environment for SimulatedEnvironment {
    fn now(&self) -> Timestamp {
        self.0.time_of_day()
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        self.0.state().random.fill(bytes);
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.0.sleep(duration))
    }
}
