//! Tests of exit summaries, which are appended when a session is left: what they contain, and
//! that, unlike checkpoints, they hide no message from the model.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use throughline::context::{Encoding, Policy};
use throughline::{
    Body, CompactOptions, CompactOutcome, Message, NewSession, RequestOptions, Role, Seq, Session,
    Throughline,
};

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(work)
}

async fn session() -> Session {
    let tl = Throughline::open("memory:").await.unwrap();
    let session = tl.create(NewSession::default()).await.unwrap();
    say(&session, Role::User, "Let's build the rate limiter.").await;
    say(
        &session,
        Role::Assistant,
        "We decided to use a token bucket backed by Redis.",
    )
    .await;
    session
}

async fn say(session: &Session, role: Role, text: &str) {
    session.append(Message::text(role, text)).await.unwrap();
}

async fn messages_sent(session: &Session) -> usize {
    let policy = Policy::default();
    let options = RequestOptions::new(&policy, 10_000, Encoding::Rough);
    session.request(&options).await.unwrap().messages.len()
}

#[test]
fn an_exit_summary_hides_nothing_from_the_model() {
    block_on(async {
        let session = session().await;
        let before = messages_sent(&session).await;

        let left = session.append_exit_summary(None).await.unwrap().unwrap();

        assert_eq!(messages_sent(&session).await, before);
        assert_eq!(left.by, "extractive");
        assert!(left.warnings.is_empty(), "{:?}", left.warnings);
        let known = session.last_summary().await.unwrap().unwrap();
        assert_eq!(known.covers, Seq(2));
        assert!(known.summary.to_block().contains("token bucket"));
    });
}

#[test]
fn no_new_messages_mean_no_new_exit_summary() {
    block_on(async {
        let session = session().await;
        session.append_exit_summary(None).await.unwrap().unwrap();
        session.pin("the port is 8080").await.unwrap();

        assert!(session.append_exit_summary(None).await.unwrap().is_none());
    });
}

#[test]
fn the_next_summary_continues_from_the_last() {
    block_on(async {
        let session = session().await;
        session.append_exit_summary(None).await.unwrap();
        say(&session, Role::User, "TODO: add integration tests.").await;

        let left = session.append_exit_summary(None).await.unwrap().unwrap();

        let text = left.summary.to_block();
        assert!(text.contains("token bucket"), "{text}");
        assert!(text.contains("integration tests"), "{text}");
        let Body::Summarized(summary) = left.entry.body else {
            panic!("{:?}", left.entry.body);
        };
        assert_eq!((summary.covers, summary.messages), (Seq(4), 1));
    });
}

#[test]
fn clearing_and_rewinding_hide_a_summary() {
    block_on(async {
        for cleared in [true, false] {
            let session = session().await;
            session.append_exit_summary(None).await.unwrap();
            if cleared {
                session.clear().await.unwrap();
            } else {
                session.rewind(Seq(2)).await.unwrap();
            }
            assert!(session.last_summary().await.unwrap().is_none());
        }
    });
}

#[test]
fn summarizing_now_stores_nothing() {
    block_on(async {
        let session = session().await;
        let summary = session.summarize_now().await.unwrap();
        assert!(summary.to_block().contains("token bucket"));
        assert_eq!(session.record().await.unwrap().info.head, Seq(2));
    });
}

async fn compact_and_render(session: &Session) -> String {
    let policy = Policy::preset("chain").unwrap();
    let compacted = session
        .compact(&CompactOptions {
            policy: &policy,
            window: 10_000,
            encoding: Encoding::Rough,
            fixed_tokens: 0,
            before: None,
            force: true,
            allow_larger: true,
            summarizer: None,
            on_event: None,
        })
        .await
        .unwrap();
    match compacted {
        CompactOutcome::Done(done) => {
            assert!(done.warnings.is_empty(), "{:?}", done.warnings);
            done.checkpoint.summary.to_block()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_short_message_in_a_continued_session_does_not_displace_the_summary() {
    block_on(async {
        let session = session().await;
        assert!(compact_and_render(&session).await.contains("token bucket"));
        let next = session
            .continue_from_summary(NewSession::default(), None)
            .await
            .unwrap();
        say(&next, Role::User, "Hello again").await;

        let summary = compact_and_render(&next).await;

        assert!(summary.contains("token bucket"), "{summary}");
    });
}
