//! Classifies statements by their syntax, in addition to cue phrases.

use super::classify::{Speaker, Statement};
use super::cues::{Cue, is_completion_verb, is_one_off_verb, is_request_verb};
use super::lexicon::is_stop_word;

/// Whether a user replaces something: "this instead of that".
pub(super) fn is_replacement(look: &Statement<'_>) -> bool {
    look.speaker == Speaker::User
        && look.cues.iter().any(|hit| hit.cue == Cue::Rejection)
        && look.cues.iter().any(|hit| hit.cue == Cue::Reversal)
}

/// Scores a report of completed work: "Fixed the parser", "I've added tests", "the job was
/// renamed".
pub(super) fn score_completion(look: &Statement<'_>, unreal: Option<usize>) -> Option<f64> {
    const BEFORE: &[&str] = &[
        "i",
        "i've",
        "we",
        "we've",
        "have",
        "has",
        "just",
        "already",
        "also",
        "been",
        "was",
        "were",
        "is",
        "are",
        "now",
        "and",
        "it's",
        "successfully",
        "finally",
        "he",
        "she",
        "they",
        "got",
    ];
    let at = look
        .words
        .iter()
        .position(|word| is_completion_verb(&word.lower))?;
    if unreal.is_some_and(|unreal| unreal < at) {
        return None;
    }
    let named = || {
        at.checked_sub(1)
            .and_then(|at| look.words.get(at))
            .is_some_and(|word| {
                BEFORE.contains(&word.lower.as_ref())
                    || at == 1
                        && word.raw.starts_with(char::is_uppercase)
                        && !is_stop_word(&word.lower)
            })
    };
    if at == 0 || named() {
        Some(if at == 0 { 0.8 } else { 0.7 })
    } else {
        None
    }
}

/// Scores a request that starts with a verb: "Rename the crate".
pub(super) fn score_request(look: &Statement<'_>) -> Option<f64> {
    let fillers = [
        "now", "then", "also", "and", "next", "first", "so", "ok", "okay", "please", "yes",
    ];
    let mut words = look
        .words
        .iter()
        .map(|word| word.lower.as_ref())
        .skip_while(|lower| fillers.contains(lower));
    let verb = words.next()?;
    // A noun that looks like a verb: "Test results are", "Order 7 was".
    let noun = words.take(2).any(|word| {
        matches!(
            word,
            "is" | "are"
                | "was"
                | "were"
                | "has"
                | "have"
                | "wants"
                | "needs"
                | "will"
                | "should"
                | "must"
                | "can"
        )
    });
    if !is_request_verb(verb) || noun || look.words.len() < 3 {
        return None;
    }
    match (look.speaker, look.marker) {
        _ if is_one_off_verb(verb) => None,
        (Speaker::User, _) if verb == "use" || verb == "keep" => None,
        (Speaker::User, _) => Some(0.65),
        (Speaker::Agent, Some(_)) => Some(0.4),
        _ => None,
    }
}

/// Whether a user gives an instruction that applies from now on: "Use tabs", "Keep the old table".
pub(super) fn is_directive(look: &Statement<'_>) -> bool {
    let opens = |at: usize| at == 0 || look.words.get(at - 1).is_some_and(|word| word.ends_phrase);
    look.speaker == Speaker::User
        && look.words.len() > 2
        && look.words.iter().enumerate().any(|(at, word)| {
            matches!(
                word.lower.as_ref(),
                "use" | "keep" | "always" | "never" | "prefer"
            ) && opens(at)
        })
}

/// Whether a named person is assigned: "Priya will send the figures".
pub(super) fn is_named_assignment(look: &Statement<'_>) -> bool {
    look.words.windows(2).take(4).any(|pair| {
        matches!(pair[1].lower.as_ref(), "will" | "takes" | "owns")
            && pair[0].raw.starts_with(char::is_uppercase)
            && !is_stop_word(&pair[0].lower)
            && !pair[0].ends_phrase
            && pair[0].raw.chars().skip(1).all(char::is_lowercase)
    })
}
