//! Directory entries: which are durable, and which changes a power cut may undo.
//!
//! A change (a new name, a removal, a rename) is atomic. It is durable once its folder is
//! synced, together with earlier changes of the same names.

use std::collections::BTreeMap;

pub(crate) type NodeId = usize;
pub(crate) type DirEntries = BTreeMap<String, NodeId>;

/// A change of names that may be lost.
#[derive(Clone, Debug)]
pub(crate) struct NameChange {
    pub(crate) step: usize,
    /// The folder, the name, and the node it refers to afterwards.
    pub(crate) sets: Vec<(NodeId, String, Option<NodeId>)>,
}

impl NameChange {
    fn is_in(&self, folder: NodeId) -> bool {
        self.sets.iter().any(|(of, ..)| *of == folder)
    }

    fn shares_name_with(&self, other: &Self) -> bool {
        let same = |name: &(NodeId, String, _)| {
            let mut others = other.sets.iter();
            others.any(|(folder, other, _)| (folder, other) == (&name.0, &name.1))
        };
        self.sets.iter().any(same)
    }

    pub(crate) fn apply(&self, folders: &mut BTreeMap<NodeId, DirEntries>) {
        for (folder, name, node) in &self.sets {
            let names = folders.entry(*folder).or_default();
            match node {
                Some(node) => names.insert(name.clone(), *node),
                None => names.remove(name),
            };
        }
    }
}

/// The directory entries of all folders.
#[derive(Clone, Debug, Default)]
pub(crate) struct Folders {
    /// The entries as running programs see them.
    pub(crate) live: BTreeMap<NodeId, DirEntries>,
    durable: BTreeMap<NodeId, DirEntries>,
    pub(crate) unsynced: Vec<NameChange>,
}

impl Folders {
    /// Adds an empty folder.
    pub(crate) fn add(&mut self, folder: NodeId) {
        self.live.entry(folder).or_default();
        self.durable.entry(folder).or_default();
    }

    /// Adds a durable name.
    pub(crate) fn add_durable(&mut self, folder: NodeId, name: String, node: NodeId) {
        let names = self.live.entry(folder).or_default();
        names.insert(name.clone(), node);
        self.durable.entry(folder).or_default().insert(name, node);
    }

    pub(crate) fn change(&mut self, change: NameChange) {
        change.apply(&mut self.live);
        self.unsynced.push(change);
    }

    /// Makes the changes in a folder durable, and those they depend on.
    pub(crate) fn sync(&mut self, folder: NodeId) {
        let mut settled: Vec<bool> = self.unsynced.iter().map(|c| c.is_in(folder)).collect();
        for later in (0..settled.len()).rev() {
            let (before, rest) = settled.split_at_mut(later);
            if rest[0] {
                for (earlier, settled) in before.iter_mut().enumerate() {
                    *settled |= self.unsynced[earlier].shares_name_with(&self.unsynced[later]);
                }
            }
        }
        for (change, settled) in std::mem::take(&mut self.unsynced).into_iter().zip(settled) {
            if settled {
                change.apply(&mut self.durable);
            } else {
                self.unsynced.push(change);
            }
        }
    }

    /// Makes all changes durable.
    pub(crate) fn sync_all(&mut self) {
        for change in std::mem::take(&mut self.unsynced) {
            change.apply(&mut self.durable);
        }
    }

    /// Returns the entries after a loss: a change survives if it is selected and those it
    /// depends on survive.
    pub(crate) fn after_loss(
        &self,
        mut is_wanted: impl FnMut(&NameChange) -> bool,
    ) -> BTreeMap<NodeId, DirEntries> {
        let mut names = self.durable.clone();
        let mut lost: Vec<&NameChange> = Vec::new();
        for change in &self.unsynced {
            let is_possible = !lost.iter().any(|lost| lost.shares_name_with(change));
            if is_possible && is_wanted(change) {
                change.apply(&mut names);
            } else {
                lost.push(change);
            }
        }
        names
    }
}
