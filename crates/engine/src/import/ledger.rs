//! What was read of which source, so that the next import need not read it again.
//!
//! A ledger is a session of the program's own, one for each folder of sources: a context
//! document for each source says how far it was read. So it is kept, copied and checked
//! as all sessions are, and is its owner's alone. Losing it loses time and nothing else:
//! what is read again is recognised.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use throughline_model::{Body, Digest, Json, Key, SessionRef};
use throughline_store::{Append, ReadRange, StoreError};

use crate::{Error, Throughline};

/// How far a source was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerRow {
    /// How large the source was.
    pub bytes: u64,
    /// When it was last changed, in microseconds since 1970.
    pub modified: i64,
    /// How much of it was read.
    pub read: u64,
    /// The hash of that much.
    pub digest: Digest,
    /// Where the reader was, in its own words; none where it must start anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader: Option<Json>,
    /// Sessions found in it.
    pub sessions: u64,
    /// Messages found in it.
    pub messages: u64,
}

/// What was read of the sources in one folder.
#[derive(Clone, Debug)]
pub struct Ledger {
    tl: Throughline,
    session: Option<SessionRef>,
    key: Key,
    rows: BTreeMap<String, LedgerRow>,
}

impl Throughline {
    /// What was read of the sources in `folder`, of this system.
    pub async fn load_ledger(&self, from: &str, folder: &str) -> Result<Ledger, Error> {
        let place = Digest::of(format!("{from}\0{folder}").as_bytes());
        let key: Key = format!("{}imports:{from}:{place}", Key::INTERNAL_PREFIX).parse()?;
        let found = self
            .store
            .find_candidates(&self.owner, key.as_str(), 100)
            .await?;
        let card = found
            .into_iter()
            .find(|found| !found.trashed && found.info.key.as_ref() == Some(&key));
        let mut ledger = Ledger {
            tl: self.clone(),
            session: card.map(|found| self.owner.session(&found.info.id)),
            key,
            rows: BTreeMap::new(),
        };
        ledger.load().await?;
        Ok(ledger)
    }
}

impl Ledger {
    /// How far a source was read; none where it never was.
    pub fn row(&self, source: &str) -> Option<&LedgerRow> {
        self.rows.get(source)
    }

    /// Notes how far sources were read.
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
        let birth = new.into_header(&*self.tl.environment);
        let created = self.tl.store.create(&self.tl.owner, birth).await?;
        Ok(self.tl.owner.session(&created.record.info.id))
    }

    async fn load(&mut self) -> Result<(), Error> {
        let Some(session) = &self.session else {
            return Ok(());
        };
        let standing = self.tl.store.record(session).await?.state;
        let mut seqs: Vec<_> = standing.context.values().copied().collect();
        seqs.sort_unstable();
        let mut wanted = seqs.into_iter().peekable();
        while let Some(next) = wanted.peek().copied() {
            let page = self
                .tl
                .store
                .read(session, ReadRange::starting_at(next, 500))
                .await?;
            if page.is_empty() {
                break;
            }
            for entry in page {
                if wanted.next_if_eq(&entry.seq).is_none() {
                    continue;
                }
                if let Body::ContextSet {
                    document,
                    content: Some(content),
                } = entry.body
                    // A row of a later version is no row: the source is read again.
                    && let Ok(row) = content.decode()
                {
                    self.rows.insert(document, row);
                }
            }
        }
        Ok(())
    }
}
