//! `tl open`: finds or creates the session with a key.

use anyhow::Result;
use throughline::{AgentRef, Key, Name, NewSession};

use super::new;
use crate::app::App;
use crate::error_report::UserError;

/// Find or create the session with a key
///
/// The same key always opens the same session, so an agent can continue where it was after a
/// crash. --feature and --agent (with --task and --state) build the keys
/// AGENT-feature-FEATURE and AGENT-task-FEATURE-TASK-STATE.
#[derive(clap::Args, Debug)]
pub(crate) struct OpenArgs {
    /// The key
    #[arg(long, required_unless_present = "feature", conflicts_with = "feature")]
    key: Option<Key>,
    /// The feature the session is about
    #[arg(long, requires = "agent")]
    feature: Option<String>,
    /// The kind of agent: pm, dev, qa, harness, merge, or any other
    #[arg(long)]
    agent: Option<String>,
    /// The task the session is about
    #[arg(long, requires = "feature", requires = "state")]
    task: Option<String>,
    /// The state of the task: in_dev, in_qa, ready_for_merge, or any other
    #[arg(long, requires = "task")]
    state: Option<String>,
    /// Name of the session, if it is created
    #[arg(long)]
    name: Option<Name>,
}

pub(crate) async fn run(app: &App, args: OpenArgs) -> Result<()> {
    let key = match (&args.key, &args.feature, &args.agent) {
        (Some(key), ..) => key.clone(),
        (None, Some(feature), Some(agent)) => match (&args.task, &args.state) {
            (Some(task), Some(state)) => Key::task(agent, feature, task, state)?,
            _ => Key::feature(agent, feature)?,
        },
        _ => {
            return Err(
                UserError::invalid("either a key, or a feature and an agent, is required").into(),
            );
        }
    };
    let mut new = NewSession {
        key: Some(key),
        name: args.name,
        agent: args.agent.map(|name| AgentRef { name, path: None }),
        ..NewSession::default()
    };
    new::assign_project(app, &mut new).await?;
    let (session, existed) = app.tl().await?.get_or_create(new).await?;
    new::print_session(app, &session, existed).await
}
