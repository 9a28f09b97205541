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
    Address, Asking, Compacting, Conflict, Content, Expect, Message, NewEntry, NewSession, Opening,
    Patience, ProjectId, Session, Throughline,
};

use super::locomo::{Conversation, Question};
use crate::figure::float;

/// How many tokens a request may have.
pub(crate) const BUDGETS: [u64; 2] = [2_000, 4_000];

/// The window of the model that would be asked.
const WINDOW: u64 = 200_000;

/// What one way of making requests holds, of all questions.
pub(crate) struct Coverage {
    pub(crate) name: &'static str,
    /// The share of questions whose whole evidence is in the request, for each budget.
    pub(crate) at: [f64; 2],
}

/// How the history is laid out.
#[derive(Clone, Copy)]
enum Layout {
    /// A session a sitting; questions are asked in a new one.
    Sittings,
    /// One session with everything in it.
    One,
    /// A session a sitting, each from the summary of the one before.
    Chained,
}

const WAYS: [(&str, &str, Layout); 5] = [
    (
        "**`default`, a new session of the project**",
        "default",
        Layout::Sittings,
    ),
    ("`default`, one long session", "default", Layout::One),
    ("`aiarmy`, one long session", "aiarmy", Layout::One),
    ("`bot`, one long session", "bot", Layout::One),
    ("`chain`, from the last summary", "chain", Layout::Chained),
];

/// Measures all ways.
pub(crate) async fn measure(dir: &Path, conversations: &[Conversation]) -> Result<Vec<Coverage>> {
    let mut found = Vec::new();
    for (number, (name, policy, layout)) in WAYS.into_iter().enumerate() {
        let policy = Policy::preset(policy).context("no such preset")?;
        let mut held = [0_u64; 2];
        let mut asked = 0_u64;
        for (which, conversation) in conversations.iter().enumerate() {
            let file = dir.join(format!("coverage-{number}-{which}.db"));
            let tl = Throughline::open_with(&Address::Sqlite(file), Opening::default()).await?;
            let session = laid_out(&tl, conversation, &policy, layout).await?;
            tl.catch_up(Patience::Endless, &mut |_, _| {}).await?;
            for question in &conversation.questions {
                asked += 1;
                for (held, budget) in held.iter_mut().zip(BUDGETS) {
                    let text = request(&session, question, &policy, budget).await?;
                    *held += u64::from(holds(&text, question, conversation));
                }
            }
        }
        let at = held.map(|held| float(held) / float(asked.max(1)));
        eprintln!(
            "{name}  {:.3} @{}  {:.3} @{}",
            at[0], BUDGETS[0], at[1], BUDGETS[1]
        );
        found.push(Coverage { name, at });
    }
    Ok(found)
}

/// Brings the history in; the session that the questions are asked in.
async fn laid_out(
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
                Layout::Sittings => tl.create(new()).await?,
                Layout::One => session,
                Layout::Chained => continued(&session).await?,
            };
        }
        for said in sitting {
            let entry = NewEntry {
                at: said.at,
                author: said.author.clone(),
                external_id: said.external_id.clone(),
                ..session.entry(Message::text(said.role, &said.text))
            };
            session
                .append_all(vec![entry], Expect::Any, Conflict::Reject)
                .await?;
        }
        if matches!(layout, Layout::One) {
            compact(&session, policy).await?;
        }
    }
    Ok(match layout {
        Layout::One => session,
        Layout::Sittings => tl.create(new()).await?,
        Layout::Chained => continued(&session).await?,
    })
}

/// A new session that starts from what this one came to.
async fn continued(session: &Session) -> Result<Session> {
    session.leave_summary(None).await?;
    Ok(session.continued(NewSession::default(), None).await?)
}

/// Compacts where the policy says so.
async fn compact(session: &Session, policy: &Policy) -> Result<()> {
    session
        .compact(&Compacting {
            policy,
            window: policy.window(WINDOW),
            encoding: Encoding::O200k,
            fixed: 0,
            before: None,
            force: false,
            even_if_larger: false,
            model: None,
            tell: None,
        })
        .await?;
    Ok(())
}

async fn request(
    session: &Session,
    question: &Question,
    policy: &Policy,
    budget: u64,
) -> Result<String> {
    let message = Content::text(&question.text);
    let request = session
        .request(&Asking {
            budget: Some(budget),
            message: Some(&message),
            ..Asking::new(policy, policy.window(WINDOW), Encoding::O200k)
        })
        .await?;
    let texts = request.messages.iter().map(|one| one.content.to_text());
    Ok(texts
        .map(|text| squeezed(&text))
        .collect::<Vec<_>>()
        .join(" "))
}

/// Whether all turns that answer a question are in a text, word for word.
fn holds(text: &str, question: &Question, conversation: &Conversation) -> bool {
    let passages = conversation.passages.iter();
    let mut evidence = passages.filter(|one| {
        let id = one.external_id.as_ref();
        id.is_some_and(|id| question.evidence.contains(id))
    });
    evidence.all(|one| text.contains(&squeezed(&one.text)))
}

/// With single spaces: what is quoted is wrapped anew.
fn squeezed(text: &str) -> String {
    let words: Vec<_> = text
        .split([' ', '\n', '\t', '>'])
        .filter(|word| !word.is_empty())
        .collect();
    words.join(" ")
}
