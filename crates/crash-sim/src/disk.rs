//! A simulated disk that replays a trace.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::dir_entries::{DirEntries, Folders, NameChange, NodeId};
use crate::file::File;
use crate::power_cut::NameLoss;
use crate::{CrashSimError, DiskState, Loss, Operation, PowerCut, Record, Trace};

/// When a name becomes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurabilityModel {
    /// Once its folder is synced, as in POSIX. Changes of different names are lost
    /// independently.
    Posix,
    /// Once anything is synced after it: all changes of names are in one journal, in order.
    Ext4,
}

/// A disk: its durable state, and the changes that are not durable yet.
#[derive(Clone, Debug)]
pub struct Disk {
    root: PathBuf,
    model: DurabilityModel,
    folders: Folders,
    files: BTreeMap<NodeId, File>,
    inodes: HashMap<u64, NodeId>,
    next_node: NodeId,
    step: usize,
}

const ROOT: NodeId = 0;

impl Disk {
    /// Creates a disk from the current content of a folder, all of it durable.
    pub fn read(root: &Path, model: DurabilityModel) -> Result<Self, CrashSimError> {
        let root = root.canonicalize().map_err(CrashSimError::io(root))?;
        let mut disk = Self {
            root: root.clone(),
            model,
            folders: Folders::default(),
            files: BTreeMap::new(),
            inodes: HashMap::new(),
            next_node: ROOT + 1,
            step: 0,
        };
        disk.folders.add(ROOT);
        disk.read_below(&root, ROOT)?;
        Ok(disk)
    }

    fn read_below(&mut self, path: &Path, node: NodeId) -> Result<(), CrashSimError> {
        let inode = path.metadata().map_err(CrashSimError::io(path))?.ino();
        self.inodes.insert(inode, node);
        if !path.is_dir() {
            let bytes = std::fs::read(path).map_err(CrashSimError::io(path))?;
            self.files.insert(node, File::new(bytes));
            return Ok(());
        }
        self.folders.add(node);
        for entry in std::fs::read_dir(path).map_err(CrashSimError::io(path))? {
            let child = entry.map_err(CrashSimError::io(path))?.path();
            let name = child.file_name().unwrap_or_default().to_string_lossy();
            let child_node = self.new_node();
            self.folders
                .add_durable(node, name.into_owned(), child_node);
            self.read_below(&child, child_node)?;
        }
        Ok(())
    }

    /// Replays a trace from here on, and calls back with the state after each power cut.
    /// States that are the same, with the same acknowledgements before them, are passed once.
    ///
    /// Returns the number of states.
    pub fn simulate(
        mut self,
        trace: &Trace,
        cuts: &[PowerCut],
        mut check: impl FnMut(&PowerCut, &DiskState),
    ) -> Result<usize, CrashSimError> {
        let mut cuts: Vec<&PowerCut> = cuts.iter().collect();
        cuts.sort_by_key(|cut| cut.after);
        let mut seen = std::collections::HashSet::new();
        let mut acks = 0;
        for cut in cuts {
            while self.step < cut.after {
                let record = &trace.records[self.step];
                acks += usize::from(matches!(record.operation, Operation::Ack { .. }));
                self.apply(record)?;
            }
            let state = self.after_loss(&cut.loss);
            if seen.insert((acks, state.fingerprint())) {
                check(cut, &state);
            }
        }
        Ok(seen.len())
    }

    /// Applies one record.
    pub fn apply(&mut self, record: &Record) -> Result<(), CrashSimError> {
        let step = self.step;
        let unsupported = |what: &str| CrashSimError::Unsupported {
            number: step,
            what: format!("{what}: {record}"),
        };
        let unknown = || unsupported("this file or folder was never created");
        self.step += 1;
        match &record.operation {
            Operation::Ack { .. } | Operation::Exit { .. } | Operation::Failed => {}
            Operation::Unsupported => return Err(unsupported("not modelled")),
            Operation::SyncAll => {
                self.files.values_mut().for_each(File::sync);
                self.folders.sync_all();
            }
            Operation::Create { truncate } => {
                let (folder, name) = self.locate(&record.path).ok_or_else(unknown)?;
                match self.folders.live[&folder].get(&name) {
                    Some(node) => {
                        let node = *node;
                        let is_same = self.inodes.get(&record.inode) == Some(&node);
                        if !is_same {
                            return Err(unsupported("another file is there"));
                        }
                        if *truncate && let Some(file) = self.files.get_mut(&node) {
                            file.set_length(step, 0);
                        }
                    }
                    None => {
                        let node = self.new_node();
                        self.inodes.insert(record.inode, node);
                        self.files.insert(node, File::new(Vec::new()));
                        self.set_names(vec![(folder, name, Some(node))]);
                    }
                }
            }
            Operation::Mkdir => {
                let (folder, name) = self.locate(&record.path).ok_or_else(unknown)?;
                let node = self.new_node();
                self.inodes.insert(record.inode, node);
                self.folders.add(node);
                self.set_names(vec![(folder, name, Some(node))]);
            }
            Operation::Unlink | Operation::Rmdir => {
                let (folder, name) = self.locate(&record.path).ok_or_else(unknown)?;
                self.set_names(vec![(folder, name, None)]);
            }
            Operation::Rename { to } | Operation::Link { to } => {
                let (from_folder, from) = self.locate(&record.path).ok_or_else(unknown)?;
                let (to_folder, to) = self.locate(to).ok_or_else(unknown)?;
                let node = self.folders.live[&from_folder].get(&from);
                let node = *node.ok_or_else(unknown)?;
                let mut sets = vec![(to_folder, to, Some(node))];
                if matches!(record.operation, Operation::Rename { .. }) {
                    sets.insert(0, (from_folder, from, None));
                }
                self.set_names(sets);
            }
            Operation::Sync { failed } => {
                let node = *self.inodes.get(&record.inode).ok_or_else(unknown)?;
                match (self.files.get_mut(&node), failed) {
                    (Some(file), false) => file.sync(),
                    (Some(file), true) => file.fail_sync(),
                    (None, false) => self.folders.sync(node),
                    (None, true) => {}
                }
                if self.model == DurabilityModel::Ext4 && !failed {
                    self.folders.sync_all();
                }
            }
            Operation::Write { .. }
            | Operation::Truncate { .. }
            | Operation::Allocate { .. }
            | Operation::Map => {
                let node = self.inodes.get(&record.inode).ok_or_else(unknown)?;
                let file = self.files.get_mut(node).ok_or_else(unknown)?;
                let number = |n: &u64| usize::try_from(*n).unwrap_or(usize::MAX);
                match &record.operation {
                    Operation::Write { offset, data } => file.write(step, number(offset), data),
                    Operation::Truncate { length } => file.set_length(step, number(length)),
                    Operation::Allocate { length } => file.grow(step, number(length)),
                    _ => file.mapped = true,
                }
            }
        }
        Ok(())
    }

    fn new_node(&mut self) -> NodeId {
        self.next_node += 1;
        self.next_node - 1
    }

    fn set_names(&mut self, sets: Vec<(NodeId, String, Option<NodeId>)>) {
        let step = self.step - 1;
        self.folders.change(NameChange { step, sets });
    }

    /// Resolves a path to its folder and name.
    fn locate(&self, path: &str) -> Option<(NodeId, String)> {
        let below = Path::new(path).strip_prefix(&self.root).ok()?;
        let mut names: Vec<String> = Vec::new();
        for part in below.components() {
            match part {
                std::path::Component::Normal(name) => names.push(name.to_str()?.to_owned()),
                std::path::Component::ParentDir => drop(names.pop()?),
                _ => {}
            }
        }
        let name = names.pop()?;
        let mut folder = ROOT;
        for part in names {
            folder = *self.folders.live.get(&folder)?.get(&part)?;
        }
        self.folders
            .live
            .contains_key(&folder)
            .then_some((folder, name))
    }

    /// Returns the files whose content is unknown because they are mapped into memory, by
    /// their path below the root.
    pub fn mapped_files(&self) -> Vec<String> {
        let mut paths = Vec::new();
        visit_paths(&self.folders.live, ROOT, "", &mut |path, node| {
            if self.files.get(&node).is_some_and(|file| file.mapped) {
                paths.push(path);
            }
        });
        paths
    }

    /// Returns the state of the disk after a power cut now.
    pub fn after_loss(&self, loss: &Loss) -> DiskState {
        let mut rng = loss.rng();
        let content = self.files.values().flat_map(File::unsynced_steps);
        let names = self.folders.unsynced.iter().map(|change| change.step);
        let mut steps: Vec<usize> = content.chain(names).collect();
        steps.sort_unstable();
        steps.dedup();
        let losses = loss.plan(&steps, &mut rng);
        let name_loss = losses.draw_name_loss(self.model, &steps, &mut rng);
        let names = match name_loss {
            NameLoss::From(first) => self.folders.after_loss(|change| change.step < first),
            NameLoss::Independent => self.folders.after_loss(|_| !rng.one_in(2)),
        };
        let mut state = DiskState::default();
        visit_paths(&names, ROOT, "", &mut |path, node| {
            let content = self.files.get(&node).map(|file| {
                let file_loss = losses.draw_file_loss(&steps, &mut rng);
                let mut content = file.after_loss(&file_loss, &mut rng);
                if file.mapped && losses.is_random() && rng.one_in(2) {
                    let noise = |byte: &mut u8| *byte = rng.next_u64().to_le_bytes()[0];
                    content.iter_mut().for_each(noise);
                }
                content
            });
            state.entries.insert(path, content);
        });
        state
    }

    /// Returns how much may be lost: the number of files with unsynced content and of unsynced
    /// names.
    pub fn unsynced_count(&self) -> usize {
        let files = self.files.values();
        let dirty = files.filter(|file| file.unsynced_steps().next().is_some());
        dirty.count() + self.folders.unsynced.len()
    }

    /// Returns the length of a file, for messages.
    pub fn file_length(&self, path: &str) -> Option<usize> {
        let (folder, name) = self.locate(path)?;
        let node = self.folders.live.get(&folder)?.get(&name)?;
        Some(self.files.get(node)?.length())
    }
}

/// Visits every file and folder below a folder, parents before their content.
fn visit_paths(
    folders: &BTreeMap<NodeId, DirEntries>,
    folder: NodeId,
    prefix: &str,
    visit: &mut impl FnMut(String, NodeId),
) {
    for (name, node) in folders.get(&folder).into_iter().flatten() {
        let path = format!("{prefix}{name}");
        visit(path.clone(), *node);
        if folders.contains_key(node) {
            visit_paths(folders, *node, &format!("{path}/"), visit);
        }
    }
}
