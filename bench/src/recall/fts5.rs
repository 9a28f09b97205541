//! SQLite's full-text search (FTS5), as a baseline.

use std::path::Path;

use anyhow::Result;
use rusqlite::Connection;

/// A table of messages with a full-text index.
pub(crate) struct Fts5(Connection);

impl Fts5 {
    pub(crate) fn new(file: &Path) -> Result<Self> {
        let connection = Connection::open(file)?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
             CREATE VIRTUAL TABLE message USING fts5(text, tokenize = 'porter unicode61');",
        )?;
        Ok(Self(connection))
    }

    /// Adds messages in one transaction; their numbers are the row ids.
    pub(crate) fn add<'a>(&mut self, texts: impl IntoIterator<Item = &'a str>) -> Result<()> {
        let transaction = self.0.transaction()?;
        {
            let mut insert = transaction.prepare("INSERT INTO message (text) VALUES (?1)")?;
            for text in texts {
                insert.execute([text])?;
            }
        }
        Ok(transaction.commit()?)
    }

    /// Returns the rows with any of the words, best first.
    pub(crate) fn search<'a>(
        &self,
        words: impl IntoIterator<Item = &'a str>,
        limit: u32,
    ) -> Result<Vec<i64>> {
        let words = words.into_iter().map(|word| format!("\"{word}\""));
        let query = words.collect::<Vec<_>>().join(" OR ");
        if query.is_empty() {
            return Ok(Vec::new());
        }
        let sql = "SELECT rowid FROM message WHERE message MATCH ?1 ORDER BY rank LIMIT ?2";
        let mut select = self.0.prepare_cached(sql)?;
        let rows = select.query_map((query, limit), |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

/// Splits a text into words, naively.
pub(crate) fn split_words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
}
