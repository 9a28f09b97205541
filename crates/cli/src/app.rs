//! What every command works with.

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

/// What every command works with. The store is opened by the first that needs it.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) ui: Ui,
    pub(crate) config: Config,
    pub(crate) paths: Paths,
    pub(crate) zone: TimeZone,
    /// Chance, for waiting a different time than everybody else.
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

    /// One of the same settings, for what outlives a command.
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

    /// The same, for a command that makes no store where somebody named one.
    pub(crate) fn with_read_only(self, only_reads: bool) -> Self {
        Self {
            read_only: only_reads,
            ..self
        }
    }

    /// The store.
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

    /// A store that somebody named and that is not there is a slip of the pen.
    fn refuse_missing_store(&self) -> Result<()> {
        match self.config.store().parse()? {
            StoreAddress::Sqlite(path) if self.config.is_set("store") && !store_exists(&path) => {
                Err(UserError {
                    what: format!("there is no store at {}", path.display()),
                    hint: Some("`tl new` and `tl import` make one".to_owned()),
                    kind: throughline::ErrorKind::NotFound,
                }
                .into())
            }
            _ => Ok(()),
        }
    }

    /// Another store, opened as this one would be.
    pub(crate) async fn open(&self, url: &str) -> Result<Throughline> {
        let address: StoreAddress = url.parse()?;
        let token = match &address {
            StoreAddress::Server(server) => token_for(&self.paths, server)?,
            StoreAddress::Sqlite(_) | StoreAddress::Postgres(_) | StoreAddress::Memory => None,
        };
        self.open_at(&address, token).await
    }

    /// A store, with this token where a server keeps it.
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

    /// What compares searches by meaning.
    fn semantic(&self) -> Result<SemanticModel> {
        let value = self.config.semantic().value;
        value.parse().map_err(anyhow::Error::msg)
    }

    /// Tells what went wrong with the index or with what compares again, if anything did.
    pub(crate) fn report_index_warnings(&self, tl: &Throughline) {
        if let Some(rebuild) = tl.take_index_rebuild() {
            self.ui.warn(rebuild);
        }
        if let Some(trouble) = tl.take_reranker_failure() {
            self.ui.warn(crate::markdown::sanitize(&trouble));
        }
    }

    /// The session that was meant.
    pub(crate) async fn session(&self, spec: &SessionSpec) -> Result<Session> {
        let tl = self.tl().await?;
        let spec = self.resolve_transcript_path(spec)?;
        Ok(tl.resolve(&spec, &self.last_listing()).await?)
    }

    /// The session in the trash that was meant.
    pub(crate) async fn resolve_trashed(&self, spec: &SessionSpec) -> Result<SessionId> {
        let tl = self.tl().await?;
        let spec = self.resolve_transcript_path(spec)?;
        Ok(tl.resolve_trashed(&spec, &self.last_listing()).await?)
    }

    /// A transcript stands for the session it was written from.
    fn resolve_transcript_path(&self, spec: &SessionSpec) -> Result<SessionSpec> {
        let SessionSpec::Path(path) = spec else {
            return Ok(spec.clone());
        };
        let file = self.paths.working_folder.join(path);
        let text = std::fs::read_to_string(&file).map_err(|error| {
            UserError::invalid(format!("{path} cannot be read as a transcript: {error}"))
                .with_hint("a session is named by id, name, key, number or a transcript's path")
        })?;
        let transcript = throughline_formats::read_transcript(&text)
            .with_context(|| format!("{path} is not a transcript"))?;
        let Some(text) = transcript.session_id else {
            return Err(
                UserError::invalid(format!("{path} does not say which session it is")).into(),
            );
        };
        Ok(SessionSpec::Text { text, number: None })
    }

    fn listing_file(&self) -> std::path::PathBuf {
        // Numbers belong to one store: those of another would name other sessions.
        let store = throughline::Digest::of(self.config.store().as_bytes());
        self.paths.state_file(&format!("listing-{}", store.short()))
    }

    /// The sessions of the last listing, by number.
    pub(crate) fn last_listing(&self) -> Vec<SessionId> {
        let text = match std::fs::read_to_string(self.listing_file()) {
            Ok(text) => text,
            // Nothing was listed yet.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => {
                self.ui
                    .warn(format_args!("the last listing cannot be read: {error}"));
                String::new()
            }
        };
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Remembers a listing, so that its numbers can be used.
    pub(crate) fn save_listing<'a>(&self, ids: impl Iterator<Item = &'a SessionId>) {
        let text: String = ids.map(|id| format!("{id}\n")).collect();
        let file = self.listing_file();
        let written = file
            .parent()
            .map_or(Ok(()), create_private_folder)
            .and_then(|()| write_atomically(&file, text.as_bytes()));
        if let Err(error) = written {
            self.ui
                .warn(format_args!("the numbers cannot be used later: {error}"));
        }
    }

    /// Lets go of the store, if it was opened.
    pub(crate) async fn close(&self) -> Result<()> {
        if let Some(tl) = self.tl.get() {
            tl.close().await?;
        }
        Ok(())
    }

    /// A path as the person meant it.
    pub(crate) fn resolve_path(&self, path: &Path) -> std::path::PathBuf {
        self.paths.working_folder.join(path)
    }
}

/// Whether there is a store at a path, or its write-ahead log, which may be all that is left.
pub(crate) fn store_exists(store: &Path) -> bool {
    let mut log = store.as_os_str().to_owned();
    log.push("-wal");
    store.exists() || Path::new(&log).exists()
}
