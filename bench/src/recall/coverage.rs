//! Whether a question's answer is in the request that is built for it.
//!
//! Each way of making requests is given the history as its system would have it: with
//! recall, a session a sitting and a new session for the questions, all of one project;
//! the presets without it, one session in which everything was said, compacted as they
//! do, or sessions that each start from the summary of the one before.

use std::path::Path;

use anyhow::{Context, Result};
use throughline::context::{Encoding, Policy};
use throughline::{
    CompactOptions, ConflictPolicy, Content, Expect, IndexWait, Message, NewEntry, NewSession,
    OpenOptions, ProjectId, RequestOptions, Session, StoreAddress, Throughline,
};

use super::locomo::{Conversation, Question};
use crate::units::to_f64;

/// How many tokens a request may have.
pub(crate) const BUDGETS: [u64; 2] = [2_000, 4_000];

/// The window of the model that would be asked.
const WINDOW: u64 = 200_000;

/// What one way of making requests holds, of all questions.
pub(crate) struct Coverage {
    pub(crate) name: &'static str,
    /// The share of questions whose whole evidence is in the request, for each budget.
    pub(crate) shares: [f64; 2],
}

/// How the history is laid out.
#[derive(Clone, Copy)]
enum Layout {
    /// A session a sitting; questions are asked in a new one.
    SessionPerSitting,
    /// One session with everything in it.
    OneSession,
    /// A session a sitting, each from the summary of the one before.
    SummaryChain,
}

const STRATEGIES: [(&str, &str, Layout); 5] = [
    (
        "**`default`, a new session of the project**",
        "default",
        Layout::SessionPerSitting,
    ),
    ("`default`, one long session", "default", Layout::OneSession),
    ("`aiarmy`, one long session", "aiarmy", Layout::OneSession),
    ("`bot`, one long session", "bot", Layout::OneSession),
    (
        "`chain`, from the last summary",
        "chain",
        Layout::SummaryChain,
    ),
];

/// Measures all ways.
pub(crate) async fn measure(dir: &Path, conversations: &[Conversation]) -> Result<Vec<Coverage>> {
    let mut found = Vec::new();
    for (number, (name, policy, layout)) in STRATEGIES.into_iter().enumerate() {
        let policy = Policy::preset(policy).context("no such preset")?;
        let mut held = [0_u64; 2];
        let mut asked = 0_u64;
        for (which, conversation) in conversations.iter().enumerate() {
            let file = dir.join(format!("coverage-{number}-{which}.db"));
            let tl =
                Throughline::open_with(&StoreAddress::Sqlite(file), OpenOptions::default()).await?;
            let session = lay_out_history(&tl, conversation, &policy, layout).await?;
            tl.catch_up(IndexWait::Unlimited, &mut |_, _| {}).await?;
            for question in &conversation.questions {
                asked += 1;
                for (held, budget) in held.iter_mut().zip(BUDGETS) {
                    let text = build_request(&session, question, &policy, budget).await?;
                    *held += u64::from(contains_evidence(&text, question, conversation));
                }
            }
        }
        let at = held.map(|held| to_f64(held) / to_f64(asked.max(1)));
        eprintln!(
            "{name}  {:.3} @{}  {:.3} @{}",
            at[0], BUDGETS[0], at[1], BUDGETS[1]
        );
        found.push(Coverage { name, shares: at });
    }
    Ok(found)
}

/// Brings the history in; the session that the questions are asked in.
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
        for said in sitting {
            let entry = NewEntry {
                at: said.at,
                author: said.author.clone(),
                external_id: said.external_id.clone(),
                ..session.new_entry(Message::text(said.role, &said.text))
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

/// A new session that starts from what this one came to.
async fn continue_session(session: &Session) -> Result<Session> {
    session.append_exit_summary(None).await?;
    Ok(session
        .continue_from_summary(NewSession::default(), None)
        .await?)
}

/// Compacts where the policy says so.
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

/// Whether all turns that answer a question are in a text, word for word.
fn contains_evidence(text: &str, question: &Question, conversation: &Conversation) -> bool {
    let passages = conversation.passages.iter();
    let mut evidence = passages.filter(|one| {
        let id = one.external_id.as_ref();
        id.is_some_and(|id| question.evidence.contains(id))
    });
    evidence.all(|one| text.contains(&collapse_whitespace(&one.text)))
}

/// With single spaces: what is quoted is wrapped anew.
fn collapse_whitespace(text: &str) -> String {
    let words: Vec<_> = text
        .split([' ', '\n', '\t', '>'])
        .filter(|word| !word.is_empty())
        .collect();
    words.join(" ")
}
