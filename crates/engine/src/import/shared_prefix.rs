//! Detects imported sessions that begin with entries of another session, and forks them
//! there.

use std::collections::VecDeque;

use throughline_model::{Body, Entry, IncomingOrigin, Seq, SessionRef};
use throughline_store::ReadRange;

use super::pending_entry::{PendingEntry, has_same_content};
use super::resolve_references::last_shared_entry;
use super::{ImportReport, PAGE};
use crate::{Error, Throughline};

/// The session whose beginning an imported session repeats.
#[derive(Debug)]
pub(super) struct SharedPrefix {
    pub(super) origin: SessionRef,
    /// The last entry that was equal.
    pub(super) last_matched: Seq,
    /// The last entry that can be shared, if known.
    pub(super) limit: Option<Seq>,
}

impl SharedPrefix {
    /// Counts how many of these entries repeat the origin's messages from
    /// `last_matched` on.
    pub(super) async fn count_matching(
        &mut self,
        tl: &Throughline,
        pending: &[PendingEntry],
        report: &mut ImportReport,
    ) -> Result<usize, Error> {
        let mut page: VecDeque<Entry> = VecDeque::new();
        for (index, next) in pending.iter().enumerate() {
            let Some(body @ Body::Message(_)) = next.standalone_body() else {
                continue;
            };
            loop {
                if page.is_empty() {
                    let read = ReadRange::starting_at(self.last_matched.next(), PAGE);
                    page = tl.store.read(&self.origin, read).await?.into();
                }
                let Some(stored) = page.pop_front() else {
                    return Ok(index);
                };
                if self.limit.is_some_and(|limit| stored.seq > limit) {
                    return Ok(index);
                }
                let is_message = stored.message().is_some();
                if is_message && !has_same_content(&stored.body, &body) {
                    return Ok(index);
                }
                self.last_matched = stored.seq;
                if is_message {
                    report.already_stored += 1;
                    break;
                }
            }
        }
        Ok(pending.len())
    }

    /// Returns the last entry that both have in common: the last equal message or, if
    /// the source does not repeat the shared part, the entry that it names.
    pub(super) async fn fork_point(
        &self,
        tl: &Throughline,
        origin: Option<&IncomingOrigin>,
    ) -> Result<Seq, Error> {
        match origin {
            Some(IncomingOrigin::Forked {
                at: Some(external_id),
                ..
            }) if self.last_matched == Seq::ZERO => {
                Ok(last_shared_entry(tl, &self.origin, external_id)
                    .await?
                    .unwrap_or(self.last_matched))
            }
            _ => Ok(self.last_matched),
        }
    }
}
