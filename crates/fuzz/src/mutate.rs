//! Mutations that turn a valid document into a nearly valid one.

use crate::Choices;
use crate::json_mutation;

/// Changes a document, given others of its kind to splice from.
pub type Mutation = fn(Vec<u8>, &[Vec<u8>], &mut Choices<'_>) -> Option<Vec<u8>>;

/// The maximum size of a mutated document.
const MAX_DOCUMENT_BYTES: usize = 1 << 20;

/// Mutates JSON lines: one JSON value per line.
pub fn json_lines(document: Vec<u8>, others: &[Vec<u8>], by: &mut Choices<'_>) -> Option<Vec<u8>> {
    match by.below(10)? {
        0 => bytes(document, others, by),
        1..=3 => lines(document, others, by),
        _ => mutate_json_line(document, others, by),
    }
}

/// Mutates one JSON value.
pub fn json_document(
    document: Vec<u8>,
    others: &[Vec<u8>],
    by: &mut Choices<'_>,
) -> Option<Vec<u8>> {
    if by.one_in(10)? {
        return bytes(document, others, by);
    }
    let other = by.pick(others).map_or(&[][..], Vec::as_slice);
    json_mutation::mutate(&document, other, by)
}

/// Mutates text in lines, such as Markdown.
pub fn text(document: Vec<u8>, others: &[Vec<u8>], by: &mut Choices<'_>) -> Option<Vec<u8>> {
    if by.one_in(3)? {
        return bytes(document, others, by);
    }
    lines(document, others, by)
}

/// Mutates one line of JSON.
fn mutate_json_line(
    document: Vec<u8>,
    others: &[Vec<u8>],
    by: &mut Choices<'_>,
) -> Option<Vec<u8>> {
    let mut all = split_lines(&document);
    if all.is_empty() {
        return Some(document);
    }
    let at = by.below(all.len())?;
    let theirs = by.pick(others).map_or(&[][..], Vec::as_slice);
    let theirs = split_lines(theirs);
    let other = by.pick(&theirs).copied().unwrap_or_default();
    let mut changed = json_mutation::mutate(all[at], other, by)?;
    if !changed.ends_with(b"\n") {
        changed.push(b'\n');
    }
    all[at] = &changed;
    Some(all.concat())
}

/// Adds, removes and reorders lines.
pub fn lines(document: Vec<u8>, others: &[Vec<u8>], by: &mut Choices<'_>) -> Option<Vec<u8>> {
    let mut all = split_lines(&document);
    if all.is_empty() {
        return bytes(document, others, by);
    }
    let at = by.below(all.len())?;
    let garbage;
    match by.below(8)? {
        0 => {
            all.remove(at);
        }
        1 => {
            let to = by.below(all.len() + 1)?;
            all.insert(to, all[at]);
        }
        2 => {
            let other = by.below(all.len())?;
            all.swap(at, other);
        }
        3 => {
            let times = *by.pick(&[2, 10, 300])?;
            let many = std::iter::repeat_n(all[at], times);
            all.splice(at..=at, many);
        }
        // Truncate the line, or join it with the next.
        4 => all[at] = &all[at][..by.below(all[at].len())?],
        5 => {
            let part = by.range(all.len(), 20)?;
            all.drain(part);
        }
        6 => {
            let theirs = split_lines(by.pick(others).map_or(&[][..], Vec::as_slice));
            let part = by.range(theirs.len(), 20)?;
            all.splice(at..at, theirs[part].iter().copied());
        }
        _ => {
            let mut line = by.pick(INVALID_LINES)?.to_vec();
            line.push(b'\n');
            garbage = line;
            all.insert(at, &garbage);
        }
    }
    Some(truncate_to_limit(all.concat()))
}

/// Lines that are invalid in every format.
const INVALID_LINES: &[&[u8]] = &[
    b"",
    b"garbage",
    b"\xff\xfe",
    b"{",
    b"}",
    b"[]",
    b"{}",
    b"null",
    b"\"text\"",
    b"\xef\xbb\xbf{}",
    b"\0",
    b"   ",
    b"#### ",
    b"---",
    b"{}{}",
];

/// Mutates arbitrary bytes.
pub fn bytes(mut document: Vec<u8>, others: &[Vec<u8>], by: &mut Choices<'_>) -> Option<Vec<u8>> {
    let length = document.len();
    match by.below(8)? {
        0 => document.truncate(by.below(length + 1)?),
        1 | 2 if length > 0 => {
            let at = by.below(length)?;
            document[at] ^= 1 << by.below(8)?;
        }
        3 if length > 0 => {
            let at = by.below(length)?;
            document[at] = *by.pick(&[0, 1, 0x7f, 0x80, 0xff, b'"', b'{', b'\n', b'\\'])?;
        }
        4 => {
            let part = by.range(length, 4096)?;
            document.drain(part);
        }
        5 => {
            let part = by.range(length, 64)?;
            let noise = by.random_bytes(part.len())?;
            document.splice(part, noise);
        }
        6 => {
            let part = by.range(length, 4096)?;
            let part = document[part].to_vec();
            let at = by.below(length + 1)?;
            document.splice(at..at, part);
        }
        _ => {
            let theirs = by.pick(others).map_or(&[][..], Vec::as_slice);
            let part = by.range(theirs.len(), 4096)?;
            let at = by.below(length + 1)?;
            document.splice(at..at, theirs[part].iter().copied());
        }
    }
    Some(truncate_to_limit(document))
}

/// Mutates pages of a binary file, and bytes in them.
pub fn pages<const PAGE: usize>(
    mut document: Vec<u8>,
    others: &[Vec<u8>],
    by: &mut Choices<'_>,
) -> Option<Vec<u8>> {
    let count = document.len() / PAGE;
    if count == 0 {
        return bytes(document, others, by);
    }
    let page = by.below(count)? * PAGE;
    match by.below(8)? {
        0 => document[page..page + PAGE].fill(0),
        1 => {
            let other = by.below(count)? * PAGE;
            document.copy_within(other..other + PAGE, page);
        }
        2 => document.truncate(page + by.below(PAGE)?),
        // The header of the file or of a page, where every byte is significant.
        3 | 4 => {
            let at = page + by.below(if page == 0 { 112 } else { 32 })?;
            document[at] = *by.pick(&[0, 1, 2, 5, 10, 13, 0x7f, 0x80, 0xff])?;
        }
        5 => {
            let part = by.range(PAGE, 64)?;
            let noise = by.random_bytes(part.len())?;
            document[page + part.start..page + part.end].copy_from_slice(&noise);
        }
        6 => {
            let at = by.below(document.len())?;
            document[at] ^= 1 << by.below(8)?;
        }
        _ => {
            let theirs = by.pick(others).map_or(&[][..], Vec::as_slice);
            let from = by.below(theirs.len() / PAGE)? * PAGE;
            let theirs = theirs.get(from..from + PAGE)?;
            document[page..page + PAGE].copy_from_slice(theirs);
        }
    }
    Some(document)
}

/// Returns the lines of a document, including their line endings.
fn split_lines(document: &[u8]) -> Vec<&[u8]> {
    document.split_inclusive(|byte| *byte == b'\n').collect()
}

fn truncate_to_limit(mut document: Vec<u8>) -> Vec<u8> {
    document.truncate(MAX_DOCUMENT_BYTES);
    document
}
