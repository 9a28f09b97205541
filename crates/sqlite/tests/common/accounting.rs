//! What a salvage must account for.

use throughline_model::{Body, Seq};
use throughline_sqlite::SalvageReport;
use throughline_store::Store;

use super::logs;
use super::sample::Logs;

/// Every entry of the original is there as it was, or is said to be lost.
pub(crate) async fn assert_all_accounted_for(
    original: &Logs,
    into: &dyn Store,
    salvaged: &SalvageReport,
) {
    let kept = logs(into).await.unwrap();
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
        let Some(kept) = kept.get(&(owner.clone(), id.clone())) else {
            // Its name is lost with its row, which is told.
            assert!(!salvaged.notes.is_empty(), "{owner} {id} is nowhere");
            continue;
        };
        for entry in original {
            let same = kept.iter().find(|kept| kept.seq == entry.seq);
            let is_lost = same.is_none_or(|kept| kept.decode().unwrap().body == Body::Lost);
            // Unless the row is lost that said how many there were, which is told.
            let named = format!("session {id} is lost");
            let row_lost = salvaged.notes.iter().any(|note| note.contains(&named));
            let told = lost(entry.seq) || row_lost;
            assert!(
                !is_lost || told,
                "{owner} {id} {} is gone unsaid",
                entry.seq
            );
            match same {
                Some(kept) if !is_lost => {
                    let as_it_was =
                        kept.payload == entry.payload && kept.id == entry.id && kept.at == entry.at;
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
