//! The facts of a memory, folded from its log.
//!
//! Invariant: a fact, once remembered, is never removed from here. Superseding or
//! forgetting it only changes whether it is in effect.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;

use crate::{Body, Entry, FactSource, PERSON, RememberedFact, Seq, SessionId, Timestamp};

/// A remembered fact and its current status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// The entry that holds it; its number identifies the fact.
    pub seq: Seq,
    /// The fact.
    pub text: String,
    /// The entry it was taken from.
    pub source: Option<FactSource>,
    /// Who wrote it: [`PERSON`], a model's name, or `extractive`.
    pub by: String,
    /// When it was remembered.
    pub at: Timestamp,
    /// The author, where several people share the memory.
    pub author: Option<String>,
    /// Files and folders it applies to.
    pub files: Vec<String>,
    /// Older facts it replaces.
    pub supersedes: Vec<Seq>,
    /// Whether it is a proposal that has not been accepted yet.
    pub proposed: bool,
    /// The newer fact that replaced it.
    pub superseded_by: Option<Seq>,
    /// Whether it was forgotten.
    pub forgotten: bool,
    /// The number of sessions that used it.
    pub uses: u64,
    /// When it was last used.
    pub last_used: Option<Timestamp>,
}

impl Fact {
    fn new(entry: &Entry, remembered: &RememberedFact) -> Self {
        Self {
            seq: entry.seq,
            text: remembered.text.clone(),
            source: remembered.source.clone(),
            by: remembered.by.clone(),
            at: entry.at,
            author: entry.author.clone(),
            files: remembered.files.clone(),
            supersedes: remembered.supersedes.clone(),
            proposed: remembered.proposed,
            superseded_by: None,
            forgotten: false,
            uses: 0,
            last_used: None,
        }
    }

    /// Whether it is neither superseded nor forgotten.
    pub fn is_current(&self) -> bool {
        self.superseded_by.is_none() && !self.forgotten
    }

    /// Whether it is in effect: current, and not just proposed.
    pub fn is_in_effect(&self) -> bool {
        self.is_current() && !self.proposed
    }

    /// Whether a person wrote it.
    pub fn is_by_person(&self) -> bool {
        self.by == PERSON
    }

    /// Whether any of the paths is one of its files or inside one of its folders. All
    /// paths are relative to the project root.
    pub fn matches_paths(&self, paths: &[String]) -> bool {
        let touched = |file: &String| paths.iter().any(|path| path_contains(file, path));
        self.files.iter().any(touched)
    }

    /// Whether any of its files or folders equals, contains or is inside any of the
    /// paths.
    pub fn is_related_to(&self, paths: &[String]) -> bool {
        let inside = |file: &String| paths.iter().any(|path| path_contains(path, file));
        self.matches_paths(paths) || self.files.iter().any(inside)
    }

    /// When it was last used, or else remembered.
    pub fn last_relevant_at(&self) -> Timestamp {
        self.last_used.map_or(self.at, |used| used.max(self.at))
    }
}

/// Whether `path` is this file, or inside this folder.
fn path_contains(file: &str, path: &str) -> bool {
    let file = file.trim_end_matches('/');
    match path.strip_prefix(file) {
        Some(rest) => rest.is_empty() || rest.starts_with('/'),
        None => file == ".",
    }
}

/// All facts of a memory, whether or not they are in effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    facts: BTreeMap<Seq, Fact>,
    used_in: HashSet<(Seq, SessionId)>,
    head: Seq,
}

impl Facts {
    /// Folds the log of a memory.
    pub fn fold<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut facts = Self::default();
        for entry in entries {
            facts.apply(entry);
        }
        facts
    }

    /// Applies the next entry.
    pub fn apply(&mut self, entry: &Entry) {
        self.head = entry.seq;
        match &entry.body {
            Body::Remembered(remembered) => {
                self.facts.insert(entry.seq, Fact::new(entry, remembered));
                if !remembered.proposed {
                    self.supersede(entry.seq);
                }
            }
            Body::Accepted { fact: seq } => {
                let waiting = |fact: &&mut Fact| fact.proposed && fact.is_current();
                if let Some(fact) = self.facts.get_mut(seq).filter(waiting) {
                    fact.proposed = false;
                    self.supersede(*seq);
                }
            }
            Body::Forgotten { fact, .. } => {
                if let Some(fact) = self.facts.get_mut(fact) {
                    fact.forgotten = true;
                }
            }
            Body::Used { facts, session } => {
                for seq in facts {
                    self.record_use(*seq, session, entry.at);
                }
            }
            _ => {}
        }
    }

    fn supersede(&mut self, by: Seq) {
        let older = self.facts.get(&by).map(|fact| fact.supersedes.clone());
        for seq in older.unwrap_or_default() {
            if let Some(fact) = self.facts.get_mut(&seq).filter(|fact| fact.seq < by) {
                fact.superseded_by = Some(by);
            }
        }
    }

    fn record_use(&mut self, seq: Seq, session: &SessionId, at: Timestamp) {
        if let Some(fact) = self.facts.get_mut(&seq) {
            // Repeated use within one session counts once.
            if self.used_in.insert((seq, session.clone())) {
                fact.uses += 1;
            }
            fact.last_used = fact.last_used.max(Some(at));
        }
    }

    /// The last entry applied.
    pub fn head(&self) -> Seq {
        self.head
    }

    /// The fact with this number.
    pub fn get(&self, seq: Seq) -> Option<&Fact> {
        self.facts.get(&seq)
    }

    /// All facts, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Fact> {
        self.facts.values()
    }

    /// The facts in effect, oldest first.
    pub fn iter_in_effect(&self) -> impl Iterator<Item = &Fact> {
        self.iter().filter(|fact| fact.is_in_effect())
    }

    /// Whether a session has used the fact.
    pub fn was_used_in(&self, seq: Seq, session: &SessionId) -> bool {
        self.used_in.contains(&(seq, session.clone()))
    }

    /// The fact with everything it replaced and everything that replaced it, oldest
    /// first.
    pub fn history(&self, of: Seq) -> Vec<Seq> {
        let mut story: Vec<Seq> = self
            .facts
            .contains_key(&of)
            .then_some(of)
            .into_iter()
            .collect();
        let mut next = 0;
        while let Some(fact) = story.get(next).and_then(|seq| self.facts.get(seq)) {
            next += 1;
            let replaced = self
                .facts
                .values()
                .filter(|other| other.superseded_by == Some(fact.seq));
            let related = replaced.map(|other| other.seq).chain(fact.superseded_by);
            let new: Vec<Seq> = related.filter(|seq| !story.contains(seq)).collect();
            story.extend(new);
        }
        story.sort_unstable();
        story
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Digest, EntryId};

    fn log(bodies: Vec<Body>) -> Vec<Entry> {
        let number = |(index, body)| Entry {
            seq: Seq(index as u64 + 1),
            id: EntryId::derive(&[]),
            at: Timestamp::from_second(1_000 + i64::try_from(index).unwrap()).unwrap(),
            external_id: None,
            author: None,
            rebased: None,
            body,
            digest: Digest::of(b""),
        };
        bodies.into_iter().enumerate().map(number).collect()
    }

    fn remembered(text: &str, supersedes: &[u64], proposed: bool) -> Body {
        Body::Remembered(Box::new(RememberedFact {
            text: text.into(),
            source: None,
            by: PERSON.into(),
            files: Vec::new(),
            supersedes: supersedes.iter().copied().map(Seq).collect(),
            proposed,
        }))
    }

    fn used(facts: &[u64], session: &str) -> Body {
        Body::Used {
            facts: facts.iter().copied().map(Seq).collect(),
            session: session.parse().unwrap(),
        }
    }

    fn any_body() -> impl Strategy<Value = Body> {
        let fact = || (1..20_u64).prop_map(Seq);
        prop_oneof![
            4 => ("[a-c ]{1,6}", prop::collection::vec(1..20_u64, 0..3), any::<bool>())
                .prop_map(|(text, older, proposed)| remembered(&text, &older, proposed)),
            2 => fact().prop_map(|fact| Body::Accepted { fact }),
            2 => fact().prop_map(|fact| Body::Forgotten { fact, reason: None }),
            2 => (prop::collection::vec(1..20_u64, 0..3), "[a-b]")
                .prop_map(|(facts, session)| used(&facts, &session)),
            1 => Just(Body::Cleared),
            1 => Just(Body::Rewound { to: Seq(1) }),
        ]
    }

    proptest! {
        #[test]
        fn nothing_remembered_is_ever_lost(bodies in prop::collection::vec(any_body(), 0..30)) {
            let entries = log(bodies);
            let facts = Facts::fold(&entries);
            let texts = |entry: &Entry| match &entry.body {
                Body::Remembered(remembered) => Some(remembered.text.clone()),
                _ => None,
            };
            let expected: Vec<String> = entries.iter().filter_map(texts).collect();
            let folded: Vec<String> = facts.iter().map(|fact| fact.text.clone()).collect();
            prop_assert_eq!(expected, folded);
        }

        #[test]
        fn folding_in_parts_is_folding_the_whole(
            bodies in prop::collection::vec(any_body(), 0..30),
            cut in 0..30_usize,
        ) {
            let entries = log(bodies);
            let cut = cut.min(entries.len());
            let mut parts = Facts::fold(&entries[..cut]);
            entries[cut..].iter().for_each(|entry| parts.apply(entry));
            prop_assert_eq!(&parts, &Facts::fold(&entries));
            prop_assert_eq!(Facts::fold(&entries), Facts::fold(&entries));
        }

        #[test]
        fn a_fact_is_superseded_only_by_a_later_one_in_effect(
            bodies in prop::collection::vec(any_body(), 0..30),
        ) {
            let facts = Facts::fold(&log(bodies));
            for fact in facts.iter() {
                if let Some(by) = fact.superseded_by {
                    prop_assert!(by > fact.seq);
                    prop_assert!(!facts.get(by).unwrap().proposed);
                }
                prop_assert!(facts.history(fact.seq).contains(&fact.seq));
            }
        }
    }

    #[test]
    fn a_proposal_supersedes_nothing_until_it_is_accepted() {
        let mut bodies = vec![
            remembered("the port is 80", &[], false),
            remembered("the port is 81", &[1], true),
        ];
        let facts = Facts::fold(&log(bodies.clone()));
        assert!(facts.get(Seq(1)).unwrap().is_in_effect());
        assert!(!facts.get(Seq(2)).unwrap().is_in_effect());

        bodies.push(Body::Accepted { fact: Seq(2) });
        let facts = Facts::fold(&log(bodies));
        assert_eq!(facts.get(Seq(1)).unwrap().superseded_by, Some(Seq(2)));
        assert!(facts.get(Seq(2)).unwrap().is_in_effect());
        assert_eq!(facts.history(Seq(1)), [Seq(1), Seq(2)]);
    }

    #[test]
    fn a_proposal_that_was_turned_down_cannot_be_accepted() {
        let facts = Facts::fold(&log(vec![
            remembered("a", &[], true),
            Body::Forgotten {
                fact: Seq(1),
                reason: None,
            },
            Body::Accepted { fact: Seq(1) },
        ]));
        assert!(facts.get(Seq(1)).unwrap().proposed);
    }

    #[test]
    fn a_folder_covers_what_is_in_it_and_nothing_beside_it() {
        assert!(path_contains("src/auth", "src/auth"));
        assert!(path_contains("src/auth", "src/auth/token.rs"));
        assert!(path_contains("src/auth/", "src/auth/token.rs"));
        assert!(path_contains(".", "anything"));
        assert!(!path_contains("src/auth", "src/author.rs"));
        assert!(!path_contains("src/auth/token.rs", "src/auth"));
    }

    #[test]
    fn one_session_is_one_use() {
        let facts = Facts::fold(&log(vec![
            remembered("a", &[], false),
            used(&[1], "s1"),
            used(&[1, 9], "s1"),
            used(&[1], "s2"),
        ]));
        let fact = facts.get(Seq(1)).unwrap();
        assert_eq!(fact.uses, 2);
        assert_eq!(fact.last_used, Some(Timestamp::from_second(1_003).unwrap()));
        assert!(facts.was_used_in(Seq(1), &"s2".parse().unwrap()));
    }
}
