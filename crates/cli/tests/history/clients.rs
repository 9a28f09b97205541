//! Clients that append, read, search and follow the feed, and record every answer.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::{self, NoResponse};
use crate::recorded_history::{
    Action, AppendAnswer, Call, FeedEvent, FeedStream, History, Hit, IntendedAppend, Moment,
    ObservedEntry, Span,
};
use crate::seeded_rng::SeededRng;
use crate::servers::Addresses;

/// State shared by all threads.
pub(crate) struct SharedState {
    pub(crate) started: Instant,
    pub(crate) addresses: Addresses,
    pub(crate) history: Mutex<History>,
    /// Set once no more calls are to be made.
    pub(crate) stop: AtomicBool,
    /// Set once followers need not wait for more.
    pub(crate) stop_following: AtomicBool,
    /// How many restores have begun; followers then restart from the beginning.
    pub(crate) restores: AtomicUsize,
    /// Answers that a server should never give.
    pub(crate) unexpected: Mutex<Vec<String>>,
    pub(crate) acknowledged: AtomicUsize,
}

impl SharedState {
    pub(crate) fn now(&self) -> Moment {
        self.started.elapsed()
    }

    fn record(&self, start: Moment, action: Action) {
        let span = Span {
            start,
            end: self.now(),
        };
        self.history
            .lock()
            .unwrap()
            .calls
            .push(Call { span, action });
    }

    fn report_unexpected(&self, what: String) {
        self.unexpected.lock().unwrap().push(what);
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Error codes that promise that nothing was appended, now or later.
const NOT_APPENDED_CODES: [&str; 4] = ["unavailable", "busy", "no_room", "read_only"];

/// The session that all clients append to.
pub(crate) const COMMON_SESSION: &str = "common";

/// A client's own session.
pub(crate) fn own_session(client: usize) -> String {
    format!("own-{client}")
}

/// A client that uses one server until that fails.
pub(crate) struct Client {
    pub(crate) number: usize,
    pub(crate) rng: SeededRng,
    pub(crate) shared: Arc<SharedState>,
    pub(crate) server: usize,
    /// Ids of its acknowledged entries, to search for.
    pub(crate) known: Vec<String>,
}

impl Client {
    pub(crate) fn run(mut self) {
        let mut count = 0;
        while !self.shared.is_stopped() {
            match self.rng.below(100) {
                0..55 => {
                    count += 1;
                    self.append(count);
                }
                55..85 => self.read(),
                _ => self.search(),
            }
            std::thread::sleep(Duration::from_millis(self.rng.below(20)));
        }
    }

    fn session(&mut self) -> String {
        if self.rng.percent(60) {
            COMMON_SESSION.to_owned()
        } else {
            own_session(self.number)
        }
    }

    /// Calls the server; switches to another for the next call if it does not answer.
    fn call(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(u16, Value), NoResponse> {
        let timeout = Duration::from_millis(800 + self.rng.below(4_000));
        let answer = match self.shared.addresses.get(self.server) {
            Some(address) => http::call(address, timeout, method, path, body),
            None => Err(NoResponse::NotSent),
        };
        if answer.is_err() {
            self.server = (self.server + 1) % self.shared.addresses.len();
            std::thread::sleep(Duration::from_millis(20));
        }
        answer
    }

    /// Appends an entry, with retries under the same id.
    fn append(&mut self, count: usize) {
        let id = self.rng.uuid();
        let session = self.session();
        let word = format!("c{}n{count}x{}", self.number, self.rng.below(1 << 20));
        // Some are longer than a page of the file.
        let filler = if count.is_multiple_of(16) { 9_000 } else { 40 };
        let text = format!("{word} {}", "lorem ipsum ".repeat(filler / 12));
        let text = text.trim().to_owned();
        let body = json!({"entries": [{"id": id, "role": "user", "content": text}]});
        let path = format!("/api/sessions/{session}/entries");
        let intended = IntendedAppend { session, text };
        let mut history = self.shared.history.lock().unwrap();
        history.intended.insert(id.clone(), intended);
        drop(history);
        while !self.shared.is_stopped() {
            let start = self.shared.now();
            let answer = self.call("POST", &path, Some(&body));
            let answer = self.classify_answer(answer);
            let is_done = matches!(answer, AppendAnswer::Acknowledged(_));
            let action = Action::Append {
                id: id.clone(),
                answer,
            };
            self.shared.record(start, action);
            if is_done {
                self.shared.acknowledged.fetch_add(1, Ordering::Relaxed);
                self.known.push(id);
                return;
            }
            // An entry abandoned after a refusal must not be found later.
            if self.rng.percent(35) {
                return;
            }
        }
    }

    fn classify_answer(&self, answer: Result<(u16, Value), NoResponse>) -> AppendAnswer {
        match answer {
            Ok((200 | 201, body)) => match parse_entry(&body["entries"][0]) {
                Some(shown) => AppendAnswer::Acknowledged(shown),
                None => {
                    self.shared
                        .report_unexpected(format!("an append is answered {body}"));
                    AppendAnswer::Unknown
                }
            },
            Ok((503, body)) => {
                let code = body["code"].as_str().unwrap_or_default();
                if NOT_APPENDED_CODES.contains(&code) {
                    AppendAnswer::Refused(format!("{code}: {}", body["detail"]))
                } else {
                    AppendAnswer::Unknown
                }
            }
            Ok((status, body)) => {
                self.shared
                    .report_unexpected(format!("an append is answered {status} {body}"));
                AppendAnswer::Unknown
            }
            Err(NoResponse::NotSent) => AppendAnswer::Refused("not sent".to_owned()),
            Err(NoResponse::Lost) => AppendAnswer::Unknown,
        }
    }

    fn read(&mut self) {
        let session = self.session();
        let known = self.shared.acknowledged.load(Ordering::Relaxed) as u64;
        let after = if self.rng.percent(20) {
            0
        } else {
            self.rng.below(known + 1)
        };
        self.read_page(&session, after, 40);
    }

    /// Reads a page; returns its entries, or `None` without an answer.
    fn read_page(&mut self, session: &str, after: u64, limit: usize) -> Option<Vec<ObservedEntry>> {
        let path = format!("/api/sessions/{session}/entries?after={after}&limit={limit}");
        let start = self.shared.now();
        let body = match self.call("GET", &path, None) {
            Ok((200, body)) => body,
            Ok((503, _)) | Err(_) => return None,
            Ok((status, body)) => {
                self.shared
                    .report_unexpected(format!("a read is answered {status} {body}"));
                return None;
            }
        };
        let entries: Option<Vec<_>> = body["entries"]
            .as_array()?
            .iter()
            .map(parse_entry)
            .collect();
        let Some(entries) = entries else {
            self.shared
                .report_unexpected(format!("a read is answered {body}"));
            return None;
        };
        // A page that begins beyond the head says nothing about earlier entries.
        let head = body["head"].as_u64()?;
        let action = Action::Read {
            session: session.to_owned(),
            after,
            limit,
            head,
            entries: entries.clone(),
        };
        self.shared.record(start, action);
        Some(entries)
    }

    /// Searches for something this client appended, most often something recent.
    fn search(&mut self) {
        let Some(last) = self.known.len().checked_sub(1) else {
            return;
        };
        let back = if self.rng.percent(70) {
            5
        } else {
            last as u64 + 1
        };
        let back = usize::try_from(self.rng.below(back)).unwrap();
        let id = self.known[last.saturating_sub(back)].clone();
        self.search_for(&id);
    }

    /// Searches for an entry; returns whether the index has caught up, or `None` without an
    /// answer.
    fn search_for(&mut self, id: &str) -> Option<bool> {
        let text = self.shared.history.lock().unwrap().intended[id]
            .text
            .clone();
        let word = text.split(' ').next().unwrap_or_default();
        let path = format!("/api/search?mode=text&limit=10&q={}", http::encode(word));
        let start = self.shared.now();
        let body = match self.call("GET", &path, None) {
            Ok((200, body)) => body,
            Ok((503, _)) | Err(_) => return None,
            Ok((status, body)) => {
                self.shared
                    .report_unexpected(format!("a search is answered {status} {body}"));
                return None;
            }
        };
        let hit = |hit: &Value| {
            Some(Hit {
                session: hit["session"].as_str()?.to_owned(),
                seq: hit["seq"].as_u64()?,
                snippet: hit["snippet"].as_str()?.to_owned(),
            })
        };
        let hits = body["hits"]
            .as_array()?
            .iter()
            .map(hit)
            .collect::<Option<_>>()?;
        let behind = body["behind"].as_u64()?;
        let action = Action::Search {
            id: id.to_owned(),
            hits,
            behind,
        };
        self.shared.record(start, action);
        Some(behind == 0)
    }

    /// Reads the whole log of a session from one server.
    pub(crate) fn read_whole_log(&mut self, session: &str) -> Vec<ObservedEntry> {
        let server = self.server;
        let mut log = Vec::new();
        let started = Instant::now();
        loop {
            self.server = server;
            let page = self.read_page(session, log.len() as u64, 500);
            let is_last = page.as_ref().is_some_and(|page| page.len() < 500);
            log.extend(page.unwrap_or_default());
            if is_last {
                return log;
            }
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "{session} cannot be read"
            );
        }
    }

    /// Searches for an entry until the index has caught up.
    #[track_caller]
    pub(crate) fn search_until_indexed(&mut self, id: &str) {
        let started = Instant::now();
        while self.search_for(id) != Some(true) {
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "the index does not catch up"
            );
        }
    }
}

fn parse_entry(entry: &Value) -> Option<ObservedEntry> {
    Some(ObservedEntry {
        seq: entry["seq"].as_u64()?,
        id: entry["id"].as_str()?.to_owned(),
        text: entry["content"].as_str()?.to_owned(),
    })
}

/// Follows the feed, resuming wherever a stream ends.
pub(crate) struct FeedFollower {
    pub(crate) number: usize,
    pub(crate) rng: SeededRng,
    pub(crate) shared: Arc<SharedState>,
}

impl FeedFollower {
    pub(crate) fn run(mut self) {
        let (mut after, mut restores) = (0, 0);
        let mut server = self.number;
        while !self.shared.stop_following.load(Ordering::Relaxed) {
            // Positions from before a restore are not valid after it.
            let restored = self.shared.restores.load(Ordering::SeqCst);
            if restored != restores {
                (after, restores) = (0, restored);
            }
            server = (server + 1) % self.shared.addresses.len();
            let Some(address) = self.shared.addresses.get(server) else {
                std::thread::sleep(Duration::from_millis(20));
                continue;
            };
            let opened = self.shared.now();
            let path = format!("/api/events?kind=message_added&after={after}");
            let timeout = Duration::from_millis(500 + self.rng.below(1_500));
            let Ok(stream) = http::send(address, timeout, "GET", &path, None) else {
                continue;
            };
            if self.shared.restores.load(Ordering::SeqCst) != restores {
                continue;
            }
            let mut events = Vec::new();
            let resumed = after;
            let lines = BufReader::new(stream).lines();
            // Clients disconnect now and then, too.
            let stay = Instant::now() + Duration::from_millis(self.rng.below(6_000));
            let (mut id, mut data) = (None, None);
            for line in lines.map_while(Result::ok) {
                if let Some(position) = line.strip_prefix("id: ") {
                    id = position.parse().ok();
                } else if line == "event: reset" {
                    let what = format!("a follower at {after} is reset");
                    self.shared.report_unexpected(what);
                } else if let Some(line) = line.strip_prefix("data: ") {
                    data = Some(line.to_owned());
                } else if line.is_empty() {
                    // Only now is the event complete.
                    after = id.take().unwrap_or(after);
                    events.extend(data.take().and_then(|data| self.parse_event(&data)));
                    if Instant::now() > stay {
                        break;
                    }
                }
            }
            self.shared.history.lock().unwrap().feeds.push(FeedStream {
                follower: self.number,
                opened,
                after: resumed,
                events,
            });
        }
    }

    /// Parses the entry of an event; `None` for other events, such as `ready`.
    fn parse_event(&self, data: &str) -> Option<FeedEvent> {
        let data: Value = serde_json::from_str(data).ok()?;
        Some(FeedEvent {
            received: self.shared.now(),
            position: data["position"].as_u64()?,
            session: data["session"].as_str()?.to_owned(),
            entry: ObservedEntry {
                seq: data["seq"].as_u64()?,
                id: data["entry"]["id"].as_str()?.to_owned(),
                text: data["entry"]["content"].as_str()?.to_owned(),
            },
        })
    }
}

/// How many entries of each session a follower has received since the last restore.
pub(crate) fn followed_counts(history: &History, follower: usize) -> BTreeMap<String, u64> {
    let since = history
        .restores
        .last()
        .map_or(Moment::ZERO, |last| last.span.end);
    let mut followed = BTreeMap::new();
    let streams = history
        .feeds
        .iter()
        .filter(|feed| feed.follower == follower);
    for event in streams
        .filter(|feed| feed.opened >= since)
        .flat_map(|feed| &feed.events)
    {
        followed.insert(event.session.clone(), event.entry.seq);
    }
    followed
}
