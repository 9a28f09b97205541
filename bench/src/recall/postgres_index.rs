//! The PostgreSQL index with a blocking interface, for comparison with the index in a folder.

use std::path::Path;

use anyhow::Result;
use throughline_postgres::{Options, PostgresIndex, PostgresStore};
use throughline_recall::{Index as _, Query, QueryResults};
use tokio::runtime::Runtime;

use super::locomo::Conversation;
use super::quality::index_conversation;

/// An index in a database, with the runtime to call it.
pub(crate) struct BlockingPostgresIndex {
    index: PostgresIndex,
    runtime: Runtime,
}

impl BlockingPostgresIndex {
    /// Opens the index of the store in a database.
    pub(crate) fn open(url: &str, folder: &Path) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let store = runtime.block_on(PostgresStore::open(url, Options::default()))?;
        let index = PostgresIndex::new(&store, &folder.join("tables"));
        Ok(Self { index, runtime })
    }

    /// Indexes a conversation, the only one of its owner.
    pub(crate) fn index_conversation(&self, conversation: &Conversation) -> Result<()> {
        let _on = self.runtime.enter();
        index_conversation(&self.index, conversation)
    }

    pub(crate) fn search(&self, query: &Query) -> Result<QueryResults> {
        let _on = self.runtime.enter();
        Ok(self.index.search(query)?)
    }
}
