//! Compaction: a checkpoint that stands for what came before it.
//!
//! The log is read, a summary is written, and only then is anything appended. What
//! arrives meanwhile comes after what the checkpoint covers and stays as it is. If
//! somebody else has compacted, cleared or rewound meanwhile, theirs stands: the checkpoint
//! is appended after the head it was made from, or one that differs in messages only.
//!
//! One process at a time summarizes a session, under a lease, so that nobody pays for a
//! summary that comes too late. The others wait for it. A process that dies is replaced, and
//! one that was replaced because it was slow can no longer append what it has.

use throughline_context::{
    CompactionPlan, CountedEntry, Encoding, Policy, Request, Retention, SectionName,
    needs_compaction, plan_compaction,
};
use throughline_llm::{Summarizer, SummaryRequest, summarize_with_fallback};
use throughline_model::{Body, Checkpoint, Entry, Record, Seq, SessionState, Summary};
use throughline_store::{Append, Fence, StoreError};

use crate::request::last_entry_before;
use crate::{Error, RequestOptions, Session};

/// How often others may append while a checkpoint is being appended.
const MAX_APPEND_ATTEMPTS: usize = 100;

/// How to compact.
#[derive(Clone, Copy)]
pub struct CompactOptions<'a> {
    /// The policy.
    pub policy: &'a Policy,
    /// The model's window.
    pub window: u64,
    /// How tokens are counted.
    pub encoding: Encoding,
    /// What a request costs besides messages.
    pub fixed_tokens: u64,
    /// An entry that is not to be covered, nor anything after it.
    pub before: Option<Seq>,
    /// Whether to compact whatever the size.
    pub force: bool,
    /// Whether a summary is taken that is no smaller than what it replaces.
    pub allow_larger: bool,
    /// A model to ask; none for the extractive summarizer.
    pub summarizer: Option<&'a dyn Summarizer>,
    /// Whoever wants to know how it goes.
    pub on_event: Option<&'a (dyn Fn(CompactionEvent) + Send + Sync)>,
}

/// How a compaction goes, as it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompactionEvent {
    /// A summary is being written of everything up to an entry.
    Start {
        /// That entry.
        covers: Seq,
    },
    /// The checkpoint is in the log.
    Complete {
        /// Its entry.
        checkpoint: Seq,
    },
    /// There is none, and why. Nothing is lost by it.
    Error {
        /// Why.
        why: String,
    },
}

impl CompactionEvent {
    /// What the event is called.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Start { .. } => "session:compaction-start",
            Self::Complete { .. } => "session:compaction-complete",
            Self::Error { .. } => "session:compaction-error",
        }
    }
}

impl std::fmt::Debug for CompactOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compacting")
            .field("policy", self.policy)
            .field("window", &self.window)
            .field("force", &self.force)
            .field("model", &self.summarizer)
            .finish_non_exhaustive()
    }
}

impl CompactOptions<'_> {
    fn emit(&self, event: CompactionEvent) {
        if let Some(tell) = self.on_event {
            tell(event);
        }
    }
}

/// A compaction that happened.
#[derive(Clone, Debug)]
pub struct Compaction {
    /// The checkpoint's entry.
    pub entry: Entry,
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// What the messages after the last checkpoint cost before.
    pub tokens_before: u64,
    /// What is left of them costs.
    pub tokens_kept: u64,
    /// What the person should know.
    pub warnings: Vec<String>,
}

/// What a summary is made from.
struct SummaryInputs<'a> {
    record: &'a Record,
    previous: Option<&'a Summary>,
    entries: Vec<CountedEntry>,
}

/// What became of a compaction.
#[derive(Clone, Debug)]
pub enum CompactOutcome {
    /// It was done.
    Done(Box<Compaction>),
    /// There was no need, or nothing to cover.
    NotNeeded,
    /// A summary would have been no smaller than what it replaces.
    NotSmaller(Vec<String>),
    /// Somebody else compacted, cleared or rewound meanwhile: theirs stands.
    Superseded,
}

impl Session {
    /// Summarizes what came before the tail that the policy keeps.
    pub async fn compact(&self, compacting: &CompactOptions<'_>) -> Result<CompactOutcome, Error> {
        let record = self.record().await?;
        let previous = self
            .checkpoint()
            .await?
            .map(|(_, checkpoint)| checkpoint.summary);
        let spans = record.state.verbatim_spans();
        let tail = self
            .read_tail(
                last_entry_before(compacting.before, &record),
                &spans,
                compacting.encoding,
                None,
            )
            .await?;
        let planned = plan_compaction(
            &record,
            &tail.entries,
            compacting.policy,
            compacting.window,
            compacting.fixed_tokens,
            compacting.force,
        );
        let Some(plan) = planned else {
            return Ok(CompactOutcome::NotNeeded);
        };
        let held = self
            .tl
            .acquire_lease(&format!("compact {}", self.id()))
            .await?;
        let summarizing = async {
            // Whoever had it until now may have done it.
            if !has_same_view(&self.record().await?.state, &record.state) {
                return Ok(CompactOutcome::Superseded);
            }
            let known = SummaryInputs {
                record: &record,
                previous: previous.as_ref(),
                entries: tail.entries,
            };
            let fence = held.fence();
            let fence = fence.map(|fence| fence.nested_in(self.fence.clone()));
            self.summarize(compacting, known, &plan, fence).await
        };
        let compacted = held.run_with_renewal(summarizing).await;
        held.release().await;
        match compacted {
            Err(Error::Store(StoreError::LeaseLost { .. })) => {
                compacting.emit(CompactionEvent::Error {
                    why: "it took too long, and somebody else is at it".to_owned(),
                });
                Ok(CompactOutcome::Superseded)
            }
            compacted => compacted,
        }
    }

    /// Writes the summary that was planned and appends it, under a lease.
    async fn summarize(
        &self,
        compacting: &CompactOptions<'_>,
        known: SummaryInputs<'_>,
        plan: &CompactionPlan,
        fence: Option<Fence>,
    ) -> Result<CompactOutcome, Error> {
        let SummaryInputs {
            record,
            previous,
            entries,
        } = known;
        compacting.emit(CompactionEvent::Start {
            covers: plan.covers,
        });
        let covered: Vec<Entry> = entries
            .into_iter()
            .map(|counted| counted.entry)
            .filter(|entry| entry.seq <= plan.covers)
            .collect();
        let brief = SummaryRequest {
            previous,
            pins: &record.state.pins,
            decisions: &record.state.decisions,
            entries: &covered,
            budget: plan.summary_tokens,
        };
        let before = previous.map_or(0, throughline_llm::estimate_summary_tokens);
        let replaced = if compacting.allow_larger {
            // Fitted into what a few words took, it would lose what was known before them.
            u64::MAX
        } else {
            plan.tokens_before.saturating_sub(plan.tokens_kept) + before
        };
        let outcome = summarize_with_fallback(compacting.summarizer, &brief, replaced).await;
        if outcome.rejection.is_some() && !compacting.allow_larger {
            let why = outcome.warnings.join("; ");
            compacting.emit(CompactionEvent::Error { why });
            return Ok(CompactOutcome::NotSmaller(outcome.warnings));
        }
        let mut warnings = outcome.warnings;
        if outcome.rejection.is_some() {
            // That it gains nothing is no fault where it is wanted all the same.
            warnings.pop();
        }
        let said = || covered.iter().filter(|entry| entry.message().is_some());
        let checkpoint = Checkpoint {
            covers: plan.covers,
            summary: outcome.generated.summary,
            by: outcome.by,
            messages: plan.messages,
            oldest: said().next().map(|entry| entry.at),
            newest: said().next_back().map(|entry| entry.at),
            usage: outcome.generated.usage,
        };
        let entry = match self.append_checkpoint(record, &checkpoint, fence).await {
            Ok(Some(entry)) => entry,
            Ok(None) => {
                let why = "somebody else was first".to_owned();
                compacting.emit(CompactionEvent::Error { why });
                return Ok(CompactOutcome::Superseded);
            }
            Err(lost @ Error::Store(StoreError::LeaseLost { .. })) => return Err(lost),
            Err(error) => {
                let why = error.to_string();
                compacting.emit(CompactionEvent::Error { why });
                return Err(error);
            }
        };
        compacting.emit(CompactionEvent::Complete {
            checkpoint: entry.seq,
        });
        Ok(CompactOutcome::Done(Box::new(Compaction {
            entry,
            checkpoint,
            tokens_before: plan.tokens_before,
            tokens_kept: plan.tokens_kept,
            warnings,
        })))
    }

    /// What to send now, after a compaction where the policy calls for one.
    ///
    /// A compaction that comes to nothing is no reason not to answer: the request is
    /// built all the same, with what fits.
    pub async fn compact_and_build_request(
        &self,
        asking: &RequestOptions<'_>,
        model: Option<&dyn Summarizer>,
        tell: Option<&(dyn Fn(CompactionEvent) + Send + Sync)>,
    ) -> Result<(Request, CompactOutcome), Error> {
        let request = self.request(asking).await?;
        let window = self.tl.to_estimated_tokens(asking.model, asking.window);
        let due = needs_compaction(request.tokens, asking.policy, window);
        if !due && !self.has_outgrown_request(asking).await? {
            return Ok((request, CompactOutcome::NotNeeded));
        }
        let messages = request.section(SectionName::Recent).map_or(0, |s| s.tokens);
        let compacted = self
            .compact(&CompactOptions {
                policy: asking.policy,
                window,
                encoding: asking.encoding,
                before: asking.before,
                fixed_tokens: request.tokens.saturating_sub(messages),
                force: true,
                allow_larger: false,
                summarizer: model,
                on_event: tell,
            })
            .await?;
        match compacted {
            CompactOutcome::Done(_) | CompactOutcome::Superseded => {
                Ok((self.request(asking).await?, compacted))
            }
            CompactOutcome::NotNeeded | CompactOutcome::NotSmaller(_) => Ok((request, compacted)),
        }
    }

    /// Whether more was said than the policy allows, where a request shows only the last
    /// messages of it and so never grows: what is out of its view must be summarized.
    async fn has_outgrown_request(&self, asking: &RequestOptions<'_>) -> Result<bool, Error> {
        let (Retention::Messages { .. }, Some(threshold)) = (
            asking.policy.keep,
            asking.policy.compaction_threshold(asking.window),
        ) else {
            return Ok(false);
        };
        let record = self.record().await?;
        let spans = record.state.verbatim_spans();
        let tail = self
            .read_tail(
                asking.last_entry(&record),
                &spans,
                asking.encoding,
                Some(threshold),
            )
            .await?;
        let said = tail
            .entries
            .iter()
            .map(|counted| counted.tokens)
            .sum::<u64>();
        Ok(said >= threshold)
    }

    /// Appends a checkpoint made from this record, unless what it was made from no longer
    /// stands. Messages that arrived meanwhile are no reason not to.
    async fn append_checkpoint(
        &self,
        made_from: &Record,
        checkpoint: &Checkpoint,
        fence: Option<Fence>,
    ) -> Result<Option<Entry>, Error> {
        let mut head = made_from.info.head;
        for _ in 0..MAX_APPEND_ATTEMPTS {
            let append = Append {
                fence: fence.clone(),
                ..Append::after(head, vec![self.new_entry(checkpoint.clone())])
            };
            match self.tl.store.append(&self.reference, append).await {
                Ok(mut appended) => return Ok(appended.entries.pop()),
                Err(StoreError::Moved { .. }) => {
                    let now = self.record().await?;
                    if !has_same_view(&now.state, &made_from.state) {
                        return Ok(None);
                    }
                    head = now.info.head;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// Takes the checkpoint in force back; tells which entry it was.
    pub async fn undo_compaction(&self) -> Result<Seq, Error> {
        let record = self.record().await?;
        let Some(mark) = record.state.checkpoint() else {
            return Err(Error::NoCheckpoint(self.id().clone()));
        };
        let checkpoint = mark.seq;
        self.append(Body::CheckpointRetracted { checkpoint })
            .await?;
        Ok(checkpoint)
    }
}

/// Whether the same is visible and summarized as before.
fn has_same_view(now: &SessionState, before: &SessionState) -> bool {
    now.visible == before.visible && now.checkpoints == before.checkpoints
}
