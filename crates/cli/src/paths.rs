//! The program's folders and environment variables, read once at the start.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use etcetera::BaseStrategy;
use throughline::recall::private_files::{is_open_to_others, restrict_all, restrict_folder};

/// The environment and the folders derived from it.
#[derive(Clone)]
pub(crate) struct Paths {
    /// The data folder.
    pub(crate) data: PathBuf,
    /// The cache folder.
    pub(crate) cache: PathBuf,
    /// The user's configuration file.
    pub(crate) user_config: PathBuf,
    /// The folder the program was started in.
    pub(crate) working_folder: PathBuf,
    /// The user's home folder, where other programs store their files.
    pub(crate) home: Option<PathBuf>,
    /// This machine's host name.
    pub(crate) host: Option<String>,
    /// Environment variables the program uses. Some are secrets.
    variables: BTreeMap<String, String>,
}

impl std::fmt::Debug for Paths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Paths")
            .field("data", &self.data)
            .field("folder", &self.working_folder)
            .finish_non_exhaustive()
    }
}

impl Paths {
    /// Reads the environment. This is the only place that does.
    #[allow(clippy::disallowed_methods, reason = "this is where it enters")]
    pub(crate) fn from_environment() -> Result<Self> {
        let variables: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| {
                // The conventional names of providers' keys and addresses.
                name.starts_with("TL_")
                    || name.ends_with("_API_KEY")
                    || name.ends_with("_BASE_URL")
                    || matches!(
                        name.as_str(),
                        "THROUGHLINE_HOME" | "NO_COLOR" | "PAGER" | "TERM" | "OLLAMA_HOST"
                    )
                    // Where other agents store their sessions.
                    || matches!(
                        name.as_str(),
                        "CLAUDE_CONFIG_DIR"
                            | "CODEX_HOME"
                            | "GEMINI_CLI_HOME"
                            | "PI_CODING_AGENT_DIR"
                            | "AIDER_CHAT_HISTORY_FILE"
                            | "LLM_USER_PATH"
                            | "XDG_DATA_HOME"
                    )
            })
            .collect();
        let folder = std::env::current_dir().context("the working folder cannot be read")?;
        let (data, config, cache) =
            match variables.get("THROUGHLINE_HOME").filter(|h| !h.is_empty()) {
                Some(home) => {
                    let home = folder.join(home);
                    (home.clone(), home.clone(), home.join("cache"))
                }
                None => {
                    let base = etcetera::choose_base_strategy()
                        .context("there is no home folder; set THROUGHLINE_HOME")?;
                    let name = "throughline";
                    (
                        base.data_dir().join(name),
                        base.config_dir().join(name),
                        base.cache_dir().join(name),
                    )
                }
            };
        Ok(Self {
            data,
            cache,
            user_config: config.join("config.toml"),
            working_folder: folder,
            home: etcetera::home_dir().ok(),
            host: hostname::get()
                .ok()
                .and_then(|name| name.into_string().ok()),
            variables,
        })
    }

    /// Returns a variable that is set and not empty.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.variables
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// Returns the project's configuration: the nearest one at or above the working folder.
    pub(crate) fn project_config(&self) -> Option<PathBuf> {
        let mut folders = self.working_folder.ancestors();
        folders.find_map(|folder| {
            let config = folder.join(".throughline").join("config.toml");
            config.is_file().then_some(config)
        })
    }

    /// Returns the folder of the user's configuration.
    pub(crate) fn config_folder(&self) -> PathBuf {
        let folder = self.user_config.parent().map(Path::to_owned);
        folder.unwrap_or_else(|| self.working_folder.clone())
    }

    /// Returns the file of the user's API keys.
    pub(crate) fn keys_file(&self) -> PathBuf {
        self.config_folder().join("keys.toml")
    }

    /// Returns the nearest folder at or above the working folder with a `.throughline` folder, or
    /// the working folder.
    pub(crate) fn project_folder(&self) -> PathBuf {
        let mut folders = self.working_folder.ancestors();
        let marked = folders.find(|folder| folder.join(".throughline").is_dir());
        marked.unwrap_or(&self.working_folder).to_owned()
    }

    /// Returns the default store's file.
    pub(crate) fn store_file(&self) -> PathBuf {
        self.data.join("sessions.db")
    }

    /// Returns the folder of installed models.
    pub(crate) fn models_folder(&self) -> PathBuf {
        self.data.join("models")
    }

    /// Restricts the program's folders and files to their owner, because earlier versions and
    /// other umasks left them open.
    ///
    /// Files written by the user are not touched: key files readable by others are rejected
    /// instead. A folder that contains the home folder is not touched either.
    pub(crate) fn restrict_permissions(&self) {
        for folder in self.own_folders() {
            if is_open_to_others(&folder) {
                // `tl doctor` reports what remains accessible.
                let _ = restrict_all(&folder);
            }
        }
        for folder in self.shared_folders() {
            if is_open_to_others(&folder) {
                let _ = restrict_folder(&folder);
            }
        }
    }

    /// Returns folders that contain only what the program creates.
    pub(crate) fn own_folders(&self) -> Vec<PathBuf> {
        vec![
            self.data.join("state"),
            self.models_folder(),
            self.cache.clone(),
        ]
    }

    /// Returns folders of the program in which users may also keep files.
    pub(crate) fn shared_folders(&self) -> Vec<PathBuf> {
        let mut folders = vec![self.data.clone(), self.config_folder()];
        folders.dedup();
        let holds_home =
            |folder: &PathBuf| self.home.as_ref().is_some_and(|h| h.starts_with(folder));
        folders.retain(|folder| !holds_home(folder));
        folders
    }

    /// Returns the path of a state file, which persists between runs.
    pub(crate) fn state_file(&self, name: &str) -> PathBuf {
        self.data.join("state").join(name)
    }
}

/// Writes a file atomically: it is either the old or the new one, whatever happens.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    std::fs::File::open(folder)?.sync_all()
}

/// Creates a folder and its parents, accessible to the user only. Their directory entries are
/// durable when this returns, because files stored in them would be lost with them.
pub(crate) fn create_private_folder(folder: &Path) -> std::io::Result<()> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    let parent = folder.parent().filter(|it| !it.as_os_str().is_empty());
    if let Some(parent) = parent {
        create_private_folder(parent)?;
    }
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    match builder.create(folder) {
        // Another process created it at the same time.
        Err(_) if folder.is_dir() => {}
        made => made?,
    }
    if cfg!(unix) {
        std::fs::File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}
