//! The index in a folder passes the suite.

mod common;

use throughline_recall::conformance;
use throughline_recall::conformance::Fed;

fn run(case: fn(&mut Fed)) {
    let (_folder, mut fed) = common::empty();
    case(&mut fed);
}

conformance!(run);
