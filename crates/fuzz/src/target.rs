//! A decoder to fuzz, and running it on one input.

use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;
use std::{fmt, fs};

use bolero::{Driver, ValueGenerator};
use peak_alloc::PeakAlloc;

use crate::Choices;
use crate::minimize::minimize;
use crate::mutate::Mutation;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// How long one input may take before it counts as a hang.
pub const HANG: Duration = Duration::from_secs(30);

/// How much memory an input may take whatever its size, and for each byte of it.
const MEMORY_LIMIT: (usize, usize) = (48 << 20, 400);

/// One kind of document that a target reads.
#[derive(Clone, Debug)]
pub struct Case {
    /// What it is called: the name of its folder in the corpus.
    pub name: String,
    /// Valid documents.
    pub seeds: Vec<Vec<u8>>,
    /// How to change them.
    pub mutation: Mutation,
}

/// A document of one of the target's cases.
#[derive(Clone, PartialEq, Eq)]
pub struct Input {
    /// Which case.
    pub case: usize,
    /// The document.
    pub bytes: Vec<u8>,
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes for case {}", self.bytes.len(), self.case)
    }
}

/// A decoder to fuzz.
#[derive(Debug)]
pub struct Target {
    name: &'static str,
    cases: Vec<Case>,
    time: Duration,
    memory: (usize, usize),
    /// Where failing inputs are written.
    failures: PathBuf,
}

impl Target {
    /// A target with these cases, and what is in `corpus/NAME/CASE/` for each.
    ///
    /// # Panics
    ///
    /// Where a case has no documents.
    pub fn new(name: &'static str, corpus: &Path, mut cases: Vec<Case>) -> Self {
        for case in &mut cases {
            let kept = fs::read_dir(corpus.join(name).join(&case.name));
            let mut kept: Vec<_> = kept.into_iter().flatten().flatten().collect();
            kept.sort_by_key(fs::DirEntry::path);
            let kept = kept.iter().filter_map(|file| fs::read(file.path()).ok());
            case.seeds.extend(kept);
            assert!(!case.seeds.is_empty(), "{name}/{} has no seeds", case.name);
        }
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        Self {
            name,
            cases,
            time: Duration::from_secs(1),
            memory: MEMORY_LIMIT,
            failures: here.join("../../target/fuzz").join(name),
        }
    }

    /// The same with a longer or shorter run in the suite.
    #[must_use]
    pub fn lasting(self, time: Duration) -> Self {
        Self { time, ..self }
    }

    /// How long the run in the suite is.
    pub fn time(&self) -> Duration {
        self.time
    }

    /// The same where an input may take so many bytes of memory, and so many for each of its own.
    #[must_use]
    pub fn within(self, memory: (usize, usize)) -> Self {
        Self { memory, ..self }
    }

    /// Mutations of its documents.
    pub fn mutated(&self) -> Mutated {
        Mutated(self.cases.clone())
    }

    /// Runs every document as it is.
    pub fn replay(&self, check: &dyn Fn(&Input)) {
        for (case, documents) in self.cases.iter().enumerate() {
            for bytes in &documents.seeds {
                let bytes = bytes.clone();
                self.run(&Input { case, bytes }, check);
            }
        }
    }

    /// Runs one input. If it fails, the input is minimized and written down.
    ///
    /// # Panics
    ///
    /// Where the check does, naming the input.
    pub fn run(&self, input: &Input, check: &dyn Fn(&Input)) {
        // What ends the process leaves this file behind.
        let current = self.failures.join("current");
        let _ = fs::create_dir_all(&self.failures);
        let _ = fs::write(&current, &input.bytes);
        let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.run_once(input, check))) else {
            return;
        };
        let fails = |bytes: &[u8]| {
            let smaller = Input {
                case: input.case,
                bytes: bytes.to_vec(),
            };
            catch_unwind(AssertUnwindSafe(|| self.run_once(&smaller, check))).is_err()
        };
        let least = minimize(&input.bytes, &fails);
        let case = &self.cases[input.case].name;
        let hash = least.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let path = self.failures.join(format!("{case}-{hash:016x}"));
        let _ = fs::write(&path, &least);
        let _ = fs::remove_file(&current);
        let why = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("it panicked");
        panic!(
            "{why}\n  target {}, case {case}; minimized input: {}\n  once it is fixed, keep it in the corpus under {}/{case}/",
            self.name,
            path.display(),
            self.name,
        );
    }

    fn run_once(&self, input: &Input, check: &dyn Fn(&Input)) {
        let watchdog = Watchdog::start(self.failures.join("current"));
        MEMORY.reset_peak_usage();
        let before = MEMORY.current_usage();
        check(input);
        let taken = MEMORY.peak_usage().saturating_sub(before);
        drop(watchdog);
        let limit = self.memory.0 + self.memory.1 * input.bytes.len();
        assert!(
            taken <= limit,
            "{} bytes of input took {taken} bytes of memory, more than {limit}",
            input.bytes.len(),
        );
    }

    /// Removes what only a run that was cut off needs.
    pub fn finish(&self) {
        let _ = fs::remove_file(self.failures.join("current"));
    }
}

/// Ends the process if an input takes too long.
struct Watchdog {
    _stop: Sender<()>,
}

impl Watchdog {
    fn start(current: PathBuf) -> Self {
        let (stop, stopped) = channel();
        std::thread::spawn(move || {
            if stopped.recv_timeout(HANG) == Err(RecvTimeoutError::Timeout) {
                eprintln!("an input took longer than {HANG:?}: {}", current.display());
                std::process::abort();
            }
        });
        Self { _stop: stop }
    }
}

/// Mutations of a target's documents, one to four at a time.
#[derive(Clone, Debug)]
pub struct Mutated(Vec<Case>);

impl ValueGenerator for Mutated {
    type Output = Input;

    fn generate<D: Driver>(&self, driver: &mut D) -> Option<Input> {
        let mut draw = |limit| driver.gen_usize(Bound::Included(&0), Bound::Excluded(&limit));
        let by = &mut Choices::new(&mut draw);
        let case = by.below(self.0.len())?;
        let Case {
            seeds, mutation, ..
        } = &self.0[case];
        let mut bytes = by.pick(seeds)?.clone();
        for _ in 0..=by.below(4)? {
            bytes = mutation(bytes, seeds, by)?;
        }
        Some(Input { case, bytes })
    }
}
