//! Opens databases of other programs read-only, while those programs may be running.

use rusqlite::{Connection, OpenFlags, Row};

use super::emitter::Emitter;
use super::{ReadError, SourceCursor};
use serde::{Deserialize, Serialize};
use throughline_model::Json;

/// A foreign database.
pub(super) struct ForeignDatabase {
    connection: Connection,
}

/// The latest change that was read, in the database's own time unit.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Watermark {
    pub(super) until: i64,
}

impl Watermark {
    fn from_cursor(from: Option<&SourceCursor>) -> Self {
        from.and_then(|bookmark| bookmark.reader.decode().ok())
            .unwrap_or_default()
    }

    pub(super) fn to_cursor(&self) -> Option<SourceCursor> {
        Some(SourceCursor {
            offset: 0,
            line: 0,
            reader: Json::of(self).ok()?,
        })
    }
}

impl ForeignDatabase {
    /// Opens the source; also returns where the last reading ended.
    pub(super) fn open(
        emitter: &Emitter<'_>,
        from: Option<&SourceCursor>,
    ) -> Result<(Self, Watermark), ReadError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(emitter.path, flags);
        let connection = opened.map_err(|error| database_error(emitter, error))?;
        let patience = std::time::Duration::from_secs(5);
        connection
            .busy_timeout(patience)
            .map_err(|error| database_error(emitter, error))?;
        Ok((Self { connection }, Watermark::from_cursor(from)))
    }

    /// Returns the column of a table, or an alternative if this version does not have it.
    pub(super) fn column_or<'c>(
        &self,
        table: &str,
        column: &'c str,
        otherwise: &'c str,
    ) -> &'c str {
        if self.has_columns(table, &[column]) {
            column
        } else {
            otherwise
        }
    }

    /// Whether a table has all of these columns.
    pub(super) fn has_columns(&self, table: &str, columns: &[&str]) -> bool {
        let there: Vec<String> = self
            .connection
            .prepare("SELECT name FROM pragma_table_info(?1)")
            .and_then(|mut query| {
                query
                    .query_map([table], |row| row.get(0))?
                    .collect::<Result<_, _>>()
            })
            .unwrap_or_default();
        !there.is_empty()
            && columns
                .iter()
                .all(|column| there.iter().any(|t| t == column))
    }

    /// Runs a query and calls `each` per row; a row that cannot be read is reported and skipped.
    pub(super) fn for_each_row(
        &self,
        emitter: &mut Emitter<'_>,
        question: &str,
        given: &[&dyn rusqlite::ToSql],
        mut each: impl FnMut(&mut Emitter<'_>, &Row<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), ReadError> {
        let mut query = self
            .connection
            .prepare_cached(question)
            .map_err(|error| database_error(emitter, error))?;
        let mut rows = query
            .query(given)
            .map_err(|error| database_error(emitter, error))?;
        let mut place = 0;
        loop {
            place += 1;
            let row = match rows.next() {
                Ok(Some(row)) => row,
                Ok(None) => return Ok(()),
                Err(error) => return Err(database_error(emitter, error)),
            };
            if let Err(error) = each(emitter, row) {
                emitter.emit_damaged(place, error.to_string());
            }
            emitter.check_stopped()?;
        }
    }

    /// Returns all rows of a query.
    pub(super) fn query_rows<T>(
        &self,
        emitter: &mut Emitter<'_>,
        question: &str,
        given: &[&dyn rusqlite::ToSql],
        mut row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, ReadError> {
        let mut all = Vec::new();
        self.for_each_row(emitter, question, given, |_, found| {
            all.push(row(found)?);
            Ok(())
        })?;
        Ok(all)
    }
}

fn database_error(emitter: &Emitter<'_>, error: rusqlite::Error) -> ReadError {
    ReadError::wrong_format(emitter.format, emitter.path, error)
}
