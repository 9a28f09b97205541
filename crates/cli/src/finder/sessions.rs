//! Sessions to choose from, by name, tag and first words.

use anyhow::Result;
use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use throughline::context::render_resume_banner;
use throughline::format::format_age;
use throughline::{Entry, SessionFilter, SessionInfo, Throughline};

use super::{FinderAction, FinderSource, Row, choose};
use crate::app::App;
use crate::markdown::{sanitize, wrap_plain};

/// Messages shown of a session.
const PREVIEW_MESSAGES: usize = 6;

/// Lets the person choose a session.
pub(crate) async fn choose_session(app: &App, tl: &Throughline) -> Result<Option<SessionInfo>> {
    let cards = tl.list_all(&SessionFilter::default()).await?;
    let texts = cards.iter().map(search_text).collect();
    let shown = (0..cards.len()).collect();
    let mut source = SessionSource {
        app,
        tl,
        cards,
        texts,
        matches: shown,
        matcher: Matcher::new(Config::DEFAULT),
    };
    Ok(match choose(&mut source).await? {
        Some(FinderAction::Open(row) | FinderAction::Fork(row) | FinderAction::Show(row)) => {
            Some(source.cards[source.matches[row]].clone())
        }
        None => None,
    })
}

struct SessionSource<'a> {
    app: &'a App,
    tl: &'a Throughline,
    cards: Vec<SessionInfo>,
    /// What is matched of each.
    texts: Vec<String>,
    /// The cards that fit, by number.
    matches: Vec<usize>,
    matcher: Matcher,
}

fn search_text(card: &SessionInfo) -> String {
    let tags: String = card.tags.iter().map(|tag| format!(" #{tag}")).collect();
    let agent = card.agent.as_ref().map_or("", |agent| &agent.name);
    format!(
        "{} {}{tags} {agent} {}",
        card.title(),
        card.id,
        card.preview
    )
}

impl FinderSource for SessionSource<'_> {
    fn key_help(&self) -> &'static str {
        "Enter opens · Esc leaves · Ctrl-U empties · PgUp PgDn scroll"
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
        // The latest first where they fit as well.
        scored.sort_by_key(|(score, index)| (std::cmp::Reverse(*score), *index));
        self.matches = scored.into_iter().map(|(_, index)| index).collect();
        let now = self.tl.now();
        let rows = self.matches.iter().map(|index| {
            let card = &self.cards[*index];
            let name = card.name.as_ref().map_or("", |name| name.as_str());
            let space = if name.is_empty() { "" } else { "  " };
            Row {
                title: sanitize(&format!("{name}{space}{}", card.preview)).into_owned(),
                detail: format!(
                    "{} · {}",
                    card.messages,
                    format_age(card.last_activity, now, &self.app.zone)
                ),
            }
        });
        Ok(rows.collect())
    }

    async fn preview(&mut self, row: usize, width: usize) -> Result<String> {
        let card = &self.cards[self.matches[row]];
        let session = self.tl.session(&card.id).await?;
        let banner = render_resume_banner(card);
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
            let said: String = message.content.to_text().chars().take(400).collect();
            text.push_str(&format!(
                "\n{}:\n{}",
                message.role,
                wrap_plain(&said, width)
            ));
        }
        Ok(text)
    }
}
