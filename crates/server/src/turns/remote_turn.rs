//! Follows a turn that another server on the same store runs.
//!
//! Its lease shows that the turn is still running, its log shows the result: the answer is emitted
//! once it is stored.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use serde_json::{Value, json};
use throughline::{Entry, Session, Throughline};

use super::turn_task::{TURN_COMPLETE, TURN_FAILED, find_answer};
use crate::events::{EventFilter, KEEP_ALIVE_INTERVAL, Subscription, event_stream_response};
use crate::{App, Problem};

const TURN_ELSEWHERE: &str = "turn:elsewhere";
/// How often the lease is checked: a failed turn leaves nothing in the log.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// A client waiting for a remote turn.
struct RemoteTurn {
    session: Session,
    turn: String,
    question: Entry,
    subscription: Subscription,
    /// Number of events sent.
    events_sent: usize,
    ended: bool,
}

/// Streams the turn that another server runs in a session, after the events already received;
/// `None` if there is no such turn.
pub(crate) async fn follow_remote_turn(
    app: &App,
    tl: &Throughline,
    session: &Session,
    seen: usize,
) -> Result<Option<Response>, Problem> {
    let Some(holder) = session.turn_holder().await? else {
        return Ok(None);
    };
    let Some(question) = session.unanswered_message().await? else {
        return Ok(None);
    };
    let filter = EventFilter {
        session: Some(session.id().clone()),
        ..EventFilter::default()
    };
    // Subscribe before reading, so that an answer stored in between is not missed.
    let remote = RemoteTurn {
        session: session.clone(),
        turn: holder.id,
        question,
        subscription: Subscription::start(app, tl, filter).await?,
        events_sent: seen.min(1),
        ended: false,
    };
    let closed = Box::pin(app.hub.closed());
    let frames = stream::unfold((remote, closed), async |(mut remote, mut closed)| {
        let sent = tokio::select! {
            biased;
            () = &mut closed => return None,
            sent = remote.next_event() => sent?,
            () = tokio::time::sleep(KEEP_ALIVE_INTERVAL) => Bytes::from_static(b":\n\n"),
        };
        Some((Ok::<_, std::convert::Infallible>(sent), (remote, closed)))
    });
    Ok(Some(event_stream_response(Body::from_stream(frames))))
}

impl RemoteTurn {
    /// Returns the next event; `None` after the last.
    async fn next_event(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        if self.events_sent == 0 {
            return Some(self.encode_event(TURN_ELSEWHERE, json!({})));
        }
        loop {
            let outcome = match self.find_outcome().await {
                Ok(outcome) => outcome,
                Err(problem) => Some((TURN_FAILED, json!({"failed": problem}))),
            };
            if let Some((name, data)) = outcome {
                self.ended = true;
                return Some(self.encode_event(name, data));
            }
            // Any change in the session is a reason to check.
            let news = tokio::time::timeout(POLL_INTERVAL, self.subscription.next());
            if let Ok(None) = news.await {
                return None;
            }
        }
    }

    /// Returns the result of the turn once it is known.
    async fn find_outcome(&self) -> Result<Option<(&'static str, Value)>, Problem> {
        let holder = self.session.turn_holder().await?;
        let is_running = holder.is_some_and(|holder| holder.id == self.turn);
        if let Some(answer) = find_answer(&self.session, &self.question).await? {
            let usage = answer.message().and_then(|message| message.usage);
            let data = json!({"answer": answer, "usage": usage});
            return Ok(Some((TURN_COMPLETE, data)));
        }
        if is_running {
            return Ok(None);
        }
        let failed = Problem::not_found(
            "turn_not_found",
            "the server that ran the turn stopped, or its model failed; send a turn without a \
             `message` to retry",
        );
        Ok(Some((TURN_FAILED, json!({"failed": failed}))))
    }

    fn encode_event(&mut self, name: &str, mut data: Value) -> Bytes {
        self.events_sent += 1;
        data["turn"] = json!(self.turn);
        data["session"] = json!(self.session.id());
        data["question"] = json!(self.question);
        let number = self.events_sent;
        Bytes::from(format!("id: {number}\nevent: {name}\ndata: {data}\n\n"))
    }
}
