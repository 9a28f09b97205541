//! Whether an entry that was found is what was appended.

use throughline_model::{Digest, Entry, Seq, StoredEntry};
use throughline_store::MAX_ENTRY_BYTES;

use super::plan::{Planned, places};
use super::rows::EntryRow;
use super::scan::Place;
use super::walk::{Log, Walker};

/// How much of something that cannot be trusted is shown.
const SHOWN: usize = 16 * 1024;

/// What became of one entry.
pub(super) enum Verdict {
    /// It follows from the one before.
    Sound(StoredEntry, Entry),
    /// It reads well, but what came before is not known.
    Unsure(StoredEntry, Entry),
    /// It is there and cannot be trusted.
    Damaged(Option<Digest>, &'static str),
    Missing,
}

impl Walker<'_> {
    /// Finds the copy of an entry that follows from what came before, or else the best.
    pub(super) fn judge(&mut self, base: i64, seq: Seq, log: &Log<'_>) -> Verdict {
        let mut copies: Vec<EntryRow> = at(places(self.found, base), (base, seq.0))
            .iter()
            .filter_map(|place| place.entry(self.pages))
            .collect();
        // What was erased stays erased, though an older copy verifies as well.
        copies.sort_by_key(|copy| {
            !copy
                .payload
                .as_deref()
                .is_some_and(|text| text.starts_with(r#"{"kind":"erased""#))
        });
        let digest = copies.first().map(|copy| copy.digest);
        let mut readable: Vec<_> = copies.into_iter().filter_map(decoded).collect();
        let sound = readable.iter().position(|(stored, _)| {
            let follows = |before: &Digest| stored.verify(before).is_ok();
            log.before.as_ref().is_some_and(follows)
        });
        if let Some(index) = sound {
            let (stored, entry) = readable.swap_remove(index);
            return Verdict::Sound(stored, entry);
        }
        match (digest, readable.into_iter().next()) {
            (None, _) => Verdict::Missing,
            (digest, None) => Verdict::Damaged(digest, "there, but not readable"),
            (_, Some((stored, entry))) if !log.trusted => Verdict::Unsure(stored, entry),
            (_, Some((stored, _))) => {
                self.show(log.planned, &stored);
                Verdict::Damaged(Some(stored.digest), "there, but not what was appended")
            }
        }
    }

    /// Shows what was found in the place of an entry, since it is not brought over.
    fn show(&mut self, planned: &Planned, stored: &StoredEntry) {
        let mut end = stored.payload.len().min(SHOWN);
        while !stored.payload.is_char_boundary(end) {
            end -= 1;
        }
        let more = match stored.payload.len() - end {
            0 => String::new(),
            bytes => format!(" … and {bytes} bytes more"),
        };
        self.report.notes.push(format!(
            "entry {} of session {} does not match its digest; it reads: {}{more}",
            stored.seq,
            planned.birth.id,
            &stored.payload[..end],
        ));
    }
}

fn decoded(copy: EntryRow) -> Option<(StoredEntry, Entry)> {
    let payload = copy.payload?;
    if payload.len() as u64 > MAX_ENTRY_BYTES {
        return None;
    }
    let stored = StoredEntry {
        seq: copy.seq,
        id: copy.id,
        at: copy.at,
        digest: copy.digest,
        payload,
    };
    let entry = stored.decode().ok()?;
    Some((stored, entry))
}

/// The places of one position.
fn at(places: &[Place], key: (i64, u64)) -> &[Place] {
    let start = places.partition_point(|place| place.key < key);
    let end = places.partition_point(|place| place.key <= key);
    &places[start..end]
}
