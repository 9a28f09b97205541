//! Interactive search: a finder over search hits that updates while typing.

use std::time::Duration;

use anyhow::Result;
use throughline::format::format_age;
use throughline::recall::{Hit, Mode};
use throughline::{IndexWait, NewSession, ReadRange, SearchOptions, Seq, Throughline};

use super::{FinderAction, FinderSource, Row, choose};
use crate::app::App;
use crate::chat::{self, ChatArgs};
use crate::markdown::{sanitize, wrap_plain};

/// Maximum number of hits shown.
const MAX_HITS: usize = 100;
/// Entries before and after a hit in the preview.
const PREVIEW_RADIUS: u64 = 6;

/// Runs the finder, and opens, forks or shows the chosen hit.
pub(crate) async fn search_interactively(app: &App, tl: &Throughline) -> Result<()> {
    // Skip reranking, so that typing stays responsive.
    let typed_at = tl.clone().with_reranker(None);
    let mut source = HitSource {
        app,
        tl: &typed_at,
        hits: Vec::new(),
        titles: Vec::new(),
    };
    let Some(chosen) = choose(&mut source).await? else {
        return Ok(());
    };
    let (FinderAction::Open(row) | FinderAction::Fork(row) | FinderAction::Show(row)) = chosen;
    let hit = &source.hits[row];
    let session = tl.session(&hit.session).await?;
    let id = match chosen {
        FinderAction::Show(_) => {
            let seq = hit.seq.to_string();
            let line = ["tl", "show", hit.session.as_str(), "--around", &seq];
            let command = crate::parse_command(&line)?;
            Box::pin(crate::commands::run(app, command)).await?;
            return Ok(());
        }
        FinderAction::Open(_) => hit.session.clone(),
        FinderAction::Fork(_) => {
            let fork = session.fork(Some(hit.seq), NewSession::default()).await?;
            fork.session.id().clone()
        }
    };
    let args = ChatArgs::with_resume(Some(id.as_str().parse()?));
    Box::pin(chat::run(app, args)).await?;
    Ok(())
}

struct HitSource<'a> {
    app: &'a App,
    tl: &'a Throughline,
    hits: Vec<Hit>,
    titles: Vec<String>,
}

impl FinderSource for HitSource<'_> {
    fn key_help(&self) -> &'static str {
        "Enter resumes · Ctrl-F forks there · Ctrl-S shows · Esc closes"
    }

    async fn find(&mut self, typed: &str) -> Result<Vec<Row>> {
        self.hits.clear();
        self.titles.clear();
        if typed.trim().is_empty() {
            return Ok(Vec::new());
        }
        let searching = SearchOptions {
            query: typed,
            mode: Mode::Hybrid,
            limit: MAX_HITS,
            typing: !typed.ends_with(' '),
            project: None,
            listing: &[],
            zone: &self.app.zone,
            index_wait: IndexWait::For(Duration::ZERO),
        };
        // An incomplete filter is not an error while typing.
        let Ok(searched) = self.tl.search(&searching).await else {
            return Ok(Vec::new());
        };
        let now = self.tl.now();
        let mut rows = Vec::new();
        for hit in &searched.found.hits {
            let info = searched.session(&hit.session);
            let title = info.map_or(hit.session.as_str(), |info| info.title());
            let who = hit.author.as_deref().unwrap_or(hit.role.as_str());
            self.titles.push(title.to_owned());
            rows.push(Row {
                title: sanitize(&format!("{who}: {}", hit.snippet.text)).into_owned(),
                detail: format!(
                    "{} · {}",
                    sanitize(title),
                    format_age(hit.at, now, &self.app.zone)
                ),
            });
        }
        self.hits = searched.found.hits;
        Ok(rows)
    }

    async fn preview(&mut self, row: usize, width: usize) -> Result<String> {
        let hit = &self.hits[row];
        let session = self.tl.session(&hit.session).await?;
        let from = Seq(hit.seq.0.saturating_sub(PREVIEW_RADIUS).max(1));
        let to = Seq(hit.seq.0.saturating_add(PREVIEW_RADIUS));
        let mut text = format!("{}, entry {}\n", sanitize(&self.titles[row]), hit.seq);
        for entry in session.read(ReadRange::between(from, to, 50)).await? {
            let Some(message) = entry.message() else {
                continue;
            };
            let mark = if entry.seq == hit.seq { "▶ " } else { "" };
            let who = entry.author.as_deref().unwrap_or(message.role.as_str());
            let excerpt: String = message.content.to_text().chars().take(1_000).collect();
            let excerpt = wrap_plain(&excerpt, width);
            text.push_str(&format!("\n{mark}{}:\n{excerpt}", sanitize(who)));
        }
        Ok(text)
    }
}
