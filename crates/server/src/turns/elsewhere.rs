//! A question without an answer whose turn is not known here. Another server over the same
//! store may be answering it, or nobody is: from here that looks the same, and so it is
//! told. What is certain is the log: the answer is told when it is there.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use serde_json::json;
use throughline::{Entry, Session, Throughline};

use super::run::{COMPLETE, FAILED, answer_to};
use crate::events::{BREATH, Subscription, Wanted, event_stream};
use crate::{App, Problem};

const ELSEWHERE: &str = "turn:elsewhere";

/// Somebody who waits for an answer.
struct Waiting {
    session: Session,
    question: Entry,
    subscription: Subscription,
    /// How many events were told.
    told: usize,
    ended: bool,
}

/// Tells of an unanswered question, and of its answer once it is kept; after so many
/// events that were heard before.
pub(crate) async fn follow(
    app: &App,
    tl: &Throughline,
    session: &Session,
    question: Entry,
    seen: usize,
) -> Result<Response, Problem> {
    let wanted = Wanted {
        session: Some(session.id().clone()),
        ..Wanted::default()
    };
    // Listens first and looks second: what is kept in between is not missed.
    let waiting = Waiting {
        session: session.clone(),
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
    Ok(event_stream(Body::from_stream(frames)))
}

impl Waiting {
    /// The next event; none after the last.
    async fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        if self.told == 0 {
            let why = "no turn is known to this server: another one may be answering, or nobody \
                       is; the answer is told when it is kept";
            return Some(self.event(ELSEWHERE, json!({"why": why})));
        }
        loop {
            match self.came_to().await {
                Ok(None) => {}
                Ok(Some((name, data))) => {
                    self.ended = true;
                    return Some(self.event(name, data));
                }
                Err(problem) => {
                    self.ended = true;
                    return Some(self.event(FAILED, json!({"failed": problem})));
                }
            }
            // Whatever happens in the session is a reason to look again.
            self.subscription.next().await?;
        }
    }

    /// What became of the question, once that is in the log.
    async fn came_to(&self) -> Result<Option<(&'static str, serde_json::Value)>, Problem> {
        if let Some(answer) = answer_to(&self.session, &self.question).await? {
            let usage = answer.message().and_then(|message| message.usage);
            let data = json!({"answer": answer, "usage": usage});
            return Ok(Some((COMPLETE, data)));
        }
        let standing = self.session.record().await?.standing;
        if standing.shows(self.question.seq) {
            return Ok(None);
        }
        let gone = Problem::not_found("turn_not_found", "the question was taken back");
        Ok(Some((FAILED, json!({"failed": gone}))))
    }

    fn event(&mut self, name: &str, mut data: serde_json::Value) -> Bytes {
        self.told += 1;
        data["session"] = json!(self.session.id());
        data["question"] = json!(self.question);
        Bytes::from(format!(
            "id: {}\nevent: {name}\ndata: {data}\n\n",
            self.told
        ))
    }
}
