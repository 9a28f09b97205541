//! What a session came to, for whoever comes back to it.
//!
//! Unlike a checkpoint, such a summary hides nothing: the next request is made as if it
//! were not there. It is what a chat leaves behind, what a new session continues from,
//! and what is shown of a session before it is opened.

use throughline_llm::{Summarizer, SummaryOutcome, SummaryRequest, summarize_with_fallback};
use throughline_model::{Body, Checkpoint, Entry, Record, Seq, Summary};
use throughline_store::ReadRange;

use crate::{Error, Session};

/// How many tokens such a summary may take: the reference systems ask for 500 words.
const SUMMARY_TOKENS: u64 = 1_000;
/// Entries read at a time.
const PAGE: usize = 1_000;

/// A summary that was left behind.
#[derive(Clone, Debug)]
pub struct ExitSummary {
    /// Its entry.
    pub entry: Entry,
    /// What it says.
    pub summary: Summary,
    /// What wrote it.
    pub by: String,
    /// What the person should know.
    pub warnings: Vec<String>,
}

impl Session {
    /// The summary that says most: the checkpoint in force, or one left behind since.
    pub async fn last_summary(&self) -> Result<Option<Checkpoint>, Error> {
        let record = self.record().await?;
        self.load_summary(&record).await
    }

    async fn load_summary(&self, record: &Record) -> Result<Option<Checkpoint>, Error> {
        let Some(mark) = record.state.last_summary() else {
            return Ok(None);
        };
        let entry = self
            .read(ReadRange::between(mark.seq, mark.seq, 1))
            .await?
            .pop();
        Ok(entry.and_then(|entry| match entry.body {
            Body::Checkpoint(summary) | Body::Summarized(summary) => Some(*summary),
            _ => None,
        }))
    }

    /// What the session came to up to now, without a model and without a trace.
    pub async fn summarize_now(&self) -> Result<Summary, Error> {
        let record = self.record().await?;
        let (outcome, _) = self.summarize_since_last(&record, None).await?;
        Ok(outcome.generated.summary)
    }

    /// Leaves a summary of everything said behind; none where nothing was said since the
    /// last one.
    pub async fn append_exit_summary(
        &self,
        model: Option<&dyn Summarizer>,
    ) -> Result<Option<ExitSummary>, Error> {
        let record = self.record().await?;
        let (outcome, since) = self.summarize_since_last(&record, model).await?;
        let said = || since.iter().filter(|entry| entry.message().is_some());
        let Some(last) = said().next_back() else {
            return Ok(None);
        };
        let mut warnings = outcome.warnings;
        if outcome.rejection.is_some() {
            // That there is little to say is no fault here; that a model failed is told.
            warnings.pop();
        }
        let summary = outcome.generated.summary;
        let body = Body::Summarized(Box::new(Checkpoint {
            covers: last.seq,
            summary: summary.clone(),
            by: outcome.by.clone(),
            messages: said().count() as u64,
            oldest: said().next().map(|entry| entry.at),
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

    /// A summary of all that can be seen, from the last one on, and what came since.
    async fn summarize_since_last(
        &self,
        record: &Record,
        model: Option<&dyn Summarizer>,
    ) -> Result<(SummaryOutcome, Vec<Entry>), Error> {
        let previous = self.load_summary(record).await?;
        let covers = previous.as_ref().map_or(Seq::ZERO, |known| known.covers);
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
        let brief = SummaryRequest {
            previous: previous.as_ref().map(|known| &known.summary),
            pins: &record.state.pins,
            decisions: &record.state.decisions,
            entries: &since,
            budget: SUMMARY_TOKENS,
        };
        let outcome = summarize_with_fallback(model, &brief, u64::MAX).await;
        Ok((outcome, since))
    }
}
