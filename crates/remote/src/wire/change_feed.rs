//! Calls of the change feed of one owner; positions are those of the whole store.

use serde::{Deserialize, Serialize};
use throughline_store::{Change, Position};

use super::Call;

/// Gets the position of the last change in the store, of any owner.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastPosition {}

impl Call for LastPosition {
    const NAME: &'static str = "last_position";
    type Answer = Position;
}

/// Reads the owner's changes after a position, oldest first.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadChanges {
    /// The position to read after.
    pub after: Position,
    /// Maximum number of changes.
    pub limit: usize,
}

impl Call for ReadChanges {
    const NAME: &'static str = "changes";
    type Answer = ChangesPage;
}

/// A page of changes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChangesPage {
    /// The changes.
    pub changes: Vec<Change>,
    /// Whether there may be more within the requested limit.
    pub more: bool,
}

/// Waits a while for a change of the owner's after a position; returns whether there was one.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitForChange {
    /// The position to wait after.
    pub after: Position,
}

impl Call for WaitForChange {
    const NAME: &'static str = "changed";
    type Answer = bool;
}
