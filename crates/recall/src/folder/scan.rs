//! Candidates by likeness as a whole: every vector in scope is compared.
//!
//! Exact, so that nothing is lost silently: an approximate graph was measured to miss a
//! third to a half. Bytes are compared with bytes first, on every core; the best are
//! compared again with the query's vector as it is.

use std::num::NonZero;
use std::ops::Range;

use tantivy::{DocAddress, DocId, SegmentReader};

use super::View;
use super::filter::{Allowed, Filter};
use super::sight::{to_address, to_at};
use super::vectors::Vectors;
use crate::At;
use crate::best::Best;
use crate::model::{DIM, Work, dot, widened, widest};
use crate::vector::{self, Vector};

/// Fewer vectors than this are not worth a second thread.
const SHARE: DocId = 20_000;

/// A piece of a segment, for one thread.
struct Piece<'a> {
    ord: u32,
    segment: &'a SegmentReader,
    allowed: &'a Allowed,
    vectors: &'a Vectors,
    docs: Range<DocId>,
}

/// The passages in scope that are most like the query's vector, the best first.
pub(crate) fn by_likeness(
    view: &View,
    filter: &Filter,
    vector: &[f32],
    count: usize,
) -> Vec<(f32, At)> {
    let segments = view.searcher.segment_readers();
    let mut pieces = Vec::new();
    for (ord, (segment, vectors)) in (0_u32..).zip(segments.iter().zip(view.vectors.iter())) {
        let mut start = 0;
        while start < segment.max_doc() {
            let end = segment.max_doc().min(start + SHARE);
            pieces.push(Piece {
                ord,
                segment,
                allowed: filter.of(ord as usize),
                vectors,
                docs: start..end,
            });
            start = end;
        }
    }
    let row = Vector::of(vector);
    let query = widened(&row.as_bytes()[..DIM]);
    let query = query.as_slice();
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let share = pieces.len().div_ceil(threads).max(1);
    let found = std::thread::scope(|scope| {
        let mut shares = pieces.chunks(share);
        let first = shares.next().unwrap_or_default();
        let others: Vec<_> = shares
            .map(|share| scope.spawn(move || compare(share, query, count)))
            .collect();
        let mut found = compare(first, query, count);
        for other in others {
            // A thread here has nothing to panic about.
            found.extend(other.join().unwrap_or_default());
        }
        found
    });
    let mut best = Best::new(count);
    for (_, at) in found {
        best.offer(likeness(view, at, vector), at);
    }
    best.into_sorted()
}

fn compare(pieces: &[Piece<'_>], query: &[i16], count: usize) -> Vec<(f32, At)> {
    let mut best = Best::new(count);
    for piece in pieces {
        let best = &mut best;
        widest(Compare { piece, query, best });
    }
    best.into_sorted()
}

/// The comparison of a piece's vectors with the query's.
struct Compare<'a> {
    piece: &'a Piece<'a>,
    query: &'a [i16],
    best: &'a mut Best,
}

impl Work for Compare<'_> {
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
                best.offer(score, to_at(DocAddress::new(piece.ord, doc)));
                threshold = best.threshold();
            }
        }
    }
}

/// How alike a passage's vector and another are.
pub(crate) fn likeness(view: &View, at: At, vector: &[f32]) -> f32 {
    let at = to_address(at);
    let (bytes, scale) = view.vectors[at.segment_ord as usize].row(at.doc_id);
    vector::likeness(bytes, scale, vector)
}
