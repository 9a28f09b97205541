//! `tl memory`

mod change;
mod fact;
mod list;
mod proposals;
mod section;

use anyhow::Result;
use throughline::{Memory, MemoryScope, Project};

use crate::app::App;
use crate::project;
use crate::report::Refusal;
pub(crate) use proposals::{after_turn, propose};

/// Remember things across sessions
///
/// Facts belong to a project, or to all of yours with --owner-wide, and are part of the
/// requests of every session there. `tl compact` and the end of a chat propose what they
/// found; nothing proposed counts before you accept it. A newer fact replaces one that it
/// contradicts, and both stay readable. Without a command, lists what is remembered.
#[derive(clap::Args, Debug)]
pub(crate) struct MemoryArgs {
    #[command(subcommand)]
    what: Option<What>,
    /// The project: its name or id, or `.` for the one of the working folder
    #[arg(long, global = true, default_value = ".", value_name = "PROJECT")]
    project: String,
}

#[derive(clap::Subcommand, Debug)]
enum What {
    Add(change::AddArgs),
    List(list::ListArgs),
    Search(list::SearchArgs),
    Edit(change::EditArgs),
    Forget(change::ForgetArgs),
    Accept(change::AcceptArgs),
    Promote(change::PromoteArgs),
    History(list::HistoryArgs),
    Export(section::ExportArgs),
    Import(section::ImportArgs),
}

impl MemoryArgs {
    /// Whether it changes nothing.
    pub(super) fn only_reads(&self) -> bool {
        use What::{Export, History, List, Search};
        matches!(
            self.what,
            None | Some(List(_) | Search(_) | History(_) | Export(_))
        )
    }
}

pub(crate) async fn run(app: &App, args: MemoryArgs) -> Result<()> {
    let place = Place::find(app, &args.project).await?;
    match args.what.unwrap_or(What::List(list::ListArgs::default())) {
        What::Add(args) => change::add(app, &place, args).await,
        What::List(args) => list::list(app, &place, args).await,
        What::Search(args) => list::search(app, &place, args).await,
        What::Edit(args) => change::edit(app, &place, args).await,
        What::Forget(args) => change::forget(app, &place, args).await,
        What::Accept(args) => change::accept(app, &place, args).await,
        What::Promote(args) => change::promote(app, &place, args).await,
        What::History(args) => list::history(app, &place, args).await,
        What::Export(args) => section::export(app, &place, args).await,
        What::Import(args) => section::import(app, &place, args).await,
    }
}

/// The project whose memory is meant, and its memory beside the owner-wide one.
struct Place {
    project: Project,
    here: Memory,
    everywhere: Memory,
    /// Whether it is the project of the working folder.
    is_here: bool,
}

impl Place {
    async fn find(app: &App, text: &str) -> Result<Self> {
        let tl = app.tl().await?;
        let id = super::sessions::find_project(app, text).await?;
        let projects = tl.projects().await?;
        let project = projects.into_iter().find(|project| project.id == id);
        let project =
            project.ok_or_else(|| Refusal::invalid(format!("there is no project {text:?}")))?;
        Ok(Self {
            here: tl.memory(MemoryScope::Project(project.id.clone())),
            everywhere: tl.memory(MemoryScope::Owner),
            project,
            is_here: text == ".",
        })
    }

    /// The memory that is meant.
    fn memory(&self, owner_wide: bool) -> &Memory {
        if owner_wide {
            &self.everywhere
        } else {
            &self.here
        }
    }

    /// A file or folder as facts name it: relative to the project's top.
    fn file(&self, app: &App, path: &str) -> Result<String> {
        let start = self.is_here.then_some(app.places.folder.as_path());
        project::relative(&self.project, start, path).ok_or_else(|| {
            Refusal::invalid(format!("{path} is not inside {}", self.project.name))
                .hint("a fact belongs to files and folders of its project")
                .into()
        })
    }
}
