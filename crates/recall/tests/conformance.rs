//! Runs the conformance suite on the folder index.

mod common;

use throughline_recall::conformance;
use throughline_recall::conformance::IndexFixture;

fn run(case: fn(&mut IndexFixture)) {
    let (_folder, mut fixture) = common::empty_index();
    case(&mut fixture);
}

conformance!(run);
