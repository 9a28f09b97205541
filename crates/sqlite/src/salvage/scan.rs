//! Recognising rows, page by page, without asking any tree where they belong.
//!
//! Only pages that hold rows are looked into, never what is inside values: a page
//! into which a value overflows does not start like one that holds rows, so nothing
//! that was attached or said can pass for a row.

use std::collections::{BTreeMap, HashMap};

use throughline_model::{Birth, Owner, Project, ProjectId, Token};

use super::format::{Kind, Leaf};
use super::pages::Pages;
use super::record::{Header, Row};
use super::rows::{SessionRow, session_row, token_row};

// The columns of each table and index, by the letters of `Header::is`.
const ENTRY: &str = "-iiII@i#t";
const SESSION: &str = "-itTTiIii#iiiiTTiItTtTtTTTTTTTt";
const BLOB: &str = "-i#b";
/// `birth`, `standing` and `owner` alike.
const NUMBER_AND_TEXT: &str = "-t";
/// `inherits` and its index alike, and `session_trash`.
const THREE_NUMBERS: &str = "iii";
const PROJECT: &str = "itt";
const OWNER_INDEX: &str = "ti";
const ENTRY_INDEX: &str = "@iii";
const TOKEN: &str = "t#ttTiII";

/// Where a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// What it is found by: an entry's session and number, or another row's number.
    pub(super) key: (i64, u64),
    pub(super) page: u32,
    pub(super) cell: u16,
    /// How many rows its page has: stale copies tend to be on pages with few.
    company: u16,
}

/// Everything recognised in a file.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Entries, by session and number; several places for one where copies linger.
    pub(super) entries: Vec<Place>,
    pub(super) sessions: BTreeMap<i64, SessionRow>,
    pub(super) births: BTreeMap<i64, Birth>,
    pub(super) owners: BTreeMap<i64, Owner>,
    /// Which stretches a session may share: up to which entry, and of which session.
    pub(super) shares: BTreeMap<i64, BTreeMap<u64, i64>>,
    pub(super) projects: BTreeMap<(i64, ProjectId), Project>,
    pub(super) blobs: Vec<Place>,
    /// Tokens, by their ids.
    pub(super) tokens: BTreeMap<String, Token>,
    /// The last entry that the index of ids knows of each session.
    pub(super) tails: HashMap<i64, u64>,
    /// Where the index of ids has each entry; none where it has several of one id.
    indexed: HashMap<[u8; 16], Option<(i64, u64)>>,
    /// The id of each of `entries`.
    ids: Vec<[u8; 16]>,
}

/// Looks at every page there is.
pub(super) fn scan(pages: &mut Pages) -> Found {
    let mut found = Found::default();
    let mut owners_by_index = BTreeMap::new();
    for number in pages.numbers() {
        let page = pages.page(number);
        let Some(leaf) = Leaf::parse(page, number) else {
            continue;
        };
        let page = page.to_vec();
        let heads = heads(&page, &leaf);
        if leaf.kind == Kind::Table {
            table(pages, number, heads, &mut found);
        } else {
            for (_, cell, header) in heads {
                if is_index_row(&header) {
                    let row = pages.whole(number, &cell, header);
                    index(&row, &mut found, &mut owners_by_index);
                }
            }
        }
    }
    for (pk, owner) in owners_by_index {
        found.owners.entry(pk).or_insert(owner);
    }
    // A row whose numbers were damaged would be taken for an entry of somebody else's; the
    // index knows better.
    for (place, id) in found.entries.iter_mut().zip(std::mem::take(&mut found.ids)) {
        if let Some(Some(key)) = found.indexed.get(&id) {
            place.key = *key;
        }
    }
    found.indexed = HashMap::new();
    found
        .entries
        .sort_by_key(|place| (place.key, std::cmp::Reverse(place.company)));
    found
}

type Head = (u16, super::format::Cell, Header);

fn heads(page: &[u8], leaf: &Leaf) -> Vec<Head> {
    let rows = leaf.cells.iter().filter_map(|at| {
        let (cell, header) = Pages::row_head(page, leaf.kind, *at)?;
        Some((*at, cell, header))
    });
    match leaf.kind {
        Kind::Table => in_order(rows.filter(|(_, _, header)| is_table_row(header)).collect()),
        Kind::Index | Kind::IndexInterior => rows.collect(),
    }
}

/// How many rows of ours a page has.
pub(super) fn rows_in(page: &[u8], number: u32) -> usize {
    Leaf::parse(page, number)
        .filter(|leaf| leaf.kind == Kind::Table)
        .map_or(0, |leaf| heads(page, &leaf).len())
}

fn is_table_row(header: &Header) -> bool {
    header.is(ENTRY, true)
        || header.is(SESSION, true)
        || header.is(BLOB, true)
        || header.is(NUMBER_AND_TEXT, false)
}

fn is_index_row(header: &Header) -> bool {
    [THREE_NUMBERS, PROJECT, OWNER_INDEX, ENTRY_INDEX, TOKEN]
        .iter()
        .any(|shape| header.is(shape, false))
}

/// The most rows that stand in order. A row that sticks out has a damaged number, and
/// would be taken for an entry of somebody else's.
fn in_order(rows: Vec<Head>) -> Vec<Head> {
    // For each length, the row with the least number that ends an ascent so long.
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

fn table(pages: &mut Pages, number: u32, heads: Vec<Head>, found: &mut Found) {
    let company = u16::try_from(heads.len()).unwrap_or(u16::MAX);
    let mut texts = Vec::new();
    for (at, cell, header) in heads {
        let place = Place {
            key: (cell.key, 0),
            page: number,
            cell: at,
            company,
        };
        if header.is(ENTRY, true) {
            let row = pages.row_start(number, at);
            let numbers = row.and_then(|row| {
                let id = row.blob(5)?.try_into().ok()?;
                Some((row.integer(1)?, count(&row, 2)?, id))
            });
            if let Some((session, seq, id)) = numbers
                && session > 0
                && seq > 0
            {
                found.ids.push(id);
                found.entries.push(Place {
                    key: (session, seq),
                    ..place
                });
            }
        } else if header.is(BLOB, true) {
            found.blobs.push(place);
        } else {
            let is_session = header.is(SESSION, true);
            let row = pages.whole(number, &cell, header);
            if is_session {
                session(&row, found);
            } else {
                texts.push(row);
            }
        }
    }
    // One page is of one table, and neither births nor what stands begin otherwise.
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
        } else if let Ok(birth) = serde_json::from_str(text) {
            found.births.insert(row.key, birth);
        }
    }
}

fn session(row: &Row, found: &mut Found) {
    let Some(new) = session_row(row) else {
        return;
    };
    // Of several copies: removal is for good, and heads only grow.
    let rank = |row: &SessionRow| (row.gone, row.head);
    let kept = found.sessions.entry(row.key).or_insert_with(|| new.clone());
    if rank(&new) > rank(kept) {
        *kept = new;
    }
}

fn index(row: &Row, found: &mut Found, owners: &mut BTreeMap<i64, Owner>) {
    if row.header.is(THREE_NUMBERS, false) {
        if let (Some(one), Some(upto), Some(two)) = (row.integer(0), count(row, 1), row.integer(2))
        {
            // A fork is made after what it shares, so its number is the greater,
            // whichever of the two trees this is from.
            let (base, session) = (one.min(two), one.max(two));
            if base > 0 && base < session && upto > 0 && u32::try_from(upto).is_ok() {
                found.shares.entry(session).or_default().insert(upto, base);
            }
        }
    } else if row.header.is(PROJECT, false) {
        let project = row.text(2).map(serde_json::from_str::<Project>);
        if let (Some(owner), Some(Ok(project))) = (row.integer(0), project)
            && row.text(1) == Some(project.id.as_str())
        {
            found.projects.insert((owner, project.id.clone()), project);
        }
    } else if row.header.is(OWNER_INDEX, false) {
        if let (Some(Ok(owner)), Some(pk)) = (row.text(0).map(str::parse), row.integer(1)) {
            owners.insert(pk, owner);
        }
    } else if row.header.is(TOKEN, false) {
        if let Some(token) = token_row(row) {
            let known = found.tokens.entry(token.id.as_str().to_owned());
            known.or_insert(token);
        }
    } else if row.header.is(ENTRY_INDEX, false)
        && let (Some(session), Some(seq)) = (row.integer(1), count(row, 2))
    {
        let tail = found.tails.entry(session).or_default();
        *tail = (*tail).max(seq);
        if let Some(id) = row.blob(0).and_then(|id| id.try_into().ok()) {
            let place = (session, seq);
            let known = found.indexed.entry(id).or_insert(Some(place));
            known.take_if(|known| *known != place);
        }
    }
}

fn count(row: &Row, column: usize) -> Option<u64> {
    u64::try_from(row.integer(column)?).ok()
}
