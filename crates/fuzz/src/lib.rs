//! Structure-aware fuzzing of readers and decoders, for tests.
//!
//! A [`Target`] is a decoder and the valid documents it is fuzzed with. [`fuzz!`] first runs every
//! document and every input kept in the corpus as it is, then mutations of them: bytes, lines and
//! JSON values are changed, moved, repeated and spliced ([`mutate`]). `bolero` makes the choices, so
//! that the same targets run as ordinary tests on a stable compiler and under libFuzzer or AFL
//! where there is one.
//!
//! Besides what a target checks itself, an input must not panic, take longer than [`HANG`], or
//! take memory out of proportion to its size. A failing input is minimized and written to
//! `target/fuzz/`; moved into the corpus it is a regression test.
//!
//! This crate installs an allocator that counts, in every test binary it is part of.

pub mod mutate;

mod choices;
mod json;
mod minimize;
mod target;

pub use bolero;
pub use choices::Choices;
pub use target::{Case, HANG, Input, Mutated, Target};

/// Fuzzes a [`Target`]: its corpus, then mutations for as long as the test may take.
///
/// `BOLERO_RANDOM_TEST_TIME_MS` and `BOLERO_RANDOM_SEED`, which `cargo xtask fuzz` sets, say how long and
/// which input first.
#[macro_export]
macro_rules! fuzz {
    ($target:expr, $check:expr) => {{
        let target: $crate::Target = $target;
        let check = $check;
        target.replay(&check);
        $crate::bolero::check!()
            .with_generator(target.mutated())
            .with_shrink_time(::std::time::Duration::ZERO)
            .with_test_time(target.time())
            .for_each(|input: &$crate::Input| target.run(input, &check));
        target.finish();
    }};
}
