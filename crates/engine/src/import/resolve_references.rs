//! Resolves references of another system to entry numbers: where a summary ends and
//! where a rewind leads.

use throughline_model::{
    Body, Checkpoint, EntryIdNamespace, ImportEvent, IncomingEntry, Lineage, Seq, SessionRef,
    Timestamp,
};
use throughline_store::ReadRange;

use super::PAGE;
use super::pending_entry::position_id;
use crate::{Error, Throughline};

/// Returns the body of an entry that refers to other entries by number.
pub(super) async fn resolve_body(
    tl: &Throughline,
    to: &SessionRef,
    entry: &IncomingEntry,
) -> Result<Option<Body>, Error> {
    match &entry.event {
        ImportEvent::Rewound { to: external_id } => {
            let seq = match external_id {
                None => Some(Seq::ZERO),
                Some(external_id) => find_entry(tl, to, external_id).await?,
            };
            let head = tl.store.record(to).await?.info.head;
            // A rewind to the last entry has no effect.
            let seq = seq.filter(|seq| *seq < head);
            Ok(seq.map(|to| Body::Rewound { to }))
        }
        ImportEvent::Compacted {
            summary,
            by,
            keeps,
            usage,
        } => {
            let record = tl.store.record(to).await?;
            let first_kept = match keeps {
                None => None,
                Some(external_id) => find_entry(tl, to, external_id).await?,
            };
            let covers = first_kept.map_or(record.info.head, |first_kept| {
                Seq(first_kept.0.saturating_sub(1))
            });
            let before = record.state.checkpoint().map_or(Seq::ZERO, |c| c.covers);
            let (messages, oldest, newest) = count_messages(tl, to, before, covers).await?;
            Ok(Some(Body::Checkpoint(Box::new(Checkpoint {
                covers,
                summary: summary.clone(),
                by: by.clone(),
                messages,
                oldest,
                newest,
                usage: *usage,
            }))))
        }
        ImportEvent::Summarized { summary, by } => {
            let head = tl.store.record(to).await?.info.head;
            let (messages, oldest, newest) = count_messages(tl, to, Seq::ZERO, head).await?;
            Ok(Some(Body::Summarized(Box::new(Checkpoint {
                covers: head,
                summary: summary.clone(),
                by: by.clone(),
                messages,
                oldest,
                newest,
                usage: None,
            }))))
        }
        ImportEvent::Body(_)
        | ImportEvent::Titled { .. }
        | ImportEvent::Tagged(_)
        | ImportEvent::Untagged(_) => Ok(None),
    }
}

/// Counts the messages between two entries and returns the times of the first and last
/// one.
async fn count_messages(
    tl: &Throughline,
    session: &SessionRef,
    after: Seq,
    to: Seq,
) -> Result<(u64, Option<Timestamp>, Option<Timestamp>), Error> {
    let (mut messages, mut oldest, mut newest) = (0, None, None);
    let mut next = after.next();
    while next <= to {
        let page = tl
            .store
            .read(session, ReadRange::between(next, to, PAGE))
            .await?;
        let Some(last) = page.last() else {
            break;
        };
        next = last.seq.next();
        for entry in page.iter().filter(|entry| entry.message().is_some()) {
            messages += 1;
            oldest = oldest.or(Some(entry.at));
            newest = Some(entry.at);
        }
    }
    Ok((messages, oldest, newest))
}

/// Finds the entry with an external id, in the session or in those it was forked from.
async fn find_entry(
    tl: &Throughline,
    of: &SessionRef,
    external_id: &str,
) -> Result<Option<Seq>, Error> {
    let mut session = of.clone();
    let mut until = Seq(u64::MAX);
    loop {
        let namespace = EntryIdNamespace::of(&session.id);
        let ids = [
            namespace.derive_external(external_id),
            position_id(&namespace, external_id),
        ];
        let found = tl.store.locate(&session, &ids).await?;
        if let Some(seq) = found[0].or(found[1]) {
            return Ok(Some(seq).filter(|seq| *seq <= until));
        }
        match tl.store.header(&session).await?.lineage {
            Lineage::Forked { session: of, at } => {
                until = until.min(at);
                session = tl.owner.session(&of);
            }
            Lineage::Root | Lineage::Continued { .. } => return Ok(None),
        }
    }
}

/// Returns the last shared entry of a fork whose source does not repeat the shared
/// part. Not every record becomes an entry: if the named one did not, the nearest one
/// before it is used.
pub(super) async fn last_shared_entry(
    tl: &Throughline,
    of: &SessionRef,
    external_id: &str,
) -> Result<Option<Seq>, Error> {
    if let Some(seq) = find_entry(tl, of, external_id).await? {
        return Ok(Some(seq));
    }
    let Ok(number) = external_id.parse::<u64>() else {
        return Ok(None);
    };
    for before in (number.saturating_sub(256)..number).rev() {
        if let Some(seq) = find_entry(tl, of, &before.to_string()).await? {
            return Ok(Some(seq));
        }
    }
    Ok(None)
}
