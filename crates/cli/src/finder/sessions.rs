//! Session picker: a finder over sessions by name, tag and first message.

use anyhow::Result;
use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use throughline::context::render_resume_banner;
use throughline::format::format_age;
use throughline::{Entry, SessionFilter, SessionInfo, Throughline};

use super::{FinderAction, FinderSource, Row, choose};
use crate::app::App;
use crate::markdown::{sanitize, wrap_plain};

/// Messages shown in the preview of a session.
const PREVIEW_MESSAGES: usize = 6;

/// Runs the session picker.
pub(crate) async fn choose_session(app: &App, tl: &Throughline) -> Result<Option<SessionInfo>> {
    let infos = tl.list_all(&SessionFilter::default()).await?;
    let texts = infos.iter().map(search_text).collect();
    let shown = (0..infos.len()).collect();
    let mut source = SessionSource {
        app,
        tl,
        infos,
        texts,
        matches: shown,
        matcher: Matcher::new(Config::DEFAULT),
    };
    Ok(match choose(&mut source).await? {
        Some(FinderAction::Open(row) | FinderAction::Fork(row) | FinderAction::Show(row)) => {
            Some(source.infos[source.matches[row]].clone())
        }
        None => None,
    })
}

struct SessionSource<'a> {
    app: &'a App,
    tl: &'a Throughline,
    infos: Vec<SessionInfo>,
    /// The searchable text of each session.
    texts: Vec<String>,
    /// Indices of the matching sessions.
    matches: Vec<usize>,
    matcher: Matcher,
}

fn search_text(info: &SessionInfo) -> String {
    let tags: String = info.tags.iter().map(|tag| format!(" #{tag}")).collect();
    let agent = info.agent.as_ref().map_or("", |agent| &agent.name);
    format!(
        "{} {}{tags} {agent} {}",
        info.title(),
        info.id,
        info.preview
    )
}

impl FinderSource for SessionSource<'_> {
    fn key_help(&self) -> &'static str {
        "Enter opens · Esc closes · Ctrl-U clears · PgUp PgDn scroll"
    }

    async fn find(&mut self, typed: &str) -> Result<Vec<Row>> {
        let pattern = Pattern::parse(typed, CaseMatching::Smart, Normalization::Smart);
        let mut buffer = Vec::new();
        let mut scored: Vec<(u32, usize)> = Vec::new();
        for (index, text) in self.texts.iter().enumerate() {
            let text = Utf32Str::new(text, &mut buffer);
            if let Some(score) = pattern.score(text, &mut self.matcher) {
                scored.push((score, index));
            }
        }
        // Latest first among equal scores.
        scored.sort_by_key(|(score, index)| (std::cmp::Reverse(*score), *index));
        self.matches = scored.into_iter().map(|(_, index)| index).collect();
        let now = self.tl.now();
        let rows = self.matches.iter().map(|index| {
            let info = &self.infos[*index];
            let name = info.name.as_ref().map_or("", |name| name.as_str());
            let space = if name.is_empty() { "" } else { "  " };
            Row {
                title: sanitize(&format!("{name}{space}{}", info.preview)).into_owned(),
                detail: format!(
                    "{} · {}",
                    info.messages,
                    format_age(info.last_activity, now, &self.app.zone)
                ),
            }
        });
        Ok(rows.collect())
    }

    async fn preview(&mut self, row: usize, width: usize) -> Result<String> {
        let info = &self.infos[self.matches[row]];
        let session = self.tl.session(&info.id).await?;
        let banner = render_resume_banner(info);
        let mut text: String = banner
            .lines()
            .skip(1)
            .take_while(|line| !line.is_empty())
            .map(|line| format!("{}\n", sanitize(line)))
            .collect();
        if let Some(known) = session.last_summary().await? {
            let block = known.summary.to_block();
            let lines = block.lines().filter(|line| !line.starts_with("<!--"));
            text.push('\n');
            text.extend(lines.map(|line| format!("{}\n", sanitize(line))));
        }
        for message in session
            .tail(PREVIEW_MESSAGES)
            .await?
            .iter()
            .filter_map(Entry::message)
        {
            let excerpt: String = message.content.to_text().chars().take(400).collect();
            text.push_str(&format!(
                "\n{}:\n{}",
                message.role,
                wrap_plain(&excerpt, width)
            ));
        }
        Ok(text)
    }
}
