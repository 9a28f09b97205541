//! `tl context`: shows the next request to the model, and sets documents of a session.

use std::path::PathBuf;

use anyhow::Result;
use throughline::context::{ContextDocument, Encoding, Policy, Request, Section};
use throughline::format::{abbreviate, format_thousands};
use throughline::{Content, RequestOptions, Session, SessionSpec};

use crate::app::App;
use crate::error_report::UserError;
use crate::markdown::sanitize;
use crate::project_documents;

/// Show the request the model would receive
///
/// Lists each section with its token count, what was left out and why. With --json, prints
/// the whole request. `tl context set` adds a document to a session.
#[derive(clap::Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ContextArgs {
    #[command(subcommand)]
    command: Option<ContextCommand>,
    /// The session
    #[arg(default_value = "last")]
    session: SessionSpec,
    /// The message to include
    #[arg(long, value_name = "TEXT")]
    message: Option<String>,
    /// Maximum number of tokens [default: the policy's window]
    #[arg(long, value_name = "N")]
    budget: Option<u64>,
    #[command(flatten)]
    policy_args: PolicyArgs,
}

/// Maximum number of recalled entries listed with their scores.
const MAX_SHOWN_SCORES: usize = 5;

/// Flags that select and override the context policy.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct PolicyArgs {
    /// The policy: default, last-messages, summary-chain, sliding-window, full-history or after-checkpoint [default: as configured]
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Override a policy setting: window=50000, keep="20 messages" (may be repeated)
    #[arg(long = "with", value_name = "KEY=VALUE", value_parser = parse_key_value)]
    overrides: Vec<(String, String)>,
}

#[derive(clap::Subcommand, Debug)]
enum ContextCommand {
    /// Set a document that is part of every request of a session
    Set(SetArgs),
}

#[derive(clap::Args, Debug)]
struct SetArgs {
    /// The session
    session: SessionSpec,
    /// The document's name; `policy` sets the context policy of this session
    document: String,
    /// The content
    #[arg(required_unless_present_any = ["file", "remove"])]
    text: Option<String>,
    /// Read the content from a file
    #[arg(long, conflicts_with = "text")]
    file: Option<PathBuf>,
    /// Remove the document
    #[arg(long, conflicts_with_all = ["text", "file"])]
    remove: bool,
}

fn parse_key_value(text: &str) -> Result<(String, String), String> {
    text.split_once('=')
        .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
        .ok_or_else(|| format!("{text:?} is not KEY=VALUE"))
}

impl PolicyArgs {
    /// Returns whether no flag was given.
    pub(crate) fn is_empty(&self) -> bool {
        self.policy.is_none() && self.overrides.is_empty()
    }

    /// Returns the policy for a session, with these flags applied.
    pub(crate) async fn policy(&self, app: &App, session: &Session) -> Result<Policy> {
        self.resolve_policy(app, Some(session), None).await
    }

    /// Resolves the policy. In increasing precedence: the configuration, the agent, the
    /// session's `policy` document, these flags.
    pub(crate) async fn resolve_policy(
        &self,
        app: &App,
        session: Option<&Session>,
        agent: Option<&str>,
    ) -> Result<Policy> {
        let mut policy = preset_policy(app.config.policy())?;
        policy = apply_overrides(&policy, &parse_overrides(app.config.policy_with())?)?;
        if let Some(text) = agent {
            policy = apply_policy_text(&policy, text)?;
        }
        if let Some(session) = session
            && let Some(text) = session.policy_document().await?
        {
            policy = apply_policy_text(&policy, &text)?;
        }
        if let Some(name) = &self.policy {
            policy = preset_policy(name)?;
        }
        apply_overrides(&policy, &self.overrides)
    }
}

/// Returns the preset policy of this name.
pub(crate) fn preset_policy(name: &str) -> Result<Policy> {
    Policy::preset(name).ok_or_else(|| {
        let known = Policy::PRESETS.join(", ");
        UserError::invalid(format!("unknown policy {name:?}"))
            .with_hint(format!("available: {known}"))
            .into()
    })
}

fn apply_overrides(policy: &Policy, changes: &[(String, String)]) -> Result<Policy> {
    let changes = changes.iter().cloned().collect();
    Ok(policy
        .with_overrides(&changes)
        .map_err(throughline::Error::from)?)
}

/// Applies a policy document: `bot`, `default; window=50000`, `window=50000`.
fn apply_policy_text(policy: &Policy, text: &str) -> Result<Policy> {
    Ok(policy.with_spec(text).map_err(throughline::Error::from)?)
}

/// Parses `key=value` pairs separated by semicolons.
fn parse_overrides(text: &str) -> Result<Vec<(String, String)>> {
    let parts = text
        .split(';')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    let parsed =
        parts.map(|part| parse_key_value(part).map_err(|why| UserError::invalid(why).into()));
    parsed.collect()
}

pub(crate) async fn run(app: &App, args: ContextArgs) -> Result<()> {
    if let Some(ContextCommand::Set(args)) = args.command {
        return set_document(app, args).await;
    }
    let session = app.session(&args.session).await?;
    let asker = RequestProfile {
        policy: args.policy_args.policy(app, &session).await?,
        window: app.config.window(),
        encoding: app.config.encoding(),
        agent: None,
        model: None,
    };
    args.show_request(app, &session, &asker).await
}

/// The responder-specific inputs of a request.
pub(crate) struct RequestProfile<'a> {
    pub(crate) policy: Policy,
    pub(crate) window: u64,
    pub(crate) encoding: Encoding,
    pub(crate) agent: Option<&'a str>,
    pub(crate) model: Option<&'a str>,
}

impl ContextArgs {
    /// Returns the policy flags, if any were given.
    pub(crate) fn policy_args(&self) -> Option<&PolicyArgs> {
        Some(&self.policy_args).filter(|how| !how.is_empty())
    }

    /// Prints the request that would be sent.
    pub(crate) async fn show_request(
        self,
        app: &App,
        session: &Session,
        asker: &RequestProfile<'_>,
    ) -> Result<()> {
        let message = self.message.map(Content::text);
        let documents = load_session_documents(app, session).await?;
        let asking = RequestOptions {
            policy: &asker.policy,
            budget: self.budget,
            window: asker.window,
            encoding: asker.encoding,
            agent: asker.agent,
            documents: &documents,
            message: message.as_ref(),
            before: None,
            model: asker.model,
        };
        let request = session.request(&asking).await?;
        app.report_index_warnings(app.tl().await?);
        if app.ui.json {
            app.ui.json(&request)?;
            return Ok(());
        }
        app.ui
            .page(&render_request(app, &request, asking.encoding))?;
        Ok(())
    }
}

/// Loads the documents of the session's folder, if it still exists.
pub(crate) async fn load_session_documents(
    app: &App,
    session: &Session,
) -> Result<Vec<ContextDocument>> {
    let workspace = session.record().await?.info.workspace;
    let folder = workspace.map_or_else(|| app.paths.working_folder.clone(), PathBuf::from);
    Ok(if folder.is_dir() {
        project_documents::load(&folder)
    } else {
        Vec::new()
    })
}

async fn set_document(app: &App, args: SetArgs) -> Result<()> {
    let session = app.session(&args.session).await?;
    if let (throughline::POLICY_DOCUMENT, Some(text)) = (args.document.as_str(), &args.text) {
        // Validate now rather than when the next request is built.
        apply_policy_text(&Policy::default(), text)?;
    }
    let text =
        match &args.file {
            None => args.text,
            Some(file) => Some(std::fs::read_to_string(app.resolve_path(file)).map_err(
                |error| UserError::invalid(format!("{} cannot be read: {error}", file.display())),
            )?),
        };
    let entry = session.set_context(&args.document, text.as_deref()).await?;
    super::report_entry(app, &session, &entry).await
}

fn render_request(app: &App, request: &Request, encoding: Encoding) -> String {
    let ui = &app.ui;
    let columns = ui.width.saturating_sub(36).clamp(10, 40);
    let used = ui.bar(request.tokens, request.budget, columns);
    let mut text = format!(
        "{}  {} of {} tokens ({encoding})\n            {used}\n\n",
        ui.bold(&format!("{:<10}", request.policy)),
        format_thousands(request.tokens),
        format_thousands(request.budget),
    );
    for section in &request.sections {
        text.push_str(&render_section(app, section, request.tokens, columns));
    }
    for repair in &request.repairs {
        let position = repair
            .seq
            .map_or_else(String::new, |seq| format!("entry {seq}: "));
        let line = format!("  repaired  {position}{}\n", sanitize(&repair.description));
        text.push_str(&ui.dim(&line));
    }
    text
}

fn render_section(app: &App, section: &Section, total: u64, columns: usize) -> String {
    let bar = app.ui.bar(section.tokens, total, columns);
    let mut row = format!(
        "{:<10}  {bar} {:>6} {:>5.1} %\n",
        section.name.as_str(),
        abbreviate(section.tokens),
        section.share,
    );
    for (entry, score) in section
        .entries
        .iter()
        .zip(&section.scores)
        .take(MAX_SHOWN_SCORES)
    {
        let line = format!(
            "            {score:.2} entry {} of {}\n",
            entry.seq, entry.session
        );
        row.push_str(&app.ui.dim(&line));
    }
    if section.scores.len() > MAX_SHOWN_SCORES {
        let more = section.scores.len() - MAX_SHOWN_SCORES;
        row.push_str(&app.ui.dim(&format!("            … and {more} more\n")));
    }
    for left in &section.left_out {
        let tokens = left
            .tokens
            .map_or_else(String::new, |n| format!(", {} tokens", abbreviate(n)));
        let line = format!(
            "            left out: {} ({}{tokens})\n",
            sanitize(&left.description),
            left.reason
        );
        row.push_str(&app.ui.dim(&line));
    }
    row
}
