//! The summarizer that needs nothing: it picks, and does not write.
//!
//! Messages are taken apart into sentences and list items ([`pieces`], [`sentences`]);
//! each is told by its phrases and shape ([`cues`], [`signs`], [`classify`]) and by what is
//! specific in it ([`specifics`]); later ones settle earlier ones ([`settle`]); the
//! weightiest that fit are kept, each once ([`fill`]). The previous summary's items take
//! part like everything else, only older.
//!
//! Invariant: every item is a whole sentence, clause, list item or line that somebody
//! said, or an item of the previous summary, or a pin or a decision.

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

/// What the block of a summary takes before anything is in it, in bytes.
const BLOCK_OVERHEAD: usize = 320;
/// The largest summary anybody could want, in bytes.
const MAX_SUMMARY_BYTES: usize = 1 << 24;
/// The longest background, in bytes.
const MAX_BACKGROUND: usize = 400;

/// Summarizes by picking what matters out of what was said. Needs no model, and gives
/// the same summary for the same brief.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExtractiveSummarizer;

impl ExtractiveSummarizer {
    /// Summarizes at once.
    pub fn extract(&self, brief: &SummaryRequest<'_>) -> Summary {
        let restored = restored_summary(brief.entries);
        let previous = brief.previous.or(restored.as_ref());
        let brief = &SummaryRequest { previous, ..*brief };

        let mut found = collector::CandidateCollector::default();
        if let Some(previous) = previous {
            found.add_summary(previous);
        }
        found.add_entries(brief.entries);
        supersession::resolve_superseded(&mut found.items, &found.lexicon);

        let budget = usize::try_from(brief.budget.saturating_mul(4)).unwrap_or(MAX_SUMMARY_BYTES);
        let mut room = budget.min(MAX_SUMMARY_BYTES).saturating_sub(BLOCK_OVERHEAD);
        let mut summary = Summary::default();
        for noted in brief.pins.iter().chain(brief.decisions) {
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
            ..*brief
        };
        summary.files_touched = select_files(&scarce);
        room -= list_cost(&summary.files_touched).min(room);
        for noted in brief.pins.iter().chain(brief.decisions) {
            room += selection::item_cost(&noted.text);
        }
        let opening = match sentences::split_sentences(&summary.background).first() {
            Some(opening) => (*opening).to_owned(),
            None => found.goal.clone().unwrap_or_default(),
        };
        selection::select_items(&mut found, brief, &opening, room).into_summary(&mut summary);
        if summary.is_empty() {
            // Nothing in it stands out: then how it began is what it was about.
            summary.topics.extend(first_sentence(brief.entries, room));
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
        brief: &SummaryRequest<'_>,
    ) -> Result<GeneratedSummary, SummarizeError> {
        Ok(GeneratedSummary {
            summary: self.extract(brief),
            usage: None,
        })
    }
}

fn list_cost(items: &[String]) -> usize {
    items.iter().map(|item| selection::item_cost(item)).sum()
}

/// The first whole sentence that somebody said and that there is room for; the user's
/// before anybody else's.
fn first_sentence(entries: &[Entry], room: usize) -> Option<String> {
    let by = |user: bool| {
        let messages = entries.iter().filter_map(Entry::message);
        messages.filter(move |message| (message.role == Role::User) == user)
    };
    by(true).chain(by(false)).find_map(|message| {
        let text = message.content.to_text();
        let sentences = sentences::split_sentences(&text);
        let line = |said: &&str| said.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut lines = sentences.iter().map(line);
        lines.find(|line| !line.is_empty() && selection::item_cost(line) <= room)
    })
}

/// What a session that continues another starts from.
fn restored_summary(entries: &[Entry]) -> Option<Summary> {
    let prompt = entries.iter().find_map(|entry| match &entry.body {
        Body::Restored(restored) => Some(&restored.prompt),
        _ => None,
    })?;
    Summary::from_transcript(prompt).ok()
}

/// The previous summary in a sentence or two: how it began, and what came up.
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
