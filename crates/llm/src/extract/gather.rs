//! Everything that was said, as items that may go into a summary.

use std::collections::HashMap;

use throughline_model::{Block, Body, Content, Entry, Message, Role, Summary};

use super::classify::{Class, Kind, Look, Speaker, classify};
use super::cues::{Cue, hits};
use super::item::{Effect, Item, is_choice, rejected, sorted, without_filler};
use super::pieces::{Mark, Piece, Section, is_failure, pieces};
use super::specifics::specifics;
use super::topics::Phrases;
use super::words::{Lexicon, Term, words};
use crate::files::ratio;

/// Lines of a program's output that one message may put forward.
const FAILURES: usize = 2;

/// What was found in a conversation.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) items: Vec<Item>,
    pub(super) lexicon: Lexicon,
    pub(super) phrases: Phrases,
    pub(super) headings: Vec<String>,
    /// What the person came for.
    pub(super) goal: Option<String>,
    known: HashMap<String, usize>,
    at: usize,
    last: usize,
    /// How often the person has spoken.
    users: usize,
    /// The terms of an either-or question, and the message that asked it.
    offered: (usize, Vec<Term>),
}

impl Gathered {
    /// Takes in the previous summary, which comes before everything.
    pub(super) fn recall(&mut self, previous: &Summary) {
        let lists = [
            (Kind::Decision, &previous.decisions),
            (Kind::Task, &previous.open_tasks),
            (Kind::Next, &previous.pending),
            (Kind::Progress, &previous.in_progress),
            (Kind::Blocker, &previous.blockers),
            (Kind::Done, &previous.completed),
            (Kind::Fact, &previous.facts),
        ];
        for (kind, list) in lists {
            for (index, text) in list.iter().enumerate() {
                let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                if text.is_empty() {
                    continue;
                }
                let mut item = self.item(text, Speaker::Before, None, None);
                let floor = match item.class {
                    _ if kind != Kind::Fact => 0.55,
                    Some(_) => 0.3,
                    None => 0.1,
                };
                let strength = match item.class {
                    Some(class) if class.kind == kind => class.strength.max(floor),
                    _ => floor,
                };
                item.class = Some(Class::of(kind, strength));
                item.fresh = 0.15 + 0.2 * ratio(index, list.len());
                // It was worth keeping, by whoever said it.
                self.lexicon.count(&item.terms, true, 0);
                self.lexicon.count(&item.terms, false, 0);
                self.keep(item);
            }
        }
    }

    /// Takes in what happened since.
    pub(super) fn read(&mut self, entries: &[Entry]) {
        self.last = entries.iter().filter(|entry| speaks(entry)).count();
        for entry in entries.iter().filter(|entry| speaks(entry)) {
            self.at += 1;
            match &entry.body {
                Body::Message(message) => self.message(message),
                Body::Merged(merge) => {
                    let text = merge.summary.as_deref().unwrap_or_default();
                    self.prose(text, Speaker::Agent, false);
                }
                _ => {}
            }
        }
    }

    fn message(&mut self, message: &Message) {
        let speaker = match message.role {
            Role::User => {
                self.users += 1;
                Speaker::User
            }
            Role::Assistant => Speaker::Agent,
            Role::System => Speaker::System,
            Role::Tool => {
                self.output(&message.content);
                for result in message.content.tool_results() {
                    self.output(&result.content);
                }
                return;
            }
        };
        for block in &message.content.0 {
            match block {
                Block::Text(text) => self.prose(text, speaker, message.incomplete),
                Block::ToolResult(result) => self.output(&result.content),
                _ => {}
            }
        }
    }

    fn output(&mut self, content: &Content) {
        let text = content.to_text();
        let lines = text.lines().map(str::trim);
        let failures: Vec<_> = lines
            .filter(|line| line.len() <= 200 && is_failure(line))
            .take(FAILURES)
            .collect();
        for line in failures {
            self.failure(line);
        }
    }

    fn failure(&mut self, line: &str) {
        let text = line.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut item = self.item(text, Speaker::Agent, None, None);
        item.class = Some(Class::of(Kind::Fact, 0.3));
        item.output = true;
        self.keep(item);
    }

    fn prose(&mut self, text: &str, speaker: Speaker, cut: bool) {
        let mut failures = 0;
        let pieces = pieces(text, cut);
        let crowd = u32::try_from(pieces.len()).unwrap_or(u32::MAX);
        for piece in pieces {
            match piece {
                Piece::Said {
                    text,
                    mark,
                    section,
                } => {
                    let text = without_filler(&text).to_owned();
                    let mut item = self.item(text, speaker, mark, section);
                    item.crowd = crowd;
                    let user = speaker == Speaker::User;
                    self.lexicon.count(&item.terms, user, self.at);
                    let settled = matches!(item.kind(), Some(Kind::Decision | Kind::Done));
                    if user
                        && !settled
                        && self.users < 2
                        && self.goal.is_none()
                        && item.terms.len() > 2
                    {
                        self.goal = Some(item.text.clone());
                    }
                    if speaker == Speaker::Agent && is_choice(&item.text) {
                        self.offered = (self.at, item.terms.clone());
                    }
                    self.keep(item);
                }
                Piece::Heading(title) => self.headings.push(title),
                Piece::Output(line) => {
                    if failures < FAILURES && is_failure(&line) {
                        failures += 1;
                        self.failure(&line);
                    }
                }
            }
        }
    }

    fn item(
        &mut self,
        text: String,
        speaker: Speaker,
        mark: Option<Mark>,
        section: Option<Section>,
    ) -> Item {
        let words = words(&text);
        let hits = hits(&words);
        let specifics = specifics(&words);
        let ids: Vec<Option<Term>> = words
            .iter()
            .map(|word| self.lexicon.term(&word.lower))
            .collect();
        let answers = speaker == Speaker::User
            && self.offered.0 + 1 == self.at
            && ids.iter().flatten().any(|id| self.offered.1.contains(id));
        let class = classify(&Look {
            text: &text,
            words: &words,
            hits: &hits,
            speaker,
            mark,
            section,
            weight: specifics.weight,
            answers,
        });
        if speaker != Speaker::Before {
            self.phrases
                .count(&text, &words, &ids, speaker == Speaker::User);
        }
        let pick = |at: &[usize]| sorted(at.iter().filter_map(|&at| ids[at]).collect());
        let has = |cue: Cue| hits.iter().any(|hit| hit.cue == cue);
        Item {
            class,
            speaker,
            at: self.at,
            fresh: 0.4 + 0.6 * ratio(self.at, self.last),
            lead: ids.iter().flatten().take(3).copied().collect(),
            specific: pick(&specifics.at),
            values: pick(&specifics.values),
            weight: specifics.weight,
            codes: specifics.codes,
            mentions: 1,
            crowd: 1,
            output: false,
            rejects: rejected(&words, &hits, &ids),
            effect: Effect {
                reverses: has(Cue::Reversal) || has(Cue::Rejects),
                cancels: has(Cue::Cancel),
                unblocks: has(Cue::Unblocked),
            },
            alive: true,
            terms: sorted(ids.iter().flatten().copied().collect()),
            text,
        }
    }

    /// Keeps an item, or notes that it was said again.
    fn keep(&mut self, item: Item) {
        let Effect {
            reverses,
            cancels,
            unblocks,
        } = item.effect;
        if item.class.is_none() && !(reverses || cancels || unblocks) {
            return;
        }
        let key = item.text.trim_end_matches(['.', '!']).to_lowercase();
        if let Some(&at) = self.known.get(&key) {
            let known = &mut self.items[at];
            known.mentions += 1;
            known.fresh = known.fresh.max(item.fresh);
            // Said again word for word, except that "done" is said of something else.
            if !known.terms.is_empty() {
                return;
            }
        }
        self.known.insert(key, self.items.len());
        self.items.push(item);
    }
}

/// Whether an entry says something of its own: the offline agent only repeats what was
/// said.
fn speaks(entry: &Entry) -> bool {
    match &entry.body {
        Body::Message(message) => message.model.as_deref() != Some(crate::OFFLINE),
        Body::Merged(_) => true,
        _ => false,
    }
}
