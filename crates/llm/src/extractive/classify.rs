//! Classifies statements as decisions, tasks, completed work, facts and so on.

use super::cues::{Cue, CueMatch, is_noncommittal_verb, is_one_off_verb, is_request_verb};
use super::lexicon::Word;
use super::segments::{ListMarker, Section};
use super::syntax_cues::{
    is_directive, is_named_assignment, is_replacement, score_completion, score_request,
};

/// The kind of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum StatementKind {
    Decision,
    Task,
    Blocker,
    InProgress,
    Pending,
    Done,
    Fact,
}

/// Who made a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Agent,
    System,
    /// The previous summary, whose items are already selected.
    PreviousSummary,
}

/// A statement with the features it is classified by.
pub(super) struct Statement<'a> {
    pub(super) text: &'a str,
    pub(super) words: &'a [Word<'a>],
    pub(super) cues: &'a [CueMatch],
    pub(super) speaker: Speaker,
    pub(super) marker: Option<ListMarker>,
    pub(super) section: Option<Section>,
    /// How specific it is.
    pub(super) specificity: f64,
    /// Whether it answers an either-or question.
    pub(super) answers_choice: bool,
}

/// The classification of a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Classification {
    pub(super) kind: StatementKind,
    pub(super) strength: f64,
    /// Whether an answer of "done" completes it.
    pub(super) is_request: bool,
}

impl Classification {
    /// A classification that is not a request.
    pub(super) fn new(kind: StatementKind, strength: f64) -> Self {
        Self {
            kind,
            strength,
            is_request: false,
        }
    }
}

/// Classifies a statement; `None` if it is not worth including.
pub(super) fn classify(look: &Statement<'_>) -> Option<Classification> {
    match look.marker {
        Some(ListMarker::Checked) => return Some(Classification::new(StatementKind::Done, 1.0)),
        Some(ListMarker::Unchecked) => return Some(Classification::new(StatementKind::Task, 1.0)),
        _ => {}
    }
    if look.text.ends_with(['?', '？']) {
        return classify_question(look);
    }
    if is_small_talk(look) {
        return None;
    }
    let unreal = first_position(look, Cue::Hypothetical);
    let mut best: Option<Classification> = classify_by_section(look);
    let mut offer = |kind: StatementKind, strength: f64, request: bool| {
        if best.is_none_or(|best| strength > best.strength) {
            best = Some(Classification {
                kind,
                strength,
                is_request: request,
            });
        }
    };
    for hit in look.cues {
        // What follows "if", "once" or "not" did not happen.
        let real = unreal.is_none_or(|unreal| hit.start < unreal);
        match hit.cue {
            Cue::Decision if real || hit.strength > 0.9 && !is_hypothetical(look) => {
                let strength = hit.strength - if is_noncommittal(look, hit) { 0.5 } else { 0.0 };
                offer(StatementKind::Decision, strength, false);
            }
            Cue::Task => {
                let (strength, request) = score_task(look, hit);
                offer(StatementKind::Task, strength, request);
            }
            Cue::Pending => offer(StatementKind::Pending, hit.strength, false),
            Cue::InProgress => offer(StatementKind::InProgress, hit.strength, false),
            Cue::Blocker => offer(StatementKind::Blocker, hit.strength, false),
            Cue::Done if real => offer(StatementKind::Done, hit.strength - 0.1, false),
            Cue::Fact => {
                let by_agent = look.speaker == Speaker::Agent;
                let strength = hit.strength - if by_agent { 0.3 } else { 0.1 };
                offer(StatementKind::Fact, strength, false);
            }
            _ => {}
        }
    }
    if let Some(strength) = score_completion(look, unreal) {
        offer(StatementKind::Done, strength, false);
    }
    if let Some(strength) = score_request(look) {
        offer(StatementKind::Task, strength, true);
    }
    if is_directive(look) || is_replacement(look) {
        offer(StatementKind::Decision, 0.85, false);
    }
    if look.answers_choice {
        offer(StatementKind::Decision, 0.6, false);
    }
    // A named person who will do it.
    if is_named_assignment(look) {
        offer(StatementKind::Task, 0.85, false);
    }
    match best {
        Some(found) if found.strength > 0.35 => Some(found),
        _ if look.specificity > 0.6 => Some(Classification::new(
            StatementKind::Fact,
            score_plain_fact(look),
        )),
        // Other statements of the user still rank above nothing.
        _ if look.speaker == Speaker::User => Some(Classification::new(StatementKind::Fact, 0.0)),
        _ => None,
    }
}

/// Scores a fact that has no cue but its figures or names. The user's statements about
/// their own situation score higher than general knowledge.
fn score_plain_fact(look: &Statement<'_>) -> f64 {
    const OWN: &[&str] = &[
        "our", "my", "we", "i", "we're", "we've", "i'm", "us", "me", "your",
    ];
    let voice = match look.speaker {
        Speaker::User => 0.45,
        Speaker::PreviousSummary => 0.4,
        Speaker::Agent | Speaker::System => 0.3,
    };
    let own = look
        .words
        .iter()
        .any(|word| OWN.contains(&word.lower.as_ref()));
    voice + if own { 0.1 } else { 0.0 } - if is_hypothetical(look) { 0.15 } else { 0.0 }
}

fn classify_question(look: &Statement<'_>) -> Option<Classification> {
    let hit = look.cues.iter().find(|hit| hit.cue == Cue::Task)?;
    if look.speaker != Speaker::User {
        return None;
    }
    let verb = look.words.get(hit.end)?;
    (is_request_verb(&verb.lower) && !is_one_off_verb(&verb.lower)).then_some(Classification {
        kind: StatementKind::Task,
        strength: 0.6,
        is_request: true,
    })
}

fn classify_by_section(look: &Statement<'_>) -> Option<Classification> {
    look.marker?;
    let (kind, strength) = match look.section? {
        Section::Decisions => (StatementKind::Decision, 0.95),
        Section::Tasks => (StatementKind::Task, 0.95),
        Section::Pending => (StatementKind::Pending, 0.9),
        Section::InProgress => (StatementKind::InProgress, 0.9),
        Section::Done => (StatementKind::Done, 0.9),
        Section::Blockers => (StatementKind::Blocker, 0.9),
        Section::Facts => (StatementKind::Fact, 0.6),
    };
    Some(Classification::new(kind, strength))
}

/// Whether a statement is only about the conversation, and decides nothing.
fn is_small_talk(look: &Statement<'_>) -> bool {
    let talk = look
        .cues
        .iter()
        .any(|hit| hit.cue == Cue::SmallTalk && hit.start <= 1);
    let decided = look
        .cues
        .iter()
        .any(|hit| hit.cue == Cue::Decision && hit.strength > 0.9 && hit.start > 0);
    talk && !decided && !(look.speaker == Speaker::User && look.specificity > 0.9)
}

fn is_hypothetical(look: &Statement<'_>) -> bool {
    let opening = look.words.first().map(|word| word.lower.as_ref());
    matches!(
        opening,
        Some("if" | "maybe" | "perhaps" | "whether" | "should" | "could")
    ) || look.words.iter().any(|word| {
        matches!(
            word.lower.as_ref(),
            "haven't" | "hasn't" | "undecided" | "could" | "might"
        )
    })
}

/// Whether nothing is decided: "let's look", "we'll see".
fn is_noncommittal(look: &Statement<'_>, hit: &CueMatch) -> bool {
    let next = look.words.get(hit.end);
    hit.strength < 0.9 && next.is_some_and(|word| is_noncommittal_verb(&word.lower))
}

fn score_task(look: &Statement<'_>, hit: &CueMatch) -> (f64, bool) {
    let asks = matches!(
        look.words.get(hit.start).map(|word| word.lower.as_ref()),
        Some("please" | "can" | "could" | "would")
    );
    let promise = matches!(
        look.words.get(hit.start).map(|word| word.lower.as_ref()),
        Some("i'll" | "i")
    ) && hit.end - hit.start <= 2;
    let verb = look.words.get(hit.end).map(|word| word.lower.as_ref());
    if asks {
        return match verb {
            Some(verb) if is_one_off_verb(verb) || !is_request_verb(verb) => (0.0, false),
            _ if look.speaker == Speaker::User => (0.7, true),
            _ => (0.4, false),
        };
    }
    match look.speaker {
        // An agent carries out what it announces in the same message.
        Speaker::Agent if promise => (0.0, false),
        Speaker::Agent => (hit.strength - 0.15, false),
        Speaker::System => (0.0, false),
        Speaker::User | Speaker::PreviousSummary => (hit.strength, false),
    }
}

fn first_position(look: &Statement<'_>, cue: Cue) -> Option<usize> {
    look.cues
        .iter()
        .filter(|hit| hit.cue == cue)
        .map(|hit| hit.start)
        .min()
}
