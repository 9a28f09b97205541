//! Tests of the checker: it accepts sound histories and rejects constructed bad ones.

use std::time::Duration;

use crate::checker::{Rule, check};
use crate::recorded_history::{
    Action, AppendAnswer, Call, FeedEvent, FeedStream, History, Hit, IntendedAppend, Moment,
    ObservedEntry, Restore, Span,
};

fn at(millis: u64) -> Moment {
    Duration::from_millis(millis)
}

fn span(start: u64, end: u64) -> Span {
    Span {
        start: at(start),
        end: at(end),
    }
}

fn observed_entry(seq: u64, id: &str) -> ObservedEntry {
    ObservedEntry {
        seq,
        id: id.to_owned(),
        text: format!("text of {id}"),
    }
}

/// A history of one session, built step by step.
#[derive(Default)]
struct HistoryBuilder(History);

impl HistoryBuilder {
    fn intend(&mut self, id: &str) {
        let intended = IntendedAppend {
            session: "s".to_owned(),
            text: format!("text of {id}"),
        };
        self.0.intended.insert(id.to_owned(), intended);
    }

    fn call(mut self, start: u64, end: u64, action: Action) -> Self {
        self.0.calls.push(Call {
            span: span(start, end),
            action,
        });
        self
    }

    fn append(mut self, start: u64, end: u64, id: &str, answer: AppendAnswer) -> Self {
        self.intend(id);
        let id = id.to_owned();
        self.call(start, end, Action::Append { id, answer })
    }

    fn acknowledged(self, start: u64, end: u64, seq: u64, id: &str) -> Self {
        let answer = AppendAnswer::Acknowledged(observed_entry(seq, id));
        self.append(start, end, id, answer)
    }

    fn refused(self, start: u64, end: u64, id: &str) -> Self {
        let answer = AppendAnswer::Refused("unavailable".to_owned());
        self.append(start, end, id, answer)
    }

    fn read(self, start: u64, end: u64, ids: &[&str]) -> Self {
        let entries: Vec<_> = (1..)
            .zip(ids)
            .map(|(seq, id)| observed_entry(seq, id))
            .collect();
        let action = Action::Read {
            session: "s".to_owned(),
            after: 0,
            limit: 50,
            head: entries.len() as u64,
            entries,
        };
        self.call(start, end, action)
    }

    fn search(self, start: u64, end: u64, id: &str, hits: &[(u64, &str)], behind: u64) -> Self {
        let hits = hits.iter().map(|(seq, of)| Hit {
            session: "s".to_owned(),
            seq: *seq,
            snippet: format!("text of {of}"),
        });
        let hits = hits.collect();
        let id = id.to_owned();
        self.call(start, end, Action::Search { id, hits, behind })
    }

    fn feed(mut self, opened: u64, after: u64, events: &[(u64, u64, &str)]) -> Self {
        let event = |(position, seq, id): &(u64, u64, &str)| FeedEvent {
            received: at(opened + 1),
            position: *position,
            session: "s".to_owned(),
            entry: observed_entry(*seq, id),
        };
        self.0.feeds.push(FeedStream {
            follower: 0,
            opened: at(opened),
            after,
            events: events.iter().map(event).collect(),
        });
        self
    }

    fn restore(mut self, backup: (u64, u64), during: (u64, u64)) -> Self {
        self.0.restores.push(Restore {
            backup: span(backup.0, backup.1),
            span: span(during.0, during.1),
        });
        self
    }

    fn final_log(mut self, ids: &[&str]) -> Self {
        let log = (1..)
            .zip(ids)
            .map(|(seq, id)| observed_entry(seq, id))
            .collect();
        self.0.final_logs.push([("s".to_owned(), log)].into());
        self
    }

    #[track_caller]
    fn assert_violates(&self, rule: Rule) {
        let found = check(&self.0);
        assert!(
            found.iter().any(|violation| violation.rule == rule),
            "{rule:?} is not among {found:?}"
        );
    }

    #[track_caller]
    fn assert_sound(&self) {
        assert_eq!(check(&self.0), []);
    }
}

/// Two appends, one after the other.
fn two_appends() -> HistoryBuilder {
    HistoryBuilder::default()
        .acknowledged(0, 10, 1, "a")
        .acknowledged(20, 30, 2, "b")
}

#[test]
fn a_sound_history_is_accepted() {
    two_appends()
        .read(40, 50, &["a", "b"])
        .search(60, 70, "b", &[(2, "b")], 0)
        .refused(70, 80, "c")
        .append(70, 80, "d", AppendAnswer::Unknown)
        .feed(12, 0, &[(5, 1, "a")])
        .feed(85, 5, &[(6, 2, "b"), (9, 3, "d")])
        .final_log(&["a", "b", "d"])
        .assert_sound();
}

#[test]
fn an_acknowledged_entry_that_is_lost_is_found() {
    two_appends()
        .final_log(&["a"])
        .assert_violates(Rule::Durable);
    two_appends().final_log(&[]).assert_violates(Rule::Durable);
}

#[test]
fn an_entry_that_is_there_twice_is_found() {
    two_appends()
        .final_log(&["a", "b", "a"])
        .assert_violates(Rule::OneNumber);
}

#[test]
fn an_entry_that_two_servers_number_differently_is_found() {
    two_appends()
        .read(40, 50, &["b", "a"])
        .assert_violates(Rule::OneNumber);
    HistoryBuilder::default()
        .acknowledged(0, 10, 1, "a")
        .acknowledged(0, 10, 1, "b")
        .assert_violates(Rule::OneNumber);
}

#[test]
fn an_entry_nobody_sent_is_found() {
    two_appends()
        .final_log(&["a", "b", "x"])
        .assert_violates(Rule::Genuine);
    let mut altered = two_appends().read(40, 50, &["a", "b"]);
    altered.0.intended.get_mut("b").unwrap().text = "another text".to_owned();
    altered.assert_violates(Rule::Genuine);
}

#[test]
fn a_refused_append_that_is_committed_is_found() {
    two_appends()
        .refused(40, 50, "c")
        .final_log(&["a", "b", "c"])
        .assert_violates(Rule::RefusedIsAbsent);
    // Another attempt may have succeeded.
    two_appends()
        .refused(40, 50, "c")
        .append(60, 70, "c", AppendAnswer::Unknown)
        .final_log(&["a", "b", "c"])
        .assert_sound();
}

#[test]
fn an_entry_before_one_that_was_acknowledged_earlier_is_found() {
    HistoryBuilder::default()
        .acknowledged(0, 10, 2, "b")
        .acknowledged(20, 30, 1, "a")
        .assert_violates(Rule::RealTimeOrder);
    // Of two concurrent appends either may be first.
    HistoryBuilder::default()
        .acknowledged(0, 25, 2, "b")
        .acknowledged(20, 30, 1, "a")
        .assert_sound();
}

#[test]
fn a_read_that_goes_back_is_found() {
    two_appends()
        .read(40, 50, &["a"])
        .assert_violates(Rule::FreshRead);
    // A concurrent append may be visible or not.
    two_appends().read(22, 28, &["a"]).assert_sound();
    // What one reader saw, the next must see too, acknowledged or not.
    HistoryBuilder::default()
        .append(0, 90, "a", AppendAnswer::Unknown)
        .read(10, 20, &["a"])
        .read(30, 40, &[])
        .assert_violates(Rule::FreshRead);
}

#[test]
fn a_read_with_a_gap_is_found() {
    let mut gap = two_appends().read(40, 50, &["a", "b"]);
    let Action::Read { entries, .. } = &mut gap.0.calls[2].action else {
        panic!("a read");
    };
    entries.remove(0);
    gap.assert_violates(Rule::FreshRead);
}

#[test]
fn a_feed_that_skips_repeats_or_reorders_is_found() {
    let done = || two_appends().final_log(&["a", "b"]);
    let wrong: [&[(u64, u64, &str)]; 4] = [
        &[(6, 2, "b")],
        &[(5, 1, "a")],
        &[(5, 1, "a"), (5, 1, "a"), (6, 2, "b")],
        &[(6, 2, "b"), (5, 1, "a")],
    ];
    for events in wrong {
        done().feed(0, 0, events).assert_violates(Rule::Feed);
    }
    // Also after resuming.
    done()
        .feed(0, 0, &[(5, 1, "a"), (6, 2, "b")])
        .feed(50, 6, &[(6, 2, "b")])
        .assert_violates(Rule::Feed);
}

#[test]
fn a_search_result_with_the_text_of_another_entry_is_found() {
    two_appends()
        .search(40, 50, "b", &[(1, "b"), (2, "b")], 0)
        .assert_violates(Rule::SearchResult);
    two_appends()
        .search(40, 50, "b", &[(2, "b"), (7, "x")], 0)
        .assert_violates(Rule::SearchResult);
}

#[test]
fn an_acknowledged_entry_that_search_does_not_find_is_found() {
    two_appends()
        .search(40, 50, "b", &[], 0)
        .assert_violates(Rule::SearchComplete);
    // A server may report that its index is behind.
    two_appends().search(40, 50, "b", &[], 1).assert_sound();
    two_appends().search(25, 50, "b", &[], 0).assert_sound();
}

#[test]
fn a_restore_takes_back_what_came_after_the_backup_and_nothing_else() {
    let restored = || {
        two_appends()
            .restore((12, 15), (40, 50))
            .acknowledged(60, 70, 2, "c")
    };
    restored()
        .read(80, 90, &["a", "c"])
        .final_log(&["a", "c"])
        .assert_sound();
    // What was acknowledged before the backup exists.
    restored().final_log(&["c"]).assert_violates(Rule::Durable);
    // Search shows what existed before the restore.
    restored()
        .search(80, 90, "c", &[(2, "b"), (2, "c")], 0)
        .assert_violates(Rule::SearchResult);
    // What came after the backup does not reappear by itself.
    two_appends()
        .restore((12, 15), (40, 50))
        .final_log(&["a", "b"])
        .assert_violates(Rule::GoneAfterRestore);
    // A call that overlaps with the restore may be answered from either history.
    restored()
        .read(45, 55, &["a", "b"])
        .final_log(&["a", "c"])
        .assert_sound();
}
