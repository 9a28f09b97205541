//! Cue phrases that indicate the kind of a statement.
//!
//! The phrases are English. In other languages none match, and statements are selected by
//! their specifics alone.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::lexicon::Word;

/// What a phrase indicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cue {
    Decision,
    Task,
    Pending,
    InProgress,
    Done,
    Blocker,
    Fact,
    /// An earlier statement is no longer valid.
    Reversal,
    /// What follows is no longer valid.
    Rejection,
    /// A task is cancelled.
    Cancellation,
    /// A blocker is resolved.
    Unblocked,
    /// Negated, conditional or not yet true.
    Hypothetical,
    /// About the conversation itself.
    SmallTalk,
}

/// An occurrence of a cue phrase.
#[derive(Clone, Copy, Debug)]
pub(super) struct CueMatch {
    pub(super) cue: Cue,
    pub(super) strength: f64,
    /// Index of its first word.
    pub(super) start: usize,
    /// Index after its last word.
    pub(super) end: usize,
}

type Phrase = (Vec<&'static str>, Cue, f64);

/// Finds all cue phrases.
pub(super) fn find_cues(words: &[Word<'_>]) -> Vec<CueMatch> {
    static PHRASES: LazyLock<HashMap<&'static str, Vec<Phrase>>> = LazyLock::new(|| {
        let mut phrases: HashMap<_, Vec<Phrase>> = HashMap::new();
        for &(cue, strength, lines) in CUE_PHRASES {
            for phrase in lines.split(',') {
                let mut words = phrase.split_whitespace();
                if let Some(first) = words.next() {
                    let rest = words.collect();
                    phrases
                        .entry(first)
                        .or_default()
                        .push((rest, cue, strength));
                }
            }
        }
        phrases
    });
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        for (rest, cue, strength) in PHRASES.get(word.lower.as_ref()).into_iter().flatten() {
            let following = words[at + 1..].iter().map(|word| word.lower.as_ref());
            if rest.len() < words.len() - at && rest.iter().copied().eq(following.take(rest.len()))
            {
                found.push(CueMatch {
                    cue: *cue,
                    strength: *strength,
                    start: at,
                    end: at + 1 + rest.len(),
                });
            }
        }
    }
    found
}

/// Whether a statement that starts with this verb is a request.
pub(super) fn is_request_verb(lower: &str) -> bool {
    static VERBS: LazyLock<HashSet<&'static str>> =
        LazyLock::new(|| REQUEST_VERBS.split_whitespace().collect());
    VERBS.contains(lower)
}

/// Whether the verb requests something that is complete once answered.
pub(super) fn is_one_off_verb(lower: &str) -> bool {
    static VERBS: LazyLock<HashSet<&'static str>> =
        LazyLock::new(|| ONE_OFF_VERBS.split_whitespace().collect());
    VERBS.contains(lower)
}

/// Whether the verb reports completed work.
pub(super) fn is_completion_verb(lower: &str) -> bool {
    static VERBS: LazyLock<HashSet<&'static str>> =
        LazyLock::new(|| COMPLETION_VERBS.split_whitespace().collect());
    VERBS.contains(lower)
}

const CUE_PHRASES: &[(Cue, f64, &str)] = &[
    (
        Cue::Decision,
        1.0,
        "decided to, decided on, decided that, we decided, i decided, they decided, decision is, \
         decision was, the decision, let's go with, let's use, let's keep, let's stick with, let's settle on, \
         let's standardize on, let's standardise on, let's adopt, let's switch to, let's make it, \
         let's not, let's call it, let's say, we will use, we'll use, we will go with, we'll go with, \
         we're going with, we are going with, i'm going with, going with, settled on, we agreed, \
         agreed to, agreed on, we chose, i chose, opted for, we picked, sticking with, stick with, \
         we'll keep, we will keep, we'll stick with, final decision, go with, from now on, \
         the plan is to, i approve, signed off on, ruled out, let's set, let's put, let's host, \
         let's store, let's cap, let's limit, let's drop, let's skip, let's take, we will not, we won't, we'll not, \
         switch to, switching to, use instead",
    ),
    (
        Cue::Decision,
        0.6,
        "we will, we'll, we should use, i'd rather, i prefer, we prefer, always use, never use, \
         the rule is, policy is, convention is, should default to, defaults to, is the way to go, \
         we want to use, choose, prefer, make it, let's, no more",
    ),
    (
        Cue::Task,
        1.0,
        "todo, to-do, fixme, action item, don't forget, remember to, remind me to, assigned to, \
         is responsible for, still need to, still needs to, still have to, still has to, \
         someone has to, someone needs to, needs an owner, open task, is due, due by",
    ),
    (
        Cue::Task,
        0.75,
        "need to, needs to, have to, has to, we need, i need you to, i want you to, i'd like you to, \
         make sure, please, can you, could you, would you, action, is going to, we should, \
         you should, i should, should also, ought to, needs a, to be done, i will, i'll, will send, \
         will prepare, will draft, will write, will review, will check, will call, will book, \
         will order, will ask, will follow, will take, will own, will handle, will fix, will test, \
         will update, will set, will confirm, will talk, will get, will do, will look, will run, \
         will file, will deliver, will present, will finish, will collect",
    ),
    (
        Cue::Pending,
        0.9,
        "next step, next steps, next up, next is, next we, up next, still open, open question, tbd, \
         to be decided, to be confirmed, postponed, deferred, backlog, revisit, not yet decided, \
         haven't decided, hasn't been decided, undecided, still pending, still can't, still doesn't, still missing, still broken, remaining work, not started, follow-up, \
         follow up, remains to, is left, after that we, outstanding, out of scope for now, \
         in a later, parked, later we",
    ),
    (
        Cue::InProgress,
        0.9,
        "working on, in progress, wip, i'm currently, is currently being, halfway, under way, underway, \
         started on, started the, have started, has started, i'm in the middle of, am investigating, \
         is investigating, is being, are being, still running, ongoing, partially done, half done, \
         partly done, so far",
    ),
    (
        Cue::Done,
        0.9,
        "is done, are done, it's done, that's done, is fixed, is complete, is finished, is merged, \
         is deployed, is live, is in place, now works, works now, tests pass, tests are green, \
         all green, no longer fails, all set, shipped, \
         is resolved, was resolved, took care of, passes now, is out, went out",
    ),
    (
        Cue::Blocker,
        1.0,
        "blocked by, blocked on, blocked until, is blocked, are blocked, blocked, blocker, \
         waiting on, waiting for, can't proceed, cannot proceed, can't continue, cannot continue, \
         stuck on, stuck until, can't start until, cannot start until, can't until, held up by, on hold",
    ),
    (
        Cue::Fact,
        0.9,
        "note that, remember that, keep in mind, fyi, for the record, important, my name is, i'm called, \
         is called, is named, deadline, the limit is, the budget is, is located, lives in, lives at, \
         is owned by, owner is, reports to, root cause, turned out, turns out, the cause was, caused by, \
         allergic, the password, account number, order number, ticket, must not, must be, must stay, must, \
         is required, requires, depends on, version is, runs on, the reason, because of, contact, \
         prefers, birthday, capacity, serial number, customer id, reference",
    ),
    (
        Cue::Reversal,
        1.0,
        "actually, instead, instead of, rather than, no longer, changed my mind, change of plan, \
         change of plans, scratch that, on second thought, revert, reverting, switch from, \
         correction, i was wrong, not anymore, let's undo, replaces the, supersedes, moved from, \
         was wrong, new number, has changed to, is now",
    ),
    (
        Cue::Rejection,
        1.0,
        "instead of, rather than, no longer use, no longer, switch from, switching from, drop, \
         dropping, away from, move off, in place of, replaces, supersedes, and not, not using, stop using",
    ),
    (
        Cue::Cancellation,
        1.0,
        "never mind, nevermind, no need to, don't bother, cancel, cancelled, canceled, won't do, \
         not needed anymore, not needed any more, forget about, skip the, is obsolete, drop the",
    ),
    (
        Cue::Unblocked,
        1.0,
        "unblocked, no longer blocked, not blocked, arrived, came through, got access, have access now, \
         has access now, was approved, is approved, resolved, cleared up, is back up, is back",
    ),
    (
        Cue::Hypothetical,
        1.0,
        "not, isn't, aren't, wasn't, hasn't, haven't, didn't, don't, doesn't, won't, never, until, once, \
         when, if, unless, should be, must be, needs to be, need to be, has to be, have to be, will be, \
         can be, could be, would be, might, maybe, perhaps, to be, before, what if, whether, could, would, \
         may, can, want to, nothing",
    ),
    (
        Cue::SmallTalk,
        1.0,
        "let me know, let me, happy to, would you like, do you want, feel free, here's, here is, \
         here are, sounds good, looks good, great question, good question, take a look, take a quick look, \
         thanks, thank you, i see, got it, makes sense, you're right, good catch, i'll start by, \
         i'll look, i'll check, i'll take, i'll read, one moment, i'll begin, noted, good to know, \
         understood",
    ),
];

const REQUEST_VERBS: &str = "\
add append apply archive ask assign attach automate book bump build buy call cancel change clean clear close collect \
compare configure confirm connect convert copy create cut delete deploy design disable document \
draft drop email enable ensure escalate export extend extract file finish fix format generate \
hide implement import improve include increase mention pay inline install introduce invite investigate keep limit lock \
log lower make measure merge migrate mock move notify open optimize order pin plan polish prepare \
print profile publish pull push raise record reduce refactor refund register reject release remove \
rename reorder replace replicate reproduce request reserve reset restart restore retry return \
review rewrite rotate schedule provide put secure send set setup ship simplify sort split squash start stop \
store submit swap switch sync tag talk test tidy translate trim turn unify update upgrade \
upload validate verify warn wire wrap write use";

/// Whether "let's" with this verb decides nothing.
pub(super) fn is_noncommittal_verb(lower: &str) -> bool {
    matches!(
        lower,
        "look"
            | "see"
            | "check"
            | "think"
            | "wait"
            | "go"
            | "continue"
            | "proceed"
            | "start"
            | "stop"
            | "talk"
            | "say"
            | "hope"
            | "be"
            | "have"
            | "need"
            | "list"
            | "do"
    )
}

const ONE_OFF_VERBS: &str = "\
show explain tell give list describe look see read run try help think remind walk summarize \
suggest say guess recommend compare go continue proceed wait check print know take start open";

const COMPLETION_VERBS: &str = "\
added applied archived attached automated booked bumped built bought canceled cancelled \
changed cleaned cleared closed committed completed configured confirmed connected converted copied \
created deleted delivered deployed designed disabled documented done drafted dropped emailed \
enabled ensured escalated exported extended extracted filed finished fixed formatted generated \
implemented imported improved increased installed introduced invited landed limited locked logged \
lowered measured merged migrated moved notified optimized ordered paid pinned polished \
prepared profiled published pulled pushed raised received recorded reduced refactored refunded \
registered rejected released removed renamed reordered replaced reproduced requested reserved reset \
resolved restarted restored reviewed rewrote rewritten rotated scheduled secured sent shipped signed \
simplified sorted split squashed started stopped stored submitted swapped switched synced tagged \
tested tidied translated trimmed unified updated upgraded uploaded validated verified wired wrapped \
written wrote";
