//! Compaction: replaces the older part of a session's view by a summary, stored as a
//! checkpoint.
//!
//! The log is read and the summary is written before anything is appended. Entries that
//! arrive meanwhile come after what the checkpoint covers and are not affected. The
//! checkpoint is appended only if nothing but messages was added to the log since it
//! was read; if another process compacted, cleared or rewound the session meanwhile,
//! the checkpoint is dropped.
//!
//! Only one process at a time summarizes a session, under a lease, so that no model
//! call is paid for twice; the others wait. A process that dies is replaced when its
//! lease expires, and one that was replaced because it was slow can no longer append.

use throughline_context::{
    CompactionPlan, CountedEntry, Encoding, Policy, Request, Retention, SectionName,
    needs_compaction, plan_compaction,
};
use throughline_llm::{Summarizer, SummaryRequest, summarize_with_fallback};
use throughline_model::{Body, Checkpoint, Entry, Record, Seq, SessionState, Summary};
use throughline_store::{Append, Fence, StoreError};

use crate::request::last_entry_before;
use crate::{Error, RequestOptions, Session};

/// The number of times a checkpoint append is retried after concurrent appends.
const MAX_APPEND_ATTEMPTS: usize = 100;

/// Options for compacting a session.
#[derive(Clone, Copy)]
pub struct CompactOptions<'a> {
    /// The policy to compact by.
    pub policy: &'a Policy,
    /// The model's context window, in tokens.
    pub window: u64,
    /// The encoding that tokens are counted with.
    pub encoding: Encoding,
    /// The tokens of a request other than its messages.
    pub fixed_tokens: u64,
    /// If set, neither this entry nor any later one is covered.
    pub before: Option<Seq>,
    /// Whether to compact even if the policy does not require it.
    pub force: bool,
    /// Whether to accept a summary that is not smaller than what it replaces.
    pub allow_larger: bool,
    /// The model that summarizes; `None` for the extractive summarizer.
    pub summarizer: Option<&'a dyn Summarizer>,
    /// A callback for progress events.
    pub on_event: Option<&'a (dyn Fn(CompactionEvent) + Send + Sync)>,
}

/// Progress of a compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompactionEvent {
    /// A summary of everything up to an entry is being written.
    Start {
        /// The last entry that is covered.
        covers: Seq,
    },
    /// The checkpoint has been appended.
    Complete {
        /// The checkpoint's entry.
        checkpoint: Seq,
    },
    /// The compaction failed. Nothing is lost.
    Error {
        /// The reason.
        why: String,
    },
}

impl CompactionEvent {
    /// The event's name.
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
        f.debug_struct("CompactOptions")
            .field("policy", self.policy)
            .field("window", &self.window)
            .field("force", &self.force)
            .field("model", &self.summarizer)
            .finish_non_exhaustive()
    }
}

impl CompactOptions<'_> {
    fn emit(&self, event: CompactionEvent) {
        if let Some(callback) = self.on_event {
            callback(event);
        }
    }
}

/// A completed compaction.
#[derive(Clone, Debug)]
pub struct Compaction {
    /// The entry that holds the checkpoint.
    pub entry: Entry,
    /// The checkpoint in it.
    pub checkpoint: Checkpoint,
    /// The tokens of the messages since the previous checkpoint, before compaction.
    pub tokens_before: u64,
    /// The tokens of those messages that remain after compaction.
    pub tokens_kept: u64,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// The inputs of a summary.
struct SummaryInputs<'a> {
    record: &'a Record,
    previous: Option<&'a Summary>,
    entries: Vec<CountedEntry>,
}

/// The result of a compaction.
#[derive(Clone, Debug)]
pub enum CompactOutcome {
    /// The session was compacted.
    Done(Box<Compaction>),
    /// Compaction was not required, or there was nothing to cover.
    NotNeeded,
    /// The summary would have been no smaller than what it replaces.
    NotSmaller(Vec<String>),
    /// Another process compacted, cleared or rewound the session meanwhile; its change
    /// is kept.
    Superseded,
}

impl Session {
    /// Summarizes everything before the tail that the policy retains.
    pub async fn compact(&self, options: &CompactOptions<'_>) -> Result<CompactOutcome, Error> {
        let record = self.record().await?;
        let previous = self
            .checkpoint()
            .await?
            .map(|(_, checkpoint)| checkpoint.summary);
        let spans = record.state.verbatim_spans();
        let tail = self
            .read_tail(
                last_entry_before(options.before, &record),
                &spans,
                options.encoding,
                None,
            )
            .await?;
        let planned = plan_compaction(
            &record,
            &tail.entries,
            options.policy,
            options.window,
            options.fixed_tokens,
            options.force,
        );
        let Some(plan) = planned else {
            return Ok(CompactOutcome::NotNeeded);
        };
        let lease = self
            .tl
            .acquire_lease(&format!("compact {}", self.id()))
            .await?;
        let summarizing = async {
            // The previous holder of the lease may have compacted the session.
            if !has_same_view(&self.record().await?.state, &record.state) {
                return Ok(CompactOutcome::Superseded);
            }
            let inputs = SummaryInputs {
                record: &record,
                previous: previous.as_ref(),
                entries: tail.entries,
            };
            let fence = lease.fence();
            let fence = fence.map(|fence| fence.nested_in(self.fence.clone()));
            self.summarize(options, inputs, &plan, fence).await
        };
        let compacted = lease.run_with_renewal(summarizing).await;
        lease.release().await;
        match compacted {
            Err(Error::Store(StoreError::LeaseLost { .. })) => {
                options.emit(CompactionEvent::Error {
                    why: "it took too long, and another process has taken over".to_owned(),
                });
                Ok(CompactOutcome::Superseded)
            }
            compacted => compacted,
        }
    }

    /// Writes the planned summary and appends it as a checkpoint, under a lease.
    async fn summarize(
        &self,
        options: &CompactOptions<'_>,
        inputs: SummaryInputs<'_>,
        plan: &CompactionPlan,
        fence: Option<Fence>,
    ) -> Result<CompactOutcome, Error> {
        let SummaryInputs {
            record,
            previous,
            entries,
        } = inputs;
        options.emit(CompactionEvent::Start {
            covers: plan.covers,
        });
        let covered: Vec<Entry> = entries
            .into_iter()
            .map(|counted| counted.entry)
            .filter(|entry| entry.seq <= plan.covers)
            .collect();
        let summary_request = SummaryRequest {
            previous,
            pins: &record.state.pins,
            decisions: &record.state.decisions,
            entries: &covered,
            budget: plan.summary_tokens,
        };
        let before = previous.map_or(0, throughline_llm::estimate_summary_tokens);
        let replaced = if options.allow_larger {
            // If a summary were limited to the size of a few short messages, it would
            // lose what the previous summary contains.
            u64::MAX
        } else {
            plan.tokens_before.saturating_sub(plan.tokens_kept) + before
        };
        let outcome = summarize_with_fallback(options.summarizer, &summary_request, replaced).await;
        if outcome.rejection.is_some() && !options.allow_larger {
            let why = outcome.warnings.join("; ");
            options.emit(CompactionEvent::Error { why });
            return Ok(CompactOutcome::NotSmaller(outcome.warnings));
        }
        let mut warnings = outcome.warnings;
        if outcome.rejection.is_some() {
            // The last warning says that the summary is not smaller, which the caller
            // allows.
            warnings.pop();
        }
        let messages = || covered.iter().filter(|entry| entry.message().is_some());
        let checkpoint = Checkpoint {
            covers: plan.covers,
            summary: outcome.generated.summary,
            by: outcome.by,
            messages: plan.messages,
            oldest: messages().next().map(|entry| entry.at),
            newest: messages().next_back().map(|entry| entry.at),
            usage: outcome.generated.usage,
        };
        let entry = match self.append_checkpoint(record, &checkpoint, fence).await {
            Ok(Some(entry)) => entry,
            Ok(None) => {
                let why =
                    "another process compacted, cleared or rewound the session first".to_owned();
                options.emit(CompactionEvent::Error { why });
                return Ok(CompactOutcome::Superseded);
            }
            Err(lost @ Error::Store(StoreError::LeaseLost { .. })) => return Err(lost),
            Err(error) => {
                let why = error.to_string();
                options.emit(CompactionEvent::Error { why });
                return Err(error);
            }
        };
        options.emit(CompactionEvent::Complete {
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

    /// Builds the next request, compacting first if the policy requires it.
    ///
    /// A compaction that does not succeed does not prevent an answer: the request is
    /// built from what fits.
    pub async fn compact_and_build_request(
        &self,
        options: &RequestOptions<'_>,
        model: Option<&dyn Summarizer>,
        on_event: Option<&(dyn Fn(CompactionEvent) + Send + Sync)>,
    ) -> Result<(Request, CompactOutcome), Error> {
        let request = self.request(options).await?;
        let window = self.tl.to_estimated_tokens(options.model, options.window);
        let due = needs_compaction(request.tokens, options.policy, window);
        if !due && !self.has_outgrown_request(options).await? {
            return Ok((request, CompactOutcome::NotNeeded));
        }
        let messages = request.section(SectionName::Recent).map_or(0, |s| s.tokens);
        let compacted = self
            .compact(&CompactOptions {
                policy: options.policy,
                window,
                encoding: options.encoding,
                before: options.before,
                fixed_tokens: request.tokens.saturating_sub(messages),
                force: true,
                allow_larger: false,
                summarizer: model,
                on_event,
            })
            .await?;
        match compacted {
            CompactOutcome::Done(_) | CompactOutcome::Superseded => {
                Ok((self.request(options).await?, compacted))
            }
            CompactOutcome::NotNeeded | CompactOutcome::NotSmaller(_) => Ok((request, compacted)),
        }
    }

    /// Returns whether the messages exceed the policy's compaction threshold. Needed
    /// for policies that send only the last messages: their requests never grow, so the
    /// rest must be summarized based on the size of the log.
    async fn has_outgrown_request(&self, options: &RequestOptions<'_>) -> Result<bool, Error> {
        let (Retention::Messages { .. }, Some(threshold)) = (
            options.policy.keep,
            options.policy.compaction_threshold(options.window),
        ) else {
            return Ok(false);
        };
        let record = self.record().await?;
        let spans = record.state.verbatim_spans();
        let tail = self
            .read_tail(
                options.last_entry(&record),
                &spans,
                options.encoding,
                Some(threshold),
            )
            .await?;
        let tokens = tail
            .entries
            .iter()
            .map(|counted| counted.tokens)
            .sum::<u64>();
        Ok(tokens >= threshold)
    }

    /// Appends a checkpoint made from `made_from`, unless the session was compacted,
    /// cleared or rewound since. Messages added meanwhile do not prevent it.
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

    /// Retracts the checkpoint in effect and returns its entry number.
    pub async fn undo_compaction(&self) -> Result<Seq, Error> {
        let record = self.record().await?;
        let Some(checkpoint_ref) = record.state.checkpoint() else {
            return Err(Error::NoCheckpoint(self.id().clone()));
        };
        let checkpoint = checkpoint_ref.seq;
        self.append(Body::CheckpointRetracted { checkpoint })
            .await?;
        Ok(checkpoint)
    }
}

/// Returns whether the visible spans and checkpoints are unchanged.
fn has_same_view(now: &SessionState, before: &SessionState) -> bool {
    now.visible == before.visible && now.checkpoints == before.checkpoints
}
