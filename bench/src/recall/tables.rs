//! The index in a database, asked what the one in a folder is.

use std::path::Path;

use anyhow::Result;
use throughline_postgres::{Options, PostgresIndex, PostgresStore};
use throughline_recall::{Found, Index as _, Query};
use tokio::runtime::Runtime;

use super::locomo::Conversation;
use super::quality::feed;

/// An index in a database, and what it is reached by.
pub(crate) struct Tables {
    index: PostgresIndex,
    runtime: Runtime,
}

impl Tables {
    /// The index of the store in a database.
    pub(crate) fn open(url: &str, folder: &Path) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let store = runtime.block_on(PostgresStore::open(url, Options::default()))?;
        let index = PostgresIndex::new(&store, &folder.join("tables"));
        Ok(Self { index, runtime })
    }

    /// Takes in a conversation, which is its owner's only one.
    pub(crate) fn feed(&self, conversation: &Conversation) -> Result<()> {
        let _on = self.runtime.enter();
        feed(&self.index, conversation)
    }

    pub(crate) fn search(&self, query: &Query) -> Result<Found> {
        let _on = self.runtime.enter();
        Ok(self.index.search(query)?)
    }
}
