//! `tl compact`

use anyhow::Result;
use serde_json::json;
use throughline::glance::compact;
use throughline::{Compacted, Compacting, SessionSpec};

use super::context::How;
use super::memory::propose;
use crate::app::App;
use crate::chat;
use crate::summary;

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
    how: How,
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
    let policy = args.how.policy(app, &session).await?;
    let summarizer = chat::summarizer(app, args.model.as_deref())?;
    let compacted = session
        .compact(&Compacting {
            policy: &policy,
            window: app.config.window(),
            encoding: app.config.encoding(),
            fixed: 0,
            before: None,
            force: true,
            even_if_larger: false,
            model: summarizer.as_deref(),
            tell: None,
        })
        .await?;
    tell(app, &compacted)?;
    if let Compacted::Done(done) = &compacted {
        propose(app, &session, &done.entry).await;
    }
    Ok(())
}

pub(crate) fn tell(app: &App, compacted: &Compacted) -> Result<()> {
    let (how, done, warnings) = match compacted {
        Compacted::Done(done) => ("compacted", Some(done), &done.warnings[..]),
        Compacted::NotNeeded => ("not_needed", None, &[][..]),
        Compacted::NotWorthIt(warnings) => ("not_worth_it", None, &warnings[..]),
        Compacted::Overtaken => ("overtaken", None, &[][..]),
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
                compact(done.tokens_kept),
                compact(done.tokens_before),
            ));
            let summary = &done.checkpoint.summary;
            if app.ui.is_terminal() {
                app.ui.page(&summary::shown(&app.ui, summary))?;
            } else {
                app.ui.data(summary.to_block())?;
            }
        }
        (Compacted::NotWorthIt(_), _) => app.ui.status("Too little was said to summarize."),
        (Compacted::Overtaken, _) => app.ui.status("Somebody else was first; theirs stands."),
        _ => app.ui.status("Nothing to summarize."),
    }
    Ok(())
}
