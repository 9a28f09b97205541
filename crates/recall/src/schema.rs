//! The fields of the full-text index, and how a passage becomes a document of it.
//!
//! Two fields hold text: `own` has the passage's words in order, for phrases and for
//! typing; `context` has what it is ranked by, which is its own words twice, those of the
//! passages around it, its date and its author. One field was measured to rank as well as
//! several with weights.
//!
//! Invariant: a document depends on nothing but its passage and its window.

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use tantivy::schema::{
    BytesOptions, FAST, Field, INDEXED, IndexRecordOption, STORED, STRING, Schema,
    TextFieldIndexing, TextOptions,
};
use tantivy::{TantivyDocument, Term};
use throughline_model::{Owner, Seq, SessionId, Timestamp};

use crate::fold::folded;
use crate::prepared::{PREPARED, Prepared, Terms};
use crate::vectors::VECTOR_TYPE;
use crate::window::Window;
use crate::words::words;
use crate::{Passage, RecallError};

/// What is kept of a passage, to be shown and to be ranked by likeness.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Kept {
    #[serde(flatten)]
    pub(crate) passage: Passage,
    /// The beginning of what was said just before: an answer is found by its question.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) before: String,
}

/// The fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields {
    pub(crate) key: Field,
    pub(crate) owner: Field,
    pub(crate) session: Field,
    pub(crate) role: Field,
    pub(crate) author: Field,
    pub(crate) file: Field,
    /// The keys of the passages whose words are in `context`, and of their sessions.
    pub(crate) around: Field,
    pub(crate) seq: Field,
    pub(crate) at: Field,
    pub(crate) own: Field,
    pub(crate) context: Field,
    pub(crate) kept: Field,
    pub(crate) vector: Field,
}

/// The schema, and its fields.
pub(crate) fn schema() -> (Schema, Fields) {
    let mut schema = Schema::builder();
    let text = |record| {
        let indexing = TextFieldIndexing::default()
            .set_tokenizer(PREPARED)
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
        around: schema.add_text_field("around", STRING),
        seq: schema.add_u64_field("seq", FAST),
        at: schema.add_i64_field("at", FAST | INDEXED),
        own: schema.add_text_field("own", text(IndexRecordOption::WithFreqsAndPositions)),
        context: schema.add_text_field("context", text(IndexRecordOption::WithFreqs)),
        kept: schema.add_bytes_field("kept", BytesOptions::from(STORED)),
        vector: schema.add_custom_field("vector", VECTOR_TYPE, serde_json::Value::Null),
    };
    (schema.build(), fields)
}

/// What no name may contain, and so keeps them apart in a key.
const SEPARATOR: char = '\u{1f}';

/// What a session is called in the index.
pub(crate) fn session_key(owner: &Owner, session: &SessionId) -> String {
    format!("{owner}{SEPARATOR}{session}")
}

/// What a passage is called in the index.
pub(crate) fn passage_key(owner: &Owner, session: &SessionId, seq: Seq) -> String {
    format!("{owner}{SEPARATOR}{session}{SEPARATOR}{seq}")
}

impl Fields {
    pub(crate) fn key_term(&self, owner: &Owner, session: &SessionId, seq: Seq) -> Term {
        Term::from_field_text(self.key, &passage_key(owner, session, seq))
    }

    pub(crate) fn session_term(&self, owner: &Owner, session: &SessionId) -> Term {
        Term::from_field_text(self.session, &session_key(owner, session))
    }

    /// The document of a passage within its window.
    pub(crate) fn document(&self, window: &Window<'_>) -> Result<TantivyDocument, RecallError> {
        let Prepared { passage, terms, .. } = window.middle;
        let mut document = TantivyDocument::new();
        let key = passage_key(&passage.owner, &passage.session, passage.seq);
        document.add_text(self.key, key);
        document.add_text(self.owner, passage.owner.as_str());
        document.add_text(self.session, session_key(&passage.owner, &passage.session));
        document.add_text(self.role, passage.role.as_str());
        if let Some(author) = &passage.author {
            let whole = folded(author.trim());
            for part in words(author).flat_map(|word| word.parts) {
                if part.plain != whole {
                    document.add_text(self.author, part.plain);
                }
            }
            document.add_text(self.author, whole);
        }
        for file in &passage.files {
            document.add_text(self.file, folded(file));
        }
        for other in window.around() {
            let (owner, session) = (&other.passage.owner, &other.passage.session);
            document.add_text(self.around, passage_key(owner, session, other.passage.seq));
            if *session != passage.session {
                document.add_text(self.around, session_key(owner, session));
            }
        }
        document.add_u64(self.seq, passage.seq.0);
        document.add_i64(self.at, passage.at.as_microsecond());
        document.add_text(self.own, &terms.in_order);
        document.add_text(self.context, context(window));
        document.add_custom(self.vector, &window.vector());
        let kept = Kept {
            passage: passage.clone(),
            before: window.before().map(Prepared::head).unwrap_or_default(),
        };
        document.add_bytes(self.kept, &serde_json::to_vec(&kept)?);
        Ok(document)
    }
}

/// What a passage is ranked by.
fn context(window: &Window<'_>) -> String {
    let passage = &window.middle.passage;
    let own = &window.middle.terms.content;
    let mut context = format!("{own} {own}");
    let mut add = |terms: &str| {
        context.push(' ');
        context.push_str(terms);
    };
    for other in window.around() {
        add(other.terms.content_head());
    }
    add(&Terms::of(&date(passage.at)).content);
    if let Some(author) = &passage.author {
        add(&Terms::of(author).content);
    }
    context
}

/// The date in words: `8 May 2023`.
pub(crate) fn date(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC).strftime("%-d %B %Y").to_string()
}
