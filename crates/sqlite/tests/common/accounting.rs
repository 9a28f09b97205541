//! Checks that a salvage accounts for every entry.

use throughline_model::{Body, Seq};
use throughline_sqlite::SalvageReport;
use throughline_store::Store;

use super::logs;
use super::sample::Logs;

/// Asserts that every entry of the original is present unchanged or reported as lost.
pub(crate) async fn assert_all_accounted_for(
    original: &Logs,
    into: &dyn Store,
    salvaged: &SalvageReport,
) {
    let salvaged_logs = logs(into).await.unwrap();
    let mut different = 0;
    for ((owner, id), original) in original {
        let lost = |seq: Seq| {
            let mut losses = salvaged.lost.iter();
            losses.any(|loss| {
                loss.owner.as_str() == owner
                    && loss.session == *id
                    && loss.entries.iter().any(|(a, z)| (*a..=*z).contains(&seq))
            })
        };
        let Some(salvaged_log) = salvaged_logs.get(&(owner.clone(), id.clone())) else {
            // Its name is lost with its row, which is noted.
            assert!(!salvaged.notes.is_empty(), "{owner} {id} is missing");
            continue;
        };
        for entry in original {
            let same = salvaged_log.iter().find(|found| found.seq == entry.seq);
            let is_lost = same.is_none_or(|found| found.decode().unwrap().body == Body::Lost);
            // Unless the row with the number of entries is lost, which is noted.
            let named = format!("session {id} is lost");
            let row_lost = salvaged.notes.iter().any(|note| note.contains(&named));
            let reported = lost(entry.seq) || row_lost;
            assert!(
                !is_lost || reported,
                "{owner} {id} {} was lost without a report",
                entry.seq
            );
            match same {
                Some(found) if !is_lost => {
                    let as_it_was = found.payload == entry.payload
                        && found.id == entry.id
                        && found.at == entry.at;
                    different += u64::from(!as_it_was);
                }
                _ => {}
            }
        }
    }
    assert!(
        different <= salvaged.unverified,
        "{different} differ and {} are unverified",
        salvaged.unverified
    );
}
