//! The index in a folder passes the suite.

mod common;

use throughline_recall::conformance;
use throughline_recall::conformance::IndexFixture;

fn run(case: fn(&mut IndexFixture)) {
    let (_folder, mut fed) = common::empty_index();
    case(&mut fed);
}

conformance!(run);
