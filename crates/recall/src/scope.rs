//! Where to look.
//!
//! Invariant: a scope has exactly one owner, and nothing of another's is ever answered.

use throughline_model::{Owner, Role, Seq, SessionId, Timestamp};

use crate::casefold::casefold;

/// A session, or its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRange {
    /// The session.
    pub session: SessionId,
    /// Up to this entry [default: all of it].
    pub to: Option<Seq>,
}

/// Where to look: whose passages, and which of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Whose.
    pub owner: Owner,
    /// Only within these. `None` is everywhere, an empty list is nowhere.
    pub sessions: Option<Vec<SessionRange>>,
    /// Not in these.
    pub except: Vec<SessionId>,
    /// Only by these roles; none means any.
    pub roles: Vec<Role>,
    /// Only by authors with one of these names, or with one of these words in their name,
    /// whatever the case; none means any.
    pub authors: Vec<String>,
    /// Not earlier than this.
    pub after: Option<Timestamp>,
    /// Earlier than this.
    pub before: Option<Timestamp>,
    /// Only about files whose path contains one of these; none means any.
    pub files: Vec<String>,
}

impl Scope {
    /// Whether it leaves nothing out but whole sessions.
    pub fn is_unfiltered(&self) -> bool {
        self.sessions.is_none()
            && self.roles.is_empty()
            && self.authors.is_empty()
            && self.after.is_none()
            && self.before.is_none()
            && self.files.is_empty()
    }

    /// The authors, as a [`Document`](crate::Document) has them.
    pub fn author_keys(&self) -> Vec<String> {
        let keys = self.authors.iter().map(|author| casefold(author.trim()));
        keys.collect()
    }

    /// The parts of paths, as a [`Document`](crate::Document) has them.
    pub fn file_keys(&self) -> Vec<String> {
        self.files.iter().map(|file| casefold(file)).collect()
    }

    /// Everything of an owner's.
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
