//! The lineage tree of a session: its ancestors and everything forked or continued from
//! them.

use std::collections::HashSet;

use throughline_model::{SessionId, SessionInfo};
use throughline_store::{ReadRange, SessionFilter};

use crate::throughline::find_record;
use crate::{Error, Session, Throughline};

/// A session and its descendants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionTree {
    /// The session.
    pub info: SessionInfo,
    /// Whether all of its entries are in the session it was forked from.
    pub merged: bool,
    /// The sessions forked or continued from it, oldest first.
    pub children: Vec<SessionTree>,
}

impl Session {
    /// Returns the tree that contains this session, starting at its oldest ancestor
    /// that still exists.
    pub async fn tree(&self) -> Result<SessionTree, Error> {
        let mut info = self.record().await?.info;
        let mut seen = HashSet::from([info.id.clone()]);
        while let Some(parent) = info.lineage.parent().cloned() {
            match find_record(&self.tl, &parent).await? {
                Some(record) if seen.insert(parent) => info = record.info,
                _ => break,
            }
        }
        self.tl.load_descendants(info).await
    }
}

impl Throughline {
    async fn load_descendants(&self, root: SessionInfo) -> Result<SessionTree, Error> {
        // Iterative: a chain of continuations may have thousands of sessions.
        let mut seen = HashSet::from([root.id.clone()]);
        let mut nodes = vec![(root, None::<usize>, false)];
        let mut next = 0;
        while next < nodes.len() {
            let parent = nodes[next].0.clone();
            let filter = SessionFilter {
                parent: Some(parent.id.clone()),
                ..SessionFilter::default()
            };
            let mut children = self.list_all(&filter).await?;
            children.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
            for child in children {
                if seen.insert(child.id.clone()) {
                    let merged = self.is_merged(&parent.id, &child).await?;
                    nodes.push((child, Some(next), merged));
                }
            }
            next += 1;
        }
        Ok(assemble(nodes))
    }

    async fn is_merged(&self, into: &SessionId, child: &SessionInfo) -> Result<bool, Error> {
        let at = match &child.lineage {
            throughline_model::Lineage::Forked { at, .. } if *at < child.head => child.head,
            _ => return Ok(false),
        };
        let same = self
            .handle(into)
            .read_stored(ReadRange::between(at, at, 1))
            .await?;
        Ok(same
            .first()
            .is_some_and(|stored| stored.digest == child.digest))
    }
}

/// Moves children into their parents. Parents come before their children in `nodes`.
fn assemble(nodes: Vec<(SessionInfo, Option<usize>, bool)>) -> SessionTree {
    let mut trees: Vec<Option<SessionTree>> = Vec::new();
    let mut parents = Vec::new();
    for (info, parent, merged) in nodes {
        parents.push(parent);
        trees.push(Some(SessionTree {
            info,
            merged,
            children: Vec::new(),
        }));
    }
    for index in (1..trees.len()).rev() {
        let child = trees[index].take();
        let parent = parents[index].and_then(|parent| trees[parent].as_mut());
        if let (Some(child), Some(parent)) = (child, parent) {
            parent.children.insert(0, child);
        }
    }
    trees
        .swap_remove(0)
        .unwrap_or_else(|| unreachable!("the root has no parent"))
}
