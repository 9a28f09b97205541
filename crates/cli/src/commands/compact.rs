//! `tl compact`: summarizes older messages of a session, or undoes the last summary.

use anyhow::Result;
use serde_json::json;
use throughline::format::abbreviate;
use throughline::{CompactOptions, CompactOutcome, SessionSpec};

use super::context::PolicyArgs;
use super::memory::propose_facts;
use crate::app::App;
use crate::chat;
use crate::summary_text;

/// Summarize earlier messages
///
/// The model receives the summary instead of the messages it covers; `tl show --all` still
/// shows them, and --undo removes the summary. Pins, decisions, paths and open tasks are
/// preserved. Uses the configured model; works without one.
#[derive(clap::Args, Debug)]
pub(crate) struct CompactArgs {
    /// The session
    #[arg(default_value = "last")]
    session: SessionSpec,
    /// Undo the last summary
    #[arg(long)]
    undo: bool,
    /// The model to use: anthropic/claude-sonnet-4-5, ollama/llama3.2, offline
    #[arg(long, value_name = "MODEL", conflicts_with = "undo")]
    model: Option<String>,
    #[command(flatten)]
    policy_args: PolicyArgs,
}

pub(crate) async fn run(app: &App, args: CompactArgs) -> Result<()> {
    let session = app.session(&args.session).await?;
    if args.undo {
        let checkpoint = session.undo_compaction().await?;
        if app.ui.json {
            app.ui
                .json(&json!({"id": session.id(), "retracted": checkpoint}))?;
        } else {
            app.ui
                .status(format_args!("Undid the summary at entry {checkpoint}"));
        }
        return Ok(());
    }
    let policy = args.policy_args.policy(app, &session).await?;
    let summarizer = chat::summarizer(app, args.model.as_deref())?;
    let compacted = session
        .compact(&CompactOptions {
            policy: &policy,
            window: app.config.window(),
            encoding: app.config.encoding(),
            fixed_tokens: 0,
            before: None,
            force: true,
            allow_larger: false,
            summarizer: summarizer.as_deref(),
            on_event: None,
        })
        .await?;
    report_compaction(app, &compacted)?;
    if let CompactOutcome::Done(done) = &compacted {
        propose_facts(app, &session, &done.entry).await;
    }
    Ok(())
}

pub(crate) fn report_compaction(app: &App, compacted: &CompactOutcome) -> Result<()> {
    let (how, done, warnings) = match compacted {
        CompactOutcome::Done(done) => ("compacted", Some(done), &done.warnings[..]),
        CompactOutcome::NotNeeded => ("not_needed", None, &[][..]),
        CompactOutcome::NotSmaller(warnings) => ("not_worth_it", None, &warnings[..]),
        CompactOutcome::Superseded => ("overtaken", None, &[][..]),
    };
    if app.ui.json {
        app.ui.json(&json!({
            "how": how,
            "seq": done.map(|done| done.entry.seq),
            "covers": done.map(|done| done.checkpoint.covers),
            "by": done.map(|done| &done.checkpoint.by),
            "tokens_before": done.map(|done| done.tokens_before),
            "tokens_kept": done.map(|done| done.tokens_kept),
            "summary": done.map(|done| &done.checkpoint.summary),
            "warnings": warnings,
        }))?;
        return Ok(());
    }
    for warning in warnings {
        app.ui.warn(warning);
    }
    match (compacted, done) {
        (_, Some(done)) => {
            app.ui.status(format_args!(
                "Summarized everything up to entry {} ({}); kept {} of {} tokens",
                done.checkpoint.covers,
                done.checkpoint.by,
                abbreviate(done.tokens_kept),
                abbreviate(done.tokens_before),
            ));
            let summary = &done.checkpoint.summary;
            if app.ui.is_terminal() {
                app.ui
                    .page(&summary_text::render_summary(&app.ui, summary))?;
            } else {
                app.ui.data(summary.to_block())?;
            }
        }
        (CompactOutcome::NotSmaller(_), _) => app.ui.status("Too few messages to summarize."),
        (CompactOutcome::Superseded, _) => app
            .ui
            .status("Another process summarized first; using its summary."),
        _ => app.ui.status("Nothing to summarize."),
    }
    Ok(())
}
