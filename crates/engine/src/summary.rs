//! Exit summaries: a summary of a session that does not replace anything.
//!
//! Unlike a checkpoint, an exit summary hides nothing: requests are built as if it did
//! not exist. It is written when a chat ends, new sessions continue from it, and it is
//! shown as a preview of the session.

use throughline_llm::{Summarizer, SummaryOutcome, SummaryRequest, summarize_with_fallback};
use throughline_model::{Body, Checkpoint, Entry, Record, Seq, Summary};
use throughline_store::ReadRange;

use crate::{Error, Session};

/// The most tokens of an exit summary: the reference systems request 500 words.
const SUMMARY_TOKENS: u64 = 1_000;
/// The number of entries read at a time.
const PAGE: usize = 1_000;

/// An exit summary that was appended.
#[derive(Clone, Debug)]
pub struct ExitSummary {
    /// The entry that holds it.
    pub entry: Entry,
    /// The summary.
    pub summary: Summary,
    /// The summarizer that wrote it.
    pub by: String,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

impl Session {
    /// Returns the most recent summary: the checkpoint in effect, or an exit summary
    /// after it.
    pub async fn last_summary(&self) -> Result<Option<Checkpoint>, Error> {
        let record = self.record().await?;
        self.load_summary(&record).await
    }

    async fn load_summary(&self, record: &Record) -> Result<Option<Checkpoint>, Error> {
        let Some(summary_ref) = record.state.last_summary() else {
            return Ok(None);
        };
        let entry = self
            .read(ReadRange::between(summary_ref.seq, summary_ref.seq, 1))
            .await?
            .pop();
        Ok(entry.and_then(|entry| match entry.body {
            Body::Checkpoint(summary) | Body::Summarized(summary) => Some(*summary),
            _ => None,
        }))
    }

    /// Summarizes the session without a model and without storing the result.
    pub async fn summarize_now(&self) -> Result<Summary, Error> {
        let record = self.record().await?;
        let (outcome, _) = self.summarize_since_last(&record, None).await?;
        Ok(outcome.generated.summary)
    }

    /// Appends a summary of the whole session; returns `None` if there are no messages
    /// since the last one.
    pub async fn append_exit_summary(
        &self,
        model: Option<&dyn Summarizer>,
    ) -> Result<Option<ExitSummary>, Error> {
        let record = self.record().await?;
        let (outcome, since) = self.summarize_since_last(&record, model).await?;
        let messages = || since.iter().filter(|entry| entry.message().is_some());
        let Some(last) = messages().next_back() else {
            return Ok(None);
        };
        let mut warnings = outcome.warnings;
        if outcome.rejection.is_some() {
            // The last warning says that the summary is not smaller, which does not
            // matter here; a failure of the model is still reported.
            warnings.pop();
        }
        let summary = outcome.generated.summary;
        let body = Body::Summarized(Box::new(Checkpoint {
            covers: last.seq,
            summary: summary.clone(),
            by: outcome.by.clone(),
            messages: messages().count() as u64,
            oldest: messages().next().map(|entry| entry.at),
            newest: Some(last.at),
            usage: outcome.generated.usage,
        }));
        Ok(Some(ExitSummary {
            entry: self.append(body).await?,
            summary,
            by: outcome.by,
            warnings,
        }))
    }

    /// Summarizes everything visible, starting from the last summary; also returns the
    /// entries since.
    async fn summarize_since_last(
        &self,
        record: &Record,
        model: Option<&dyn Summarizer>,
    ) -> Result<(SummaryOutcome, Vec<Entry>), Error> {
        let previous = self.load_summary(record).await?;
        let covers = previous
            .as_ref()
            .map_or(Seq::ZERO, |checkpoint| checkpoint.covers);
        let mut since = Vec::new();
        for span in record.state.visible_spans_after(covers) {
            let to = span.to.unwrap_or(record.info.head);
            let mut next = span.from;
            while next <= to {
                let page = self.read(ReadRange::between(next, to, PAGE)).await?;
                let Some(last) = page.last() else {
                    break;
                };
                next = last.seq.next();
                since.extend(page);
            }
        }
        let request = SummaryRequest {
            previous: previous.as_ref().map(|checkpoint| &checkpoint.summary),
            pins: &record.state.pins,
            decisions: &record.state.decisions,
            entries: &since,
            budget: SUMMARY_TOKENS,
        };
        let outcome = summarize_with_fallback(model, &request, u64::MAX).await;
        Ok((outcome, since))
    }
}
