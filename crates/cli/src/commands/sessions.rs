//! `tl sessions`: lists sessions; also the screen of `tl` without a terminal.

use anyhow::Result;
use serde::Serialize;
use throughline::format::{abbreviate, format_age};
use throughline::{
    Cursor, Project, ProjectId, SessionFilter, SessionInfo, SessionScope, Status, Tag,
};

use crate::app::App;
use crate::error_report::UserError;
use crate::project;
use crate::time::parse_instant;
use crate::ui::Table;

/// List sessions, latest first
///
/// Numbers in the first column refer to a session until the next listing. Archived sessions
/// are hidden by default, and their number is shown.
#[derive(clap::Args, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct SessionsArgs {
    /// Only sessions with this tag (may be repeated)
    #[arg(long)]
    tag: Vec<Tag>,
    /// Only sessions whose latest agent is this one
    #[arg(long)]
    agent: Option<String>,
    /// Only sessions of a project: its name or id, or `.` for the working folder's
    #[arg(long)]
    project: Option<String>,
    /// Only sessions with this status: active or archived
    #[arg(long)]
    status: Option<Status>,
    /// Only sessions active since a day, a time or an age like 3d
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Include archived sessions
    #[arg(long, conflicts_with = "status")]
    all: bool,
    /// Include internal sessions, such as memories
    #[arg(long)]
    own: bool,
    /// List the trash instead
    #[arg(long)]
    trash: bool,
    /// Maximum number of sessions
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Continue an earlier listing from its `next`
    #[arg(long)]
    cursor: Option<Cursor>,
    #[arg(skip)]
    main_screen: bool,
}

impl SessionsArgs {
    /// Returns the arguments for `tl` without a command.
    pub(crate) fn main_screen() -> Self {
        Self {
            limit: 20,
            main_screen: true,
            ..Self::default()
        }
    }
}

#[derive(Serialize)]
struct Listing<'a> {
    sessions: &'a [SessionInfo],
    next: Option<String>,
    hidden: HiddenCounts,
}

/// Numbers of sessions that a listing hides by default.
#[derive(Serialize, Default)]
struct HiddenCounts {
    archived: u64,
    trashed: u64,
}

pub(crate) async fn run(app: &App, args: SessionsArgs) -> Result<()> {
    let tl = app.tl().await?;
    let filter = build_filter(app, &args).await?;
    let page = tl
        .list(&filter, args.cursor.as_ref(), usize::from(args.limit))
        .await?;
    let hidden = count_hidden(app, &args, &filter).await?;
    if app.ui.json {
        app.ui.json(&Listing {
            sessions: &page.items,
            next: page.next.map(|next| next.to_string()),
            hidden,
        })?;
        return Ok(());
    }
    if page.items.is_empty() {
        return report_empty(app, &args, &hidden);
    }
    app.save_listing(page.items.iter().map(|info| &info.id));
    let mut text = render_table(app, &page.items);
    if args.main_screen {
        text.push_str(&next_steps(app));
    }
    app.ui.page(&text)?;
    if let Some(next) = page.next {
        app.ui.status(format_args!("More: --cursor {next}"));
    }
    report_hidden(app, &hidden);
    Ok(())
}

async fn build_filter(app: &App, args: &SessionsArgs) -> Result<SessionFilter> {
    let since = match &args.since {
        None => None,
        Some(text) => {
            let now = app.tl().await?.now();
            let since = parse_instant(text, now, &app.zone).map_err(UserError::invalid)?;
            Some(since)
        }
    };
    Ok(SessionFilter {
        scope: if args.trash {
            SessionScope::Trash
        } else {
            SessionScope::Live
        },
        tags: args.tag.clone(),
        agent: args.agent.clone(),
        project: match &args.project {
            None => None,
            Some(text) => Some(find_project(app, text).await?),
        },
        status: args
            .status
            .or((!args.all && !args.trash).then_some(Status::Active)),
        since,
        parent: None,
        include_internal: args.own,
    })
}

/// Resolves a project from its name, id or `.`.
pub(super) async fn find_project(app: &App, text: &str) -> Result<ProjectId> {
    let tl = app.tl().await?;
    let folder = app.resolve_path(text.as_ref());
    if text.starts_with(['.', '/', '~']) && folder.is_dir() {
        let project = project::resolve(tl, &folder).await?;
        return project
            .map(|project| project.id)
            .ok_or_else(|| UserError::invalid(format!("{text} belongs to no project")).into());
    }
    let projects = tl.projects().await?;
    let is_it = |project: &&Project| project.id.as_str() == text || project.name == text;
    let mut found = projects.iter().filter(is_it);
    match (found.next(), found.next()) {
        (Some(project), None) => Ok(project.id.clone()),
        (None, _) => {
            let names: Vec<_> = projects
                .iter()
                .map(|project| project.name.as_str())
                .collect();
            Err(UserError {
                what: format!("unknown project {text:?}"),
                hint: Some(match names.as_slice() {
                    [] => "no session belongs to a project yet".to_owned(),
                    names => format!("available: {}", names.join(", ")),
                }),
                kind: throughline::ErrorKind::NotFound,
            }
            .into())
        }
        (Some(_), Some(_)) => {
            let ids = projects
                .iter()
                .filter(is_it)
                .map(|project| project.id.as_str());
            let ids: Vec<_> = ids.collect();
            Err(
                UserError::invalid(format!("several projects are named {text:?}"))
                    .with_hint(format!("use one of {}", ids.join(", ")))
                    .into(),
            )
        }
    }
}

async fn count_hidden(
    app: &App,
    args: &SessionsArgs,
    filter: &SessionFilter,
) -> Result<HiddenCounts> {
    if args.trash {
        return Ok(HiddenCounts::default());
    }
    let tl = app.tl().await?;
    let archived = match filter.status {
        Some(Status::Active) if args.status.is_none() => {
            let archived = SessionFilter {
                status: Some(Status::Archived),
                ..filter.clone()
            };
            tl.count(&archived).await?
        }
        _ => 0,
    };
    let trash = SessionFilter {
        scope: SessionScope::Trash,
        ..SessionFilter::default()
    };
    Ok(HiddenCounts {
        archived,
        trashed: tl.count(&trash).await?,
    })
}

fn report_hidden(app: &App, hidden: &HiddenCounts) {
    let mut parts = Vec::new();
    if hidden.archived > 0 {
        parts.push(format!("{} archived (--all)", hidden.archived));
    }
    if hidden.trashed > 0 {
        parts.push(format!("{} in the trash (--trash)", hidden.trashed));
    }
    if !parts.is_empty() {
        app.ui
            .status(format_args!("Not shown: {}", parts.join(", ")));
    }
}

fn render_table(app: &App, infos: &[SessionInfo]) -> String {
    let now = throughline::Environment::now(&throughline::SystemEnvironment);
    let head = ["#", "NAME", "AGENT", "MESSAGES", "TOKENS", "TAGS", "AGE"];
    let mut table = Table::new(&head, &[0, 3, 4, 6], 1);
    for (index, info) in infos.iter().enumerate() {
        let tags: Vec<_> = info.tags.iter().map(Tag::as_str).collect();
        table.push_row(vec![
            (index + 1).to_string(),
            display_title(info),
            info.agent
                .as_ref()
                .map_or_else(String::new, |agent| agent.name.clone()),
            abbreviate(info.messages),
            match info.tokens.total() {
                0 => String::new(),
                tokens => abbreviate(tokens),
            },
            tags.join(" "),
            format_age(info.last_activity, now, &app.zone),
        ]);
    }
    table.render(&app.ui)
}

/// Returns a session's name, or the beginning of its first message.
fn display_title(info: &SessionInfo) -> String {
    let mut title = match &info.name {
        Some(name) => name.to_string(),
        None if info.is_internal() => own_title(info),
        None if info.preview.is_empty() => info.id.to_string(),
        // An id that was chosen by hand is more telling than the preview alone.
        None if !info.id.is_minted() => format!("{} “{}”", info.id, info.preview),
        None => format!("“{}”", info.preview),
    };
    if info.status == Status::Archived {
        title.push_str(" (archived)");
    }
    title
}

/// Returns the title of an internal session: its key.
fn own_title(info: &SessionInfo) -> String {
    let key = info.key.as_ref().map(ToString::to_string);
    key.unwrap_or_else(|| info.id.to_string())
}

fn report_empty(app: &App, args: &SessionsArgs, hidden: &HiddenCounts) -> Result<()> {
    if args.trash {
        app.ui.status("The trash is empty.");
    } else if args.main_screen || is_unfiltered(args) {
        let ever = hidden.archived + hidden.trashed > 0;
        app.ui.status(if ever {
            "No active sessions."
        } else {
            "No sessions yet."
        });
        app.ui.data(next_steps(app).trim_end())?;
    } else {
        app.ui.status("No session matches.");
    }
    report_hidden(app, hidden);
    Ok(())
}

fn is_unfiltered(args: &SessionsArgs) -> bool {
    args.tag.is_empty()
        && args.agent.is_none()
        && args.project.is_none()
        && args.status.is_none()
        && args.since.is_none()
        && args.cursor.is_none()
}

fn next_steps(app: &App) -> String {
    let steps = [
        ("tl new --name auth", "create a session and print its id"),
        ("tl append auth \"hello\"", "save a message in it"),
        ("tl show 1", "show the first listed session"),
        ("tl fork 1 --at 3", "try something else from entry 3"),
        ("tl import chat.jsonl", "import existing sessions"),
        ("tl --help", "everything else"),
    ];
    let mut text = String::from("\n");
    for (command, about) in steps {
        let padded = format!("{command:<24}");
        text.push_str(&format!(
            "  {}{}\n",
            app.ui.bold(&padded),
            app.ui.dim(about)
        ));
    }
    text
}
