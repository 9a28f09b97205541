//! Verifies a recorded history: whether one store that loses nothing could have given these
//! answers.
//!
//! Restores divide a history into epochs. Within an epoch every observation
//! (acknowledgement, read, feed event, search result) must agree on which entry has which
//! number; what was observed before a backup was made must still hold after that backup was
//! restored. The checker also verifies real-time order, freshness of reads, the feed and
//! search.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::recorded_history::{
    Action, AppendAnswer, FeedEvent, History, Moment, ObservedEntry, Span,
};

/// A violated rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) rule: Rule,
    pub(crate) detail: String,
}

/// The rules that a history must satisfy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rule {
    /// Every entry was sent by a client, with this text and for this session.
    Genuine,
    /// A number has one entry and an entry one number.
    OneNumber,
    /// An acknowledged or observed entry is there afterwards, once, with no gaps before it.
    Durable,
    /// An append that a server refused is not committed.
    RefusedIsAbsent,
    /// An entry that a restore removed does not reappear by itself.
    GoneAfterRestore,
    /// An append that began after another was acknowledged comes after it.
    RealTimeOrder,
    /// A read shows everything that was acknowledged or observed before it began.
    FreshRead,
    /// The feed delivers every entry once and in order.
    Feed,
    /// A search result shows the entry it names.
    SearchResult,
    /// A search over an up-to-date index finds what was acknowledged before it began.
    SearchComplete,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.rule, self.detail)
    }
}

/// How much was verified.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) acknowledged: usize,
    pub(crate) refused: usize,
    pub(crate) unknown: usize,
    pub(crate) reads: usize,
    pub(crate) searches: usize,
    pub(crate) feed_events: usize,
    pub(crate) feed_streams: usize,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} appends acknowledged, {} refused, {} unknown; {} reads, {} searches, {} events in \
             {} streams",
            self.acknowledged,
            self.refused,
            self.unknown,
            self.reads,
            self.searches,
            self.feed_events,
            self.feed_streams
        )
    }
}

/// Verifies a history; returns the violations.
pub(crate) fn check(history: &History) -> Vec<Violation> {
    let mut checker = Checker {
        history,
        violations: Vec::new(),
        observations: Vec::new(),
        epochs: Vec::new(),
    };
    checker.observe();
    checker.assign_numbers();
    checker.check_refused();
    checker.check_gone_after_restore();
    checker.check_order();
    checker.check_reads();
    checker.check_feeds();
    checker.check_search();
    checker.check_final_logs();
    checker.violations
}

/// Counts what there is to verify in a history.
pub(crate) fn count(history: &History) -> Counts {
    let mut counts = Counts {
        feed_events: history.feeds.iter().map(|feed| feed.events.len()).sum(),
        feed_streams: history.feeds.len(),
        ..Counts::default()
    };
    for call in &history.calls {
        match &call.action {
            Action::Append { answer, .. } => match answer {
                AppendAnswer::Acknowledged(_) => counts.acknowledged += 1,
                AppendAnswer::Refused(_) => counts.refused += 1,
                AppendAnswer::Unknown => counts.unknown += 1,
            },
            Action::Read { .. } => counts.reads += 1,
            Action::Search { .. } => counts.searches += 1,
        }
    }
    counts
}

/// An observation that an entry had a number, at the latest at `seen`.
struct Observation<'h> {
    session: &'h str,
    seq: u64,
    id: &'h str,
    seen: Moment,
    epoch: usize,
    /// What showed it.
    by: &'static str,
}

/// What is known of the entry numbers of one epoch.
#[derive(Clone, Default)]
struct Epoch<'h> {
    /// By session and number: the entry, and when it was first known to exist.
    by_seq: BTreeMap<(&'h str, u64), (&'h str, Moment)>,
    by_id: BTreeMap<&'h str, u64>,
}

struct Checker<'h> {
    history: &'h History,
    violations: Vec<Violation>,
    observations: Vec<Observation<'h>>,
    epochs: Vec<Epoch<'h>>,
}

impl<'h> Checker<'h> {
    fn report(&mut self, rule: Rule, detail: String) {
        self.violations.push(Violation { rule, detail });
    }

    /// The epoch in which a call was answered; `None` if it overlaps with a restore.
    fn epoch(&self, span: Span) -> Option<usize> {
        let restores = &self.history.restores;
        let before = restores.iter().filter(|one| one.span.end <= span.start);
        let after = restores.iter().filter(|one| one.span.start >= span.end);
        let epoch = before.count();
        (epoch + after.count() == restores.len()).then_some(epoch)
    }

    /// The events of a stream before a restore could have affected it, and their epoch.
    fn events_of(
        &self,
        stream: &'h crate::recorded_history::FeedStream,
    ) -> Option<(usize, impl Iterator<Item = &'h FeedEvent> + use<'h>)> {
        let opened = Span {
            start: stream.opened,
            end: stream.opened,
        };
        let epoch = self.epoch(opened)?;
        let until = self.history.restores.get(epoch).map(|next| next.span.start);
        let events = stream.events.iter();
        Some((
            epoch,
            events.take_while(move |event| until.is_none_or(|until| event.received < until)),
        ))
    }

    /// Collects all observations, and checks that each entry was sent by a client.
    fn observe(&mut self) {
        let history = self.history;
        let mut seen = Vec::new();
        for call in &history.calls {
            let (start, end) = (call.span.start, call.span.end);
            let Some(epoch) = self.epoch(Span { start, end }) else {
                continue;
            };
            match &call.action {
                Action::Append { id, answer } => {
                    let AppendAnswer::Acknowledged(shown) = answer else {
                        continue;
                    };
                    if shown.id != *id {
                        let detail = format!("{id} was acknowledged as {}", shown.id);
                        self.report(Rule::Genuine, detail);
                    }
                    if let Some(intended) = history.intended.get(id) {
                        let session = intended.session.as_str();
                        seen.push((session, shown, end, epoch, "acknowledgement"));
                    }
                }
                Action::Read {
                    session, entries, ..
                } => {
                    let shown = entries.iter();
                    seen.extend(shown.map(|shown| (session.as_str(), shown, end, epoch, "read")));
                }
                Action::Search { .. } => {}
            }
        }
        for stream in &history.feeds {
            let Some((epoch, events)) = self.events_of(stream) else {
                continue;
            };
            let event = |event: &'h FeedEvent| {
                let session = event.session.as_str();
                (session, &event.entry, event.received, epoch, "feed")
            };
            seen.extend(events.map(event));
        }
        let last = history.restores.len();
        for logs in &history.final_logs {
            for (session, log) in logs {
                let shown = log.iter();
                seen.extend(
                    shown.map(|shown| (session.as_str(), shown, Moment::MAX, last, "final log")),
                );
            }
        }
        for (session, shown, seen, epoch, by) in seen {
            self.check_genuine(session, shown, by);
            self.observations.push(Observation {
                session,
                seq: shown.seq,
                id: &shown.id,
                seen,
                epoch,
                by,
            });
        }
    }

    fn check_genuine(&mut self, session: &str, shown: &ObservedEntry, by: &str) {
        let detail = match self.history.intended.get(&shown.id) {
            None => format!("{by} shows {shown:?} in {session}, which nobody sent"),
            Some(intended) if intended.session != session || intended.text != shown.text => {
                format!("{by} shows {shown:?} in {session}; what was sent is {intended:?}")
            }
            Some(_) => return,
        };
        self.report(Rule::Genuine, detail);
    }

    /// Determines which entry has which number in each epoch.
    fn assign_numbers(&mut self) {
        self.epochs.push(Epoch::default());
        self.add_observations(0);
        for (index, restore) in self.history.restores.iter().enumerate() {
            // What was certainly in the backup.
            let mut next = Epoch::default();
            if let Some(source) = self.epoch(restore.backup) {
                for (place, (id, since)) in &self.epochs[source].by_seq {
                    if *since <= restore.backup.start {
                        next.by_seq.insert(*place, (id, *since));
                        next.by_id.insert(id, place.1);
                    }
                }
            }
            self.epochs.push(next);
            self.add_observations(index + 1);
        }
    }

    /// Adds the observations of one epoch.
    fn add_observations(&mut self, epoch: usize) {
        let mut violations = Vec::new();
        let known = &mut self.epochs[epoch];
        for one in self.observations.iter().filter(|one| one.epoch == epoch) {
            let place = (one.session, one.seq);
            let there = known.by_seq.entry(place).or_insert((one.id, one.seen));
            if there.0 != one.id {
                violations.push(format!(
                    "#{} of {} is {} by {} and {} by others",
                    one.seq, one.session, one.id, one.by, there.0
                ));
                continue;
            }
            there.1 = there.1.min(one.seen);
            let seq = *known.by_id.entry(one.id).or_insert(one.seq);
            if seq != one.seq {
                violations.push(format!(
                    "{} is #{} of {} by {} and #{seq} by others",
                    one.id, one.seq, one.session, one.by
                ));
            }
        }
        for detail in violations {
            self.report(Rule::OneNumber, detail);
        }
    }

    /// All attempts to append, by id: when, and the answer.
    fn attempts(&self) -> BTreeMap<&'h str, Vec<(Span, &'h AppendAnswer)>> {
        let mut attempts = BTreeMap::<_, Vec<_>>::new();
        for call in &self.history.calls {
            if let Action::Append { id, answer } = &call.action {
                let of_id = attempts.entry(id.as_str()).or_default();
                of_id.push((call.span, answer));
            }
        }
        attempts
    }

    fn check_refused(&mut self) {
        let mut seen = BTreeMap::new();
        for (index, one) in self.observations.iter().enumerate() {
            seen.entry(one.id).or_insert(index);
        }
        for (id, attempts) in self.attempts() {
            let is_refused =
                |(_, answer): &(_, &AppendAnswer)| matches!(answer, AppendAnswer::Refused(_));
            if !attempts.iter().all(is_refused) {
                continue;
            }
            if let Some(seen) = seen.get(id).map(|index| &self.observations[*index]) {
                let detail = format!(
                    "{id} was refused ({:?}) and is #{} of {} by {}",
                    attempts[0].1, seen.seq, seen.session, seen.by
                );
                self.report(Rule::RefusedIsAbsent, detail);
            }
        }
    }

    /// Whether an entry can exist in an epoch: it was attempted in it, or may have been in
    /// the backup that the epoch began with.
    fn is_possible(&self, attempts: &[(Span, &AppendAnswer)], epoch: usize) -> bool {
        let restores = &self.history.restores;
        let begin = match epoch.checked_sub(1) {
            Some(before) => restores[before].span.start,
            None => Moment::ZERO,
        };
        let is_in = |(span, answer): &(Span, &AppendAnswer)| match answer {
            AppendAnswer::Acknowledged(_) => span.end >= begin,
            AppendAnswer::Unknown => true,
            AppendAnswer::Refused(_) => false,
        };
        if attempts.iter().any(is_in) {
            return true;
        }
        let Some(before) = epoch.checked_sub(1) else {
            return false;
        };
        let backup = restores[before].backup;
        let Some(source) = self.epoch(backup) else {
            return true;
        };
        let earlier: Vec<_> = attempts
            .iter()
            .filter(|(span, _)| span.start < backup.end)
            .copied()
            .collect();
        !earlier.is_empty() && self.is_possible(&earlier, source)
    }

    fn check_gone_after_restore(&mut self) {
        let attempts = self.attempts();
        let mut reported = BTreeSet::new();
        for one in &self.observations {
            let of_id = attempts.get(one.id).map_or(&[][..], Vec::as_slice);
            if one.epoch > 0
                && !of_id.is_empty()
                && !self.is_possible(of_id, one.epoch)
                && reported.insert((one.id, one.epoch))
            {
                self.violations.push(Violation {
                    rule: Rule::GoneAfterRestore,
                    detail: format!(
                        "{} is #{} of {} by {} after restore {}, and was appended after the backup",
                        one.id, one.seq, one.session, one.by, one.epoch
                    ),
                });
            }
        }
    }

    /// For each epoch and session: the largest number known to exist, over time.
    fn known_over_time(&self) -> BTreeMap<(usize, &'h str), Vec<(Moment, u64)>> {
        let mut known = BTreeMap::<_, Vec<(Moment, u64)>>::new();
        for (index, epoch) in self.epochs.iter().enumerate() {
            for ((session, seq), (_, since)) in &epoch.by_seq {
                known
                    .entry((index, *session))
                    .or_default()
                    .push((*since, *seq));
            }
        }
        for times in known.values_mut() {
            times.sort_unstable();
            let mut largest = 0;
            for (_, seq) in times {
                largest = largest.max(*seq);
                *seq = largest;
            }
        }
        known
    }

    fn check_order(&mut self) {
        let known = self.known_over_time();
        let mut violations = Vec::new();
        for (id, attempts) in self.attempts() {
            let Some(begun) = attempts.iter().map(|(span, _)| span.start).min() else {
                continue;
            };
            let session = self
                .history
                .intended
                .get(id)
                .map(|one| one.session.as_str());
            let Some(session) = session else { continue };
            for (index, epoch) in self.epochs.iter().enumerate() {
                let Some(seq) = epoch.by_id.get(id) else {
                    continue;
                };
                let before = largest_before(known.get(&(index, session)), begun);
                if before >= *seq {
                    violations.push(format!(
                        "{id} is #{seq} of {session}, but #{before} was there before it was sent"
                    ));
                }
            }
        }
        for detail in violations {
            self.report(Rule::RealTimeOrder, detail);
        }
    }

    fn check_reads(&mut self) {
        let known = self.known_over_time();
        for call in &self.history.calls {
            let Action::Read {
                session,
                after,
                limit,
                head,
                entries,
            } = &call.action
            else {
                continue;
            };
            let numbers: Vec<u64> = entries.iter().map(|shown| shown.seq).collect();
            let wanted: Vec<u64> = (*after + 1..).take(entries.len()).collect();
            if numbers != wanted {
                let detail = format!("{session} after #{after}: {numbers:?}");
                self.report(Rule::FreshRead, detail);
            }
            let Some(epoch) = self.epoch(call.span) else {
                continue;
            };
            let before = largest_before(known.get(&(epoch, session.as_str())), call.span.start);
            let reached = after + entries.len() as u64;
            if *head < before || (entries.len() < *limit && reached < before) {
                let detail = format!(
                    "a read of {session} at {:?} shows head #{head} and entries up to #{reached}; \
                     #{before} was there before",
                    call.span.start
                );
                self.report(Rule::FreshRead, detail);
            }
        }
    }

    fn check_feeds(&mut self) {
        // By follower and epoch: the last position, and the last number of each session.
        let mut at = BTreeMap::<(usize, usize), (u64, BTreeMap<&str, u64>)>::new();
        let mut streams: Vec<_> = self.history.feeds.iter().collect();
        streams.sort_by_key(|stream| (stream.follower, stream.opened));
        for stream in streams {
            let Some((epoch, events)) = self.events_of(stream) else {
                continue;
            };
            let follower = stream.follower;
            let (last, numbers) = at.entry((follower, epoch)).or_default();
            let mut violations = Vec::new();
            for event in events {
                if event.position <= stream.after.max(*last) {
                    violations.push(format!(
                        "follower {follower} got position {} after {last}",
                        event.position
                    ));
                }
                *last = event.position;
                let number = numbers.entry(&event.session).or_default();
                if event.entry.seq != *number + 1 {
                    violations.push(format!(
                        "follower {follower} got #{} of {} after #{number}, position {}",
                        event.entry.seq, event.session, event.position
                    ));
                }
                *number = event.entry.seq;
            }
            for detail in violations {
                self.report(Rule::Feed, detail);
            }
        }
        let Some(logs) = self.history.final_logs.first() else {
            return;
        };
        let last = self.history.restores.len();
        let followers: BTreeSet<_> = self
            .history
            .feeds
            .iter()
            .map(|feed| feed.follower)
            .collect();
        for follower in followers {
            for (session, log) in logs {
                let numbers = at.get(&(follower, last)).map(|(_, numbers)| numbers);
                let number = numbers.and_then(|numbers| numbers.get(session.as_str()));
                let number = number.copied().unwrap_or_default();
                if number != log.len() as u64 {
                    let detail = format!(
                        "follower {follower} got {number} entries of {session}, which has {}",
                        log.len()
                    );
                    self.report(Rule::Feed, detail);
                }
            }
        }
    }

    fn check_search(&mut self) {
        for call in &self.history.calls {
            let Action::Search { id, hits, behind } = &call.action else {
                continue;
            };
            let Some(epoch) = self.epoch(call.span) else {
                continue;
            };
            let known = &self.epochs[epoch];
            let mut violations = Vec::new();
            for hit in hits {
                let there = known.by_seq.get(&(hit.session.as_str(), hit.seq));
                let intended = there.and_then(|(id, _)| self.history.intended.get(*id));
                if !intended
                    .is_some_and(|one| one.text.contains(hit.snippet.trim_matches('…').trim()))
                {
                    let detail =
                        format!("searched {id}: {hit:?} where {there:?} is ({intended:?})");
                    violations.push((Rule::SearchResult, detail));
                }
            }
            let wanted = self
                .history
                .intended
                .get(id)
                .map(|one| one.session.as_str());
            let seq = known.by_id.get(id.as_str());
            if let (Some(session), Some(seq), 0) = (wanted, seq, behind) {
                let (_, since) = known.by_seq[&(session, *seq)];
                let is_found = hits
                    .iter()
                    .any(|hit| hit.session == *session && hit.seq == *seq);
                if since < call.span.start && !is_found {
                    let detail = format!(
                        "{id}, #{seq} of {session}, is not found at {:?}; it is there since {since:?}",
                        call.span.start
                    );
                    violations.push((Rule::SearchComplete, detail));
                }
            }
            for (rule, detail) in violations {
                self.report(rule, detail);
            }
        }
    }

    fn check_final_logs(&mut self) {
        let last = self.epochs.len() - 1;
        let mut violations = Vec::new();
        for logs in &self.history.final_logs {
            for (session, log) in logs {
                let numbers: Vec<u64> = log.iter().map(|shown| shown.seq).collect();
                if numbers != (1..=log.len() as u64).collect::<Vec<_>>() {
                    violations.push(format!("{session} has the numbers {numbers:?}"));
                }
                let ids: BTreeSet<_> = log.iter().map(|shown| &shown.id).collect();
                if ids.len() != log.len() {
                    violations.push(format!("{session} has an entry twice"));
                }
            }
            for ((session, seq), (id, _)) in &self.epochs[last].by_seq {
                let log = logs.get(*session).map_or(&[][..], Vec::as_slice);
                let at = usize::try_from(*seq - 1).unwrap_or(usize::MAX);
                if log.get(at).is_none_or(|shown| shown.id != *id) {
                    violations.push(format!("{id}, #{seq} of {session}, is lost"));
                }
            }
        }
        for detail in violations {
            self.report(Rule::Durable, detail);
        }
    }
}

/// The largest number known to exist before a moment.
fn largest_before(known: Option<&Vec<(Moment, u64)>>, moment: Moment) -> u64 {
    let Some(known) = known else { return 0 };
    let earlier = known.partition_point(|(since, _)| *since < moment);
    earlier.checked_sub(1).map_or(0, |last| known[last].1)
}
