//! A turn that another server over the same store runs. Who that is and that it still goes on
//! is known by its lease, what comes of it by the log: the answer is told when it is kept.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use serde_json::{Value, json};
use throughline::{Entry, Session, Throughline};

use super::run::{COMPLETE, FAILED, answer_to};
use crate::events::{BREATH, Subscription, Wanted, event_stream};
use crate::{App, Problem};

const ELSEWHERE: &str = "turn:elsewhere";
/// How often it is looked whether the turn still goes on: one that fails is not in the log.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Somebody who waits for an answer.
struct Waiting {
    session: Session,
    turn: String,
    question: Entry,
    subscription: Subscription,
    /// How many events were told.
    told: usize,
    ended: bool,
}

/// Tells of the turn that another server runs in a session, after so many events that were
/// heard before; none where there is none.
pub(crate) async fn follow(
    app: &App,
    tl: &Throughline,
    session: &Session,
    seen: usize,
) -> Result<Option<Response>, Problem> {
    let Some(holder) = session.turn_holder().await? else {
        return Ok(None);
    };
    let Some(question) = session.unanswered().await? else {
        return Ok(None);
    };
    let wanted = Wanted {
        session: Some(session.id().clone()),
        ..Wanted::default()
    };
    // Listens first and looks second: what is kept in between is not missed.
    let waiting = Waiting {
        session: session.clone(),
        turn: holder.id,
        question,
        subscription: Subscription::begin(app, tl, wanted).await?,
        told: seen.min(1),
        ended: false,
    };
    let closed = Box::pin(app.hub.closed());
    let frames = stream::unfold((waiting, closed), async |(mut waiting, mut closed)| {
        let sent = tokio::select! {
            biased;
            () = &mut closed => return None,
            sent = waiting.next() => sent?,
            () = tokio::time::sleep(BREATH) => Bytes::from_static(b":\n\n"),
        };
        Some((Ok::<_, std::convert::Infallible>(sent), (waiting, closed)))
    });
    Ok(Some(event_stream(Body::from_stream(frames))))
}

impl Waiting {
    /// The next event; none after the last.
    async fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        if self.told == 0 {
            return Some(self.event(ELSEWHERE, json!({})));
        }
        loop {
            let came_to = match self.came_to().await {
                Ok(came_to) => came_to,
                Err(problem) => Some((FAILED, json!({"failed": problem}))),
            };
            if let Some((name, data)) = came_to {
                self.ended = true;
                return Some(self.event(name, data));
            }
            // Whatever happens in the session is a reason to look again.
            let news = tokio::time::timeout(LOOK_AGAIN, self.subscription.next());
            if let Ok(None) = news.await {
                return None;
            }
        }
    }

    /// What became of the turn, once that is known.
    async fn came_to(&self) -> Result<Option<(&'static str, Value)>, Problem> {
        let holder = self.session.turn_holder().await?;
        let goes_on = holder.is_some_and(|holder| holder.id == self.turn);
        if let Some(answer) = answer_to(&self.session, &self.question).await? {
            let usage = answer.message().and_then(|message| message.usage);
            let data = json!({"answer": answer, "usage": usage});
            return Ok(Some((COMPLETE, data)));
        }
        if goes_on {
            return Ok(None);
        }
        let failed = Problem::not_found(
            "turn_not_found",
            "the server that answered stopped, or its model failed; send a turn without a \
             `message` to ask again",
        );
        Ok(Some((FAILED, json!({"failed": failed}))))
    }

    fn event(&mut self, name: &str, mut data: Value) -> Bytes {
        self.told += 1;
        data["turn"] = json!(self.turn);
        data["session"] = json!(self.session.id());
        data["question"] = json!(self.question);
        let number = self.told;
        Bytes::from(format!("id: {number}\nevent: {name}\ndata: {data}\n\n"))
    }
}
