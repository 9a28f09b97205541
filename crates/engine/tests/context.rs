//! Tests of model requests and of compaction.

#![allow(clippy::unwrap_used, reason = "tests")]

use throughline::context::{ContextDocument, Encoding, Policy, SectionName};
use throughline::{
    Body, Checkpoint, CompactOptions, CompactOutcome, Content, Error, Message, NewSession,
    RequestOptions, Role, Seq, Session, Summary, Throughline,
};

const WINDOW: u64 = 4_000;

async fn session() -> Session {
    let tl = Throughline::open("memory:").await.unwrap();
    tl.create(NewSession::default()).await.unwrap()
}

async fn talk(session: &Session, turns: std::ops::Range<usize>) {
    for n in turns {
        let question = format!("Step {n}: please look at src/part_{n}.rs and tell me what it does");
        let answer = format!(
            "It parses the header of part {n}. We decided to keep {n} retries. TODO: test part {n}."
        );
        session
            .append(Message::text(Role::User, question))
            .await
            .unwrap();
        session
            .append(Message::text(Role::Assistant, answer))
            .await
            .unwrap();
    }
}

fn policy() -> Policy {
    Policy::preset("default").unwrap()
}

fn request_options<'a>(policy: &'a Policy, message: Option<&'a Content>) -> RequestOptions<'a> {
    RequestOptions {
        policy,
        budget: None,
        window: WINDOW,
        encoding: Encoding::Rough,
        agent: Some("You help."),
        documents: &[],
        message,
        before: None,
        model: None,
    }
}

fn compact_options(policy: &Policy) -> CompactOptions<'_> {
    CompactOptions {
        policy,
        window: WINDOW,
        encoding: Encoding::Rough,
        fixed_tokens: 0,
        before: None,
        force: false,
        allow_larger: false,
        summarizer: None,
        on_event: None,
    }
}

async fn compact(session: &Session) -> CompactOutcome {
    session.compact(&compact_options(&policy())).await.unwrap()
}

#[tokio::test]
async fn a_request_fits_its_budget_whatever_the_length_of_the_log() {
    let session = session().await;
    talk(&session, 0..300).await;
    let (policy, message) = (policy(), Content::text("and now?"));
    let request = session
        .request(&request_options(&policy, Some(&message)))
        .await
        .unwrap();
    assert!(request.tokens <= WINDOW);
    assert!(
        request.tokens > WINDOW / 2,
        "the budget is used: {}",
        request.tokens
    );
    let recent = request.section(SectionName::Recent).unwrap();
    assert!(recent.text.contains("part_299") && !recent.text.contains("part_0.rs"));
    assert!(!recent.left_out.is_empty());
    let last = request.messages.last().unwrap();
    assert_eq!(last.content.to_text(), "and now?");
}

#[tokio::test]
async fn a_request_contains_the_documents_of_session_and_caller() {
    let session = session().await;
    session
        .set_context("task", Some("Implement OAuth"))
        .await
        .unwrap();
    session.set_context("gone", Some("x")).await.unwrap();
    session.set_context("gone", None).await.unwrap();
    let documents = [ContextDocument {
        name: "AGENTS.md".into(),
        text: "Use tabs".into(),
    }];
    let policy = policy();
    let options = RequestOptions {
        documents: &documents,
        ..request_options(&policy, None)
    };
    let request = session.request(&options).await.unwrap();
    let text = &request.section(SectionName::Context).unwrap().text;
    assert!(
        text.contains("Implement OAuth") && text.contains("Use tabs") && !text.contains("gone")
    );
}

#[tokio::test]
async fn compaction_waits_for_its_threshold_and_then_makes_room() {
    let session = session().await;
    talk(&session, 0..5).await;
    assert!(matches!(compact(&session).await, CompactOutcome::NotNeeded));
    talk(&session, 5..120).await;
    session.pin("Never touch prod").await.unwrap();

    let CompactOutcome::Done(done) = compact(&session).await else {
        panic!("not compacted");
    };

    let policy = policy();
    let threshold = policy.compaction_threshold(WINDOW).unwrap();
    let request = session
        .request(&request_options(&policy, None))
        .await
        .unwrap();
    assert!(
        request.tokens <= threshold / 2 + 200,
        "{} of {threshold}",
        request.tokens
    );
    let checkpoint = &request.section(SectionName::Checkpoint).unwrap().text;
    assert!(checkpoint.contains("Never touch prod"));
    assert!(done.checkpoint.summary.files_touched.len() > 10);
    assert!(matches!(compact(&session).await, CompactOutcome::NotNeeded));
    assert_eq!(session.entries(Seq(1), 1_000).await.unwrap().len(), 242);
}

#[tokio::test]
async fn undoing_a_compaction_restores_everything() {
    let session = session().await;
    talk(&session, 0..120).await;
    let before = session.record().await.unwrap().state;
    assert!(matches!(compact(&session).await, CompactOutcome::Done(_)));
    session.undo_compaction().await.unwrap();
    let mut after = session.record().await.unwrap().state;
    after.changed = before.changed;
    assert_eq!(after, before);
    assert!(matches!(
        session.undo_compaction().await,
        Err(Error::NoCheckpoint(_))
    ));
}

#[tokio::test]
async fn of_two_compactions_at_once_one_wins_and_nothing_is_lost() {
    let session = session().await;
    talk(&session, 0..120).await;
    let policy = policy();
    let options = compact_options(&policy);
    let (one, two) = tokio::join!(session.compact(&options), session.compact(&options));
    let done = [one.unwrap(), two.unwrap()]
        .iter()
        .filter(|compacted| matches!(compacted, CompactOutcome::Done(_)))
        .count();
    assert_eq!(done, 1);
    assert_eq!(session.record().await.unwrap().state.checkpoints.len(), 1);
}

#[tokio::test]
async fn a_message_sent_during_compaction_stays_after_the_summary() {
    // A summarizer during which another message is appended.
    #[derive(Debug)]
    struct SlowSummarizer(Session);

    #[async_trait::async_trait]
    impl throughline::llm::Summarizer for SlowSummarizer {
        fn name(&self) -> &'static str {
            "slow"
        }

        async fn summarize(
            &self,
            request: &throughline::llm::SummaryRequest<'_>,
        ) -> Result<throughline::llm::GeneratedSummary, throughline::llm::SummarizeError> {
            let meanwhile = Message::text(Role::User, "said meanwhile");
            self.0.append(meanwhile).await.unwrap();
            throughline::llm::ExtractiveSummarizer
                .summarize(request)
                .await
        }
    }

    let session = session().await;
    talk(&session, 0..120).await;
    let (policy, slow) = (policy(), SlowSummarizer(session.clone()));
    let options = CompactOptions {
        summarizer: Some(&slow),
        ..compact_options(&policy)
    };
    assert!(matches!(
        session.compact(&options).await.unwrap(),
        CompactOutcome::Done(_)
    ));
    let request = session
        .request(&request_options(&policy, None))
        .await
        .unwrap();
    assert!(
        request
            .section(SectionName::Recent)
            .unwrap()
            .text
            .contains("said meanwhile")
    );
}

#[tokio::test]
async fn a_session_is_continued_from_its_summary_and_no_further_back() {
    let first = session().await;
    talk(&first, 0..20).await;
    assert!(matches!(
        first
            .continue_from_summary(NewSession::default(), None)
            .await,
        Err(Error::NoSummary(_))
    ));
    let checkpoint = |text: &str| Checkpoint {
        covers: Seq(40),
        summary: Summary {
            topics: vec![text.into()],
            ..Summary::default()
        },
        by: "test".into(),
        messages: 40,
        oldest: None,
        newest: None,
        usage: None,
    };
    first.append(checkpoint("the first topic")).await.unwrap();
    let second = first
        .continue_from_summary(NewSession::default(), Some("/t/first.md"))
        .await
        .unwrap();
    let entry = second.entries(Seq(1), 1).await.unwrap().remove(0);
    let Body::Restored(restored) = entry.body else {
        panic!("not restored");
    };
    assert!(restored.prompt.contains("the first topic"));
    assert!(
        restored
            .prompt
            .contains("Previous session file: /t/first.md")
    );
    let record = second.record().await.unwrap();
    assert_eq!(record.info.lineage.parent(), Some(first.id()));
    assert_eq!((record.info.queries, record.info.messages), (0, 0));

    second
        .append(Checkpoint {
            covers: Seq(2),
            ..checkpoint("the second topic")
        })
        .await
        .unwrap();
    let third = second
        .continue_from_summary(NewSession::default(), None)
        .await
        .unwrap();
    let policy = policy();
    let request = third
        .request(&request_options(&policy, None))
        .await
        .unwrap();
    let json = serde_json::to_string(&request).unwrap();
    assert!(json.contains("the second topic") && !json.contains("the first topic"));
}

#[tokio::test]
async fn a_request_over_the_threshold_is_compacted_first_and_that_is_reported() {
    let session = session().await;
    talk(&session, 0..120).await;
    let events = std::sync::Mutex::new(Vec::new());
    let on_event = |event: throughline::CompactionEvent| events.lock().unwrap().push(event.name());
    let policy = policy();
    let options = request_options(&policy, None);

    let (request, compacted) = session
        .compact_and_build_request(&options, None, Some(&on_event))
        .await
        .unwrap();

    assert!(matches!(compacted, CompactOutcome::Done(_)));
    assert!(request.tokens <= policy.compaction_threshold(WINDOW).unwrap() / 2 + 200);
    assert_eq!(
        *events.lock().unwrap(),
        ["session:compaction-start", "session:compaction-complete"]
    );
    let (_, again) = session
        .compact_and_build_request(&options, None, None)
        .await
        .unwrap();
    assert!(matches!(again, CompactOutcome::NotNeeded));
}

#[tokio::test]
async fn messages_that_a_policy_leaves_out_are_summarized() {
    let session = session().await;
    let policy = Policy::preset("aiarmy").unwrap();
    talk(&session, 0..400).await;
    let options = RequestOptions {
        window: 100_000,
        ..request_options(&policy, None)
    };
    let before = session.request(&options).await.unwrap();
    assert!(before.tokens < 2_000);
    let (request, compacted) = session
        .compact_and_build_request(&options, None, None)
        .await
        .unwrap();
    assert!(matches!(compacted, CompactOutcome::Done(_)));
    let checkpoint = request.section(SectionName::Checkpoint).unwrap();
    assert!(checkpoint.text.contains("part_"));
    let (_, again) = session
        .compact_and_build_request(&options, None, None)
        .await
        .unwrap();
    assert!(matches!(again, CompactOutcome::NotNeeded));
}
