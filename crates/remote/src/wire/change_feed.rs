//! What happened, to one owner. Positions are the store's.

use serde::{Deserialize, Serialize};
use throughline_store::{Change, Position};

use super::Call;

/// The position of the last change in the store, whoever's it is.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastPosition {}

impl Call for LastPosition {
    const NAME: &'static str = "last_position";
    type Answer = Position;
}

/// The owner's changes after a position, oldest first.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadChanges {
    /// After what.
    pub after: Position,
    /// At most so many.
    pub limit: usize,
}

impl Call for ReadChanges {
    const NAME: &'static str = "changes";
    type Answer = ChangesPage;
}

/// Some of what happened.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChangesPage {
    /// What.
    pub changes: Vec<Change>,
    /// Whether there may be more before the limit that was asked for.
    pub more: bool,
}

/// Waits a while for something of the owner's to happen after a position; tells whether it
/// did.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitForChange {
    /// After what.
    pub after: Position,
}

impl Call for WaitForChange {
    const NAME: &'static str = "changed";
    type Answer = bool;
}
