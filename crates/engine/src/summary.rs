//! What a session came to, for whoever comes back to it.
//!
//! Unlike a checkpoint, such a summary hides nothing: the next request is made as if it
//! were not there. It is what a chat leaves behind, what a new session continues from,
//! and what is shown of a session before it is opened.

use throughline_llm::{Brief, Outcome, Summarizer, summarize_with_fallback};
use throughline_model::{Body, Checkpoint, Entry, Record, Seq, Summary};
use throughline_store::Read;

use crate::{Error, Session};

/// How many tokens such a summary may take: the reference systems ask for 500 words.
const BUDGET: u64 = 1_000;
/// Entries read at a time.
const PAGE: usize = 1_000;

/// A summary that was left behind.
#[derive(Clone, Debug)]
pub struct LeftBehind {
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
        self.summary_of(&record).await
    }

    async fn summary_of(&self, record: &Record) -> Result<Option<Checkpoint>, Error> {
        let Some(mark) = record.standing.last_summary() else {
            return Ok(None);
        };
        let entry = self.read(Read::between(mark.seq, mark.seq, 1)).await?.pop();
        Ok(entry.and_then(|entry| match entry.body {
            Body::Checkpoint(summary) | Body::Summarized(summary) => Some(*summary),
            _ => None,
        }))
    }

    /// What the session came to up to now, without a model and without a trace.
    pub async fn summary_now(&self) -> Result<Summary, Error> {
        let record = self.record().await?;
        let (outcome, _) = self.summarized(&record, None).await?;
        Ok(outcome.written.summary)
    }

    /// Leaves a summary of everything said behind; none where nothing was said since the
    /// last one.
    pub async fn leave_summary(
        &self,
        model: Option<&dyn Summarizer>,
    ) -> Result<Option<LeftBehind>, Error> {
        let record = self.record().await?;
        let (outcome, since) = self.summarized(&record, model).await?;
        let said = || since.iter().filter(|entry| entry.message().is_some());
        let Some(last) = said().next_back() else {
            return Ok(None);
        };
        let mut warnings = outcome.warnings;
        if outcome.rejected.is_some() {
            // That there is little to say is no fault here; that a model failed is told.
            warnings.pop();
        }
        let summary = outcome.written.summary;
        let body = Body::Summarized(Box::new(Checkpoint {
            covers: last.seq,
            summary: summary.clone(),
            by: outcome.by.clone(),
            messages: said().count() as u64,
            oldest: said().next().map(|entry| entry.at),
            newest: Some(last.at),
            usage: outcome.written.usage,
        }));
        Ok(Some(LeftBehind {
            entry: self.append(body).await?,
            summary,
            by: outcome.by,
            warnings,
        }))
    }

    /// A summary of all that can be seen, from the last one on, and what came since.
    async fn summarized(
        &self,
        record: &Record,
        model: Option<&dyn Summarizer>,
    ) -> Result<(Outcome, Vec<Entry>), Error> {
        let previous = self.summary_of(record).await?;
        let covers = previous.as_ref().map_or(Seq::ZERO, |known| known.covers);
        let mut since = Vec::new();
        for span in record.standing.visible_after(covers) {
            let to = span.to.unwrap_or(record.card.head);
            let mut next = span.from;
            while next <= to {
                let page = self.read(Read::between(next, to, PAGE)).await?;
                let Some(last) = page.last() else {
                    break;
                };
                next = last.seq.next();
                since.extend(page);
            }
        }
        let brief = Brief {
            previous: previous.as_ref().map(|known| &known.summary),
            pins: &record.standing.pins,
            decisions: &record.standing.decisions,
            entries: &since,
            budget: BUDGET,
        };
        let outcome = summarize_with_fallback(model, &brief, u64::MAX).await;
        Ok((outcome, since))
    }
}
