//! Structure-aware fuzzing of readers and decoders, for tests.
//!
//! A [`Target`] is a decoder and the valid documents it is fuzzed with. [`fuzz!`] first runs
//! every document and every corpus input unchanged, then mutations of them: bytes, lines and
//! JSON values are changed, moved, repeated and spliced ([`mutate`]). In the test suite their
//! number is fixed and they are the same in every run. `cargo xtask fuzz` lets `bolero` make
//! the choices, at random and for as long as requested; with a fuzzer such as libFuzzer it is
//! guided by coverage.
//!
//! Besides what a target checks itself, an input must not panic, take more CPU time than
//! [`CPU_TIME_LIMIT`], or take memory out of proportion to its size. Both are measured for the
//! whole process, so each test needs its own process, as `cargo nextest` provides. A failing
//! input is minimized and written to `target/fuzz/`; move it into the corpus to make it a
//! regression test.
//!
//! This crate installs a counting allocator in every test binary that includes it.

pub mod mutate;

mod choices;
mod json_mutation;
mod minimize;
mod target;
mod watchdog;

pub use bolero;
pub use choices::Choices;
pub use target::{Case, Input, MutationGenerator, Target};
pub use watchdog::CPU_TIME_LIMIT;

/// Fuzzes a [`Target`]: its corpus, then a fixed number of mutations.
///
/// If a bolero variable such as `BOLERO_RANDOM_TEST_TIME_MS` or `BOLERO_RANDOM_SEED` is set,
/// as by `cargo xtask fuzz`, bolero makes the mutations instead.
#[macro_export]
macro_rules! fuzz {
    ($target:expr, $check:expr) => {{
        let target: $crate::Target = $target;
        let check = $check;
        target.replay(&check);
        if $crate::is_driven_by_bolero() {
            $crate::bolero::check!()
                .with_generator(target.generator())
                .with_shrink_time(::std::time::Duration::ZERO)
                .for_each(|input: &$crate::Input| target.run(input, &check));
        } else {
            target.run_fixed(&check);
        }
        target.finish();
    }};
}

/// Returns whether bolero makes the mutations: for a given time, from a given seed, or with a
/// fuzzer.
pub fn is_driven_by_bolero() -> bool {
    let mut names = std::env::vars_os().map(|(name, _)| name);
    names.any(|name| name.to_string_lossy().starts_with("BOLERO_"))
}
