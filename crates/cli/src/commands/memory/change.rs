//! `tl memory add`, `edit`, `forget`, `accept` and `promote`: change the facts of a memory.

use anyhow::Result;
use serde_json::json;
use throughline::{
    AddFactOutcome, AddFactStatus, FactSource, Memory, MemoryScope, NewFact, ReadRange, Seq,
    SessionSpec,
};

use super::MemoryTarget;
use super::fact::{FactId, FactView, one_line};
use crate::app::App;
use crate::error_report::UserError;
use crate::markdown::sanitize;

/// Add a fact
///
/// Prints the fact's id. A known fact is not added twice, and a fact that the new one
/// clearly contradicts is replaced.
#[derive(clap::Args, Debug)]
pub(super) struct AddArgs {
    /// The fact
    #[arg(required = true, value_name = "TEXT")]
    text: Vec<String>,
    /// For all of your projects
    #[arg(long, conflicts_with = "file")]
    owner_wide: bool,
    /// A file or folder it belongs to: it is recalled when that is touched (may be repeated)
    #[arg(long, value_name = "PATH")]
    file: Vec<String>,
    /// A fact that it replaces (may be repeated)
    #[arg(long, value_name = "ID")]
    supersedes: Vec<FactId>,
    /// The entry it comes from
    #[arg(long, value_name = "SESSION:SEQ")]
    source: Option<String>,
    /// Store it even if it looks like a secret
    #[arg(long)]
    force: bool,
}

/// Change the text of a fact
///
/// The old text stays in its history. Prints the new id.
#[derive(clap::Args, Debug)]
pub(super) struct EditArgs {
    /// The fact's id
    fact: FactId,
    /// The new text
    #[arg(required = true, value_name = "TEXT")]
    text: Vec<String>,
    /// Store it even if it looks like a secret
    #[arg(long)]
    force: bool,
}

/// Forget a fact, or reject a proposal
///
/// It stays in the history, and is not proposed again.
#[derive(clap::Args, Debug)]
pub(super) struct ForgetArgs {
    /// The fact's id
    fact: FactId,
    /// The reason
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Accept proposed facts
#[derive(clap::Args, Debug)]
pub(super) struct AcceptArgs {
    /// The facts' ids
    #[arg(
        required_unless_present = "all",
        conflicts_with = "all",
        value_name = "ID"
    )]
    facts: Vec<FactId>,
    /// Accept all proposals
    #[arg(long)]
    all: bool,
}

/// Make a project's fact apply to all of your projects
///
/// Prints its new id.
#[derive(clap::Args, Debug)]
pub(super) struct PromoteArgs {
    /// The fact's id
    fact: FactId,
}

pub(super) async fn add(app: &App, target: &MemoryTarget, args: AddArgs) -> Result<()> {
    if let Some(other) = args
        .supersedes
        .iter()
        .find(|id| id.owner_wide != args.owner_wide)
    {
        return Err(UserError::invalid(format!(
            "{other} cannot be replaced: project facts and owner-wide facts are separate"
        ))
        .with_hint(format!(
            "`tl memory forget {other}`, or add the new fact to the same scope"
        ))
        .into());
    }
    let files = args.file.iter().map(|file| target.relative_path(app, file));
    let new = NewFact {
        source: match &args.source {
            Some(text) => Some(parse_source(app, text).await?),
            None => None,
        },
        files: files.collect::<Result<_>>()?,
        supersedes: args.supersedes.iter().map(|id| id.seq).collect(),
        force: args.force,
        ..NewFact::from_person(args.text.join(" "))
    };
    let memory = target.memory(args.owner_wide);
    let added = memory.add(new).await?;
    report_added(app, memory, &added).await
}

/// Parses `SESSION:SEQ` and checks that the entry exists.
async fn parse_source(app: &App, text: &str) -> Result<FactSource> {
    let parts = text.rsplit_once(':').and_then(|(session, seq)| {
        Some((
            session.parse::<SessionSpec>().ok()?,
            seq.parse::<Seq>().ok()?,
        ))
    });
    let Some((session, seq)) = parts else {
        return Err(UserError::invalid(format!("{text:?} is not an entry"))
            .with_hint("use SESSION:NUMBER, such as auth:12")
            .into());
    };
    let session = app.session(&session).await?;
    if session
        .read(ReadRange::between(seq, seq, 1))
        .await?
        .is_empty()
    {
        return Err(UserError {
            what: format!("session {} has no entry {seq}", session.id()),
            hint: Some(format!("`tl show {}` shows their numbers", session.id())),
            kind: throughline::ErrorKind::NotFound,
        }
        .into());
    }
    let session = session.id().clone();
    Ok(FactSource { session, seq })
}

pub(super) async fn edit(app: &App, target: &MemoryTarget, args: EditArgs) -> Result<()> {
    let memory = target.memory(args.fact.owner_wide);
    let text = args.text.join(" ");
    let edited = memory.edit(args.fact.seq, &text, args.force).await?;
    report_added(app, memory, &edited).await
}

pub(super) async fn promote(app: &App, target: &MemoryTarget, args: PromoteArgs) -> Result<()> {
    let promoted = target
        .memory(args.fact.owner_wide)
        .promote(args.fact.seq)
        .await?;
    report_added(app, &target.owner_memory, &promoted).await
}

/// Reports an added fact; its id is the data.
async fn report_added(app: &App, memory: &Memory, added: &AddFactOutcome) -> Result<()> {
    let shown = FactView::new(memory.scope(), &added.fact);
    let how = match added.status {
        AddFactStatus::New => "new",
        AddFactStatus::Known => "known",
        AddFactStatus::Accepted => "accepted",
    };
    if app.ui.json {
        app.ui.json(&json!({"how": how, "fact": shown}))?;
        return Ok(());
    }
    match added.status {
        AddFactStatus::Known => app.ui.status(format_args!(
            "Already known: {}",
            sanitize(&one_line(&added.fact.text))
        )),
        AddFactStatus::Accepted => app.ui.status("Accepted the existing proposal"),
        AddFactStatus::New => {
            let facts = memory.facts().await?;
            for old in added
                .fact
                .supersedes
                .iter()
                .filter_map(|seq| facts.get(*seq))
            {
                let old = FactView::new(memory.scope(), old);
                let text = one_line(&old.fact.text);
                app.ui
                    .status(format_args!("Replaced {}: {}", old.id, sanitize(&text)));
            }
        }
    }
    app.ui.data(shown.id)?;
    Ok(())
}

pub(super) async fn forget(app: &App, target: &MemoryTarget, args: ForgetArgs) -> Result<()> {
    let memory = target.memory(args.fact.owner_wide);
    let fact = memory.forget(args.fact.seq, args.reason.as_deref()).await?;
    if app.ui.json {
        app.ui
            .json(&json!({"fact": FactView::new(memory.scope(), &fact)}))?;
    } else {
        let text = one_line(&fact.text);
        app.ui.status(format_args!("Forgot: {}", sanitize(&text)));
    }
    Ok(())
}

pub(super) async fn accept(app: &App, target: &MemoryTarget, args: AcceptArgs) -> Result<()> {
    let mut accepted: Vec<(&MemoryScope, throughline::Fact)> = Vec::new();
    for owner_wide in [false, true] {
        let memory = target.memory(owner_wide);
        let facts = if args.all {
            let all = memory.facts().await?;
            let waiting = all.iter().filter(|fact| fact.proposed && fact.is_current());
            waiting.map(|fact| fact.seq).collect()
        } else {
            let named = args.facts.iter().filter(|id| id.owner_wide == owner_wide);
            named.map(|id| id.seq).collect::<Vec<_>>()
        };
        if !facts.is_empty() {
            let now = memory.accept(&facts).await?;
            accepted.extend(now.into_iter().map(|fact| (memory.scope(), fact)));
        }
    }
    let shown: Vec<_> = accepted
        .iter()
        .map(|(scope, fact)| FactView::new(scope, fact))
        .collect();
    if app.ui.json {
        app.ui.json(&json!({"facts": shown}))?;
        return Ok(());
    }
    if shown.is_empty() {
        app.ui.status("No proposed facts.");
    }
    for shown in &shown {
        let text = one_line(&shown.fact.text);
        app.ui
            .status(format_args!("Accepted {}: {}", shown.id, sanitize(&text)));
    }
    Ok(())
}
