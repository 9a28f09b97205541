//! Sessions to choose from, by name, tag and first words.

use anyhow::Result;
use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use throughline::context::banner;
use throughline::glance::age;
use throughline::{Card, Entry, Filter, Throughline};

use super::{Chosen, Row, Source, choose};
use crate::app::App;
use crate::markdown::{plain, safe};

/// Messages shown of a session.
const SHOWN: usize = 6;

/// Lets the person choose a session.
pub(crate) async fn sessions(app: &App, tl: &Throughline) -> Result<Option<Card>> {
    let cards = tl.list_all(&Filter::default()).await?;
    let texts = cards.iter().map(searched).collect();
    let shown = (0..cards.len()).collect();
    let mut source = Sessions {
        app,
        tl,
        cards,
        texts,
        shown,
        matcher: Matcher::new(Config::DEFAULT),
    };
    Ok(match choose(&mut source).await? {
        Some(Chosen::Open(row) | Chosen::Fork(row) | Chosen::Show(row)) => {
            Some(source.cards[source.shown[row]].clone())
        }
        None => None,
    })
}

struct Sessions<'a> {
    app: &'a App,
    tl: &'a Throughline,
    cards: Vec<Card>,
    /// What is matched of each.
    texts: Vec<String>,
    /// The cards that fit, by number.
    shown: Vec<usize>,
    matcher: Matcher,
}

fn searched(card: &Card) -> String {
    let tags: String = card.tags.iter().map(|tag| format!(" #{tag}")).collect();
    let agent = card.agent.as_ref().map_or("", |agent| &agent.name);
    format!(
        "{} {}{tags} {agent} {}",
        card.title(),
        card.id,
        card.preview
    )
}

impl Source for Sessions<'_> {
    fn keys(&self) -> &'static str {
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
        self.shown = scored.into_iter().map(|(_, index)| index).collect();
        let now = self.tl.now();
        let rows = self.shown.iter().map(|index| {
            let card = &self.cards[*index];
            let name = card.name.as_ref().map_or("", |name| name.as_str());
            let space = if name.is_empty() { "" } else { "  " };
            Row {
                title: safe(&format!("{name}{space}{}", card.preview)).into_owned(),
                detail: format!(
                    "{} · {}",
                    card.messages,
                    age(card.last_activity, now, &self.app.zone)
                ),
            }
        });
        Ok(rows.collect())
    }

    async fn preview(&mut self, row: usize, width: usize) -> Result<String> {
        let card = &self.cards[self.shown[row]];
        let session = self.tl.session(&card.id).await?;
        let banner = banner(card);
        let mut text: String = banner
            .lines()
            .skip(1)
            .take_while(|line| !line.is_empty())
            .map(|line| format!("{}\n", safe(line)))
            .collect();
        if let Some(known) = session.last_summary().await? {
            let block = known.summary.to_block();
            let lines = block.lines().filter(|line| !line.starts_with("<!--"));
            text.push('\n');
            text.extend(lines.map(|line| format!("{}\n", safe(line))));
        }
        for message in session.tail(SHOWN).await?.iter().filter_map(Entry::message) {
            let said: String = message.content.to_text().chars().take(400).collect();
            text.push_str(&format!("\n{}:\n{}", message.role, plain(&said, width)));
        }
        Ok(text)
    }
}
