//! Describes the machine the numbers were measured on.

use std::fs;
use std::path::Path;

use anyhow::Result;

/// The properties of a machine that affect a store.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) cores: usize,
    pub(crate) processor: String,
    pub(crate) memory_gib: u64,
    pub(crate) kernel: String,
    pub(crate) filesystem: String,
}

impl Machine {
    /// Detects this machine, with the file system that holds `dir`.
    pub(crate) fn detect(dir: &Path) -> Result<Self> {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name));
            let value = line.and_then(|line| line.split_once(':'));
            value.map_or("unknown".to_owned(), |(_, value)| value.trim().to_owned())
        };
        let memory = field(&read("/proc/meminfo"), "MemTotal");
        let kib = memory.split_whitespace().next();
        let kib: u64 = kib.and_then(|kib| kib.parse().ok()).unwrap_or(0);
        let kernel = read("/proc/sys/kernel/osrelease");
        // The rest of the version names a build, which is not informative.
        let kernel = kernel.trim().split('-').next().unwrap_or_default();
        Ok(Self {
            cores: std::thread::available_parallelism()?.get(),
            processor: field(&read("/proc/cpuinfo"), "model name"),
            memory_gib: (kib + (1 << 19)) >> 20,
            kernel: format!("Linux {kernel}"),
            filesystem: detect_filesystem(&read("/proc/self/mounts"), &dir.canonicalize()?),
        })
    }
}

/// Returns the file system type of the closest mount above `dir`.
fn detect_filesystem(mounts: &str, dir: &Path) -> String {
    let mounted = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ');
        Some((words.next()?, words.next()?, words.next()?))
    });
    let closest = mounted
        .filter(|(_, at, _)| dir.starts_with(at))
        .max_by_key(|(_, at, _)| at.len());
    match closest {
        // It determines what a sync costs, and whether syncs of several files are combined.
        Some((device, _, "ext4")) if !has_journal(device) => "ext4 without a journal".to_owned(),
        Some((_, _, kind)) => kind.to_owned(),
        None => "unknown".to_owned(),
    }
}

/// Whether the kernel has a journal for a device: named after it and an inode.
fn has_journal(device: &str) -> bool {
    let device = format!("{}-", device.trim_start_matches("/dev/"));
    fs::read_dir("/proc/fs/jbd2").is_ok_and(|journals| {
        journals
            .flatten()
            .any(|journal| journal.file_name().to_string_lossy().starts_with(&device))
    })
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} cores ({}), {} GiB of memory, {}, {}",
            self.cores, self.processor, self.memory_gib, self.kernel, self.filesystem
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_mount_is_the_one_that_counts() {
        let mounts = "a / xfs rw 0 0\nb /tmp tmpfs rw 0 0\n";
        assert_eq!(detect_filesystem(mounts, Path::new("/tmp/x")), "tmpfs");
        assert_eq!(detect_filesystem(mounts, Path::new("/home")), "xfs");
    }
}
