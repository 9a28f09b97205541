//! From rows to sessions: whose each is, what it is called, and what its log consists
//! of.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use throughline_model::{Owner, Seq, SessionHeader, SessionId, Timestamp};

use super::page_reader::PageReader;
use super::scan::{RowLocation, ScanResult};

/// A stretch of a log and the session whose entries it consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogRange {
    pub(super) session: i64,
    pub(super) from: Seq,
    pub(super) to: Seq,
}

/// A session to be brought over.
#[derive(Debug)]
pub(super) struct PlannedSession {
    pub(super) owner: Owner,
    pub(super) birth: SessionHeader,
    /// The stretches of other sessions that its log begins with.
    pub(super) inherited: Vec<LogRange>,
    /// The last entry it was known to have.
    pub(super) head: u64,
    /// The last entry of its own that is found, passing over what is out of all reason.
    pub(super) last_found: u64,
    pub(super) trashed: Option<Timestamp>,
}

impl PlannedSession {
    /// How many entries are shared.
    pub(super) fn shared_seq(&self) -> u64 {
        self.inherited.last().map_or(0, |stretch| stretch.to.0)
    }
}

/// All sessions, in the order they were made, and whose each attachment is.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) sessions: BTreeMap<i64, PlannedSession>,
    owners: BTreeMap<i64, Owner>,
}

impl Plan {
    /// The owner of that number.
    pub(super) fn owner(&self, number: i64) -> Owner {
        self.owners
            .get(&number)
            .cloned()
            .unwrap_or_else(recovered_owner)
    }
}

/// Whose things are when it cannot be told.
fn recovered_owner() -> Owner {
    // Any text without control characters names an owner.
    "recovered".parse().unwrap_or_else(|_| Owner::local())
}

/// Makes a plan, noting what had to be made up.
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

/// Everybody who is named or numbered. A name that is lost is made up, a different one
/// for each, so that nobody's sessions become somebody else's.
fn collect_owners(
    found: &ScanResult,
    pages: &mut PageReader,
    notes: &mut Vec<String>,
) -> BTreeMap<i64, Owner> {
    let mut owners = found.owners.clone();
    let mut taken: HashSet<String> = owners.values().map(ToString::to_string).collect();
    let mut numbers: BTreeSet<i64> = found.sessions.values().map(|row| row.owner).collect();
    numbers.extend(found.projects.keys().map(|(owner, _)| *owner));
    for place in &found.blobs {
        numbers.extend(place.read_blob_owner(pages));
    }
    for number in numbers {
        owners.entry(number).or_insert_with(|| {
            let name = unique_name(&format!("recovered-{number}"), &mut taken);
            notes.push(format!(
                "the name of owner number {number} is lost; what was theirs is {name}'s now"
            ));
            name.parse().unwrap_or_else(|_| recovered_owner())
        });
    }
    owners
}

/// `name`, or something like it that is not taken.
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
    /// Ids given out, by owner and id.
    ids: HashSet<(Owner, SessionId)>,
    /// More entries than this cannot have been between two that are found.
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
        let mut birth = match (self.found.headers.get(&pk), row) {
            (Some(birth), _) => birth.clone(),
            (None, Some(row)) => {
                notes.push(format!(
                    "how session {} was born is lost; it was made up from what it was at the end",
                    row.birth.id
                ));
                row.birth.clone()
            }
            (None, None) => self.header_of_unknown(pk, pages, notes),
        };
        if row.is_none() && self.found.headers.contains_key(&pk) {
            notes.push(format!(
                "the row of session {} is lost: whose it was, and whether it was in the trash",
                birth.id
            ));
        }
        if !self.ids.insert((owner.clone(), birth.id.clone())) {
            let id = self.unique_id(&owner, pk);
            notes.push(format!(
                "there are two sessions {}; one of them is {id} now",
                birth.id
            ));
            birth.id = id;
        }
        let places = entry_locations(self.found, pk);
        let indexed = self.found.last_indexed.get(&pk).copied().unwrap_or(0);
        let inherited = self.inherited_ranges(pk);
        let from = inherited.last().map_or(0, |stretch| stretch.to.0);
        PlannedSession {
            head: row.map_or(indexed, |row| row.head),
            last_found: self.last_plausible_seq(&birth.id, from, places, notes),
            trashed: row.and_then(|row| row.trashed),
            inherited,
            owner,
            birth,
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

    /// A session of which there are only entries.
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
            "of session number {pk} there are only entries; it is {id} now"
        ));
        let first = entry_locations(self.found, pk).first();
        let first = first.and_then(|place| place.read_entry(pages));
        SessionHeader::new(id, first.map_or(Timestamp::UNIX_EPOCH, |entry| entry.at))
    }

    fn unique_id(&mut self, owner: &Owner, pk: i64) -> SessionId {
        let mut name = format!("recovered-{pk}");
        loop {
            if let Ok(id) = name.parse::<SessionId>() {
                let births = self.found.headers.values();
                let rows = self.found.sessions.values().map(|row| &row.birth);
                let known = births.chain(rows).any(|birth| birth.id == id);
                if !known && self.ids.insert((owner.clone(), id.clone())) {
                    return id;
                }
            }
            name.push_str("-again");
        }
    }

    /// The last entry found, ignoring numbers that no session can have come to.
    fn last_plausible_seq(
        &self,
        id: &SessionId,
        shared: u64,
        places: &[RowLocation],
        notes: &mut Vec<String>,
    ) -> u64 {
        let mut last = shared;
        for place in places {
            let seq = place.key.1;
            if seq > last.saturating_add(self.max_gap) {
                notes.push(format!(
                    "what looks like entry {seq} of session {id} is out of all proportion and \
                     was left out"
                ));
                break;
            }
            last = last.max(seq);
        }
        last
    }
}

/// The entries that are a session's own, by number.
pub(super) fn entry_locations(found: &ScanResult, pk: i64) -> &[RowLocation] {
    let start = found.entries.partition_point(|place| place.key.0 < pk);
    let end = found.entries.partition_point(|place| place.key.0 <= pk);
    &found.entries[start..end]
}

/// A key is held by one session at most: by the one in use, where there is one.
fn resolve_key_conflicts(sessions: &mut BTreeMap<i64, PlannedSession>, notes: &mut Vec<String>) {
    let mut taken = HashSet::new();
    for in_trash in [false, true] {
        let held = sessions.values_mut();
        for session in held.filter(|session| session.trashed.is_some() == in_trash) {
            let Some(key) = session.birth.key.clone() else {
                continue;
            };
            if !taken.insert((session.owner.clone(), key.clone())) {
                notes.push(format!(
                    "session {} gave up its key {key}, which another has",
                    session.birth.id
                ));
                session.birth.key = None;
            }
        }
    }
}
