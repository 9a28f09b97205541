//! The schema of the full-text index, and how a passage becomes one of its documents.
use tantivy::schema::{
    BytesOptions, FAST, Field, INDEXED, IndexRecordOption, STORED, STRING, Schema,
    TextFieldIndexing, TextOptions,
};
use tantivy::{TantivyDocument, Term};
use throughline_model::{Owner, Seq, SessionId};

use super::vectors::VECTOR_TYPE;
use crate::analysis::PRETOKENIZED;
use crate::{Document, RecallError};

/// The fields of the schema.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields {
    pub(crate) key: Field,
    pub(crate) owner: Field,
    pub(crate) session: Field,
    pub(crate) role: Field,
    pub(crate) author: Field,
    pub(crate) file: Field,
    /// The keys of the passages whose words are in `context`, and of their sessions.
    pub(crate) neighbors: Field,
    pub(crate) seq: Field,
    pub(crate) at: Field,
    pub(crate) own_terms: Field,
    pub(crate) context_terms: Field,
    pub(crate) stored: Field,
    pub(crate) vector: Field,
}

/// Returns the schema and its fields.
pub(crate) fn schema() -> (Schema, Fields) {
    let mut schema = Schema::builder();
    let text = |record| {
        let indexing = TextFieldIndexing::default()
            .set_tokenizer(PRETOKENIZED)
            .set_index_option(record);
        TextOptions::default().set_indexing_options(indexing)
    };
    let fields = Fields {
        key: schema.add_text_field("key", STRING),
        owner: schema.add_text_field("owner", STRING),
        session: schema.add_text_field("session", STRING),
        role: schema.add_text_field("role", STRING),
        author: schema.add_text_field("author", STRING),
        file: schema.add_text_field("file", STRING),
        neighbors: schema.add_text_field("around", STRING),
        seq: schema.add_u64_field("seq", FAST),
        at: schema.add_i64_field("at", FAST | INDEXED),
        own_terms: schema.add_text_field("own", text(IndexRecordOption::WithFreqsAndPositions)),
        context_terms: schema.add_text_field("context", text(IndexRecordOption::WithFreqs)),
        stored: schema.add_bytes_field("kept", BytesOptions::from(STORED)),
        vector: schema.add_custom_field("vector", VECTOR_TYPE, serde_json::Value::Null),
    };
    (schema.build(), fields)
}

/// Separates the parts of a key; names cannot contain it.
const SEPARATOR: char = '\u{1f}';

/// Returns the key of a session.
pub(crate) fn session_key(owner: &Owner, session: &SessionId) -> String {
    format!("{owner}{SEPARATOR}{session}")
}

/// Returns the key of a passage.
pub(crate) fn passage_key(owner: &Owner, session: &SessionId, seq: Seq) -> String {
    format!("{owner}{SEPARATOR}{session}{SEPARATOR}{seq}")
}

impl Fields {
    pub(crate) fn passage_term(&self, owner: &Owner, session: &SessionId, seq: Seq) -> Term {
        Term::from_field_text(self.key, &passage_key(owner, session, seq))
    }

    pub(crate) fn session_term(&self, owner: &Owner, session: &SessionId) -> Term {
        Term::from_field_text(self.session, &session_key(owner, session))
    }

    /// Converts a document for the engine.
    pub(crate) fn build_tantivy(
        &self,
        document: &Document,
    ) -> Result<TantivyDocument, RecallError> {
        let passage = &document.stored.passage;
        let mut engines = TantivyDocument::new();
        let key = passage_key(&passage.owner, &passage.session, passage.seq);
        engines.add_text(self.key, key);
        engines.add_text(self.owner, passage.owner.as_str());
        engines.add_text(self.session, session_key(&passage.owner, &passage.session));
        engines.add_text(self.role, passage.role.as_str());
        for author in &document.authors {
            engines.add_text(self.author, author);
        }
        for file in &document.files {
            engines.add_text(self.file, file);
        }
        for (session, seq) in &document.neighbors {
            engines.add_text(self.neighbors, passage_key(&passage.owner, session, *seq));
            if *session != passage.session {
                engines.add_text(self.neighbors, session_key(&passage.owner, session));
            }
        }
        engines.add_u64(self.seq, passage.seq.0);
        engines.add_i64(self.at, passage.at.as_microsecond());
        engines.add_text(self.own_terms, &document.own_terms);
        engines.add_text(self.context_terms, &document.context_terms);
        engines.add_custom(self.vector, document.vector.as_bytes());
        engines.add_bytes(self.stored, &serde_json::to_vec(&document.stored)?);
        Ok(engines)
    }
}
