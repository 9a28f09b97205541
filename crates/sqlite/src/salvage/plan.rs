//! Plans the salvage: turns the rows found into sessions, each with its owner, its id and the
//! ranges its log consists of.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use throughline_model::{Owner, Seq, SessionHeader, SessionId, Timestamp};

use super::page_reader::PageReader;
use super::scan::{RowLocation, ScanResult};

/// A range of a log and the session whose entries it consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogRange {
    pub(super) session: i64,
    pub(super) from: Seq,
    pub(super) to: Seq,
}

/// A session to salvage.
#[derive(Debug)]
pub(super) struct PlannedSession {
    pub(super) owner: Owner,
    pub(super) header: SessionHeader,
    /// The ranges of other sessions that its log begins with.
    pub(super) inherited: Vec<LogRange>,
    /// The last entry it is known to have had.
    pub(super) head: u64,
    /// The last of its own entries that was found, ignoring implausible numbers.
    pub(super) last_found: u64,
    pub(super) trashed: Option<Timestamp>,
}

impl PlannedSession {
    /// Returns how many entries are shared.
    pub(super) fn shared_seq(&self) -> u64 {
        self.inherited.last().map_or(0, |range| range.to.0)
    }
}

/// All sessions in creation order, and the owner of each attachment.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) sessions: BTreeMap<i64, PlannedSession>,
    owners: BTreeMap<i64, Owner>,
}

impl Plan {
    /// Returns the owner with that row id.
    pub(super) fn owner(&self, number: i64) -> Owner {
        self.owners
            .get(&number)
            .cloned()
            .unwrap_or_else(recovered_owner)
    }
}

/// The owner of data whose owner is unknown.
fn recovered_owner() -> Owner {
    // Any text without control characters is a valid owner name.
    "recovered".parse().unwrap_or_else(|_| Owner::local())
}

/// Makes the plan, noting what had to be reconstructed.
pub(super) fn make_plan(
    found: &ScanResult,
    pages: &mut PageReader,
    notes: &mut Vec<String>,
) -> Plan {
    let mut planner = Planner {
        found,
        owners: collect_owners(found, pages, notes),
        ids: HashSet::new(),
        max_gap: (pages.total_bytes() / 50).max(65_536),
    };
    let numbers: BTreeSet<i64> = found
        .sessions
        .keys()
        .chain(found.headers.keys())
        .copied()
        .chain(found.entries.iter().map(|p| p.key.0))
        .filter(|pk| found.sessions.get(pk).is_none_or(|row| !row.gone))
        .collect();
    let mut sessions = BTreeMap::new();
    for pk in numbers {
        let planned = planner.plan_session(pk, pages, notes);
        sessions.insert(pk, planned);
    }
    resolve_key_conflicts(&mut sessions, notes);
    Plan {
        sessions,
        owners: planner.owners,
    }
}

/// Collects every owner that is named or numbered. A lost name is replaced by a new, unique
/// one, so that one owner's sessions never become another's.
fn collect_owners(
    found: &ScanResult,
    pages: &mut PageReader,
    notes: &mut Vec<String>,
) -> BTreeMap<i64, Owner> {
    let mut owners = found.owners.clone();
    let mut taken: HashSet<String> = owners.values().map(ToString::to_string).collect();
    let mut numbers: BTreeSet<i64> = found.sessions.values().map(|row| row.owner).collect();
    numbers.extend(found.projects.keys().map(|(owner, _)| *owner));
    for location in &found.blobs {
        numbers.extend(location.read_blob_owner(pages));
    }
    for number in numbers {
        owners.entry(number).or_insert_with(|| {
            let name = unique_name(&format!("recovered-{number}"), &mut taken);
            notes.push(format!(
                "the name of owner number {number} is lost; their data now belongs to {name}"
            ));
            name.parse().unwrap_or_else(|_| recovered_owner())
        });
    }
    owners
}

/// Returns `name`, or a variant of it that is not taken.
fn unique_name(name: &str, taken: &mut HashSet<String>) -> String {
    let mut fresh = name.to_owned();
    let mut count = 1;
    while !taken.insert(fresh.clone()) {
        count += 1;
        fresh = format!("{name}-{count}");
    }
    fresh
}

pub(super) struct Planner<'a> {
    pub(super) found: &'a ScanResult,
    pub(super) owners: BTreeMap<i64, Owner>,
    /// Ids assigned so far, by owner and id.
    ids: HashSet<(Owner, SessionId)>,
    /// The largest plausible gap between two entries that were found.
    pub(super) max_gap: u64,
}

impl Planner<'_> {
    fn plan_session(
        &mut self,
        pk: i64,
        pages: &mut PageReader,
        notes: &mut Vec<String>,
    ) -> PlannedSession {
        let row = self.found.sessions.get(&pk);
        let owner = self.resolve_owner(row.map(|row| row.owner));
        let mut header = match (self.found.headers.get(&pk), row) {
            (Some(header), _) => header.clone(),
            (None, Some(row)) => {
                notes.push(format!(
                    "session {} has lost its header; it was reconstructed from the session's last known state",
                    row.header.id
                ));
                row.header.clone()
            }
            (None, None) => self.header_of_unknown(pk, pages, notes),
        };
        if row.is_none() && self.found.headers.contains_key(&pk) {
            notes.push(format!(
                "the row of session {} is lost, and with it its owner and whether it was in the trash",
                header.id
            ));
        }
        if !self.ids.insert((owner.clone(), header.id.clone())) {
            let id = self.unique_id(&owner, pk);
            notes.push(format!(
                "there are two sessions {}; one of them was renamed to {id}",
                header.id
            ));
            header.id = id;
        }
        let locations = entry_locations(self.found, pk);
        let indexed = self.found.last_indexed.get(&pk).copied().unwrap_or(0);
        let inherited = self.inherited_ranges(pk);
        let from = inherited.last().map_or(0, |range| range.to.0);
        PlannedSession {
            head: row.map_or(indexed, |row| row.head),
            last_found: self.last_plausible_seq(&header.id, from, locations, notes),
            trashed: row.and_then(|row| row.trashed),
            inherited,
            owner,
            header,
        }
    }

    fn resolve_owner(&self, number: Option<i64>) -> Owner {
        let mut all = self.owners.iter();
        match (number, all.next(), all.next()) {
            (Some(number), _, _) => self.owners.get(&number).cloned(),
            (None, Some((_, only)), None) => Some(only.clone()),
            (None, _, _) => None,
        }
        .unwrap_or_else(recovered_owner)
    }

    /// Makes a header for a session of which only entries were found.
    fn header_of_unknown(
        &mut self,
        pk: i64,
        pages: &mut PageReader,
        notes: &mut Vec<String>,
    ) -> SessionHeader {
        let owner = self.resolve_owner(None);
        let id = self.unique_id(&owner, pk);
        self.ids.remove(&(owner, id.clone()));
        notes.push(format!(
            "only entries were found of session number {pk}; it was named {id}"
        ));
        let first = entry_locations(self.found, pk).first();
        let first = first.and_then(|location| location.read_entry(pages));
        SessionHeader::new(id, first.map_or(Timestamp::UNIX_EPOCH, |entry| entry.at))
    }

    fn unique_id(&mut self, owner: &Owner, pk: i64) -> SessionId {
        let mut name = format!("recovered-{pk}");
        loop {
            if let Ok(id) = name.parse::<SessionId>() {
                let headers = self.found.headers.values();
                let rows = self.found.sessions.values().map(|row| &row.header);
                let known = headers.chain(rows).any(|header| header.id == id);
                if !known && self.ids.insert((owner.clone(), id.clone())) {
                    return id;
                }
            }
            name.push_str("-again");
        }
    }

    /// Returns the last entry found, ignoring implausible sequence numbers.
    fn last_plausible_seq(
        &self,
        id: &SessionId,
        shared: u64,
        locations: &[RowLocation],
        notes: &mut Vec<String>,
    ) -> u64 {
        let mut last = shared;
        for location in locations {
            let seq = location.key.1;
            if seq > last.saturating_add(self.max_gap) {
                notes.push(format!(
                    "what looks like entry {seq} of session {id} has an implausible number and \
                     was skipped"
                ));
                break;
            }
            last = last.max(seq);
        }
        last
    }
}

/// Returns the locations of a session's own entries, by number.
pub(super) fn entry_locations(found: &ScanResult, pk: i64) -> &[RowLocation] {
    let start = found
        .entries
        .partition_point(|location| location.key.0 < pk);
    let end = found
        .entries
        .partition_point(|location| location.key.0 <= pk);
    &found.entries[start..end]
}

/// Ensures that a key is held by one session at most, preferring the live one.
fn resolve_key_conflicts(sessions: &mut BTreeMap<i64, PlannedSession>, notes: &mut Vec<String>) {
    let mut taken = HashSet::new();
    for in_trash in [false, true] {
        let held = sessions.values_mut();
        for session in held.filter(|session| session.trashed.is_some() == in_trash) {
            let Some(key) = session.header.key.clone() else {
                continue;
            };
            if !taken.insert((session.owner.clone(), key.clone())) {
                notes.push(format!(
                    "session {} lost its key {key}, which another session has",
                    session.header.id
                ));
                session.header.key = None;
            }
        }
    }
}
