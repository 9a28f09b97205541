//! A long conversation under every policy, against sending everything each time.

use anyhow::{Context, Result};
use throughline::context::{Encoding, Policy, message_tokens};
use throughline::{Asking, Compacted, Content, Message, NewSession, Role, Throughline};
use tokio::runtime::Runtime;

use super::Findings;
use super::cost::said;
use crate::chart::Chart;
use crate::figure::{Unit, float};
use crate::rounds::Samples;
use crate::svg::Line;
use crate::table::Row;

const TURNS: u64 = 2_000;
const WINDOW: u64 = 32_000;

/// What a policy came to over a conversation.
struct Course {
    tokens: Vec<f64>,
    /// How much of each request is the beginning of the one before.
    shared: Vec<f64>,
    compactions: u64,
}

/// Follows the conversation; gives the lines to draw.
pub(super) fn measure(runtime: &Runtime, scale: u64, findings: &mut Findings) -> Result<Vec<Line>> {
    let turns = TURNS / scale;
    let everything = everything(turns);
    let mean = |values: &[f64]| {
        let count = values.len().max(1) as u64;
        Samples(vec![values.iter().sum::<f64>() / float(count)])
    };
    let mut lines = vec![Line::new("everything", &everything)];
    let mut chart = Chart::new("Tokens sent per turn, on average", Unit::Number);
    chart.other("everything", &mean(&everything));
    for name in Policy::PRESETS {
        let course = runtime.block_on(follow(name, turns))?;
        let compacted = format!("{name}: tokens a turn, {} compactions", course.compactions);
        findings.row(
            Row::new(compacted, Unit::Number, &mean(&course.tokens))
                .against("sending everything", &mean(&everything)),
        );
        findings.row(Row::new(
            format!("{name}: share of a request that begins as the last"),
            Unit::Number,
            &mean(&course.shared),
        ));
        chart.ours(name, &mean(&course.tokens));
        lines.push(Line::new(name, &course.tokens));
    }
    findings.chart(chart);
    Ok(lines)
}

fn question(turn: u64) -> String {
    format!("Please look at src/part_{turn}.rs and tell me what is left to do there.")
}

/// What sending the whole conversation costs, turn by turn.
fn everything(turns: u64) -> Vec<f64> {
    let cost = |text: String| message_tokens(Encoding::O200k, &Content::text(text));
    let mut sum = 0;
    (0..turns)
        .map(|turn| {
            sum += cost(question(turn));
            let sent = float(sum);
            sum += cost(said(turn));
            sent
        })
        .collect()
}

async fn follow(preset: &str, turns: u64) -> Result<Course> {
    let tl = Throughline::open("memory:").await?;
    let session = tl.create(NewSession::default()).await?;
    let policy = Policy::preset(preset).context("a preset that is none")?;
    let mut course = Course {
        tokens: Vec::new(),
        shared: Vec::new(),
        compactions: 0,
    };
    let mut last = String::new();
    for turn in 0..turns {
        let message = Content::text(question(turn));
        let asking = Asking {
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
        let (request, compacted) = session.request_compacted(&asking, None, None).await?;
        course.compactions += u64::from(matches!(compacted, Compacted::Done(_)));
        course.tokens.push(float(request.tokens));
        let sent = serde_json::to_string(&request.messages)?;
        if turn > 0 {
            let same = sent
                .bytes()
                .zip(last.bytes())
                .take_while(|(a, b)| a == b)
                .count();
            course
                .shared
                .push(float(same as u64) / float(sent.len() as u64));
        }
        last = sent;
        session.append(Message::new(Role::User, message)).await?;
        session
            .append(Message::text(Role::Assistant, said(turn)))
            .await?;
    }
    Ok(course)
}
