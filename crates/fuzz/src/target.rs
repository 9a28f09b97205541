//! Fuzz targets: a decoder, its documents, and how it is run on one input.

use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use bolero::{Driver, ValueGenerator};
use peak_alloc::PeakAlloc;

use crate::Choices;
use crate::choices::SplitMix64;
use crate::minimize::minimize;
use crate::mutate::Mutation;
use crate::watchdog::Watchdog;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The default number of mutations in the test suite.
const DEFAULT_MUTATIONS: u64 = 500;

/// The memory an input may take regardless of its size, and per byte of it.
const MEMORY_LIMIT: (usize, usize) = (48 << 20, 400);

/// One kind of document that a target reads.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name, which is also the name of its folder in the corpus.
    pub name: String,
    /// Valid documents.
    pub seeds: Vec<Vec<u8>>,
    /// How to mutate them.
    pub mutation: Mutation,
}

/// A document of one of the target's cases.
#[derive(Clone, PartialEq, Eq)]
pub struct Input {
    /// The index of the case.
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
    mutations: u64,
    memory_limit: (usize, usize),
    /// Where failing inputs are written.
    failures_folder: PathBuf,
}

impl Target {
    /// Creates a target with these cases, and adds the corpus inputs in `corpus/NAME/CASE/` to
    /// each.
    ///
    /// # Panics
    ///
    /// If a case has no documents.
    pub fn new(name: &'static str, corpus: &Path, mut cases: Vec<Case>) -> Self {
        for case in &mut cases {
            let inputs = fs::read_dir(corpus.join(name).join(&case.name));
            let mut inputs: Vec<_> = inputs.into_iter().flatten().flatten().collect();
            inputs.sort_by_key(fs::DirEntry::path);
            let inputs = inputs.iter().filter_map(|file| fs::read(file.path()).ok());
            case.seeds.extend(inputs);
            assert!(!case.seeds.is_empty(), "{name}/{} has no seeds", case.name);
        }
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        Self {
            name,
            cases,
            mutations: DEFAULT_MUTATIONS,
            memory_limit: MEMORY_LIMIT,
            failures_folder: here.join("../../target/fuzz").join(name),
        }
    }

    /// Sets the number of mutations in the test suite.
    #[must_use]
    pub fn with_mutations(self, mutations: u64) -> Self {
        Self { mutations, ..self }
    }

    /// Sets the memory an input may take: a fixed number of bytes, and so many per byte of
    /// input.
    #[must_use]
    pub fn with_memory_limit(self, memory: (usize, usize)) -> Self {
        Self {
            memory_limit: memory,
            ..self
        }
    }

    /// Returns a generator of mutations of its documents.
    pub fn generator(&self) -> MutationGenerator {
        MutationGenerator(self.cases.clone())
    }

    /// Runs every document unchanged.
    pub fn replay(&self, check: &dyn Fn(&Input)) {
        for (case, documents) in self.cases.iter().enumerate() {
            for bytes in &documents.seeds {
                let bytes = bytes.clone();
                self.run(&Input { case, bytes }, check);
            }
        }
    }

    /// Runs a fixed number of mutations, the same every time.
    pub fn run_fixed(&self, check: &dyn Fn(&Input)) {
        let generator = self.generator();
        let inputs = (0..self.mutations).filter_map(|number| {
            let mut random = SplitMix64::new(number);
            generator.draw(&mut Choices::new(&mut |limit| Some(random.below(limit))))
        });
        for input in inputs {
            self.run(&input, check);
        }
    }

    /// Runs one input. If it fails, the input is minimized and written to a file.
    ///
    /// # Panics
    ///
    /// If the check panics, naming the input.
    pub fn run(&self, input: &Input, check: &dyn Fn(&Input)) {
        // If the process dies, this file remains.
        let current = self.failures_folder.join("current");
        let _ = fs::create_dir_all(&self.failures_folder);
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
        // The first failure has been reported; do not report those during minimizing.
        let hook = take_hook();
        set_hook(Box::new(|_| {}));
        let least = minimize(&input.bytes, &fails);
        set_hook(hook);
        let case = &self.cases[input.case].name;
        let hash = least.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let path = self.failures_folder.join(format!("{case}-{hash:016x}"));
        let _ = fs::write(&path, &least);
        let _ = fs::remove_file(&current);
        let message = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("it panicked");
        panic!(
            "{message}\n  target {}, case {case}; minimized input: {}\n  once it is fixed, keep it in the corpus under {}/{case}/",
            self.name,
            path.display(),
            self.name,
        );
    }

    fn run_once(&self, input: &Input, check: &dyn Fn(&Input)) {
        let watchdog = Watchdog::start(self.failures_folder.join("current"));
        ALLOCATOR.reset_peak_usage();
        let before = ALLOCATOR.current_usage();
        check(input);
        let taken = ALLOCATOR.peak_usage().saturating_sub(before);
        drop(watchdog);
        let limit = self.memory_limit.0 + self.memory_limit.1 * input.bytes.len();
        assert!(
            taken <= limit,
            "{} bytes of input took {taken} bytes of memory, more than {limit}",
            input.bytes.len(),
        );
    }

    /// Removes the file that is only needed after a crash.
    pub fn finish(&self) {
        let _ = fs::remove_file(self.failures_folder.join("current"));
    }
}

/// Generates mutations of a target's documents, one to four at a time.
#[derive(Clone, Debug)]
pub struct MutationGenerator(Vec<Case>);

impl MutationGenerator {
    /// Draws one input.
    fn draw(&self, by: &mut Choices<'_>) -> Option<Input> {
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

impl ValueGenerator for MutationGenerator {
    type Output = Input;

    fn generate<D: Driver>(&self, driver: &mut D) -> Option<Input> {
        let mut draw = |limit| driver.gen_usize(Bound::Included(&0), Bound::Excluded(&limit));
        self.draw(&mut Choices::new(&mut draw))
    }
}
