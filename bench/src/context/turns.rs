//! Follows a long conversation under every policy, compared with sending everything each time.

use anyhow::{Context, Result};
use throughline::context::{Encoding, Policy, count_message_tokens};
use throughline::{
    CompactOutcome, Content, Message, NewSession, RequestOptions, Role, Throughline,
};
use tokio::runtime::Runtime;

use super::BenchReport;
use super::cost::sample_text;
use crate::chart::Chart;
use crate::rounds::Samples;
use crate::svg::Line;
use crate::table::Row;
use crate::units::{Unit, to_f64};

const TURNS: u64 = 2_000;
const WINDOW: u64 = 32_000;

/// A policy's results over a conversation.
struct PolicyRun {
    tokens: Vec<f64>,
    /// The share of each request that is a prefix shared with the one before.
    shared_prefix: Vec<f64>,
    compactions: u64,
}

/// Follows the conversation; returns the lines to plot.
pub(super) fn measure(
    runtime: &Runtime,
    scale: u64,
    findings: &mut BenchReport,
) -> Result<Vec<Line>> {
    let turns = TURNS / scale;
    let everything = full_history_tokens(turns);
    let mean = |values: &[f64]| {
        let count = values.len().max(1) as u64;
        Samples(vec![values.iter().sum::<f64>() / to_f64(count)])
    };
    let mut lines = vec![Line::new("everything", &everything)];
    let mut chart = Chart::new("Tokens sent per turn, on average", Unit::Number);
    chart.add_other("everything", &mean(&everything));
    for name in Policy::PRESETS {
        let policy_run = runtime.block_on(run_policy(name, turns))?;
        let compacted = format!(
            "{name}: tokens per turn, {} compactions",
            policy_run.compactions
        );
        findings.add_row(
            Row::new(compacted, Unit::Number, &mean(&policy_run.tokens))
                .against("sending everything", &mean(&everything)),
        );
        findings.add_row(Row::new(
            format!("{name}: share of a request that is the same prefix as the last one"),
            Unit::Number,
            &mean(&policy_run.shared_prefix),
        ));
        chart.add_ours(name, &mean(&policy_run.tokens));
        lines.push(Line::new(name, &policy_run.tokens));
    }
    findings.add_chart(chart);
    Ok(lines)
}

fn turn_question(turn: u64) -> String {
    format!("Please look at src/part_{turn}.rs and tell me what is left to do there.")
}

/// Returns the tokens of sending the whole conversation, per turn.
fn full_history_tokens(turns: u64) -> Vec<f64> {
    let cost = |text: String| count_message_tokens(Encoding::O200k, &Content::text(text));
    let mut sum = 0;
    (0..turns)
        .map(|turn| {
            sum += cost(turn_question(turn));
            let sent = to_f64(sum);
            sum += cost(sample_text(turn));
            sent
        })
        .collect()
}

async fn run_policy(preset: &str, turns: u64) -> Result<PolicyRun> {
    let tl = Throughline::open("memory:").await?;
    let session = tl.create(NewSession::default()).await?;
    let policy = Policy::preset(preset).context("unknown preset")?;
    let mut policy_run = PolicyRun {
        tokens: Vec::new(),
        shared_prefix: Vec::new(),
        compactions: 0,
    };
    let mut last = String::new();
    for turn in 0..turns {
        let message = Content::text(turn_question(turn));
        let asking = RequestOptions {
            policy: &policy,
            budget: None,
            window: WINDOW,
            encoding: Encoding::O200k,
            agent: Some("You are a careful engineer."),
            documents: &[],
            message: Some(&message),
            before: None,
            model: None,
        };
        let (request, compacted) = session
            .compact_and_build_request(&asking, None, None)
            .await?;
        policy_run.compactions += u64::from(matches!(compacted, CompactOutcome::Done(_)));
        policy_run.tokens.push(to_f64(request.tokens));
        let sent = serde_json::to_string(&request.messages)?;
        if turn > 0 {
            let same = sent
                .bytes()
                .zip(last.bytes())
                .take_while(|(a, b)| a == b)
                .count();
            policy_run
                .shared_prefix
                .push(to_f64(same as u64) / to_f64(sent.len() as u64));
        }
        last = sent;
        session.append(Message::new(Role::User, message)).await?;
        session
            .append(Message::text(Role::Assistant, sample_text(turn)))
            .await?;
    }
    Ok(policy_run)
}
