//! Reads LoCoMo: long conversations over many sittings, with questions and the turns that
//! answer them.
//!
//! The data is read from a given path and is not part of this project.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use throughline_model::{Owner, Role, Seq, SessionId, Timestamp};
use throughline_recall::Passage;

/// A conversation and the questions about it.
pub(crate) struct Conversation {
    pub(crate) owner: Owner,
    pub(crate) passages: Vec<Passage>,
    pub(crate) questions: Vec<Question>,
}

/// A question.
pub(crate) struct Question {
    pub(crate) text: String,
    /// 1 multi-hop, 2 temporal, 3 open-domain, 4 single-hop.
    pub(crate) category: u8,
    /// The turns that answer it, by external id.
    pub(crate) evidence: Vec<String>,
}

#[derive(Deserialize)]
struct LocomoSample {
    sample_id: String,
    conversation: BTreeMap<String, serde_json::Value>,
    qa: Vec<LocomoQuestion>,
}

#[derive(Deserialize)]
struct LocomoTurn {
    speaker: String,
    dia_id: String,
    text: String,
    #[serde(default)]
    blip_caption: Option<String>,
}

#[derive(Deserialize)]
struct LocomoQuestion {
    question: String,
    #[serde(default)]
    evidence: Vec<String>,
    category: u8,
}

/// Reads the conversations in a file, one owner each, with the questions that have an answer.
pub(crate) fn read_conversations(path: &Path) -> Result<Vec<Conversation>> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("reading LoCoMo from {}", path.display()))?;
    let samples: Vec<LocomoSample> =
        serde_json::from_str(&text).context("the file is not in the LoCoMo format")?;
    samples.into_iter().map(to_conversation).collect()
}

fn to_conversation(sample: LocomoSample) -> Result<Conversation> {
    let owner: Owner = sample.sample_id.parse()?;
    let mut passages: Vec<Passage> = Vec::new();
    for number in 1.. {
        let name = format!("session_{number}");
        let date = sample.conversation.get(&format!("{name}_date_time"));
        let turns = sample.conversation.get(&name);
        let (Some(date), turns) = (date, turns) else {
            break;
        };
        let Some(turns) = turns else {
            continue;
        };
        let at = parse_time(date.as_str().unwrap_or_default())?;
        let session: SessionId = format!("{}-{number}", sample.sample_id).parse()?;
        let turns: Vec<LocomoTurn> = serde_json::from_value(turns.clone())?;
        for (seq, turn) in (1..).zip(turns) {
            passages.push(Passage {
                position: passages.len() as u64 + 1,
                owner: owner.clone(),
                session: session.clone(),
                seq: Seq(seq),
                role: Role::User,
                author: Some(turn.speaker),
                at,
                text: match turn.blip_caption {
                    Some(caption) => format!("{} [{caption}]", turn.text),
                    None => turn.text,
                },
                files: Vec::new(),
                external_id: Some(turn.dia_id),
                origin: None,
            });
        }
    }
    let known = |id: &String| {
        let mut ids = passages.iter().filter_map(|one| one.external_id.as_ref());
        ids.any(|one| one == id)
    };
    let questions = sample.qa.into_iter().filter_map(|entry| {
        let mut evidence: Vec<String> = entry
            .evidence
            .iter()
            .flat_map(|ids| parse_turn_ids(ids))
            .collect();
        evidence.sort();
        evidence.dedup();
        evidence.retain(known);
        let counts = (1..=4).contains(&entry.category) && !evidence.is_empty();
        counts.then_some(Question {
            text: entry.question,
            category: entry.category,
            evidence,
        })
    });
    let questions = questions.collect();
    Ok(Conversation {
        owner,
        passages,
        questions,
    })
}

/// Parses the ids in `D8:6; D9:17`, without leading zeros.
fn parse_turn_ids(text: &str) -> Vec<String> {
    let pieces = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == ':'));
    let ids = pieces.filter_map(|piece| {
        let (sitting, turn) = piece.strip_prefix('D')?.split_once(':')?;
        let (sitting, turn): (u32, u32) = (sitting.parse().ok()?, turn.parse().ok()?);
        Some(format!("D{sitting}:{turn}"))
    });
    ids.collect()
}

/// Parses `1:56 pm on 8 May, 2023` as UTC.
fn parse_time(text: &str) -> Result<Timestamp> {
    let at = jiff::civil::DateTime::strptime("%I:%M %p on %d %B, %Y", text)
        .with_context(|| format!("{text:?} is not a LoCoMo time"))?;
    Ok(at.to_zoned(jiff::tz::TimeZone::UTC)?.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_read_however_it_is_written() {
        assert_eq!(parse_turn_ids("D8:6; D9:17"), ["D8:6", "D9:17"]);
        assert_eq!(parse_turn_ids("D30:05"), ["D30:5"]);
        assert_eq!(parse_turn_ids("D"), Vec::<String>::new());
    }

    #[test]
    fn times_are_read() {
        let at = parse_time("1:56 pm on 8 May, 2023").unwrap();
        assert_eq!(at.to_string(), "2023-05-08T13:56:00Z");
    }
}
