//! `tl compact`

use anyhow::Result;
use serde_json::json;
use throughline::format::abbreviate;
use throughline::{CompactOptions, CompactOutcome, SessionSpec};

use super::context::PolicyArgs;
use super::memory::propose_facts;
use crate::app::App;
use crate::chat;
use crate::summary_text;

/// Summarize what came before
///
/// The model is sent the summary in place of the messages it covers; `tl show --all`
/// still has them all, and --undo takes it back. Pins, decisions, paths and open tasks
/// are kept. Asks the model that is configured; needs none.
#[derive(clap::Args, Debug)]
pub(crate) struct CompactArgs {
    /// Which session
    #[arg(default_value = "last")]
    session: SessionSpec,
    /// Take the last summary back
    #[arg(long)]
    undo: bool,
    /// The model to ask: anthropic/claude-sonnet-4-5, ollama/llama3.2, offline
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
                .status(format_args!("Took the summary at entry {checkpoint} back"));
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
                "Summarized everything up to entry {} by {}; {} of {} tokens stay as they are",
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
        (CompactOutcome::NotSmaller(_), _) => app.ui.status("Too little was said to summarize."),
        (CompactOutcome::Superseded, _) => app.ui.status("Somebody else was first; theirs stands."),
        _ => app.ui.status("Nothing to summarize."),
    }
    Ok(())
}
