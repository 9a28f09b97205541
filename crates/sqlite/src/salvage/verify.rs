//! Whether an entry that was found is what was appended.

use throughline_model::{Digest, Entry, Seq, StoredEntry};
use throughline_store::MAX_ENTRY_BYTES;

use super::plan::{PlannedSession, entry_locations};
use super::row_decode::EntryRow;
use super::salvager::{SalvagedLog, Salvager};
use super::scan::RowLocation;

/// How much of something that cannot be trusted is shown.
const MAX_SHOWN_BYTES: usize = 16 * 1024;

/// What became of one entry.
pub(super) enum Verdict {
    /// It follows from the one before.
    Verified(StoredEntry, Entry),
    /// It reads well, but what came before is not known.
    Unverified(StoredEntry, Entry),
    /// It is there and cannot be trusted.
    Damaged(Option<Digest>, &'static str),
    Missing,
}

impl Salvager<'_> {
    /// Finds the copy of an entry that follows from what came before, or else the best.
    pub(super) fn verify_entry(&mut self, base: i64, seq: Seq, log: &SalvagedLog<'_>) -> Verdict {
        let mut copies: Vec<EntryRow> =
            locations_at(entry_locations(self.found, base), (base, seq.0))
                .iter()
                .filter_map(|place| place.read_entry(self.pages))
                .collect();
        // What was erased stays erased, though an older copy verifies as well.
        copies.sort_by_key(|copy| {
            !copy
                .payload
                .as_deref()
                .is_some_and(|text| text.starts_with(r#"{"kind":"erased""#))
        });
        let digest = copies.first().map(|copy| copy.digest);
        let mut readable: Vec<_> = copies.into_iter().filter_map(decode_row).collect();
        let sound = readable.iter().position(|(stored, _)| {
            let follows = |before: &Digest| stored.verify(before).is_ok();
            log.previous_digest.as_ref().is_some_and(follows)
        });
        if let Some(index) = sound {
            let (stored, entry) = readable.swap_remove(index);
            return Verdict::Verified(stored, entry);
        }
        match (digest, readable.into_iter().next()) {
            (None, _) => Verdict::Missing,
            (digest, None) => Verdict::Damaged(digest, "there, but not readable"),
            (_, Some((stored, entry))) if !log.previous_verified => {
                Verdict::Unverified(stored, entry)
            }
            (_, Some((stored, _))) => {
                self.note_mismatch(log.planned, &stored);
                Verdict::Damaged(Some(stored.digest), "there, but not what was appended")
            }
        }
    }

    /// Shows what was found in the place of an entry, since it is not brought over.
    fn note_mismatch(&mut self, planned: &PlannedSession, stored: &StoredEntry) {
        let mut end = stored.payload.len().min(MAX_SHOWN_BYTES);
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

fn decode_row(copy: EntryRow) -> Option<(StoredEntry, Entry)> {
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
fn locations_at(places: &[RowLocation], key: (i64, u64)) -> &[RowLocation] {
    let start = places.partition_point(|place| place.key < key);
    let end = places.partition_point(|place| place.key <= key);
    &places[start..end]
}
