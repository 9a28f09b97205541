//! `tl memory`: manages facts that apply across sessions.

mod change;
mod fact;
mod list;
mod memory_section;
mod proposals;

use anyhow::Result;
use throughline::{Memory, MemoryScope, Project};

use crate::app::App;
use crate::error_report::UserError;
use crate::project;
pub(crate) use proposals::{propose_facts, remember_turn};

/// Manage facts remembered across sessions
///
/// Facts belong to a project, or to all of yours with --owner-wide, and are part of every
/// request of its sessions. `tl compact` and the end of a chat propose facts, which take
/// effect once you accept them. A newer fact replaces one that it contradicts; both stay in
/// the history. Without a command, lists the facts.
#[derive(clap::Args, Debug)]
pub(crate) struct MemoryArgs {
    #[command(subcommand)]
    command: Option<MemoryCommand>,
    /// The project: its name or id, or `.` for the working folder's
    #[arg(long, global = true, default_value = ".", value_name = "PROJECT")]
    project: String,
}

#[derive(clap::Subcommand, Debug)]
enum MemoryCommand {
    Add(change::AddArgs),
    List(list::ListArgs),
    Search(list::SearchArgs),
    Edit(change::EditArgs),
    Forget(change::ForgetArgs),
    Accept(change::AcceptArgs),
    Promote(change::PromoteArgs),
    History(list::HistoryArgs),
    Export(memory_section::ExportArgs),
    Import(memory_section::ImportArgs),
}

impl MemoryArgs {
    /// Returns whether the command only reads.
    pub(super) fn is_read_only(&self) -> bool {
        use MemoryCommand::{Export, History, List, Search};
        matches!(
            self.command,
            None | Some(List(_) | Search(_) | History(_) | Export(_))
        )
    }
}

pub(crate) async fn run(app: &App, args: MemoryArgs) -> Result<()> {
    let target = MemoryTarget::find(app, &args.project).await?;
    match args
        .command
        .unwrap_or(MemoryCommand::List(list::ListArgs::default()))
    {
        MemoryCommand::Add(args) => change::add(app, &target, args).await,
        MemoryCommand::List(args) => list::list(app, &target, args).await,
        MemoryCommand::Search(args) => list::search(app, &target, args).await,
        MemoryCommand::Edit(args) => change::edit(app, &target, args).await,
        MemoryCommand::Forget(args) => change::forget(app, &target, args).await,
        MemoryCommand::Accept(args) => change::accept(app, &target, args).await,
        MemoryCommand::Promote(args) => change::promote(app, &target, args).await,
        MemoryCommand::History(args) => list::show_history(app, &target, args).await,
        MemoryCommand::Export(args) => memory_section::export(app, &target, args).await,
        MemoryCommand::Import(args) => memory_section::import(app, &target, args).await,
    }
}

/// A project with its memory and the owner-wide memory.
struct MemoryTarget {
    project: Project,
    project_memory: Memory,
    owner_memory: Memory,
    /// Whether this is the working folder's project.
    is_working_folder: bool,
}

impl MemoryTarget {
    async fn find(app: &App, text: &str) -> Result<Self> {
        let tl = app.tl().await?;
        let id = super::sessions::find_project(app, text).await?;
        let projects = tl.projects().await?;
        let project = projects.into_iter().find(|project| project.id == id);
        let project =
            project.ok_or_else(|| UserError::invalid(format!("unknown project {text:?}")))?;
        Ok(Self {
            project_memory: tl.memory(MemoryScope::Project(project.id.clone())),
            owner_memory: tl.memory(MemoryScope::Owner),
            project,
            is_working_folder: text == ".",
        })
    }

    /// Returns the owner-wide or the project's memory.
    fn memory(&self, owner_wide: bool) -> &Memory {
        if owner_wide {
            &self.owner_memory
        } else {
            &self.project_memory
        }
    }

    /// Returns a path relative to the project's root, as facts store it.
    fn relative_path(&self, app: &App, path: &str) -> Result<String> {
        let start = self
            .is_working_folder
            .then_some(app.paths.working_folder.as_path());
        project::relative_path(&self.project, start, path).ok_or_else(|| {
            UserError::invalid(format!("{path} is not inside {}", self.project.name))
                .with_hint("a fact belongs to files and folders of its project")
                .into()
        })
    }
}
