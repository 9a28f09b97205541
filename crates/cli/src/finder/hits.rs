//! What was ever said, to choose from: it is searched as one types.

use std::time::Duration;

use anyhow::Result;
use throughline::glance::age;
use throughline::recalling::{Hit, Mode};
use throughline::{NewSession, Patience, Read, Searching, Seq, Throughline};

use super::{Chosen, Row, Source, choose};
use crate::app::App;
use crate::chat::{self, ChatArgs};
use crate::markdown::{plain, safe};

/// Hits shown.
const SHOWN: usize = 100;
/// Entries around a hit in the preview.
const AROUND: u64 = 6;

/// Lets the person look around, and opens, forks or shows what they choose.
pub(crate) async fn search(app: &App, tl: &Throughline) -> Result<()> {
    // Nobody who types is kept waiting for another opinion.
    let typed_at = tl.clone().comparing_again(None);
    let mut source = Hits {
        app,
        tl: &typed_at,
        hits: Vec::new(),
        titles: Vec::new(),
    };
    let Some(chosen) = choose(&mut source).await? else {
        return Ok(());
    };
    let (Chosen::Open(row) | Chosen::Fork(row) | Chosen::Show(row)) = chosen;
    let hit = &source.hits[row];
    let session = tl.session(&hit.session).await?;
    let id = match chosen {
        Chosen::Show(_) => {
            let seq = hit.seq.to_string();
            let line = ["tl", "show", hit.session.as_str(), "--around", &seq];
            let command = crate::parse_command(&line)?;
            Box::pin(crate::commands::run(app, command)).await?;
            return Ok(());
        }
        Chosen::Open(_) => hit.session.clone(),
        Chosen::Fork(_) => {
            let fork = session.fork(Some(hit.seq), NewSession::default()).await?;
            fork.session.id().clone()
        }
    };
    let args = ChatArgs::resuming(Some(id.as_str().parse()?));
    Box::pin(chat::run(app, args)).await?;
    Ok(())
}

struct Hits<'a> {
    app: &'a App,
    tl: &'a Throughline,
    hits: Vec<Hit>,
    titles: Vec<String>,
}

impl Source for Hits<'_> {
    fn keys(&self) -> &'static str {
        "Enter resumes · Ctrl-F forks there · Ctrl-S shows · Esc leaves"
    }

    async fn find(&mut self, typed: &str) -> Result<Vec<Row>> {
        self.hits.clear();
        self.titles.clear();
        if typed.trim().is_empty() {
            return Ok(Vec::new());
        }
        let searching = Searching {
            typed,
            mode: Mode::Hybrid,
            limit: SHOWN,
            typing: !typed.ends_with(' '),
            project: None,
            listing: &[],
            zone: &self.app.zone,
            patience: Patience::For(Duration::ZERO),
        };
        // Half a filter is no reason to stop somebody who is still typing.
        let Ok(searched) = self.tl.search(&searching).await else {
            return Ok(Vec::new());
        };
        let now = self.tl.now();
        let mut rows = Vec::new();
        for hit in &searched.found.hits {
            let card = searched.card(&hit.session);
            let title = card.map_or(hit.session.as_str(), |card| card.title());
            let who = hit.author.as_deref().unwrap_or(hit.role.as_str());
            self.titles.push(title.to_owned());
            rows.push(Row {
                title: safe(&format!("{who}: {}", hit.snippet.text)).into_owned(),
                detail: format!("{} · {}", safe(title), age(hit.at, now, &self.app.zone)),
            });
        }
        self.hits = searched.found.hits;
        Ok(rows)
    }

    async fn preview(&mut self, row: usize, width: usize) -> Result<String> {
        let hit = &self.hits[row];
        let session = self.tl.session(&hit.session).await?;
        let from = Seq(hit.seq.0.saturating_sub(AROUND).max(1));
        let to = Seq(hit.seq.0.saturating_add(AROUND));
        let mut text = format!("{}, entry {}\n", safe(&self.titles[row]), hit.seq);
        for entry in session.read(Read::between(from, to, 50)).await? {
            let Some(message) = entry.message() else {
                continue;
            };
            let mark = if entry.seq == hit.seq { "▶ " } else { "" };
            let who = entry.author.as_deref().unwrap_or(message.role.as_str());
            let said: String = message.content.to_text().chars().take(1_000).collect();
            let said = plain(&said, width);
            text.push_str(&format!("\n{mark}{}:\n{said}", safe(who)));
        }
        Ok(text)
    }
}
