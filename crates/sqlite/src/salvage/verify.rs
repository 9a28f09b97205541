//! Verifies that an entry found in the file is the one that was appended.

use throughline_model::{Digest, Entry, Seq, StoredEntry};
use throughline_store::MAX_ENTRY_BYTES;

use super::plan::{PlannedSession, entry_locations};
use super::row_decode::EntryRow;
use super::salvager::{SalvagedLog, Salvager};
use super::scan::RowLocation;

/// How many bytes of untrusted content are shown.
const MAX_SHOWN_BYTES: usize = 16 * 1024;

/// The result of verifying one entry.
pub(super) enum Verdict {
    /// Its digest follows from the previous entry.
    Verified(StoredEntry, Entry),
    /// It is readable, but the previous entry is unknown.
    Unverified(StoredEntry, Entry),
    /// It was found but cannot be trusted.
    Damaged(Option<Digest>, &'static str),
    Missing,
}

impl Salvager<'_> {
    /// Picks the copy of an entry that follows from the previous one, or else the best one.
    pub(super) fn verify_entry(&mut self, base: i64, seq: Seq, log: &SalvagedLog<'_>) -> Verdict {
        let mut copies: Vec<EntryRow> =
            locations_at(entry_locations(self.found, base), (base, seq.0))
                .iter()
                .filter_map(|location| location.read_entry(self.pages))
                .collect();
        // Erased content stays erased, although an older copy verifies too.
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
            (digest, None) => Verdict::Damaged(digest, "found, but not readable"),
            (_, Some((stored, entry))) if !log.previous_verified => {
                Verdict::Unverified(stored, entry)
            }
            (_, Some((stored, _))) => {
                self.note_mismatch(log.planned, &stored);
                Verdict::Damaged(Some(stored.digest), "found, but not what was appended")
            }
        }
    }

    /// Notes the content that was found in place of an entry, since it is not salvaged.
    fn note_mismatch(&mut self, planned: &PlannedSession, stored: &StoredEntry) {
        let mut end = stored.payload.len().min(MAX_SHOWN_BYTES);
        while !stored.payload.is_char_boundary(end) {
            end -= 1;
        }
        let more = match stored.payload.len() - end {
            0 => String::new(),
            bytes => format!(" … and {bytes} more bytes"),
        };
        self.report.notes.push(format!(
            "entry {} of session {} does not match its digest; it reads: {}{more}",
            stored.seq,
            planned.header.id,
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

/// Returns the locations that have this key.
fn locations_at(locations: &[RowLocation], key: (i64, u64)) -> &[RowLocation] {
    let start = locations.partition_point(|location| location.key < key);
    let end = locations.partition_point(|location| location.key <= key);
    &locations[start..end]
}
