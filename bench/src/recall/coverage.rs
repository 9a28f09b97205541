//! Measures whether the answer to a question is in the request that is built for it.
//!
//! Each policy gets the history laid out as its system would: with recall, one session per
//! sitting and a new session for the questions, all in one project; for the presets without
//! recall, one session with everything in it, compacted as they do, or sessions that each start
//! from the summary of the one before.

use std::path::Path;

use anyhow::{Context, Result};
use throughline::context::{Encoding, Policy};
use throughline::{
    CompactOptions, ConflictPolicy, Content, Expect, IndexWait, Message, NewEntry, NewSession,
    OpenOptions, ProjectId, RequestOptions, Session, StoreAddress, Throughline,
};

use super::locomo::{Conversation, Question};
use crate::units::to_f64;

/// Token budgets of a request.
pub(crate) const BUDGETS: [u64; 2] = [2_000, 4_000];

/// The context window of the model.
const WINDOW: u64 = 200_000;

/// The coverage of one policy over all questions.
pub(crate) struct Coverage {
    pub(crate) name: &'static str,
    /// The share of questions whose whole evidence is in the request, for each budget.
    pub(crate) shares: [f64; 2],
}

/// How the history is divided into sessions.
#[derive(Clone, Copy)]
enum Layout {
    /// One session per sitting; questions are asked in a new one.
    SessionPerSitting,
    /// One session with everything in it.
    OneSession,
    /// One session per sitting, each starting from the summary of the one before.
    SummaryChain,
}

const STRATEGIES: [(&str, &str, Layout); 5] = [
    (
        "**`default`, a new session of the project**",
        "default",
        Layout::SessionPerSitting,
    ),
    ("`default`, one long session", "default", Layout::OneSession),
    (
        "`last-messages`, one long session",
        "last-messages",
        Layout::OneSession,
    ),
    (
        "`sliding-window`, one long session",
        "sliding-window",
        Layout::OneSession,
    ),
    (
        "`summary-chain`, from the last summary",
        "summary-chain",
        Layout::SummaryChain,
    ),
];

/// Measures all policies.
pub(crate) async fn measure(dir: &Path, conversations: &[Conversation]) -> Result<Vec<Coverage>> {
    let mut found = Vec::new();
    for (number, (name, policy, layout)) in STRATEGIES.into_iter().enumerate() {
        let policy = Policy::preset(policy).context("unknown preset")?;
        let mut held = [0_u64; 2];
        let mut questions_asked = 0_u64;
        for (which, conversation) in conversations.iter().enumerate() {
            let file = dir.join(format!("coverage-{number}-{which}.db"));
            let tl =
                Throughline::open_with(&StoreAddress::Sqlite(file), OpenOptions::default()).await?;
            let session = lay_out_history(&tl, conversation, &policy, layout).await?;
            tl.catch_up(IndexWait::Unlimited, &mut |_, _| {}).await?;
            for question in &conversation.questions {
                questions_asked += 1;
                for (held, budget) in held.iter_mut().zip(BUDGETS) {
                    let text = build_request(&session, question, &policy, budget).await?;
                    *held += u64::from(contains_evidence(&text, question, conversation));
                }
            }
        }
        let at = held.map(|held| to_f64(held) / to_f64(questions_asked.max(1)));
        eprintln!(
            "{name}  {:.3} @{}  {:.3} @{}",
            at[0], BUDGETS[0], at[1], BUDGETS[1]
        );
        found.push(Coverage { name, shares: at });
    }
    Ok(found)
}

/// Stores the history; returns the session in which the questions are asked.
async fn lay_out_history(
    tl: &Throughline,
    conversation: &Conversation,
    policy: &Policy,
    layout: Layout,
) -> Result<Session> {
    let project: ProjectId = "locomo".parse()?;
    let new = || NewSession {
        project: Some(project.clone()),
        ..NewSession::default()
    };
    let mut session = tl.create(new()).await?;
    let passages = conversation.passages.as_slice();
    for (number, sitting) in passages.chunk_by(|a, b| a.session == b.session).enumerate() {
        if number > 0 {
            session = match layout {
                Layout::SessionPerSitting => tl.create(new()).await?,
                Layout::OneSession => session,
                Layout::SummaryChain => continue_session(&session).await?,
            };
        }
        for turn in sitting {
            let entry = NewEntry {
                at: turn.at,
                author: turn.author.clone(),
                external_id: turn.external_id.clone(),
                ..session.new_entry(Message::text(turn.role, &turn.text))
            };
            session
                .append_all(vec![entry], Expect::Any, ConflictPolicy::Reject)
                .await?;
        }
        if matches!(layout, Layout::OneSession) {
            compact_if_due(&session, policy).await?;
        }
    }
    Ok(match layout {
        Layout::OneSession => session,
        Layout::SessionPerSitting => tl.create(new()).await?,
        Layout::SummaryChain => continue_session(&session).await?,
    })
}

/// Creates a session that starts from the summary of this one.
async fn continue_session(session: &Session) -> Result<Session> {
    session.append_exit_summary(None).await?;
    Ok(session
        .continue_from_summary(NewSession::default(), None)
        .await?)
}

/// Compacts if the policy says so.
async fn compact_if_due(session: &Session, policy: &Policy) -> Result<()> {
    session
        .compact(&CompactOptions {
            policy,
            window: policy.effective_window(WINDOW),
            encoding: Encoding::O200k,
            fixed_tokens: 0,
            before: None,
            force: false,
            allow_larger: false,
            summarizer: None,
            on_event: None,
        })
        .await?;
    Ok(())
}

async fn build_request(
    session: &Session,
    question: &Question,
    policy: &Policy,
    budget: u64,
) -> Result<String> {
    let message = Content::text(&question.text);
    let request = session
        .request(&RequestOptions {
            budget: Some(budget),
            message: Some(&message),
            ..RequestOptions::new(policy, policy.effective_window(WINDOW), Encoding::O200k)
        })
        .await?;
    let texts = request.messages.iter().map(|one| one.content.to_text());
    Ok(texts
        .map(|text| collapse_whitespace(&text))
        .collect::<Vec<_>>()
        .join(" "))
}

/// Whether a text contains all turns that answer a question, word for word.
fn contains_evidence(text: &str, question: &Question, conversation: &Conversation) -> bool {
    let passages = conversation.passages.iter();
    let mut evidence = passages.filter(|one| {
        let id = one.external_id.as_ref();
        id.is_some_and(|id| question.evidence.contains(id))
    });
    evidence.all(|one| text.contains(&collapse_whitespace(&one.text)))
}

/// Collapses white space, since quoted text is re-wrapped.
fn collapse_whitespace(text: &str) -> String {
    let words: Vec<_> = text
        .split([' ', '\n', '\t', '>'])
        .filter(|word| !word.is_empty())
        .collect();
    words.join(" ")
}
