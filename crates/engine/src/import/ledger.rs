//! The import ledger: records how far each source was read, so that the next import can
//! resume there.
//!
//! A ledger is an internal session, one per folder of sources, with a context document
//! per source. It is therefore stored, copied and checked like any session, and belongs
//! to one owner. If it is lost, sources are read again from the start; entries that
//! were imported before are recognized.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use throughline_model::{Body, Digest, Json, Key, SessionRef};
use throughline_store::{Append, ReadRange, StoreError};

use crate::{Error, Throughline};

/// How far a source was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerRow {
    /// The size of the source.
    pub bytes: u64,
    /// Its modification time, in microseconds since 1970.
    pub modified: i64,
    /// The number of bytes read.
    pub read: u64,
    /// The hash of those bytes.
    pub digest: Digest,
    /// The reader's state, in its own format; `None` if it must start from the
    /// beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader: Option<Json>,
    /// The number of sessions found in it.
    pub sessions: u64,
    /// The number of messages found in it.
    pub messages: u64,
}

/// The ledger of one folder of sources.
#[derive(Clone, Debug)]
pub struct Ledger {
    tl: Throughline,
    session: Option<SessionRef>,
    key: Key,
    rows: BTreeMap<String, LedgerRow>,
}

impl Throughline {
    /// Loads the ledger for the sources of a system in `folder`.
    pub async fn load_ledger(&self, from: &str, folder: &str) -> Result<Ledger, Error> {
        let digest = Digest::of(format!("{from}\0{folder}").as_bytes());
        let key: Key = format!("{}imports:{from}:{digest}", Key::INTERNAL_PREFIX).parse()?;
        let found = self
            .store
            .find_candidates(&self.owner, key.as_str(), 100)
            .await?;
        let candidate = found
            .into_iter()
            .find(|candidate| !candidate.trashed && candidate.info.key.as_ref() == Some(&key));
        let mut ledger = Ledger {
            tl: self.clone(),
            session: candidate.map(|candidate| self.owner.session(&candidate.info.id)),
            key,
            rows: BTreeMap::new(),
        };
        ledger.load().await?;
        Ok(ledger)
    }
}

impl Ledger {
    /// Returns how far a source was read; `None` if it never was.
    pub fn row(&self, source: &str) -> Option<&LedgerRow> {
        self.rows.get(source)
    }

    /// Records how far sources were read.
    pub async fn record(&mut self, rows: Vec<(String, LedgerRow)>) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let session = match &self.session {
            Some(session) => session.clone(),
            None => self.create_session().await?,
        };
        let mut entries = Vec::with_capacity(rows.len());
        for (source, row) in &rows {
            let content = Json::of(row).map_err(|source| StoreError::Backend {
                during: "encoding a ledger",
                source: source.into(),
            })?;
            entries.push(self.tl.new_entry(Body::ContextSet {
                document: source.clone(),
                content: Some(content),
            }));
        }
        self.tl
            .store
            .append(&session, Append::unconditional(entries))
            .await?;
        self.session = Some(session);
        self.rows.extend(rows);
        Ok(())
    }

    async fn create_session(&self) -> Result<SessionRef, Error> {
        let new = crate::NewSession {
            key: Some(self.key.clone()),
            ..crate::NewSession::default()
        };
        let header = new.into_header(&*self.tl.environment);
        let created = self.tl.store.create(&self.tl.owner, header).await?;
        Ok(self.tl.owner.session(&created.record.info.id))
    }

    async fn load(&mut self) -> Result<(), Error> {
        let Some(session) = &self.session else {
            return Ok(());
        };
        let state = self.tl.store.record(session).await?.state;
        let mut seqs: Vec<_> = state.context.values().copied().collect();
        seqs.sort_unstable();
        let mut seqs_to_load = seqs.into_iter().peekable();
        while let Some(next) = seqs_to_load.peek().copied() {
            let page = self
                .tl
                .store
                .read(session, ReadRange::starting_at(next, 500))
                .await?;
            if page.is_empty() {
                break;
            }
            for entry in page {
                if seqs_to_load.next_if_eq(&entry.seq).is_none() {
                    continue;
                }
                if let Body::ContextSet {
                    document,
                    content: Some(content),
                } = entry.body
                    // A row in a newer format is ignored: the source is read again.
                    && let Ok(row) = content.decode()
                {
                    self.rows.insert(document, row);
                }
            }
        }
        Ok(())
    }
}
