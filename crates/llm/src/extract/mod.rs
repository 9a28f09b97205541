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

mod classify;
mod cues;
mod fill;
mod gather;
mod item;
mod pieces;
mod sentences;
mod settle;
mod signs;
mod specifics;
mod topics;
mod words;

use async_trait::async_trait;
use throughline_model::{Body, Entry, Role, Summary};

use crate::files::files;
use crate::{Brief, SummarizeError, Summarizer, Written};

/// What the block of a summary takes before anything is in it, in bytes.
const FRAME: usize = 320;
/// The largest summary anybody could want, in bytes.
const MOST: usize = 1 << 24;
/// The longest background, in bytes.
const BACKGROUND: usize = 400;

/// Summarizes by picking what matters out of what was said. Needs no model, and gives
/// the same summary for the same brief.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extractive;

impl Extractive {
    /// Summarizes at once.
    pub fn extract(&self, brief: &Brief<'_>) -> Summary {
        let restored = restored(brief.entries);
        let previous = brief.previous.or(restored.as_ref());
        let brief = &Brief { previous, ..*brief };

        let mut found = gather::Gathered::default();
        if let Some(previous) = previous {
            found.recall(previous);
        }
        found.read(brief.entries);
        settle::settle(&mut found.items, &found.lexicon);

        let budget = usize::try_from(brief.budget.saturating_mul(4)).unwrap_or(MOST);
        let mut room = budget.min(MOST).saturating_sub(FRAME);
        let mut summary = Summary::default();
        for noted in brief.pins.iter().chain(brief.decisions) {
            room = room.saturating_sub(fill::cost(&noted.text));
        }
        if let Some(previous) = previous {
            summary.background = background(previous, (room / 8).min(BACKGROUND));
        }
        room -= summary.background.len();
        summary.topics = topics::topics(&mut found, previous, &summary.background, room / 8);
        room -= spent(&summary.topics);
        let scarce = Brief {
            budget: (room / 4) as u64,
            ..*brief
        };
        summary.files_touched = files(&scarce);
        room -= spent(&summary.files_touched).min(room);
        for noted in brief.pins.iter().chain(brief.decisions) {
            room += fill::cost(&noted.text);
        }
        let opening = match sentences::sentences(&summary.background).first() {
            Some(opening) => (*opening).to_owned(),
            None => found.goal.clone().unwrap_or_default(),
        };
        fill::fill(&mut found, brief, &opening, room).into_summary(&mut summary);
        if summary.is_empty() {
            // Nothing in it stands out: then how it began is what it was about.
            summary.topics.extend(beginning(brief.entries, room));
        }
        summary
    }
}

#[async_trait]
impl Summarizer for Extractive {
    fn name(&self) -> &'static str {
        "extractive"
    }

    async fn summarize(&self, brief: &Brief<'_>) -> Result<Written, SummarizeError> {
        Ok(Written {
            summary: self.extract(brief),
            usage: None,
        })
    }
}

fn spent(items: &[String]) -> usize {
    items.iter().map(|item| fill::cost(item)).sum()
}

/// The first whole sentence that somebody said and that there is room for; the user's
/// before anybody else's.
fn beginning(entries: &[Entry], room: usize) -> Option<String> {
    let by = |user: bool| {
        let messages = entries.iter().filter_map(Entry::message);
        messages.filter(move |message| (message.role == Role::User) == user)
    };
    by(true).chain(by(false)).find_map(|message| {
        let text = message.content.to_text();
        let sentences = sentences::sentences(&text);
        let line = |said: &&str| said.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut lines = sentences.iter().map(line);
        lines.find(|line| !line.is_empty() && fill::cost(line) <= room)
    })
}

/// What a session that continues another starts from.
fn restored(entries: &[Entry]) -> Option<Summary> {
    let prompt = entries.iter().find_map(|entry| match &entry.body {
        Body::Restored(restored) => Some(&restored.prompt),
        _ => None,
    })?;
    Summary::from_transcript(prompt).ok()
}

/// The previous summary in a sentence or two: how it began, and what came up.
fn background(previous: &Summary, room: usize) -> String {
    let (opening, rest) = if previous.background.trim().is_empty() {
        match previous.topics.split_first() {
            Some((first, rest)) => (first.as_str(), rest),
            None => ("", &[][..]),
        }
    } else {
        let sentences = sentences::sentences(&previous.background);
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
