//! What a statement is: a decision, a task, something done, a fact.

use super::cues::{Cue, Hit, is_idle, is_passing, is_request};
use super::pieces::{Mark, Section};
use super::signs::{asked, done, named_will, replaced, told_to_use};
use super::words::Word;

/// What a statement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Decision,
    Task,
    Blocker,
    Progress,
    Next,
    Done,
    Fact,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Agent,
    System,
    /// The previous summary, which has chosen already.
    Before,
}

/// A statement as it is looked at.
pub(super) struct Look<'a> {
    pub(super) text: &'a str,
    pub(super) words: &'a [Word<'a>],
    pub(super) hits: &'a [Hit],
    pub(super) speaker: Speaker,
    pub(super) mark: Option<Mark>,
    pub(super) section: Option<Section>,
    /// How much in it is specific.
    pub(super) weight: f64,
    /// Whether it answers an either-or question.
    pub(super) answers: bool,
}

/// What a statement was found to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Class {
    pub(super) kind: Kind,
    pub(super) strength: f64,
    /// A request that an answer of "done" settles.
    pub(super) request: bool,
}

impl Class {
    /// Nothing that was asked for.
    pub(super) fn of(kind: Kind, strength: f64) -> Self {
        Self {
            kind,
            strength,
            request: false,
        }
    }
}

/// Says what a statement is, if it is anything worth keeping.
pub(super) fn classify(look: &Look<'_>) -> Option<Class> {
    match look.mark {
        Some(Mark::Ticked) => return Some(Class::of(Kind::Done, 1.0)),
        Some(Mark::Unticked) => return Some(Class::of(Kind::Task, 1.0)),
        _ => {}
    }
    if look.text.ends_with(['?', '？']) {
        return question(look);
    }
    if chatter(look) {
        return None;
    }
    let unreal = first(look, Cue::Unreal);
    let mut best: Option<Class> = section(look);
    let mut offer = |kind: Kind, strength: f64, request: bool| {
        if best.is_none_or(|best| strength > best.strength) {
            best = Some(Class {
                kind,
                strength,
                request,
            });
        }
    };
    for hit in look.hits {
        // What comes after "if", "once" or "not" did not happen.
        let real = unreal.is_none_or(|unreal| hit.at < unreal);
        match hit.cue {
            Cue::Decision if real || hit.strength > 0.9 && !hypothetical(look) => {
                let strength = hit.strength - if passing_after(look, hit) { 0.5 } else { 0.0 };
                offer(Kind::Decision, strength, false);
            }
            Cue::Task => {
                let (strength, request) = task(look, hit);
                offer(Kind::Task, strength, request);
            }
            Cue::Next => offer(Kind::Next, hit.strength, false),
            Cue::Progress => offer(Kind::Progress, hit.strength, false),
            Cue::Blocker => offer(Kind::Blocker, hit.strength, false),
            Cue::Done if real => offer(Kind::Done, hit.strength - 0.1, false),
            Cue::Fact => {
                let told = look.speaker == Speaker::Agent;
                let strength = hit.strength - if told { 0.3 } else { 0.1 };
                offer(Kind::Fact, strength, false);
            }
            _ => {}
        }
    }
    if let Some(strength) = done(look, unreal) {
        offer(Kind::Done, strength, false);
    }
    if let Some(strength) = asked(look) {
        offer(Kind::Task, strength, true);
    }
    if told_to_use(look) || replaced(look) {
        offer(Kind::Decision, 0.85, false);
    }
    if look.answers {
        offer(Kind::Decision, 0.6, false);
    }
    // Somebody by name who will do it.
    if named_will(look) {
        offer(Kind::Task, 0.85, false);
    }
    match best {
        Some(found) if found.strength > 0.35 => Some(found),
        _ if look.weight > 0.6 => Some(Class::of(Kind::Fact, plain_fact(look))),
        // Whatever else a person says is worth more than an empty place.
        _ if look.speaker == Speaker::User => Some(Class::of(Kind::Fact, 0.0)),
        _ => None,
    }
}

/// How much a fact matters that nothing but its figures or names speaks for: what a
/// person says of their own affairs more than what anybody could have looked up.
fn plain_fact(look: &Look<'_>) -> f64 {
    const OWN: &[&str] = &[
        "our", "my", "we", "i", "we're", "we've", "i'm", "us", "me", "your",
    ];
    let voice = match look.speaker {
        Speaker::User => 0.45,
        Speaker::Before => 0.4,
        Speaker::Agent | Speaker::System => 0.3,
    };
    let own = look
        .words
        .iter()
        .any(|word| OWN.contains(&word.lower.as_ref()));
    voice + if own { 0.1 } else { 0.0 } - if hypothetical(look) { 0.15 } else { 0.0 }
}

fn question(look: &Look<'_>) -> Option<Class> {
    let hit = look.hits.iter().find(|hit| hit.cue == Cue::Task)?;
    if look.speaker != Speaker::User {
        return None;
    }
    let verb = look.words.get(hit.end)?;
    (is_request(&verb.lower) && !is_passing(&verb.lower)).then_some(Class {
        kind: Kind::Task,
        strength: 0.6,
        request: true,
    })
}

fn section(look: &Look<'_>) -> Option<Class> {
    look.mark?;
    let (kind, strength) = match look.section? {
        Section::Decisions => (Kind::Decision, 0.95),
        Section::Tasks => (Kind::Task, 0.95),
        Section::Next => (Kind::Next, 0.9),
        Section::Progress => (Kind::Progress, 0.9),
        Section::Done => (Kind::Done, 0.9),
        Section::Blockers => (Kind::Blocker, 0.9),
        Section::Facts => (Kind::Fact, 0.6),
    };
    Some(Class::of(kind, strength))
}

/// Talk about talking, unless something is decided in the same breath.
fn chatter(look: &Look<'_>) -> bool {
    let talk = look
        .hits
        .iter()
        .any(|hit| hit.cue == Cue::Chatter && hit.at <= 1);
    let decided = look
        .hits
        .iter()
        .any(|hit| hit.cue == Cue::Decision && hit.strength > 0.9 && hit.at > 0);
    talk && !decided && !(look.speaker == Speaker::User && look.weight > 0.9)
}

fn hypothetical(look: &Look<'_>) -> bool {
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

/// "Let's look", "we'll see": nothing is decided.
fn passing_after(look: &Look<'_>, hit: &Hit) -> bool {
    let next = look.words.get(hit.end);
    hit.strength < 0.9 && next.is_some_and(|word| is_idle(&word.lower))
}

fn task(look: &Look<'_>, hit: &Hit) -> (f64, bool) {
    let asks = matches!(
        look.words.get(hit.at).map(|word| word.lower.as_ref()),
        Some("please" | "can" | "could" | "would")
    );
    let promise = matches!(
        look.words.get(hit.at).map(|word| word.lower.as_ref()),
        Some("i'll" | "i")
    ) && hit.end - hit.at <= 2;
    let verb = look.words.get(hit.end).map(|word| word.lower.as_ref());
    if asks {
        return match verb {
            Some(verb) if is_passing(verb) || !is_request(verb) => (0.0, false),
            _ if look.speaker == Speaker::User => (0.7, true),
            _ => (0.4, false),
        };
    }
    match look.speaker {
        // An agent does what it announces in the same breath.
        Speaker::Agent if promise => (0.0, false),
        Speaker::Agent => (hit.strength - 0.15, false),
        Speaker::System => (0.0, false),
        Speaker::User | Speaker::Before => (hit.strength, false),
    }
}

fn first(look: &Look<'_>, cue: Cue) -> Option<usize> {
    look.hits
        .iter()
        .filter(|hit| hit.cue == cue)
        .map(|hit| hit.at)
        .min()
}
