//! The encoding of postings: which passages have which terms, in blocks of 256 passages.
//!
//! A block is written once, from passages that are in no block, and never extended. A
//! passage that changes leaves its block, which only clears its length. Erasing a passage
//! drops its whole block, and the other passages in it are written again.
//!
//! Invariant: a slot whose length is 0 holds no passage, even if postings still refer to
//! it.

use std::collections::BTreeMap;

use throughline_recall::TermCounts;
use throughline_store::StoreError;

use crate::error::damaged;

/// The most passages in a block: a slot number is one byte.
pub(super) const BLOCK_SIZE: usize = 256;
/// The same, for arithmetic on passage numbers.
pub(super) const BLOCK_SPAN: i64 = 256;

/// The bytes of a posting: slot, own count, context count.
const POSTING_BYTES: usize = 3;
/// The bytes of a passage's two lengths.
const LENGTH_BYTES: usize = 4;

/// The length of a passage in its own terms and in the context terms it is ranked by. A
/// context length of 0 marks an empty slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PassageLength {
    pub(super) own: u16,
    pub(super) context: u16,
}

/// The occurrence of a term in a passage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Posting {
    pub(super) number: i64,
    /// How often the passage itself has the term.
    pub(super) own: u8,
    /// How often the term counts for ranking.
    pub(super) context: u8,
}

impl PassageLength {
    pub(super) fn of(tally: &TermCounts) -> Self {
        let sum = |which: fn(&(u32, u32)) -> u32| {
            let sum: u64 = tally
                .terms
                .values()
                .map(|both| u64::from(which(both)))
                .sum();
            u16::try_from(sum).unwrap_or(u16::MAX)
        };
        Self {
            own: sum(|both| both.0),
            // At least 1: 0 marks an empty slot.
            context: sum(|both| both.1).max(1),
        }
    }

    pub(super) fn is_empty(self) -> bool {
        self.context == 0
    }
}

/// Decodes the lengths of a block's passages, by slot.
pub(super) fn decode_lengths(bytes: &[u8]) -> Result<Vec<PassageLength>, StoreError> {
    if !bytes.len().is_multiple_of(LENGTH_BYTES) || bytes.len() > BLOCK_SIZE * LENGTH_BYTES {
        return Err(malformed(bytes.len(), "lengths"));
    }
    let lengths = bytes.chunks_exact(LENGTH_BYTES).map(|four| PassageLength {
        own: u16::from_le_bytes([four[0], four[1]]),
        context: u16::from_le_bytes([four[2], four[3]]),
    });
    Ok(lengths.collect())
}

pub(super) fn encode_lengths(lengths: &[PassageLength]) -> Vec<u8> {
    let bytes = lengths.iter().flat_map(|length| {
        let [a, b] = length.own.to_le_bytes();
        let [c, d] = length.context.to_le_bytes();
        [a, b, c, d]
    });
    bytes.collect()
}

/// Decodes a term's postings in a block, without those of empty slots.
pub(super) fn decode_postings<'a>(
    block: i32,
    bytes: &'a [u8],
    lengths: &'a [PassageLength],
) -> Result<impl Iterator<Item = Posting> + 'a, StoreError> {
    if !bytes.len().is_multiple_of(POSTING_BYTES) {
        return Err(malformed(bytes.len(), "postings"));
    }
    let first = i64::from(block) * BLOCK_SPAN;
    let postings = bytes
        .chunks_exact(POSTING_BYTES)
        .filter(move |three| is_occupied(lengths, three[0]))
        .map(move |three| Posting {
            number: first + i64::from(three[0]),
            own: three[1],
            context: three[2],
        });
    Ok(postings)
}

fn is_occupied(lengths: &[PassageLength], slot: u8) -> bool {
    let length = lengths.get(usize::from(slot)).copied();
    length.is_some_and(|length| !length.is_empty())
}

/// Drops the postings of empty slots; returns how many of the rest have the term
/// themselves, and the remaining postings.
pub(super) fn retain_occupied(
    bytes: &[u8],
    lengths: &[PassageLength],
) -> Result<(i16, Vec<u8>), StoreError> {
    if !bytes.len().is_multiple_of(POSTING_BYTES) {
        return Err(malformed(bytes.len(), "postings"));
    }
    let (mut own, mut retained) = (0, Vec::new());
    for three in bytes.chunks_exact(POSTING_BYTES) {
        if is_occupied(lengths, three[0]) {
            own += i16::from(three[1] > 0);
            retained.extend_from_slice(three);
        }
    }
    Ok((own, retained))
}

fn malformed(bytes: usize, of: &str) -> StoreError {
    damaged("a block of the index", format!("{bytes} bytes of {of}"))
}

/// A new block.
#[derive(Debug, Default)]
pub(super) struct Block<'a> {
    pub(super) lengths: Vec<PassageLength>,
    /// For each term, the number of passages that have it themselves, and its postings.
    pub(super) terms: BTreeMap<&'a str, (i16, Vec<u8>)>,
}

impl<'a> Block<'a> {
    /// Builds a block of at most [`BLOCK_SIZE`] passages.
    pub(super) fn of(tallies: impl IntoIterator<Item = &'a TermCounts>) -> Self {
        let mut block = Self::default();
        for (place, tally) in (0..=u8::MAX).zip(tallies) {
            block.lengths.push(PassageLength::of(tally));
            for (term, (own, context)) in &tally.terms {
                let byte = |count: u32| u8::try_from(count).unwrap_or(u8::MAX);
                let (with, postings) = block.terms.entry(term).or_default();
                *with += i16::from(*own > 0);
                postings.extend([place, byte(*own), byte(*context)]);
            }
        }
        block
    }
}

/// Encodes the terms of a passage as text, one per line.
pub(super) fn encode_terms(tally: &TermCounts) -> String {
    let lines = tally
        .terms
        .iter()
        .map(|(term, (own, context))| format!("{term} {own} {context}"));
    lines.collect::<Vec<_>>().join("\n")
}

pub(super) fn decode_terms(text: &str) -> Result<TermCounts, StoreError> {
    let line = |line: &str| {
        let (rest, context) = line.rsplit_once(' ')?;
        let (term, own) = rest.rsplit_once(' ')?;
        Some((term.to_owned(), (own.parse().ok()?, context.parse().ok()?)))
    };
    let terms: Option<BTreeMap<_, _>> = text.lines().map(line).collect();
    match terms {
        Some(terms) => Ok(TermCounts { terms }),
        None => Err(damaged("the terms of a passage", text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    fn tally(terms: &[(&str, u32, u32)]) -> TermCounts {
        let terms = terms
            .iter()
            .map(|(term, own, context)| ((*term).to_owned(), (*own, *context)));
        TermCounts {
            terms: terms.collect(),
        }
    }

    #[test]
    fn a_block_holds_what_its_passages_had() {
        let one = tally(&[("apple", 1, 2), ("the", 3, 0)]);
        let two = tally(&[("apple", 0, 1), ("pear", 400, 800)]);
        let block = Block::of([&one, &two]);
        let mut lengths = decode_lengths(&encode_lengths(&block.lengths)).unwrap();
        assert_eq!(lengths, [PassageLength::of(&one), PassageLength::of(&two)]);
        let (with, postings) = &block.terms["apple"];
        assert_eq!(*with, 1);
        let read = |lengths: &[PassageLength]| -> Vec<Posting> {
            decode_postings(3, postings, lengths).unwrap().collect()
        };
        let both = read(&lengths);
        let shown: Vec<_> = both.iter().map(|p| (p.number, p.own, p.context)).collect();
        assert_eq!(shown, [(768, 1, 2), (769, 0, 1)]);
        // Removed passages are not returned.
        lengths[0] = PassageLength::default();
        assert_eq!(read(&lengths), both[1..]);
        assert_eq!(
            retain_occupied(postings, &lengths).unwrap(),
            (0, vec![1, 0, 1])
        );
        assert_eq!(block.terms["pear"].1, [1, 255, 255]);
    }

    #[test]
    fn words_beside_a_passage_are_read_as_written() {
        let both = tally(&[("a.b/c", 1, 2), ("größe", 0, 7)]);
        assert_eq!(decode_terms(&encode_terms(&both)).unwrap(), both);
        assert!(decode_terms("apple 1").is_err());
        assert!(decode_lengths(&[0; 5]).is_err());
        assert!(decode_postings(0, &[0; 4], &[]).is_err());
    }
}
