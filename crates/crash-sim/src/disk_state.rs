//! The content of a disk at one moment.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, OpenOptions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::CrashSimError;

/// Files and folders, by their path below the root.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DiskState {
    /// The content of each path; `None` for a folder.
    pub entries: BTreeMap<String, Option<Vec<u8>>>,
}

impl DiskState {
    /// Reads the content of a folder.
    pub fn read(folder: &Path) -> Result<Self, CrashSimError> {
        let mut state = Self::default();
        state.read_below(folder, "")?;
        Ok(state)
    }

    fn read_below(&mut self, folder: &Path, prefix: &str) -> Result<(), CrashSimError> {
        for entry in std::fs::read_dir(folder).map_err(CrashSimError::io(folder))? {
            let path = entry.map_err(CrashSimError::io(folder))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let name = format!("{prefix}{name}");
            if path.is_dir() {
                self.entries.insert(name.clone(), None);
                self.read_below(&path, &format!("{name}/"))?;
            } else {
                let bytes = std::fs::read(&path).map_err(CrashSimError::io(&path))?;
                self.entries.insert(name, Some(bytes));
            }
        }
        Ok(())
    }

    /// Writes the state to an empty folder, for the owner only: modes are not recorded.
    pub fn write_to(&self, folder: &Path) -> Result<(), CrashSimError> {
        for (name, content) in &self.entries {
            let path = folder.join(name);
            match content {
                None => DirBuilder::new().mode(0o700).create(&path),
                Some(bytes) => {
                    let mut new = OpenOptions::new();
                    new.write(true).create_new(true).mode(0o600);
                    new.open(&path).and_then(|mut file| file.write_all(bytes))
                }
            }
            .map_err(CrashSimError::io(&path))?;
        }
        Ok(())
    }

    /// Returns a hash that identifies the state.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}
