//! What recall adds to building a request, in a project with a long past.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use throughline::context::{Encoding, Policy};
use throughline::{
    Address, Asking, Conflict, Content, Expect, Message, NewSession, Opening, Patience, ProjectId,
    Role, Session, Throughline,
};
use tokio::runtime::Runtime;

use super::corpus::Words;
use crate::chart::Chart;
use crate::figure::Unit;
use crate::findings::Findings;
use crate::rounds::{Contender, take_turns};
use crate::table::Row;

/// Messages a session.
const SITTING: u64 = 50;
const ROUNDS: usize = 60;

/// Measures with so many messages in one project.
pub(crate) fn measure(
    runtime: &Runtime,
    dir: &Path,
    messages: u64,
    findings: &mut Findings,
) -> Result<()> {
    let words = Words::new();
    let session = runtime.block_on(filled(&dir.join("requests.db"), &words, messages))?;
    let with = Policy::preset("default").context("no such preset")?;
    let without = Policy {
        recall: false,
        ..with.clone()
    };
    let build = |policy: &Policy, number: u64| -> Result<f64> {
        let message = Content::text(words.question(number, messages));
        let asking = Asking {
            budget: Some(8_000),
            message: Some(&message),
            ..Asking::new(policy, 200_000, Encoding::O200k)
        };
        let start = Instant::now();
        runtime.block_on(session.request(&asking))?;
        Ok(start.elapsed().as_secs_f64())
    };
    let (mut one, mut other) = (0, 0);
    let times = take_turns(
        ROUNDS,
        vec![
            Contender::new("with recall", || {
                one += 1;
                build(&with, one)
            }),
            Contender::new("without", || {
                other += 1;
                build(&without, other)
            }),
        ],
    )?;
    let name = format!("A request with recall over {messages} messages");
    let row = Row::new(&name, Unit::Time, &times[0]);
    findings.row(row.against("the same without recall", &times[1]));
    let mut chart = Chart::new(format!("{name} (shorter is better)"), Unit::Time);
    chart.ours("with recall", &times[0]);
    chart.other("without", &times[1]);
    findings.chart(chart);
    Ok(())
}

/// A project with so many messages, indexed; a session of it to go on in.
async fn filled(file: &Path, words: &Words, messages: u64) -> Result<Session> {
    let address = Address::Sqlite(file.to_owned());
    let tl = Throughline::open_with(&address, Opening::default()).await?;
    let project: ProjectId = "bench".parse()?;
    let new = || NewSession {
        project: Some(project.clone()),
        ..NewSession::default()
    };
    let mut session = tl.create(new()).await?;
    for first in (0..messages).step_by(usize::try_from(SITTING)?) {
        session = tl.create(new()).await?;
        let entries = (first..messages.min(first + SITTING)).map(|number| {
            let role = if number % 2 == 0 {
                Role::User
            } else {
                Role::Assistant
            };
            session.entry(Message::text(role, words.message(number)))
        });
        let entries = entries.collect();
        session
            .append_all(entries, Expect::Any, Conflict::Reject)
            .await?;
    }
    tl.catch_up(Patience::Endless, &mut |_, _| {}).await?;
    Ok(session)
}
