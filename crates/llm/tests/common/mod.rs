//! Test helpers: entries, and the scripted conversations.

#![allow(dead_code, reason = "not every test uses everything")]

use throughline_llm::SummaryRequest;
use throughline_model::{
    Block, Body, Content, Digest, Entry, EntryId, GENESIS, Json, Message, Note, Role, Seq, Summary,
    Timestamp, ToolCall, ToolResult,
};

/// Creates entries with these bodies, numbered from 1.
pub(crate) fn log(bodies: impl IntoIterator<Item = Body>) -> Vec<Entry> {
    let digest: Digest = GENESIS;
    (1..)
        .zip(bodies)
        .map(|(seq, body)| Entry {
            seq: Seq(seq),
            id: EntryId::derive(&[&seq.to_le_bytes()]),
            at: Timestamp::UNIX_EPOCH,
            external_id: None,
            author: None,
            rebased: None,
            body,
            digest,
        })
        .collect()
}

pub(crate) fn say(role: Role, text: &str) -> Body {
    Body::Message(Message::text(role, text))
}

/// Creates a conversation of alternating turns, the user first.
pub(crate) fn turns(texts: &[&str]) -> Vec<Entry> {
    let roles = [Role::User, Role::Assistant].into_iter().cycle();
    log(texts.iter().zip(roles).map(|(text, role)| say(role, text)))
}

pub(crate) fn call(name: &str, input: &str) -> Body {
    let member = if name == "bash" {
        "command"
    } else {
        "file_path"
    };
    let input = Json::of(&serde_json::json!({ member: input })).unwrap();
    let call = ToolCall {
        id: "c".into(),
        name: name.into(),
        input,
    };
    Body::Message(Message::new(
        Role::Assistant,
        Content(vec![Block::ToolCall(call)]),
    ))
}

pub(crate) fn result(text: &str) -> Body {
    let result = ToolResult {
        call_id: "c".into(),
        content: Content::text(text),
        is_error: false,
    };
    Body::Message(Message::new(
        Role::Tool,
        Content(vec![Block::ToolResult(result)]),
    ))
}

pub(crate) fn noted(texts: &[&str]) -> Vec<Note> {
    let note = |(seq, text): (u64, &&str)| Note {
        seq: Seq(seq),
        text: (*text).to_owned(),
    };
    (1..).zip(texts).map(note).collect()
}

pub(crate) fn brief<'a>(
    previous: Option<&'a Summary>,
    entries: &'a [Entry],
    budget: u64,
) -> SummaryRequest<'a> {
    SummaryRequest {
        previous,
        pins: &[],
        decisions: &[],
        entries,
        budget,
    }
}

/// A scripted conversation with the facts planted in it.
pub(crate) struct Script {
    pub(crate) name: &'static str,
    pub(crate) entries: Vec<Entry>,
    /// What must survive: its kind and the exact text.
    pub(crate) planted: Vec<(String, String)>,
    /// Decisions that were reversed, and must not be in the summary.
    pub(crate) reversed: Vec<String>,
}

/// Parses a script. `U:`, `A:` and `T:` start a message of the user, the agent or a tool;
/// `! kind | text` plants a fact, `- text` after a user's message names what it reverses.
pub(crate) fn script(name: &'static str, text: &str) -> Script {
    let mut bodies: Vec<(char, String)> = Vec::new();
    let (mut planted, mut reversed) = (Vec::new(), Vec::new());
    let mut after_plant = false;
    for line in text.lines() {
        let opens = ["U: ", "A: ", "T: "]
            .iter()
            .find_map(|open| line.strip_prefix(open));
        if let Some(body) = opens {
            bodies.push((line.chars().next().unwrap(), body.to_owned()));
            after_plant = false;
        } else if let Some(plant) = line.strip_prefix("! ") {
            let (kind, text) = plant.split_once(" | ").unwrap();
            planted.push((kind.to_owned(), text.to_owned()));
            after_plant = true;
        } else if let (true, Some(gone)) = (after_plant, line.strip_prefix("- ")) {
            reversed.push(gone.to_owned());
        } else if let Some((_, body)) = bodies.last_mut() {
            body.push('\n');
            body.push_str(line);
        }
    }
    for (_, text) in &planted {
        let there = bodies.iter().any(|(_, body)| body.contains(text.as_str()));
        assert!(there, "{name} does not say {text:?}");
    }
    let entries = log(talk(bodies).into_iter().map(|(who, body)| match who {
        'U' => say(Role::User, &body),
        'T' => result(&body),
        _ => match body.strip_prefix("@call ").and_then(|c| c.split_once(' ')) {
            Some((tool, input)) => call(tool, input),
            None => say(Role::Assistant, &body),
        },
    }));
    Script {
        name,
        entries,
        planted,
        reversed,
    }
}

/// Inserts digressions: general talk with names and figures that do not matter.
fn talk(bodies: Vec<(char, String)>) -> Vec<(char, String)> {
    let aside = include_str!("../conversations/digressions.txt");
    let mut asides = aside.lines().map(|line| {
        let (who, body) = line.split_once(": ").unwrap();
        (who.chars().next().unwrap(), body.to_owned())
    });
    let mut woven = Vec::new();
    for (at, body) in bodies.into_iter().enumerate() {
        if at % 8 > 5 && body.0 == 'U' && woven.len() < at + at / 4 {
            woven.extend(asides.by_ref().take(2));
        }
        woven.push(body);
    }
    woven
}

/// Returns all scripted conversations.
pub(crate) fn scripts() -> Vec<Script> {
    vec![
        script("coding", include_str!("../conversations/coding.txt")),
        script("planning", include_str!("../conversations/planning.txt")),
        script("support", include_str!("../conversations/support.txt")),
        script("incident", include_str!("../conversations/incident.txt")),
        script("game", include_str!("../conversations/game.txt")),
    ]
}
