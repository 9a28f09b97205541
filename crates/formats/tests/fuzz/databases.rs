//! Fuzz targets for database readers, one per format: mutates rows, tables and pages.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use rusqlite::types::Value;
use throughline_formats::SourceFormat;
use throughline_fuzz::{Case, Choices, Input, Target, fuzz, mutate};

use crate::properties::check;
use crate::{corpus, fixtures};

/// Returns the bytes of a database created from the statements of a fixture.
fn create_database(statements: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made.db");
    let sql = fs::read_to_string(fixtures().join(statements)).unwrap();
    let database = Connection::open(&path).unwrap();
    database.execute_batch("PRAGMA page_size = 512").unwrap();
    database.execute_batch(&sql).unwrap();
    drop(database);
    fs::read(path).unwrap()
}

/// Mutates a row, a table or a page.
fn mutate_database(document: Vec<u8>, others: &[Vec<u8>], by: &mut Choices<'_>) -> Option<Vec<u8>> {
    if by.one_in(5)? {
        return mutate::pages::<512>(document, others, by);
    }
    let folder = tempfile::tempdir().ok()?;
    let path = folder.path().join("changed.db");
    fs::write(&path, &document).ok()?;
    // A database that is already broken stays as it is.
    let _ = mutate_row(&path, by);
    fs::read(path).ok()
}

fn mutate_row(path: &Path, by: &mut Choices<'_>) -> Option<()> {
    let database = Connection::open(path).ok()?;
    database
        .execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY")
        .ok()?;
    let names = |question: &str, of: &str| -> Option<Vec<String>> {
        let mut query = database.prepare(question).ok()?;
        let names = query.query_map([of], |row| row.get(0)).ok()?;
        names.collect::<Result<_, _>>().ok()
    };
    let tables = names(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND ?1 = ''",
        "",
    )?;
    let table = by.pick(&tables)?;
    let columns = names("SELECT name FROM pragma_table_info(?1)", table)?;
    let column = by.pick(&columns)?;
    let count: u32 = database
        .query_row(&format!("SELECT count(*) FROM {table}"), [], |row| {
            row.get(0)
        })
        .ok()?;
    let count = count as usize;
    let row = by.below(count)?;
    let place = format!("(SELECT rowid FROM {table} LIMIT 1 OFFSET {row})");
    let sql = match by.below(10)? {
        0 => format!("DELETE FROM {table} WHERE rowid = {place}"),
        1 => format!("ALTER TABLE {table} DROP COLUMN \"{column}\""),
        2 if by.one_in(4)? => format!("DROP TABLE {table}"),
        3 => {
            // The value of another row: a duplicate id, or one that creates a cycle.
            let other = by.below(count)?;
            format!(
                "UPDATE OR REPLACE {table} SET \"{column}\" = (SELECT \"{}\" FROM {table} LIMIT 1 OFFSET {other}) \
                 WHERE rowid = {place}",
                by.pick(&columns)?
            )
        }
        _ => {
            let question = format!("SELECT \"{column}\" FROM {table} WHERE rowid = {place}");
            let old: Value = database.query_row(&question, [], |row| row.get(0)).ok()?;
            let new = mutate_value(old, by)?;
            let update =
                format!("UPDATE OR REPLACE {table} SET \"{column}\" = ?1 WHERE rowid = {place}");
            database.execute(&update, [new]).ok()?;
            return Some(());
        }
    };
    database.execute_batch(&sql).ok()
}

/// Values that are meaningful in some column.
const WORDS: &[&str] = &[
    "",
    "user",
    "assistant",
    "system",
    "tool",
    "text",
    "thinking",
    "reasoning",
    "tool_call",
    "tool_result",
    "attachment",
    "foreign",
    "2026-02-30T00:00:00",
    "9999-12-31T23:59:59.999999Z",
    "[]",
    "[\"\"]",
    "null",
];

fn mutate_value(old: Value, by: &mut Choices<'_>) -> Option<Value> {
    Some(match (old, by.below(7)?) {
        (_, 0) => Value::Null,
        (_, 1) => Value::Integer(*by.pick(&[0, 1, -1, i64::MAX, i64::MIN, 253_402_300_800_000])?),
        (_, 2) => Value::Real(*by.pick(&[0.5, f64::INFINITY, -1e300, 1e18])?),
        (_, 3) => Value::Blob(by.random_bytes(20)?),
        (_, 4) => Value::Text((*by.pick(WORDS)?).to_owned()),
        (Value::Text(text), _) => {
            let changed = mutate::json_document(text.into_bytes(), &[], by)?;
            Value::Text(String::from_utf8_lossy(&changed).into_owned())
        }
        (old, _) => old,
    })
}

fn target(agent: SourceFormat, name: &'static str, statements: &[&str]) -> Target {
    let case = |statements: &&str| Case {
        name: (*statements).to_owned(),
        seeds: vec![create_database(statements)],
        mutation: mutate_database,
    };
    let cases = statements.iter().map(case).collect();
    assert!(SourceFormat::ALL.contains(&agent));
    Target::new(name, &corpus(), cases)
}

macro_rules! targets {
    ($($test:ident: $agent:ident $name:literal [$($statements:literal),+];)+) => {$(
        #[test]
        fn $test() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("fuzzed.db");
            fuzz!(
                target(SourceFormat::$agent, $name, &[$($statements),+]),
                |input: &Input| {
                    fs::write(&path, &input.bytes).unwrap();
                    check(SourceFormat::$agent, &path);
                }
            );
        }
    )+};
}

targets! {
    opencode_database: OpenCode "opencode-database" ["opencode.sql"];
    goose_database: Goose "goose-database" ["goose.sql", "goose_alone.sql"];
    llm_database: Llm "llm-database" ["llm.sql"];
    openai_agents_database: OpenAiAgents "openai-agents-database" ["openai_agents.sql"];
}
