//! Measures that building a request costs in proportion to its size, not to the history's.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use throughline::context::{Encoding, Policy, count_message_tokens};
use throughline::{
    ConflictPolicy, Content, Expect, Message, NewSession, RequestOptions, Role, Session,
    Throughline,
};
use tokio::runtime::Runtime;

use super::BenchReport;
use crate::chart::Chart;
use crate::rounds::{Contender, run_rounds};
use crate::table::{Row, Target};
use crate::units::{Unit, format_number, to_f64};

const WINDOW: u64 = 8_000;
const ROUNDS: usize = 7;
const REQUESTS: u32 = 50;

pub(super) fn measure(
    runtime: &Runtime,
    dir: &Path,
    scale: u64,
    findings: &mut BenchReport,
) -> Result<()> {
    let url = format!("sqlite:{}", dir.join("requests.db").display());
    let tl = runtime.block_on(Throughline::open(&url))?;
    let sizes = [100, 10_000 / scale, 1_000_000 / scale];
    let mut sessions = Vec::new();
    for size in sizes {
        sessions.push(runtime.block_on(fill_session(&tl, size))?);
    }
    let policy = Policy::default();
    let contenders = sessions
        .iter()
        .map(|session| Contender::new("a request", || time_requests(runtime, session, &policy)))
        .collect();
    let samples = run_rounds(ROUNDS, contenders)?;
    let of = |size: u64| format!("request on {} entries", format_number(to_f64(size)));
    let mut chart = Chart::new("Building a request (shorter is better)", Unit::Time);
    for (size, sample) in sizes.iter().zip(&samples) {
        chart.add_ours(of(*size), sample);
    }
    for index in [1, 2] {
        findings.add_row(
            Row::new(of(sizes[index]), Unit::Time, &samples[index])
                .against(of(sizes[0]), &samples[0])
                .target(Target::AtMost(1.5)),
        );
    }
    findings.add_chart(chart);
    measure_counting(findings)
}

/// Compares counting tokens message by message with the tokenizer on one long text.
fn measure_counting(findings: &mut BenchReport) -> Result<()> {
    let texts: Vec<String> = (0..2_000).map(sample_text).collect();
    let whole = texts.join("\n");
    let encoding = Encoding::O200k;
    let tl_entry = |text: &String| Message::text(Role::User, text.clone());
    let messages: Vec<_> = texts.iter().map(tl_entry).collect();
    let contenders = vec![
        Contender::new("message by message", || {
            let start = Instant::now();
            let tokens: u64 = messages
                .iter()
                .map(|message| count_message_tokens(encoding, &message.content))
                .sum();
            Ok(to_f64(tokens) / start.elapsed().as_secs_f64())
        }),
        Contender::new("one text", || {
            let start = Instant::now();
            Ok(to_f64(encoding.count(&whole)) / start.elapsed().as_secs_f64())
        }),
    ];
    let samples = run_rounds(ROUNDS, contenders)?;
    findings.add_row(
        Row::new(
            "tokens counted, message by message",
            Unit::Rate,
            &samples[0],
        )
        .against("the tokenizer on one text", &samples[1]),
    );
    Ok(())
}

/// Returns a text of about 130 tokens.
pub(super) fn sample_text(n: u64) -> String {
    format!(
        "In step {n} the importer reads part_{n}.rs line by line, keeps what it does not \
         understand as it was written, counts what it skipped and says so; the writer groups \
         whatever is waiting into one commit and answers each of the {n} callers once it is on \
         the disk. We measured {n} appends a second on two cores, with a sync of two \
         milliseconds, and decided to leave the page size as it is because larger pages were \
         slower. What remains is the index: it is derived, fed behind the append, and can be \
         deleted at any time without losing anything that was ever said in session {n}."
    )
}

async fn fill_session(tl: &Throughline, entries: u64) -> Result<Session> {
    const AT_ONCE: u64 = 1_000;
    let session = tl.create(NewSession::default()).await?;
    let mut next = 0;
    while next < entries {
        let until = (next + AT_ONCE).min(entries);
        let batch = (next..until).map(|n| {
            let role = if n % 2 == 0 {
                Role::User
            } else {
                Role::Assistant
            };
            // The same number at the end of each, so that the tails are the same.
            session.new_entry(Message::text(role, sample_text(entries - n)))
        });
        session
            .append_all(batch.collect(), Expect::Any, ConflictPolicy::Reject)
            .await?;
        next = until;
    }
    Ok(session)
}

fn time_requests(runtime: &Runtime, session: &Session, policy: &Policy) -> Result<f64> {
    let message = Content::text("and what next?");
    let asking = RequestOptions {
        policy,
        budget: Some(WINDOW),
        window: WINDOW,
        encoding: Encoding::O200k,
        agent: Some("You are a careful engineer."),
        documents: &[],
        message: Some(&message),
        before: None,
        model: None,
    };
    runtime.block_on(async {
        let start = Instant::now();
        for _ in 0..REQUESTS {
            let request = session.request(&asking).await?;
            ensure!(request.tokens <= WINDOW, "over budget");
        }
        Ok(start.elapsed().as_secs_f64() / f64::from(REQUESTS))
    })
}
