//! Measures what recall adds to building a request, in a project with a long history.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use throughline::context::{Encoding, Policy};
use throughline::{
    ConflictPolicy, Content, Expect, IndexWait, Message, NewSession, OpenOptions, ProjectId,
    RequestOptions, Role, Session, StoreAddress, Throughline,
};
use tokio::runtime::Runtime;

use super::corpus::Vocabulary;
use crate::chart::Chart;
use crate::report::BenchReport;
use crate::rounds::{Contender, run_rounds};
use crate::table::Row;
use crate::units::Unit;

/// Messages per session.
const MESSAGES_PER_SESSION: u64 = 50;
const ROUNDS: usize = 60;

/// Measures with that many messages in one project.
pub(crate) fn measure(
    runtime: &Runtime,
    dir: &Path,
    messages: u64,
    findings: &mut BenchReport,
) -> Result<()> {
    let words = Vocabulary::new();
    let session = runtime.block_on(fill_project(&dir.join("requests.db"), &words, messages))?;
    let with = Policy::preset("default").context("unknown preset")?;
    let without = Policy {
        recall: false,
        ..with.clone()
    };
    let build = |policy: &Policy, number: u64| -> Result<f64> {
        let message = Content::text(words.query(number, messages));
        let asking = RequestOptions {
            budget: Some(8_000),
            message: Some(&message),
            ..RequestOptions::new(policy, 200_000, Encoding::O200k)
        };
        let start = Instant::now();
        runtime.block_on(session.request(&asking))?;
        Ok(start.elapsed().as_secs_f64())
    };
    let (mut one, mut other) = (0, 0);
    let times = run_rounds(
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
    findings.add_row(row.against("the same without recall", &times[1]));
    let mut chart = Chart::new(format!("{name} (shorter is better)"), Unit::Time);
    chart.add_ours("with recall", &times[0]);
    chart.add_other("without", &times[1]);
    findings.add_chart(chart);
    Ok(())
}

/// Creates an indexed project with that many messages; returns a session of it to continue.
async fn fill_project(file: &Path, words: &Vocabulary, messages: u64) -> Result<Session> {
    let address = StoreAddress::Sqlite(file.to_owned());
    let tl = Throughline::open_with(&address, OpenOptions::default()).await?;
    let project: ProjectId = "bench".parse()?;
    let new = || NewSession {
        project: Some(project.clone()),
        ..NewSession::default()
    };
    let mut session = tl.create(new()).await?;
    for first in (0..messages).step_by(usize::try_from(MESSAGES_PER_SESSION)?) {
        session = tl.create(new()).await?;
        let entries = (first..messages.min(first + MESSAGES_PER_SESSION)).map(|number| {
            let role = if number % 2 == 0 {
                Role::User
            } else {
                Role::Assistant
            };
            session.new_entry(Message::text(role, words.message(number)))
        });
        let entries = entries.collect();
        session
            .append_all(entries, Expect::Any, ConflictPolicy::Reject)
            .await?;
    }
    tl.catch_up(IndexWait::Unlimited, &mut |_, _| {}).await?;
    Ok(session)
}
