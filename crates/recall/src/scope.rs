//! Restricts a search to an owner, sessions, authors, dates and files.
//!
//! Invariant: a scope has exactly one owner, and nothing of another owner is ever returned.

use throughline_model::{Owner, Role, Seq, SessionId, Timestamp};

use crate::casefold::casefold;

/// A session, or a prefix of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRange {
    /// The session.
    pub session: SessionId,
    /// The last entry to include [default: the whole session].
    pub to: Option<Seq>,
}

/// The passages a search may return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The owner whose passages are searched.
    pub owner: Owner,
    /// Only these sessions. `None` means all sessions, an empty list none.
    pub sessions: Option<Vec<SessionRange>>,
    /// Sessions to leave out.
    pub except: Vec<SessionId>,
    /// Only these roles; an empty list means any.
    pub roles: Vec<Role>,
    /// Only authors with one of these names, or with one of these words in their name,
    /// regardless of case; an empty list means any.
    pub authors: Vec<String>,
    /// Not before this time.
    pub after: Option<Timestamp>,
    /// Before this time.
    pub before: Option<Timestamp>,
    /// Only passages about files whose path contains one of these; an empty list means any.
    pub files: Vec<String>,
}

impl Scope {
    /// Returns whether it filters nothing but whole sessions.
    pub fn is_unfiltered(&self) -> bool {
        self.sessions.is_none()
            && self.roles.is_empty()
            && self.authors.is_empty()
            && self.after.is_none()
            && self.before.is_none()
            && self.files.is_empty()
    }

    /// Returns the authors in the form a [`Document`](crate::Document) stores them.
    pub fn author_keys(&self) -> Vec<String> {
        let keys = self.authors.iter().map(|author| casefold(author.trim()));
        keys.collect()
    }

    /// Returns the path fragments in the form a [`Document`](crate::Document) stores them.
    pub fn file_keys(&self) -> Vec<String> {
        self.files.iter().map(|file| casefold(file)).collect()
    }

    /// Creates a scope over everything of an owner.
    pub fn new(owner: Owner) -> Self {
        Self {
            owner,
            sessions: None,
            except: Vec::new(),
            roles: Vec::new(),
            authors: Vec::new(),
            after: None,
            before: None,
            files: Vec::new(),
        }
    }
}
