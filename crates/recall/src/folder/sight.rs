//! What a search sees of a folder: one commit.

use tantivy::schema::Value as _;
use tantivy::{DocAddress, TantivyDocument, Term};

use super::View;
use super::filter::Filter;
use super::scan::{by_likeness, likeness};
use super::text::ByWords;
use super::typing::{endings, nearest};
use crate::error::During as _;
use crate::{At, Kept, Passage, RecallError, Sight, Spread};

const READING: &str = "reading a passage";
/// Blocks of documents that are read from front to back need not be kept.
const CACHED_BLOCKS: usize = 1;

/// One commit, narrowed.
pub(super) struct FolderSight {
    pub(super) view: View,
    pub(super) filter: Filter,
}

impl Sight for FolderSight {
    fn watermark(&self) -> u64 {
        self.view.state.upto
    }

    fn spread(&self, terms: &[&str]) -> Result<Spread, RecallError> {
        let counts = terms.iter().map(|term| {
            let term = Term::from_field_text(self.view.fields.own, term);
            let counted = self.view.searcher.doc_freq(&term);
            counted.during("counting a word")
        });
        Ok(Spread {
            with: counts.collect::<Result<_, _>>()?,
            all: self.view.searcher.num_docs(),
        })
    }

    fn endings(&self, prefix: &str, count: usize) -> Result<Vec<String>, RecallError> {
        endings(&self.view, prefix, count)
    }

    fn nearest(&self, term: &str) -> Result<Option<String>, RecallError> {
        nearest(&self.view, &self.filter, term)
    }

    fn by_words(&self, terms: &[&str], count: usize) -> Result<Vec<(f32, At)>, RecallError> {
        match ByWords::new(&self.view, terms)? {
            Some(search) => search.best(&self.filter, count),
            None => Ok(Vec::new()),
        }
    }

    fn scores(&self, terms: &[&str], at: &[At]) -> Result<Vec<f32>, RecallError> {
        let addresses: Vec<DocAddress> = at.iter().map(|at| to_address(*at)).collect();
        match ByWords::new(&self.view, terms)? {
            Some(search) => search.scores(&addresses),
            None => Ok(vec![0.0; at.len()]),
        }
    }

    fn by_likeness(&self, vector: &[f32], count: usize) -> Result<Vec<(f32, At)>, RecallError> {
        Ok(by_likeness(&self.view, &self.filter, vector, count))
    }

    fn read(&self, at: &[At], vector: &[f32]) -> Result<Vec<(Kept, f32)>, RecallError> {
        let one = |at: &At| {
            let kept = kept(&self.view, to_address(*at))?;
            Ok((kept, likeness(&self.view, *at, vector)))
        };
        at.iter().map(one).collect()
    }
}

/// Where a document is: its segment, and its number there.
pub(super) fn to_at(address: DocAddress) -> At {
    At(u64::from(address.segment_ord) << 32 | u64::from(address.doc_id))
}

#[expect(clippy::cast_possible_truncation, reason = "two halves")]
pub(super) fn to_address(At(at): At) -> DocAddress {
    DocAddress::new((at >> 32) as u32, at as u32)
}

/// What the index keeps of a passage.
pub(super) fn kept(view: &View, address: DocAddress) -> Result<Kept, RecallError> {
    let document: TantivyDocument = view.searcher.doc(address).during(READING)?;
    decode(view, &document)
}

fn decode(view: &View, document: &TantivyDocument) -> Result<Kept, RecallError> {
    let kept = document.get_first(view.fields.kept);
    let bytes = kept.and_then(|kept| kept.as_bytes()).unwrap_or_default();
    Ok(serde_json::from_slice(bytes)?)
}

/// Reads every passage of a commit, segment by segment.
pub(super) fn scan(view: &View, each: &mut dyn FnMut(Passage)) -> Result<(), RecallError> {
    for segment in view.searcher.segment_readers() {
        let documents = segment.get_store_reader(CACHED_BLOCKS).during(READING)?;
        for document in documents.iter::<TantivyDocument>(segment.alive_bitset()) {
            each(decode(view, &document.during(READING)?)?.passage);
        }
    }
    Ok(())
}
