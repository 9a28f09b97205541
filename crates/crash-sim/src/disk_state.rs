//! What is on a disk at one moment.

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
    /// What each path has; none for a folder.
    pub entries: BTreeMap<String, Option<Vec<u8>>>,
}

impl DiskState {
    /// Reads what is in a folder.
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

    /// Puts it into an empty folder, for the owner only: modes are not recorded.
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

    /// A number that differs where the states do.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}
