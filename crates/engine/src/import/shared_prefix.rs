//! A session that repeats the beginning of another: a fork, whose own entries are those
//! after the last one they have in common.

use std::collections::VecDeque;

use throughline_model::{Body, Entry, IncomingOrigin, Seq, SessionRef};
use throughline_store::ReadRange;

use super::pending_entry::{PendingEntry, has_same_content};
use super::resolve_references::last_shared_entry;
use super::{ImportReport, PAGE};
use crate::{Error, Throughline};

/// A session whose beginning another one repeats.
#[derive(Debug)]
pub(super) struct SharedPrefix {
    pub(super) origin: SessionRef,
    /// The last entry that was the same.
    pub(super) last_matched: Seq,
    /// The last entry that is known to be shared, where that is settled.
    pub(super) limit: Option<Seq>,
}

impl SharedPrefix {
    /// How many of these entries say what the other session says, from where it is on.
    pub(super) async fn count_matching(
        &mut self,
        tl: &Throughline,
        waiting: &[PendingEntry],
        report: &mut ImportReport,
    ) -> Result<usize, Error> {
        let mut page: VecDeque<Entry> = VecDeque::new();
        for (index, next) in waiting.iter().enumerate() {
            let Some(body @ Body::Message(_)) = next.standalone_body() else {
                continue;
            };
            loop {
                if page.is_empty() {
                    let read = ReadRange::starting_at(self.last_matched.next(), PAGE);
                    page = tl.store.read(&self.origin, read).await?.into();
                }
                let Some(there) = page.pop_front() else {
                    return Ok(index);
                };
                if self.limit.is_some_and(|until| there.seq > until) {
                    return Ok(index);
                }
                let said = there.message().is_some();
                if said && !has_same_content(&there.body, &body) {
                    return Ok(index);
                }
                self.last_matched = there.seq;
                if said {
                    report.already_stored += 1;
                    break;
                }
            }
        }
        Ok(waiting.len())
    }

    /// The last entry the two have in common: where they said the same, or what the other
    /// system calls it where nothing is repeated.
    pub(super) async fn fork_point(
        &self,
        tl: &Throughline,
        origin: Option<&IncomingOrigin>,
    ) -> Result<Seq, Error> {
        match origin {
            Some(IncomingOrigin::Forked {
                at: Some(named), ..
            }) if self.last_matched == Seq::ZERO => Ok(last_shared_entry(tl, &self.origin, named)
                .await?
                .unwrap_or(self.last_matched)),
            _ => Ok(self.last_matched),
        }
    }
}
