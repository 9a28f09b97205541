//! What can be wrong with a fact.

use throughline_model::Seq;
use throughline_store::ErrorKind;

/// What can be wrong with a fact.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// It says nothing.
    #[error("there is nothing in it to remember")]
    Empty,
    /// It is no fact but a document.
    #[error("a fact has at most {max} characters, and this has {chars}")]
    TooLong {
        /// What it has.
        chars: usize,
        /// What it may have.
        max: usize,
    },
    /// It holds what nobody should remember. What it is is not repeated.
    #[error("this looks like {0}, and a memory is no place for secrets")]
    Secret(&'static str),
    /// There is none of this number.
    #[error("there is no fact {seq} in {of}")]
    NoSuchFact {
        /// The number.
        seq: Seq,
        /// Where it was looked for.
        of: String,
    },
    /// A newer one has replaced it.
    #[error("fact {seq} was replaced by fact {by}")]
    Superseded {
        /// The number.
        seq: Seq,
        /// The newer one's.
        by: Seq,
    },
    /// It was forgotten.
    #[error("fact {0} was forgotten")]
    Forgotten(Seq),
    /// It is for every project already.
    #[error("fact {0} is owner-wide already")]
    OwnerWide(Seq),
}

impl MemoryError {
    /// What kind of failure this is.
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
