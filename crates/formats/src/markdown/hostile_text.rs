//! A test strategy for text that resembles the transcript's structure.

use proptest::prelude::*;
use throughline_model::{SUMMARY_END, SUMMARY_START};

/// Generates text that consists mostly of structural elements.
pub(super) fn hostile_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("\n".to_owned()),
        Just("\\".to_owned()),
        Just(" ".to_owned()),
        Just("<!".to_owned()),
        Just("-- SESSION_SUMMARY_".to_owned()),
        Just(SUMMARY_START.to_owned()),
        Just(SUMMARY_END.to_owned()),
        Just("## Query 7 (10:00:00)".to_owned()),
        Just("## Checkpoint (10:00:00)".to_owned()),
        Just("**Sally:**".to_owned()),
        Just("**You:** hello".to_owned()),
        Just("*Time: 1.0s*".to_owned()),
        Just("*Tokens: 5 (in: 2, out: 3)*".to_owned()),
        Just("*10:00:00 Pinned: x*".to_owned()),
        Just("> **System:**".to_owned()),
        Just("---".to_owned()),
        Just("```".to_owned()),
        "[a-z:*é]{1,4}",
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}
