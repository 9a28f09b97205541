//! The application context of a command: terminal, configuration, paths and store.

use std::path::Path;

use anyhow::{Context, Result};
use jiff::tz::TimeZone;
use throughline::{
    BearerToken, OpenOptions, Session, SessionId, SessionSpec, StoreAddress, Throughline,
};
use tokio::sync::OnceCell;

use crate::config::Config;
use crate::error_report::UserError;
use crate::lease_wait;
use crate::logins::token_for;
use crate::paths::{Paths, create_private_folder, write_atomically};
use crate::semantic::SemanticModel;
use crate::ui::Ui;

/// The context every command receives. The store is opened on first use.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) ui: Ui,
    pub(crate) config: Config,
    pub(crate) paths: Paths,
    pub(crate) zone: TimeZone,
    /// Random seed for retry jitter.
    pub(crate) seed: u64,
    tl: OnceCell<Throughline>,
    read_only: bool,
}

impl App {
    pub(crate) fn new(ui: Ui, config: Config, paths: Paths) -> Self {
        Self {
            ui,
            config,
            paths,
            zone: TimeZone::system(),
            seed: u64::from(std::process::id()),
            tl: OnceCell::new(),
            read_only: false,
        }
    }

    /// Returns a copy with the same settings and no open store.
    pub(crate) fn clone_without_store(&self) -> Self {
        Self {
            ui: self.ui.clone(),
            config: self.config.clone(),
            paths: self.paths.clone(),
            zone: self.zone.clone(),
            seed: self.seed,
            tl: OnceCell::new(),
            read_only: self.read_only,
        }
    }

    /// Sets whether the command only reads, so that a named store is not created.
    pub(crate) fn with_read_only(self, only_reads: bool) -> Self {
        Self {
            read_only: only_reads,
            ..self
        }
    }

    /// Returns the store, opening it if necessary.
    pub(crate) async fn tl(&self) -> Result<&Throughline> {
        if self.read_only {
            self.refuse_missing_store()?;
        }
        self.tl
            .get_or_try_init(async || {
                let tl = self.open(self.config.store()).await?;
                Ok(tl.with_reranker(self.semantic()?.reranker(&self.paths, self.seed)))
            })
            .await
    }

    /// Fails if an explicitly named store does not exist, which is probably a typo.
    fn refuse_missing_store(&self) -> Result<()> {
        match self.config.store().parse()? {
            StoreAddress::Sqlite(path) if self.config.is_set("store") && !store_exists(&path) => {
                Err(UserError {
                    what: format!("there is no store at {}", path.display()),
                    hint: Some("`tl new` and `tl import` create one".to_owned()),
                    kind: throughline::ErrorKind::NotFound,
                }
                .into())
            }
            _ => Ok(()),
        }
    }

    /// Opens another store with the same settings.
    pub(crate) async fn open(&self, url: &str) -> Result<Throughline> {
        let address: StoreAddress = url.parse()?;
        let token = match &address {
            StoreAddress::Server(server) => token_for(&self.paths, server)?,
            StoreAddress::Sqlite(_) | StoreAddress::Postgres(_) | StoreAddress::Memory => None,
        };
        self.open_at(&address, token).await
    }

    /// Opens a store, with this token if it is on a server.
    pub(crate) async fn open_at(
        &self,
        address: &StoreAddress,
        token: Option<BearerToken>,
    ) -> Result<Throughline> {
        let opening = OpenOptions {
            owner: self.config.owner()?,
            token,
            durability: self.config.durability(),
            cache_dir: Some(self.paths.cache.clone()),
            ..OpenOptions::default()
        };
        let tl = Throughline::open_with(address, opening)
            .await
            .with_context(|| format!("the store {address} cannot be opened"))?;
        let (ui, zone) = (self.ui.clone(), self.zone.clone());
        Ok(tl
            .with_description(&lease_wait::describe_process("tl", &self.paths))
            .on_lease_wait(move |wait| ui.status(lease_wait::format_wait(wait, &zone))))
    }

    /// Returns the configured semantic model.
    fn semantic(&self) -> Result<SemanticModel> {
        let value = self.config.semantic().value;
        value.parse().map_err(anyhow::Error::msg)
    }

    /// Prints warnings of the index and the reranker.
    pub(crate) fn report_index_warnings(&self, tl: &Throughline) {
        if let Some(rebuild) = tl.take_index_rebuild() {
            self.ui.warn(rebuild);
        }
        if let Some(trouble) = tl.take_reranker_failure() {
            self.ui.warn(crate::markdown::sanitize(&trouble));
        }
    }

    /// Resolves a session.
    pub(crate) async fn session(&self, spec: &SessionSpec) -> Result<Session> {
        let tl = self.tl().await?;
        let spec = self.resolve_transcript_path(spec)?;
        Ok(tl.resolve(&spec, &self.last_listing()).await?)
    }

    /// Resolves a session in the trash.
    pub(crate) async fn resolve_trashed(&self, spec: &SessionSpec) -> Result<SessionId> {
        let tl = self.tl().await?;
        let spec = self.resolve_transcript_path(spec)?;
        Ok(tl.resolve_trashed(&spec, &self.last_listing()).await?)
    }

    /// Resolves a transcript's path to the session it was written from.
    fn resolve_transcript_path(&self, spec: &SessionSpec) -> Result<SessionSpec> {
        let SessionSpec::Path(path) = spec else {
            return Ok(spec.clone());
        };
        let file = self.paths.working_folder.join(path);
        let text = std::fs::read_to_string(&file).map_err(|error| {
            UserError::invalid(format!("{path} cannot be read as a transcript: {error}"))
                .with_hint("use a session's id, name, key, number or transcript path")
        })?;
        let transcript = throughline_formats::read_transcript(&text)
            .with_context(|| format!("{path} is not a transcript"))?;
        let Some(text) = transcript.session_id else {
            return Err(UserError::invalid(format!("{path} does not name its session")).into());
        };
        Ok(SessionSpec::Text { text, number: None })
    }

    fn listing_file(&self) -> std::path::PathBuf {
        // Listing numbers are valid for one store only.
        let store = throughline::Digest::of(self.config.store().as_bytes());
        self.paths.state_file(&format!("listing-{}", store.short()))
    }

    /// Returns the sessions of the last listing, by number.
    pub(crate) fn last_listing(&self) -> Vec<SessionId> {
        let text = match std::fs::read_to_string(self.listing_file()) {
            Ok(text) => text,
            // There is no listing yet.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => {
                self.ui
                    .warn(format_args!("the last listing cannot be read: {error}"));
                String::new()
            }
        };
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Saves a listing, so that its numbers can be used.
    pub(crate) fn save_listing<'a>(&self, ids: impl Iterator<Item = &'a SessionId>) {
        let text: String = ids.map(|id| format!("{id}\n")).collect();
        let file = self.listing_file();
        let written = file
            .parent()
            .map_or(Ok(()), create_private_folder)
            .and_then(|()| write_atomically(&file, text.as_bytes()));
        if let Err(error) = written {
            self.ui.warn(format_args!(
                "the listing's numbers cannot be saved: {error}"
            ));
        }
    }

    /// Closes the store, if it was opened.
    pub(crate) async fn close(&self) -> Result<()> {
        if let Some(tl) = self.tl.get() {
            tl.close().await?;
        }
        Ok(())
    }

    /// Resolves a path relative to the working folder.
    pub(crate) fn resolve_path(&self, path: &Path) -> std::path::PathBuf {
        self.paths.working_folder.join(path)
    }
}

/// Returns whether a store or its write-ahead log exists at a path. The log may be all that
/// is left.
pub(crate) fn store_exists(store: &Path) -> bool {
    let mut log = store.as_os_str().to_owned();
    log.push("-wal");
    store.exists() || Path::new(&log).exists()
}
