//! Finds the rows of a damaged store file page by page, without using the B-trees.
//!
//! Only pages that hold rows are inspected, never the inside of values: a page into which a
//! value overflows does not start like one that holds rows, so no stored text or attachment can
//! be mistaken for a row.

use std::collections::{BTreeMap, HashMap};

use throughline_model::{ApiToken, Owner, Project, ProjectId, SessionHeader};

use super::page_format::{PageKind, RowPage};
use super::page_reader::PageReader;
use super::record_format::{RawRow, RecordHeader};
use super::row_decode::{SessionRow, decode_session, decode_token};

// The columns of each table and index, in the letters of `RecordHeader::matches_shape`.
const ENTRY_SHAPE: &str = "-iiII@i#t";
const SESSION_SHAPE: &str = "-itTTiIii#iiiiTTiItTtTtTTTTTTTt";
const BLOB_SHAPE: &str = "-i#b";
/// The shape of the tables `birth` (session headers), `standing` (session states) and `owner`.
const NUMBER_AND_TEXT: &str = "-t";
/// The shape of `inherits` and its index, and of `session_trash`.
const THREE_NUMBERS: &str = "iii";
const PROJECT_SHAPE: &str = "itt";
const OWNER_INDEX_SHAPE: &str = "ti";
const ENTRY_INDEX_SHAPE: &str = "@iii";
const TOKEN_SHAPE: &str = "t#ttTiII";

/// The location of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowLocation {
    /// What it is looked up by: an entry's session and number, or another row's id.
    pub(super) key: (i64, u64),
    pub(super) page: u32,
    pub(super) cell: u16,
    /// How many rows its page has: stale copies tend to be on pages with few.
    rows_on_page: u16,
}

/// Everything found in a file.
#[derive(Debug, Default)]
pub(super) struct ScanResult {
    /// Entries, by session and number; several locations per entry where stale copies remain.
    pub(super) entries: Vec<RowLocation>,
    pub(super) sessions: BTreeMap<i64, SessionRow>,
    pub(super) headers: BTreeMap<i64, SessionHeader>,
    pub(super) owners: BTreeMap<i64, Owner>,
    /// The ranges a session may inherit: up to which entry, and from which session.
    pub(super) inherited: BTreeMap<i64, BTreeMap<u64, i64>>,
    pub(super) projects: BTreeMap<(i64, ProjectId), Project>,
    pub(super) blobs: Vec<RowLocation>,
    /// Tokens, by id.
    pub(super) tokens: BTreeMap<String, ApiToken>,
    /// The last entry of each session according to the id index.
    pub(super) last_indexed: HashMap<i64, u64>,
    /// The position of each entry according to the id index; `None` where an id occurs more
    /// than once.
    indexed_positions: HashMap<[u8; 16], Option<(i64, u64)>>,
    /// The id of each of `entries`.
    ids: Vec<[u8; 16]>,
}

/// Scans every page.
pub(super) fn scan(pages: &mut PageReader) -> ScanResult {
    let mut found = ScanResult::default();
    let mut owners_by_index = BTreeMap::new();
    for number in pages.page_numbers() {
        let page = pages.read_page(number);
        let Some(leaf) = RowPage::parse(page, number) else {
            continue;
        };
        let page = page.to_vec();
        let heads = row_headers(&page, &leaf);
        if leaf.kind == PageKind::Table {
            scan_table_page(pages, number, heads, &mut found);
        } else {
            for (_, cell, header) in heads {
                if is_index_row(&header) {
                    let row = pages.read_full_row(number, &cell, header);
                    add_index_row(&row, &mut found, &mut owners_by_index);
                }
            }
        }
    }
    for (pk, owner) in owners_by_index {
        found.owners.entry(pk).or_insert(owner);
    }
    // A row whose numbers were damaged would be taken for another session's entry; the index
    // has the right ones.
    for (location, id) in found.entries.iter_mut().zip(std::mem::take(&mut found.ids)) {
        if let Some(Some(key)) = found.indexed_positions.get(&id) {
            location.key = *key;
        }
    }
    found.indexed_positions = HashMap::new();
    found
        .entries
        .sort_by_key(|location| (location.key, std::cmp::Reverse(location.rows_on_page)));
    found
}

type RowHeader = (u16, super::page_format::Cell, RecordHeader);

fn row_headers(page: &[u8], leaf: &RowPage) -> Vec<RowHeader> {
    let rows = leaf.cells.iter().filter_map(|at| {
        let (cell, header) = PageReader::parse_row_header(page, leaf.kind, *at)?;
        Some((*at, cell, header))
    });
    match leaf.kind {
        PageKind::Table => {
            longest_ascending(rows.filter(|(_, _, header)| is_table_row(header)).collect())
        }
        PageKind::Index | PageKind::IndexInterior => rows.collect(),
    }
}

/// Counts the rows of store tables on a page.
pub(super) fn count_rows(page: &[u8], number: u32) -> usize {
    RowPage::parse(page, number)
        .filter(|leaf| leaf.kind == PageKind::Table)
        .map_or(0, |leaf| row_headers(page, &leaf).len())
}

fn is_table_row(header: &RecordHeader) -> bool {
    header.matches_shape(ENTRY_SHAPE, true)
        || header.matches_shape(SESSION_SHAPE, true)
        || header.matches_shape(BLOB_SHAPE, true)
        || header.matches_shape(NUMBER_AND_TEXT, false)
}

fn is_index_row(header: &RecordHeader) -> bool {
    [
        THREE_NUMBERS,
        PROJECT_SHAPE,
        OWNER_INDEX_SHAPE,
        ENTRY_INDEX_SHAPE,
        TOKEN_SHAPE,
    ]
    .iter()
    .any(|shape| header.matches_shape(shape, false))
}

/// Returns the longest ascending run of rows. A row out of order has a damaged number, and
/// would be taken for another session's entry.
fn longest_ascending(rows: Vec<RowHeader>) -> Vec<RowHeader> {
    // For each length, the row with the smallest number that ends an ascending run of that
    // length.
    let mut ends: Vec<usize> = Vec::new();
    let mut before = vec![None; rows.len()];
    for (index, (_, cell, _)) in rows.iter().enumerate() {
        let length = ends.partition_point(|end| rows[*end].1.key < cell.key);
        before[index] = length.checked_sub(1).map(|shorter| ends[shorter]);
        if length == ends.len() {
            ends.push(index);
        } else {
            ends[length] = index;
        }
    }
    let mut kept = vec![false; rows.len()];
    let mut next = ends.last().copied();
    while let Some(index) = next {
        kept[index] = true;
        next = before[index];
    }
    rows.into_iter()
        .zip(kept)
        .filter_map(|(row, kept)| kept.then_some(row))
        .collect()
}

fn scan_table_page(
    pages: &mut PageReader,
    number: u32,
    heads: Vec<RowHeader>,
    found: &mut ScanResult,
) {
    let company = u16::try_from(heads.len()).unwrap_or(u16::MAX);
    let mut texts = Vec::new();
    for (at, cell, header) in heads {
        let location = RowLocation {
            key: (cell.key, 0),
            page: number,
            cell: at,
            rows_on_page: company,
        };
        if header.matches_shape(ENTRY_SHAPE, true) {
            let row = pages.read_local_row(number, at);
            let numbers = row.and_then(|row| {
                let id = row.blob(5)?.try_into().ok()?;
                Some((row.integer(1)?, read_count(&row, 2)?, id))
            });
            if let Some((session, seq, id)) = numbers
                && session > 0
                && seq > 0
            {
                found.ids.push(id);
                found.entries.push(RowLocation {
                    key: (session, seq),
                    ..location
                });
            }
        } else if header.matches_shape(BLOB_SHAPE, true) {
            found.blobs.push(location);
        } else {
            let is_session = header.matches_shape(SESSION_SHAPE, true);
            let row = pages.read_full_row(number, &cell, header);
            if is_session {
                add_session(&row, found);
            } else {
                texts.push(row);
            }
        }
    }
    // A page belongs to one table, and headers and states always begin like this.
    let owners = texts
        .iter()
        .any(|row| row.text(1).is_some_and(|text| !text.starts_with('{')));
    for row in texts {
        let Some(text) = row.text(1) else {
            continue;
        };
        if owners {
            if let Ok(owner) = text.parse() {
                found.owners.insert(row.key, owner);
            }
        } else if let Ok(header) = serde_json::from_str(text) {
            found.headers.insert(row.key, header);
        }
    }
}

fn add_session(row: &RawRow, found: &mut ScanResult) {
    let Some(new) = decode_session(row) else {
        return;
    };
    // Of several copies: removal is permanent, and heads only grow.
    let rank = |row: &SessionRow| (row.gone, row.head);
    let kept = found.sessions.entry(row.key).or_insert_with(|| new.clone());
    if rank(&new) > rank(kept) {
        *kept = new;
    }
}

fn add_index_row(row: &RawRow, found: &mut ScanResult, owners: &mut BTreeMap<i64, Owner>) {
    if row.header.matches_shape(THREE_NUMBERS, false) {
        if let (Some(one), Some(upto), Some(two)) =
            (row.integer(0), read_count(row, 1), row.integer(2))
        {
            // A fork is created after what it shares, so its row id is the greater, whichever
            // of the two B-trees this is from.
            let (base, session) = (one.min(two), one.max(two));
            if base > 0 && base < session && upto > 0 && u32::try_from(upto).is_ok() {
                found
                    .inherited
                    .entry(session)
                    .or_default()
                    .insert(upto, base);
            }
        }
    } else if row.header.matches_shape(PROJECT_SHAPE, false) {
        let project = row.text(2).map(serde_json::from_str::<Project>);
        if let (Some(owner), Some(Ok(project))) = (row.integer(0), project)
            && row.text(1) == Some(project.id.as_str())
        {
            found.projects.insert((owner, project.id.clone()), project);
        }
    } else if row.header.matches_shape(OWNER_INDEX_SHAPE, false) {
        if let (Some(Ok(owner)), Some(pk)) = (row.text(0).map(str::parse), row.integer(1)) {
            owners.insert(pk, owner);
        }
    } else if row.header.matches_shape(TOKEN_SHAPE, false) {
        if let Some(token) = decode_token(row) {
            let known = found.tokens.entry(token.id.as_str().to_owned());
            known.or_insert(token);
        }
    } else if row.header.matches_shape(ENTRY_INDEX_SHAPE, false)
        && let (Some(session), Some(seq)) = (row.integer(1), read_count(row, 2))
    {
        let tail = found.last_indexed.entry(session).or_default();
        *tail = (*tail).max(seq);
        if let Some(id) = row.blob(0).and_then(|id| id.try_into().ok()) {
            let location = (session, seq);
            let known = found.indexed_positions.entry(id).or_insert(Some(location));
            known.take_if(|known| *known != location);
        }
    }
}

fn read_count(row: &RawRow, column: usize) -> Option<u64> {
    u64::try_from(row.integer(column)?).ok()
}
