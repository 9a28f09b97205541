//! Stores the vectors of passages in one file per segment of the full-text index.
//!
//! The engine lets a segment carry additional files: vectors are committed, deleted and merged
//! together with their documents, a crash cannot separate them, and the files are
//! memory-mapped.
//!
//! Invariant: row `n` of a segment's file is the vector of its document `n`.

use std::any::Any;
use std::io::Write as _;

use tantivy::directory::OwnedBytes;
use tantivy::directory::TerminatingWrite as _;
use tantivy::error::DataCorruption;
use tantivy::index::SegmentComponent;
use tantivy::indexer::doc_id_mapping::{DocIdMapping, MappingType};
use tantivy::plugin::{PluginMergeContext, PluginWriter, PluginWriterContext, SegmentPlugin};
use tantivy::schema::document::ErasedDocument;
use tantivy::schema::{Field, FieldType, Schema, Value as _};
use tantivy::{DocId, Segment, SegmentReader, TantivyDocument, TantivyError};

use crate::vector::{ROW_BYTES, split_scale};

/// The schema's type name for vector fields.
pub(crate) const VECTOR_TYPE: &str = "throughline-vector";

const EXTENSION: &str = "vectors";

/// The memory-mapped vectors of one segment.
pub(crate) struct SegmentVectors(OwnedBytes);

impl SegmentVectors {
    pub(crate) fn open(segment: &SegmentReader) -> Result<Self, TantivyError> {
        let file = segment.open_read(component())?;
        let bytes = file.read_bytes()?;
        if bytes.len() != segment.max_doc() as usize * ROW_BYTES {
            let found = format!("{} bytes of vectors", bytes.len());
            return Err(DataCorruption::comment_only(found).into());
        }
        Ok(Self(bytes))
    }

    /// Returns the bytes of a document's vector, and their scale.
    #[inline]
    pub(crate) fn row(&self, doc: DocId) -> (&[u8], f32) {
        let start = doc as usize * ROW_BYTES;
        split_scale(&self.0[start..start + ROW_BYTES])
    }
}

fn component() -> SegmentComponent {
    SegmentComponent::Custom(EXTENSION.to_owned())
}

/// Writes and merges the vectors of segments.
#[derive(Debug)]
pub(crate) struct VectorPlugin;

impl SegmentPlugin for VectorPlugin {
    fn extensions(&self) -> &[&str] {
        &[EXTENSION]
    }

    fn create_writer(
        &self,
        context: &PluginWriterContext<'_>,
    ) -> tantivy::Result<Box<dyn PluginWriter>> {
        let schema = context.segment.schema();
        let mut fields = schema.fields();
        let field = fields.find(|(_, entry)| matches!(entry.field_type(), FieldType::Custom(_)));
        let (field, _) = field.ok_or_else(|| {
            TantivyError::SchemaError("the schema has no vector field".to_owned())
        })?;
        Ok(Box::new(VectorWriter {
            field,
            rows: Vec::new(),
        }))
    }

    fn merge(&self, context: PluginMergeContext<'_>) -> tantivy::Result<()> {
        if context.doc_id_mapping.mapping_type() == MappingType::Shuffled {
            let what = "vectors can only be merged in order".to_owned();
            return Err(TantivyError::InternalError(what));
        }
        let mut file = context.target_segment.open_write(component())?;
        for reader in context.readers {
            let vectors = SegmentVectors::open(reader)?;
            for doc in reader.doc_ids_alive() {
                let start = doc as usize * ROW_BYTES;
                file.write_all(&vectors.0[start..start + ROW_BYTES])?;
            }
        }
        file.terminate()?;
        Ok(())
    }
}

struct VectorWriter {
    field: Field,
    rows: Vec<u8>,
}

impl PluginWriter for VectorWriter {
    fn add_document(
        &mut self,
        _: DocId,
        document: &dyn ErasedDocument,
        _: &Schema,
    ) -> tantivy::Result<()> {
        let document = document.as_any().downcast_ref::<TantivyDocument>();
        let value = document.and_then(|document| document.get_first(self.field));
        let row = value.and_then(|value| value.as_custom());
        match row {
            Some(row) if row.len() == ROW_BYTES => self.rows.extend_from_slice(row),
            _ => self.rows.extend_from_slice(&[0; ROW_BYTES]),
        }
        Ok(())
    }

    fn serialize(
        self: Box<Self>,
        segment: &Segment,
        order: Option<&DocIdMapping>,
    ) -> tantivy::Result<()> {
        if order.is_some() {
            let what = "vectors can only be written in order".to_owned();
            return Err(TantivyError::InternalError(what));
        }
        let mut file = segment.open_write(component())?;
        file.write_all(&self.rows)?;
        file.terminate()?;
        Ok(())
    }

    fn mem_usage(&self) -> usize {
        self.rows.capacity()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
