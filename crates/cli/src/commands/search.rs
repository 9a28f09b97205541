//! `tl search`: full-text and semantic search over all sessions.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use throughline::format::pluralize;
use throughline::recall::{Hit, Mode, Snippet};
use throughline::{
    IndexProgress, IndexWait, ReadRange, SearchOptions, SearchResults, Seq, SessionInfo,
};

use crate::app::App;
use crate::error_report::UserError;
use crate::markdown::sanitize;
use crate::semantic::SemanticModel;
use crate::time::format_time;
use crate::ui::truncate;

/// How long a search waits for the index before it returns what is indexed.
const INDEX_TIMEOUT: Duration = Duration::from_secs(20);

/// Search all sessions
///
/// Searches by words and by meaning. In the query, "quoted words" match as a phrase, and
/// session: role: tag: project: agent: author: file: before: after: filter the results.
/// Without a query, opens a finder that searches as you type.
#[derive(clap::Args, Debug)]
pub(crate) struct SearchArgs {
    /// The query
    query: Vec<String>,
    /// By words (text), by meaning (semantic), or by both (hybrid)
    #[arg(long, default_value = "hybrid", value_parser = parse_mode)]
    mode: Mode,
    /// The semantic model for this search: static, minilm or PROVIDER/MODEL
    #[arg(long, value_name = "MODEL")]
    semantic: Option<SemanticModel>,
    /// Maximum number of hits
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Number of messages to show before and after each hit
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=20))]
    context: u8,
    /// Only in this session
    #[arg(long)]
    session: Option<String>,
    /// Only by this role: user, assistant, system or tool
    #[arg(long)]
    role: Option<String>,
    /// Only in sessions with this tag (may be repeated)
    #[arg(long)]
    tag: Vec<String>,
    /// Only in sessions of this project: its name or id, or `.` for the working folder's
    #[arg(long)]
    project: Option<String>,
    /// Only in sessions of this agent
    #[arg(long)]
    agent: Option<String>,
    /// Only by this author
    #[arg(long)]
    author: Option<String>,
    /// Only messages about files whose path contains this
    #[arg(long)]
    file: Option<String>,
    /// Only before a day: 2026-11-15, 2026-11, yesterday, 7d
    #[arg(long, value_name = "WHEN")]
    before: Option<String>,
    /// Only on or after a day
    #[arg(long, value_name = "WHEN")]
    after: Option<String>,
    /// Do not wait for the index; search what is indexed so far
    #[arg(long)]
    no_wait: bool,
}

fn parse_mode(text: &str) -> Result<Mode, String> {
    match text {
        "text" => Ok(Mode::Text),
        "semantic" => Ok(Mode::Semantic),
        "hybrid" => Ok(Mode::Hybrid),
        other => Err(format!("{other:?} is not text, semantic or hybrid")),
    }
}

impl SearchArgs {
    /// Returns the query with the flags appended as filters.
    fn query_text(&self) -> String {
        let mut typed = self.query.join(" ");
        let mut filter = |name: &str, value: Option<&String>| {
            if let Some(value) = value {
                let value = value.replace('"', " ");
                typed.push_str(&format!(" {name}:\"{value}\""));
            }
        };
        filter("session", self.session.as_ref());
        filter("role", self.role.as_ref());
        for tag in &self.tag {
            filter("tag", Some(tag));
        }
        filter("project", self.project.as_ref().filter(|name| *name != "."));
        filter("agent", self.agent.as_ref());
        filter("author", self.author.as_ref());
        filter("file", self.file.as_ref());
        filter("before", self.before.as_ref());
        filter("after", self.after.as_ref());
        typed
    }
}

pub(crate) async fn run(app: &App, args: SearchArgs) -> Result<()> {
    let tl = app.tl().await?;
    if args.query.iter().all(|word| word.trim().is_empty()) {
        if app.ui.json || !app.ui.is_terminal() {
            return Err(UserError::invalid("no query given")
                .with_hint("tl search QUERY; on a terminal, `tl search` opens a finder")
                .into());
        }
        catch_up_index(app, IndexWait::For(INDEX_TIMEOUT)).await?;
        return crate::finder::search_interactively(app, tl).await;
    }
    let compared;
    let tl = match &args.semantic {
        None => tl,
        Some(semantic) => {
            semantic.validate(&app.paths)?;
            let again = semantic.reranker(&app.paths, app.seed);
            compared = tl.clone().with_reranker(again);
            &compared
        }
    };
    let project = match args.project.as_deref() {
        Some(".") => {
            let here = crate::project::resolve(tl, &app.paths.working_folder).await?;
            here.map(|project| project.id)
        }
        _ => None,
    };
    let began = tl.now();
    let patience = if args.no_wait {
        IndexWait::For(Duration::ZERO)
    } else {
        IndexWait::For(INDEX_TIMEOUT)
    };
    let caught = catch_up_index(app, patience).await?;
    let typed = args.query_text();
    let listing = app.last_listing();
    let searched = tl
        .search(&SearchOptions {
            query: &typed,
            mode: args.mode,
            limit: usize::from(args.limit),
            typing: false,
            project: project.as_ref(),
            listing: &listing,
            zone: &app.zone,
            index_wait: IndexWait::For(Duration::ZERO),
        })
        .await?;
    app.report_index_warnings(tl);
    let took = tl.now().duration_since(began).as_millis();
    if app.ui.json {
        return print_json(app, &args, &searched, took);
    }
    if let Some(corrected) = &searched.found.corrected {
        app.ui.status(format_args!(
            "No exact match; searched for: {}",
            sanitize(corrected)
        ));
    }
    if searched.found.hits.is_empty() {
        app.ui.status("No results.");
    }
    let text = render_hits(app, &searched, args.context).await?;
    app.ui.page(&text)?;
    if caught.lag > 0 {
        app.ui.warn(format_args!(
            "{} not indexed yet; search again to include them",
            pluralize(caught.lag, "change")
        ));
    }
    Ok(())
}

/// Updates the index from the store, with a progress bar if it takes long.
pub(crate) async fn catch_up_index(app: &App, patience: IndexWait) -> Result<IndexProgress> {
    let bar = app.ui.progress("Indexing", "changes");
    let mut fed = |done: u64, all: u64| {
        bar.set_length(all);
        bar.set_position(done);
    };
    let caught = app.tl().await?.catch_up(patience, &mut fed).await?;
    bar.finish_and_clear();
    Ok(caught)
}

fn print_json(app: &App, args: &SearchArgs, searched: &SearchResults, took: i128) -> Result<()> {
    let hit = |hit: &Hit| {
        json!({
            "session": hit.session,
            "seq": hit.seq,
            "external_id": hit.external_id,
            "role": hit.role,
            "author": hit.author,
            "at": hit.at,
            "score": hit.score,
            "snippet": hit.snippet.text,
            "marks": hit.snippet.marks,
            "why": hit.score_parts,
            "name": searched.session(&hit.session).map(SessionInfo::title),
        })
    };
    app.ui.json(&json!({
        "query": args.query.join(" "),
        "hits": searched.found.hits.iter().map(hit).collect::<Vec<_>>(),
        "took_ms": i64::try_from(took).unwrap_or(i64::MAX),
        "watermark": searched.watermark(),
        "behind": searched.lag,
        "corrected": searched.found.corrected,
        "compared": searched.found.rerank,
    }))?;
    Ok(())
}

/// Renders the hits grouped by session, ordered by each session's best hit.
async fn render_hits(app: &App, searched: &SearchResults, around: u8) -> Result<String> {
    let ui = &app.ui;
    let now = app.tl().await?.now();
    let mut text = String::new();
    let mut shown = Vec::new();
    for first in &searched.found.hits {
        if shown.contains(&&first.session) {
            continue;
        }
        shown.push(&first.session);
        let info = searched.session(&first.session);
        let title = info.map_or(first.session.as_str(), |info| info.title());
        text.push_str(&format!(
            "{}  {}\n",
            ui.bold(&sanitize(title)),
            ui.dim(first.session.as_str())
        ));
        let hits = searched.found.hits.iter();
        for hit in hits.filter(|hit| hit.session == first.session) {
            let who = hit.author.as_deref().unwrap_or(hit.role.as_str());
            let when = format_time(hit.at, now, &app.zone);
            let facts = format!("{} · {when}", sanitize(who));
            text.push_str(&format!("  {:>5}  {}\n", hit.seq, ui.dim(&facts)));
            text.push_str(&render_snippet(app, &hit.snippet));
            text.push_str(&render_context(app, hit, around).await?);
        }
        let best = format!("         tl show {title} --around {}", first.seq);
        text.push_str(&ui.dim(&best));
        text.push_str("\n\n");
    }
    Ok(text)
}

/// Renders a snippet with matches in bold, indented and wrapped to the screen.
fn render_snippet(app: &App, snippet: &Snippet) -> String {
    let width = app.ui.width.saturating_sub(9).max(20);
    let before = if snippet.cut_before { "…" } else { "" };
    let after = if snippet.cut_after { "…" } else { "" };
    let mut words: Vec<(String, usize)> = Vec::new();
    let mut start = 0;
    for piece in snippet.text.split(' ') {
        let range = start..start + piece.len();
        start = range.end + 1;
        let bold = snippet
            .marks
            .iter()
            .any(|mark| mark.start < range.end && range.start < mark.end);
        let shown = sanitize(piece).into_owned();
        let columns = unicode_width::UnicodeWidthStr::width(shown.as_str());
        let shown = if bold { app.ui.bold(&shown) } else { shown };
        words.push((shown, columns));
    }
    let mut lines = format!("         {before}");
    let mut used = before.chars().count();
    for (index, (word, columns)) in words.iter().enumerate() {
        if index > 0 && used + 1 + columns > width {
            lines.push_str("\n         ");
            used = 0;
        } else if index > 0 {
            lines.push(' ');
            used += 1;
        }
        lines.push_str(word);
        used += columns;
    }
    format!("{lines}{after}\n")
}

/// Renders the messages before and after a hit, one line each.
async fn render_context(app: &App, hit: &Hit, around: u8) -> Result<String> {
    if around == 0 {
        return Ok(String::new());
    }
    let around = u64::from(around);
    let from = Seq(hit.seq.0.saturating_sub(around).max(1));
    let to = Seq(hit.seq.0.saturating_add(around));
    let session = app.tl().await?.session(&hit.session).await?;
    let mut text = String::new();
    for entry in session.read(ReadRange::between(from, to, 100)).await? {
        let Some(message) = entry.message().filter(|_| entry.seq != hit.seq) else {
            continue;
        };
        let who = entry.author.as_deref().unwrap_or(message.role.as_str());
        let excerpt = message.content.to_text();
        let excerpt = excerpt.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = format!("{:>5}  {who}: {excerpt}", entry.seq);
        let line = truncate(&sanitize(&line), app.ui.width.saturating_sub(2));
        text.push_str(&format!("  {}\n", app.ui.dim(&line)));
    }
    Ok(text)
}
