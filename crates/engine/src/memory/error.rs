//! The errors of memory operations.

use throughline_model::Seq;
use throughline_store::ErrorKind;

/// An error of a memory operation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The text is empty.
    #[error("the fact is empty")]
    Empty,
    /// The text is too long for a fact.
    #[error("a fact has at most {max} characters, and this has {chars}")]
    TooLong {
        /// The length of the text.
        chars: usize,
        /// The maximum length.
        max: usize,
    },
    /// The text contains a secret, which is not repeated in the message.
    #[error("this looks like {0}; secrets are not stored in memory")]
    Secret(&'static str),
    /// There is no fact with this number.
    #[error("there is no fact {seq} in {of}")]
    NoSuchFact {
        /// The number.
        seq: Seq,
        /// The memory that was searched.
        of: String,
    },
    /// A newer fact has replaced it.
    #[error("fact {seq} was replaced by fact {by}")]
    Superseded {
        /// The number of the fact.
        seq: Seq,
        /// The number of the newer fact.
        by: Seq,
    },
    /// The fact was forgotten.
    #[error("fact {0} was forgotten")]
    Forgotten(Seq),
    /// The fact is owner-wide already.
    #[error("fact {0} is owner-wide already")]
    OwnerWide(Seq),
}

impl MemoryError {
    /// Returns the kind of the failure.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoSuchFact { .. } => ErrorKind::NotFound,
            Self::Superseded { .. } | Self::Forgotten(_) => ErrorKind::Conflict,
            Self::Empty | Self::TooLong { .. } | Self::Secret(_) | Self::OwnerWide(_) => {
                ErrorKind::Invalid
            }
        }
    }
}
