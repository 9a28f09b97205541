//! The environment that the measurements of one run share: a folder on disk, round options, a
//! runtime.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::machine::Machine;
use crate::report::OutputArgs;
use crate::rounds::RoundOptions;

/// What all measurements share. Its folder is deleted on drop.
pub(crate) struct Bench {
    folder: tempfile::TempDir,
    pub(crate) machine: Machine,
    pub(crate) pace: RoundOptions,
    /// Divisor for the size of large workloads.
    pub(crate) scale: u64,
    pub(crate) runtime: tokio::runtime::Runtime,
}

impl Bench {
    /// Prepares a run, with time slices in milliseconds: for a quick run, and for a full one.
    pub(crate) fn prepare(output: &OutputArgs, quick: u64, whole: u64) -> Result<Self> {
        let (rounds, millis, scale) = if output.quick {
            (3, quick, 10)
        } else {
            (7, whole, 1)
        };
        let folder = output.create_temp_folder()?;
        let machine = Machine::detect(folder.path())?;
        eprintln!("On {machine}.");
        Ok(Self {
            folder,
            machine,
            pace: RoundOptions {
                rounds,
                slice: Duration::from_millis(millis),
            },
            scale,
            runtime: tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()?,
        })
    }

    /// Returns the folder of the run.
    pub(crate) fn dir(&self) -> &Path {
        self.folder.path()
    }

    /// Creates an empty folder for one measurement.
    pub(crate) fn create_folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.dir().join(name);
        fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        Ok(folder)
    }
}
