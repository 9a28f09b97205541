//! `tl continue`: starts a new session from the summary of another.

use anyhow::Result;
use throughline::{CompactOptions, CompactOutcome, Name, NewSession, SessionSpec};

use super::context::preset_policy;
use super::new;
use crate::app::App;
use crate::chat;
use crate::error_report::UserError;

/// Continue in a new session from a summary of this one
///
/// The new session starts with the summary only; `tl tree` draws the chain. If there is no
/// summary yet, one is created. Prints the new session's id.
#[derive(clap::Args, Debug)]
pub(crate) struct ContinueArgs {
    /// The session
    #[arg(default_value = "last")]
    session: SessionSpec,
    /// Name of the new session
    #[arg(long)]
    name: Option<Name>,
    /// The model that summarizes: anthropic/claude-sonnet-4-5, ollama/llama3.2, offline
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
}

pub(crate) async fn run(app: &App, args: ContinueArgs) -> Result<()> {
    let session = app.session(&args.session).await?;
    let chain = preset_policy("summary-chain")?;
    let summarizer = chat::summarizer(app, args.model.as_deref())?;
    let compacted = session
        .compact(&CompactOptions {
            policy: &chain,
            window: app.config.window(),
            encoding: app.config.encoding(),
            fixed_tokens: 0,
            before: None,
            force: true,
            allow_larger: true,
            summarizer: summarizer.as_deref(),
            on_event: None,
        })
        .await?;
    match &compacted {
        CompactOutcome::Done(done) => {
            for warning in &done.warnings {
                app.ui.warn(warning);
            }
            super::memory::propose_facts(app, &session, &done.entry).await;
        }
        // Nothing is new since the last summary, so it is used.
        CompactOutcome::NotNeeded | CompactOutcome::Superseded => {}
        CompactOutcome::NotSmaller(why) => {
            return Err(UserError::invalid(format!(
                "session {} cannot be continued: {}",
                session.id(),
                why.join("; ")
            ))
            .into());
        }
    }
    let new = NewSession {
        name: args.name,
        ..NewSession::default()
    };
    let next = session.continue_from_summary(new, None).await?;
    app.ui
        .status(format_args!("Continued from {}", session.id()));
    super::warn_duplicate_name(app, &next).await?;
    new::print_session(app, &next, false).await
}
