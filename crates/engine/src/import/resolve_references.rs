//! What another system says with names of its own, said with our numbers: where a summary
//! ends, and where a way back leads.

use throughline_model::{
    Body, Checkpoint, EntryIdNamespace, ImportEvent, IncomingEntry, Lineage, Seq, SessionRef,
    Timestamp,
};
use throughline_store::ReadRange;

use super::PAGE;
use super::pending_entry::position_id;
use crate::{Error, Throughline};

/// What can only be said with numbers of ours.
pub(super) async fn resolve_body(
    tl: &Throughline,
    to: &SessionRef,
    entry: &IncomingEntry,
) -> Result<Option<Body>, Error> {
    match &entry.event {
        ImportEvent::Rewound { to: named } => {
            let seq = match named {
                None => Some(Seq::ZERO),
                Some(named) => find_entry(tl, to, named).await?,
            };
            let head = tl.store.record(to).await?.info.head;
            // Back to the last entry is no way back.
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
            let kept = match keeps {
                None => None,
                Some(named) => find_entry(tl, to, named).await?,
            };
            let covers = kept.map_or(record.info.head, |kept| Seq(kept.0.saturating_sub(1)));
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

/// The messages between two entries: how many, and when the first and the last were said.
async fn count_messages(
    tl: &Throughline,
    of: &SessionRef,
    after: Seq,
    to: Seq,
) -> Result<(u64, Option<Timestamp>, Option<Timestamp>), Error> {
    let (mut messages, mut oldest, mut newest) = (0, None, None);
    let mut next = after.next();
    while next <= to {
        let page = tl
            .store
            .read(of, ReadRange::between(next, to, PAGE))
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

/// Where an entry is that another system has a name for: in the session, or in those it
/// was forked from.
async fn find_entry(tl: &Throughline, of: &SessionRef, own: &str) -> Result<Option<Seq>, Error> {
    let mut session = of.clone();
    let mut until = Seq(u64::MAX);
    loop {
        let within = EntryIdNamespace::of(&session.id);
        let ids = [within.derive_external(own), position_id(&within, own)];
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

/// The last entry that a fork shares which does not repeat them. Not every record is an
/// entry: where the one that is named is none, the nearest before it is meant.
pub(super) async fn last_shared_entry(
    tl: &Throughline,
    of: &SessionRef,
    named: &str,
) -> Result<Option<Seq>, Error> {
    if let Some(seq) = find_entry(tl, of, named).await? {
        return Ok(Some(seq));
    }
    let Ok(number) = named.parse::<u64>() else {
        return Ok(None);
    };
    for before in (number.saturating_sub(256)..number).rev() {
        if let Some(seq) = find_entry(tl, of, &before.to_string()).await? {
            return Ok(Some(seq));
        }
    }
    Ok(None)
}
