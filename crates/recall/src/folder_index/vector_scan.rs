//! Finds candidates by vector similarity, comparing every vector in scope.
//!
//! The scan is exact, so that no result is lost silently: an approximate graph was measured to
//! miss a third to a half. Quantized vectors are compared first, on every core; the best are
//! then compared with the query's unquantized vector.

use std::num::NonZero;
use std::ops::Range;

use tantivy::{DocAddress, DocId, SegmentReader};

use super::CommitView;
use super::doc_filter::{AllowedDocs, DocFilter};
use super::folder_reader::{to_address, to_passage_id};
use super::vectors::SegmentVectors;
use crate::PassageId;
use crate::static_model::{DIM, Work, dispatch_simd, dot, widen};
use crate::top_k::TopK;
use crate::vector::{self, Vector};

/// The minimum number of vectors that justifies another thread.
const CHUNK_DOCS: DocId = 20_000;

/// A chunk of a segment, scanned by one thread.
struct VectorChunk<'a> {
    ord: u32,
    segment: &'a SegmentReader,
    allowed: &'a AllowedDocs,
    vectors: &'a SegmentVectors,
    docs: Range<DocId>,
}

/// Returns the passages in scope nearest to the query vector, the best first.
pub(crate) fn nearest_vectors(
    view: &CommitView,
    filter: &DocFilter,
    vector: &[f32],
    count: usize,
) -> Vec<(f32, PassageId)> {
    let segments = view.searcher.segment_readers();
    let mut pieces = Vec::new();
    for (ord, (segment, vectors)) in (0_u32..).zip(segments.iter().zip(view.vectors.iter())) {
        let mut start = 0;
        while start < segment.max_doc() {
            let end = segment.max_doc().min(start + CHUNK_DOCS);
            pieces.push(VectorChunk {
                ord,
                segment,
                allowed: filter.segment(ord as usize),
                vectors,
                docs: start..end,
            });
            start = end;
        }
    }
    let row = Vector::quantize(vector);
    let query = widen(&row.as_bytes()[..DIM]);
    let query = query.as_slice();
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let share = pieces.len().div_ceil(threads).max(1);
    let found = std::thread::scope(|scope| {
        let mut shares = pieces.chunks(share);
        let first = shares.next().unwrap_or_default();
        let others: Vec<_> = shares
            .map(|share| scope.spawn(move || scan_chunks(share, query, count)))
            .collect();
        let mut found = scan_chunks(first, query, count);
        for other in others {
            // The scan does not panic, so nothing is lost here.
            found.extend(other.join().unwrap_or_default());
        }
        found
    });
    let mut best = TopK::new(count);
    for (_, at) in found {
        best.offer(similarity(view, at, vector), at);
    }
    best.into_sorted()
}

fn scan_chunks(pieces: &[VectorChunk<'_>], query: &[i16], count: usize) -> Vec<(f32, PassageId)> {
    let mut best = TopK::new(count);
    for piece in pieces {
        let best = &mut best;
        dispatch_simd(ChunkScan { piece, query, best });
    }
    best.into_sorted()
}

/// Compares the vectors of a chunk with the query vector.
struct ChunkScan<'a> {
    piece: &'a VectorChunk<'a>,
    query: &'a [i16],
    best: &'a mut TopK,
}

impl Work for ChunkScan<'_> {
    type Output = ();

    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "it must be compiled into the work that is done with it"
    )]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let Self { piece, query, best } = self;
        let mut threshold = best.threshold();
        for doc in piece.docs.clone() {
            if !piece.allowed.may_contain(doc) {
                continue;
            }
            let (bytes, scale) = piece.vectors.row(doc);
            let score = scale * dot(bytes, query);
            if score > threshold && piece.allowed.contains(piece.segment, doc) {
                best.offer(score, to_passage_id(DocAddress::new(piece.ord, doc)));
                threshold = best.threshold();
            }
        }
    }
}

/// Returns the similarity of a passage's vector to another vector.
pub(crate) fn similarity(view: &CommitView, at: PassageId, vector: &[f32]) -> f32 {
    let at = to_address(at);
    let (bytes, scale) = view.vectors[at.segment_ord as usize].row(at.doc_id);
    vector::similarity(bytes, scale, vector)
}
