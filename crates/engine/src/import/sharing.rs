//! A session that repeats the beginning of another: a fork, whose own entries are those
//! after the last one they have in common.

use std::collections::VecDeque;

use throughline_model::{Body, Entry, Origin, Seq, SessionRef};
use throughline_store::Read;

use super::resolving::shared;
use super::waiting::{Waiting, says_the_same};
use super::{ImportReport, PAGE};
use crate::{Error, Throughline};

/// A session whose beginning another one repeats.
#[derive(Debug)]
pub(super) struct Sharing {
    pub(super) with: SessionRef,
    /// The last entry that was the same.
    pub(super) at: Seq,
    /// The last entry that is known to be shared, where that is settled.
    pub(super) until: Option<Seq>,
}

impl Sharing {
    /// How many of these entries say what the other session says, from where it is on.
    pub(super) async fn common(
        &mut self,
        tl: &Throughline,
        waiting: &[Waiting],
        report: &mut ImportReport,
    ) -> Result<usize, Error> {
        let mut page: VecDeque<Entry> = VecDeque::new();
        for (index, next) in waiting.iter().enumerate() {
            let Some(body @ Body::Message(_)) = next.plain_body() else {
                continue;
            };
            loop {
                if page.is_empty() {
                    let read = Read::from(self.at.next(), PAGE);
                    page = tl.store.read(&self.with, read).await?.into();
                }
                let Some(there) = page.pop_front() else {
                    return Ok(index);
                };
                if self.until.is_some_and(|until| there.seq > until) {
                    return Ok(index);
                }
                let said = there.message().is_some();
                if said && !says_the_same(&there.body, &body) {
                    return Ok(index);
                }
                self.at = there.seq;
                if said {
                    report.known += 1;
                    break;
                }
            }
        }
        Ok(waiting.len())
    }

    /// The last entry the two have in common: where they said the same, or what the other
    /// system calls it where nothing is repeated.
    pub(super) async fn parts_at(
        &self,
        tl: &Throughline,
        origin: Option<&Origin>,
    ) -> Result<Seq, Error> {
        match origin {
            Some(Origin::Forked {
                at: Some(named), ..
            }) if self.at == Seq::ZERO => {
                Ok(shared(tl, &self.with, named).await?.unwrap_or(self.at))
            }
            _ => Ok(self.at),
        }
    }
}
