//! A turn that another server over the same store runs. Who that is and that it still goes on
//! is known by its lease, what comes of it by the log: the answer is told when it is kept.

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
/// How often it is looked whether the turn still goes on: one that fails is not in the log.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Somebody who waits for an answer.
struct RemoteTurn {
    session: Session,
    turn: String,
    question: Entry,
    subscription: Subscription,
    /// How many events were told.
    events_sent: usize,
    ended: bool,
}

/// Tells of the turn that another server runs in a session, after so many events that were
/// heard before; none where there is none.
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
    let wanted = EventFilter {
        session: Some(session.id().clone()),
        ..EventFilter::default()
    };
    // Listens first and looks second: what is kept in between is not missed.
    let waiting = RemoteTurn {
        session: session.clone(),
        turn: holder.id,
        question,
        subscription: Subscription::start(app, tl, wanted).await?,
        events_sent: seen.min(1),
        ended: false,
    };
    let closed = Box::pin(app.hub.closed());
    let frames = stream::unfold((waiting, closed), async |(mut waiting, mut closed)| {
        let sent = tokio::select! {
            biased;
            () = &mut closed => return None,
            sent = waiting.next_event() => sent?,
            () = tokio::time::sleep(KEEP_ALIVE_INTERVAL) => Bytes::from_static(b":\n\n"),
        };
        Some((Ok::<_, std::convert::Infallible>(sent), (waiting, closed)))
    });
    Ok(Some(event_stream_response(Body::from_stream(frames))))
}

impl RemoteTurn {
    /// The next event; none after the last.
    async fn next_event(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        if self.events_sent == 0 {
            return Some(self.encode_event(TURN_ELSEWHERE, json!({})));
        }
        loop {
            let came_to = match self.find_outcome().await {
                Ok(came_to) => came_to,
                Err(problem) => Some((TURN_FAILED, json!({"failed": problem}))),
            };
            if let Some((name, data)) = came_to {
                self.ended = true;
                return Some(self.encode_event(name, data));
            }
            // Whatever happens in the session is a reason to look again.
            let news = tokio::time::timeout(POLL_INTERVAL, self.subscription.next());
            if let Ok(None) = news.await {
                return None;
            }
        }
    }

    /// What became of the turn, once that is known.
    async fn find_outcome(&self) -> Result<Option<(&'static str, Value)>, Problem> {
        let holder = self.session.turn_holder().await?;
        let goes_on = holder.is_some_and(|holder| holder.id == self.turn);
        if let Some(answer) = find_answer(&self.session, &self.question).await? {
            let usage = answer.message().and_then(|message| message.usage);
            let data = json!({"answer": answer, "usage": usage});
            return Ok(Some((TURN_COMPLETE, data)));
        }
        if goes_on {
            return Ok(None);
        }
        let failed = Problem::not_found(
            "turn_not_found",
            "the server that answered stopped, or its model failed; send a turn without a \
             `message` to ask again",
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
