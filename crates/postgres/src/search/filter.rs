//! Resolves a search scope to the numbers of the passages it allows.
//!
//! Invariant: every source of candidates applies this filter, and its numbers belong to one
//! owner.

use std::collections::HashSet;

use throughline_model::SessionId;
use throughline_recall::Scope;

use super::insert_passages::SEPARATOR;
use crate::error::Fault;
use crate::rows;
use crate::tx::Tx;

/// The passage numbers that a scope allows.
#[derive(Debug)]
pub(super) enum PassageFilter {
    /// All of the owner's passages but these.
    AllExcept(HashSet<i64>),
    /// Only these passages.
    Only(HashSet<i64>),
}

impl PassageFilter {
    pub(super) fn contains(&self, number: i64) -> bool {
        match self {
            Self::AllExcept(numbers) => !numbers.contains(&number),
            Self::Only(numbers) => numbers.contains(&number),
        }
    }

    /// The filter as an SQL condition, and the numbers to pass as `$2`.
    pub(super) fn condition(&self) -> (&'static str, Vec<i64>) {
        match self {
            Self::AllExcept(numbers) => (
                "number NOT IN (SELECT unnest($2::bigint[]))",
                numbers.iter().copied().collect(),
            ),
            Self::Only(numbers) => (
                "number IN (SELECT unnest($2::bigint[]))",
                numbers.iter().copied().collect(),
            ),
        }
    }
}

/// The conditions on a passage other than a list of sessions. `$1` owner, `$2` excluded
/// sessions, `$3` roles, `$4` authors, `$5` path fragments, `$6` start time, `$7` end time.
const SCOPE_CONDITIONS: &str = "p.owner = $1 AND p.session <> ALL ($2::text[])
    AND (cardinality($3::text[]) = 0 OR p.role = ANY ($3::text[]))
    AND (cardinality($4::text[]) = 0
        OR EXISTS (SELECT FROM unnest($4::text[]) a WHERE strpos(p.authors, a) > 0))
    AND (cardinality($5::text[]) = 0
        OR EXISTS (SELECT FROM unnest($5::text[]) f WHERE strpos(p.files, f) > 0))
    AND ($6::bigint IS NULL OR p.at >= $6) AND ($7::bigint IS NULL OR p.at < $7)";

/// Loads the passages within a scope.
pub(super) async fn load_filter(tx: &Tx, scope: &Scope) -> Result<PassageFilter, Fault> {
    let doing = "resolving the search scope";
    let owner = scope.owner.as_str();
    let except: Vec<&str> = scope.except.iter().map(SessionId::as_str).collect();
    if scope.is_unfiltered() {
        if except.is_empty() {
            return Ok(PassageFilter::AllExcept(HashSet::new()));
        }
        let sql = "SELECT number FROM throughline.passage
            WHERE owner = $1 AND session = ANY ($2::text[])";
        let found = tx.query(doing, sql, params![owner, except]).await?;
        return Ok(PassageFilter::AllExcept(decode_numbers(&found)?));
    }
    let between = |name: String| format!("{SEPARATOR}{}{SEPARATOR}", rows::escape_nul(&name));
    let roles: Vec<&str> = scope.roles.iter().map(|role| role.as_str()).collect();
    let authors: Vec<String> = scope.author_keys().into_iter().map(between).collect();
    let files = scope.file_keys();
    let files: Vec<_> = files.iter().map(|file| rows::escape_nul(file)).collect();
    let after = scope
        .after
        .map(throughline_model::Timestamp::as_microsecond);
    let before = scope
        .before
        .map(throughline_model::Timestamp::as_microsecond);
    let found = match &scope.sessions {
        None => {
            let sql =
                format!("SELECT p.number FROM throughline.passage p WHERE {SCOPE_CONDITIONS}");
            let narrow = params![owner, except, roles, authors, files, after, before];
            tx.query(doing, &sql, narrow).await?
        }
        Some(stretches) => {
            let sql = format!(
                "SELECT p.number FROM unnest($8::text[], $9::bigint[]) AS s (session, upto)
                 JOIN throughline.passage p ON p.owner = $1 AND p.session = s.session
                     AND (s.upto IS NULL OR p.seq <= s.upto)
                 WHERE {SCOPE_CONDITIONS}"
            );
            let sessions: Vec<&str> = stretches.iter().map(|one| one.session.as_str()).collect();
            let upto: Vec<Option<i64>> = stretches
                .iter()
                .map(|one| one.to.map(rows::seq_to_i64))
                .collect();
            let narrow = params![
                owner, except, roles, authors, files, after, before, sessions, upto
            ];
            tx.query(doing, &sql, narrow).await?
        }
    };
    Ok(PassageFilter::Only(decode_numbers(&found)?))
}

fn decode_numbers(found: &[tokio_postgres::Row]) -> Result<HashSet<i64>, Fault> {
    let numbers = found.iter().map(|row| rows::get(row, 0));
    Ok(numbers.collect::<Result<_, _>>()?)
}
