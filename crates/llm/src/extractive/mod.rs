//! The extractive summarizer: selects statements from the entries, without a model.
//!
//! Messages are split into sentences and list items ([`segments`], [`sentences`]); each is
//! classified by phrases and syntax ([`cues`], [`syntax_cues`], [`classify`]) and by what is
//! specific in it ([`specifics`]); later statements supersede earlier ones
//! ([`supersession`]); the highest-scoring ones that fit are selected, without duplicates
//! ([`selection`]). Items of the previous summary take part as older statements.
//!
//! Invariant: every item is a whole sentence, clause, list item or line of a message, an
//! item of the previous summary, a pin or a decision.

mod candidate;
mod classify;
mod collector;
mod cues;
mod lexicon;
mod segments;
mod selection;
mod sentences;
mod specifics;
mod supersession;
mod syntax_cues;
mod topics;

use async_trait::async_trait;
use throughline_model::{Body, Entry, Role, Summary};

use crate::summary_files::select_files;
use crate::{GeneratedSummary, SummarizeError, Summarizer, SummaryRequest};

/// Size in bytes of a summary block without any items.
const BLOCK_OVERHEAD: usize = 320;
/// Maximum size of a summary in bytes.
const MAX_SUMMARY_BYTES: usize = 1 << 24;
/// Maximum size of the background in bytes.
const MAX_BACKGROUND: usize = 400;

/// Summarizes by selecting the most important statements. Needs no model, and returns the
/// same summary for the same request.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExtractiveSummarizer;

impl ExtractiveSummarizer {
    /// Summarizes synchronously.
    pub fn extract(&self, request: &SummaryRequest<'_>) -> Summary {
        let restored = restored_summary(request.entries);
        let previous = request.previous.or(restored.as_ref());
        let request = &SummaryRequest {
            previous,
            ..*request
        };

        let mut found = collector::CandidateCollector::default();
        if let Some(previous) = previous {
            found.add_summary(previous);
        }
        found.add_entries(request.entries);
        supersession::resolve_superseded(&mut found.items, &found.lexicon);

        let budget = usize::try_from(request.budget.saturating_mul(4)).unwrap_or(MAX_SUMMARY_BYTES);
        let mut room = budget.min(MAX_SUMMARY_BYTES).saturating_sub(BLOCK_OVERHEAD);
        let mut summary = Summary::default();
        for noted in request.pins.iter().chain(request.decisions) {
            room = room.saturating_sub(selection::item_cost(&noted.text));
        }
        if let Some(previous) = previous {
            summary.background = condense_background(previous, (room / 8).min(MAX_BACKGROUND));
        }
        room -= summary.background.len();
        summary.topics = topics::select_topics(&mut found, previous, &summary.background, room / 8);
        room -= list_cost(&summary.topics);
        let scarce = SummaryRequest {
            budget: (room / 4) as u64,
            ..*request
        };
        summary.files_touched = select_files(&scarce);
        room -= list_cost(&summary.files_touched).min(room);
        for noted in request.pins.iter().chain(request.decisions) {
            room += selection::item_cost(&noted.text);
        }
        let opening = match sentences::split_sentences(&summary.background).first() {
            Some(opening) => (*opening).to_owned(),
            None => found.goal.clone().unwrap_or_default(),
        };
        selection::select_items(&mut found, request, &opening, room).into_summary(&mut summary);
        if summary.is_empty() {
            // Nothing stands out, so the first sentence serves as the topic.
            summary.topics.extend(first_sentence(request.entries, room));
        }
        summary
    }
}

#[async_trait]
impl Summarizer for ExtractiveSummarizer {
    fn name(&self) -> &'static str {
        "extractive"
    }

    async fn summarize(
        &self,
        request: &SummaryRequest<'_>,
    ) -> Result<GeneratedSummary, SummarizeError> {
        Ok(GeneratedSummary {
            summary: self.extract(request),
            usage: None,
        })
    }
}

fn list_cost(items: &[String]) -> usize {
    items.iter().map(|item| selection::item_cost(item)).sum()
}

/// Returns the first whole sentence that fits; the user's are preferred.
fn first_sentence(entries: &[Entry], room: usize) -> Option<String> {
    let by = |user: bool| {
        let messages = entries.iter().filter_map(Entry::message);
        messages.filter(move |message| (message.role == Role::User) == user)
    };
    by(true).chain(by(false)).find_map(|message| {
        let text = message.content.to_text();
        let sentences = sentences::split_sentences(&text);
        let line = |sentence: &&str| sentence.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut lines = sentences.iter().map(line);
        lines.find(|line| !line.is_empty() && selection::item_cost(line) <= room)
    })
}

/// Returns the summary that a continued session starts from.
fn restored_summary(entries: &[Entry]) -> Option<Summary> {
    let prompt = entries.iter().find_map(|entry| match &entry.body {
        Body::Restored(restored) => Some(&restored.prompt),
        _ => None,
    })?;
    Summary::from_transcript(prompt).ok()
}

/// Condenses the previous summary to a sentence or two: how it began, and its topics.
fn condense_background(previous: &Summary, room: usize) -> String {
    let (opening, rest) = if previous.background.trim().is_empty() {
        match previous.topics.split_first() {
            Some((first, rest)) => (first.as_str(), rest),
            None => ("", &[][..]),
        }
    } else {
        let sentences = sentences::split_sentences(&previous.background);
        (
            sentences.first().copied().unwrap_or(""),
            &previous.topics[..],
        )
    };
    let mut text = opening.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.len() + 2 > room {
        text.clear();
    } else if !text.is_empty() && !text.ends_with(['.', '!', '?', '。']) {
        text.push('.');
    }
    let mut since = Vec::new();
    let mut left = room.saturating_sub(text.len() + 24);
    for topic in rest.iter().take(4) {
        let topic = topic.trim_end_matches(['.', '!', '?']);
        if topic.len() + 2 > left || topic.len() > 60 {
            continue;
        }
        left -= topic.len() + 2;
        since.push(topic);
    }
    if !since.is_empty() {
        let lead = if text.is_empty() {
            "Discussed: "
        } else {
            " Discussed since: "
        };
        text.push_str(&format!("{lead}{}.", since.join("; ")));
    }
    text
}
