//! An index in a folder of its own, and passages to feed it.

#![allow(dead_code, reason = "not every test needs all of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[cfg(feature = "contextual")]
pub(crate) mod small;

use tempfile::TempDir;
use throughline_model::{Owner, Role, Seq, SessionId, Timestamp};
use throughline_recall::{Batch, Feeder, Found, Index, Passage, Query, Removal, Scope};

pub(crate) fn owner(name: &str) -> Owner {
    name.parse().unwrap()
}

pub(crate) fn session(id: &str) -> SessionId {
    id.parse().unwrap()
}

/// An entry of `local`'s.
pub(crate) fn passage(id: &str, seq: u64, text: &str) -> Passage {
    Passage {
        position: 0,
        owner: Owner::local(),
        session: session(id),
        seq: Seq(seq),
        role: if seq % 2 == 1 {
            Role::User
        } else {
            Role::Assistant
        },
        author: None,
        at: "2026-11-15T09:00:00Z".parse().unwrap(),
        text: text.to_owned(),
        files: Vec::new(),
        external_id: None,
        origin: None,
    }
}

/// A session in which these things are said.
pub(crate) fn said(id: &str, texts: &[&str]) -> Vec<Passage> {
    let all = (1..).zip(texts);
    all.map(|(seq, text)| passage(id, seq, text)).collect()
}

pub(crate) fn at(time: &str) -> Timestamp {
    time.parse().unwrap()
}

/// An index, and the one who feeds it.
pub(crate) struct Fed {
    pub(crate) folder: TempDir,
    pub(crate) index: Index,
    pub(crate) feeder: Feeder,
    position: u64,
}

impl Fed {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let index = Index::open(folder.path()).unwrap();
        let feeder = index.feeder().unwrap().unwrap();
        Self {
            folder,
            index,
            feeder,
            position: 0,
        }
    }

    /// An index of one session.
    pub(crate) fn with(texts: &[&str]) -> Self {
        let mut fed = Self::new();
        fed.feed(said("s", texts));
        fed
    }

    pub(crate) fn feed(&mut self, mut passages: Vec<Passage>) {
        for passage in &mut passages {
            self.position += 1;
            passage.position = self.position;
        }
        let upto = self.position;
        let removed = Vec::new();
        let batch = Batch {
            passages,
            removed,
            upto,
        };
        self.feeder.feed(batch).unwrap();
    }

    pub(crate) fn remove(&mut self, id: &str, seq: Option<u64>) {
        self.position += 1;
        let removal = Removal {
            owner: Owner::local(),
            session: session(id),
            seq: seq.map(Seq),
        };
        let batch = Batch {
            passages: Vec::new(),
            removed: vec![removal],
            upto: self.position,
        };
        self.feeder.feed(batch).unwrap();
    }

    pub(crate) fn search(&self, query: &Query) -> Found {
        self.index.search(query).unwrap()
    }

    /// What is found for some words, as `session/seq`.
    pub(crate) fn find(&self, words: &str) -> Vec<String> {
        places(&self.search(&everywhere(words)))
    }

    /// The same, by words only.
    pub(crate) fn find_text(&self, words: &str) -> Vec<String> {
        places(&self.search(&text(words)))
    }
}

pub(crate) fn everywhere(words: &str) -> Query {
    Query::new(words, Scope::new(Owner::local()))
}

pub(crate) fn text(words: &str) -> Query {
    Query {
        mode: throughline_recall::Mode::Text,
        ..everywhere(words)
    }
}

pub(crate) fn places(found: &Found) -> Vec<String> {
    let hits = found.hits.iter();
    hits.map(|hit| format!("{}/{}", hit.session, hit.seq))
        .collect()
}
