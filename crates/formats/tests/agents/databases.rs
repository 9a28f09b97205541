//! Tests database readers, with the tables that the systems create.

use std::path::PathBuf;

use rusqlite::Connection;
use throughline_formats::SourceFormat;

use crate::rendered_records::{
    assert_storable, fixture, read_all, read_from, read_to_text, render_records,
};

/// Creates a database from the statements of a fixture.
fn create_database(name: &str, statements: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let sql = std::fs::read_to_string(fixture(statements)).unwrap();
    Connection::open(&path)
        .unwrap()
        .execute_batch(&sql)
        .unwrap();
    (folder, path)
}

macro_rules! golden {
    ($name:literal, $output:expr) => {{
        let mut settings = insta::Settings::clone_current();
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!($name, $output));
    }};
}

#[test]
fn an_opencode_database_is_read_and_then_only_what_changed() {
    let (_folder, path) = create_database("opencode.db", "opencode.sql");
    let (output, bookmark) = read_from(SourceFormat::OpenCode, &path, None);
    golden!("opencode_database", render_records(&output));
    Connection::open(&path)
        .unwrap()
        .execute_batch(
            r#"INSERT INTO message VALUES ('msg_9','ses_2',1735732812000,0,'{"role":"user","time":{"created":1735732812000}}');
               INSERT INTO part VALUES ('prt_9','msg_9','ses_2',0,0,'{"type":"text","text":"More"}');
               UPDATE session SET time_updated = 1735732999000 WHERE id = 'ses_2';"#,
        )
        .unwrap();
    let (output, _) = read_from(SourceFormat::OpenCode, &path, bookmark.as_ref());
    let output = render_records(&output);
    assert!(
        output.contains("\"More\"") && !output.contains("session ses_1 "),
        "{output}"
    );
}

#[test]
fn a_goose_database_is_read() {
    let (_folder, path) = create_database("sessions.db", "goose.sql");
    golden!("goose_database", read_to_text(SourceFormat::Goose, &path));
}

/// As written by Goose 1.52: the time and folder of each turn, the usage of an answer, a
/// compaction with its message for the model, and an earlier one that it hides.
#[test]
fn what_goose_tells_the_model_alone_is_no_compaction() {
    let (_folder, path) = create_database("sessions.db", "goose_alone.sql");
    golden!("goose_alone", read_to_text(SourceFormat::Goose, &path));
}

#[test]
fn an_llm_database_is_read_in_both_its_ages() {
    let (_folder, path) = create_database("logs.db", "llm.sql");
    golden!("llm_database", read_to_text(SourceFormat::Llm, &path));
}

#[test]
fn sessions_of_the_agents_sdk_are_read() {
    let (_folder, path) = create_database("agents.db", "openai_agents.sql");
    golden!(
        "openai_agents_database",
        read_to_text(SourceFormat::OpenAiAgents, &path)
    );
}

/// A message that is its own ancestor: each is read once, and the cycle is reported.
#[test]
fn messages_of_llm_in_a_cycle_are_each_read_once() {
    let (_folder, path) = create_database("logs.db", "llm.sql");
    let cycle = "UPDATE messages SET parent_hash = 'h4' WHERE hash = 'h2'";
    Connection::open(&path)
        .unwrap()
        .execute_batch(cycle)
        .unwrap();
    let output = read_to_text(SourceFormat::Llm, &path);
    for expected in ["\"One\"", "\"Long text and more\"", "\"boom\""] {
        assert_eq!(
            output.matches(expected).count(),
            1,
            "{expected} in {output}"
        );
    }
    assert!(output.contains("is its own ancestor"), "{output}");
}

/// Parts of a newer version may have the same type names as our blocks.
#[test]
fn parts_of_llm_of_any_type_can_be_stored() {
    for kind in [
        "",
        "text",
        "thinking",
        "tool_result",
        "attachment",
        "foreign",
    ] {
        let (_folder, path) = create_database("logs.db", "llm.sql");
        Connection::open(&path)
            .unwrap()
            .execute("UPDATE parts SET type = ?1", [kind])
            .unwrap();
        assert_storable(&read_all(SourceFormat::Llm, &path));
    }
}
