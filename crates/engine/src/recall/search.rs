//! Searching everything an owner ever said.

use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use throughline_model::{Card, ProjectId, SessionId};
use throughline_recall::{Found, Hit, Mode, Query, parse};
use throughline_store::Position;

use super::{IndexRebuild, Patience, Within, ask_index, needs_rebuild};
use crate::{Error, Throughline};

/// How long a search waits for an index that turned out to be unusable.
const REBUILDING: Patience = Patience::For(Duration::from_secs(10));

/// What to look for, and how.
#[derive(Clone, Debug)]
pub struct Searching<'a> {
    /// What was typed: words, "phrases" and filters.
    pub typed: &'a str,
    /// By words, by meaning, or by both.
    pub mode: Mode,
    /// At most so many hits.
    pub limit: usize,
    /// Whether the last word is still being typed.
    pub typing: bool,
    /// Only in this project.
    pub project: Option<&'a ProjectId>,
    /// The last listing the person saw, for `session:3`.
    pub listing: &'a [SessionId],
    /// Where the person is, for `after:yesterday`.
    pub zone: &'a TimeZone,
    /// How long to wait for what was just said to be findable.
    pub patience: Patience,
}

/// What was found.
#[derive(Debug)]
pub struct Searched {
    /// The hits, the best first.
    pub found: Found,
    /// The sessions they are in, as far as they are in use.
    pub cards: Vec<Card>,
    /// How many positions could not be searched yet.
    pub behind: u64,
}

impl Searched {
    /// Everything up to here was searched.
    pub fn watermark(&self) -> Position {
        Position(self.found.watermark)
    }

    /// The session of a hit.
    pub fn card(&self, session: &SessionId) -> Option<&Card> {
        self.cards.iter().find(|card| card.id == *session)
    }
}

impl Throughline {
    /// Looks for something in everything that was ever said.
    pub async fn search(&self, searching: &Searching<'_>) -> Result<Searched, Error> {
        let now = self.now().to_zoned(searching.zone.clone());
        let parsed = parse(searching.typed, &now)?;
        if !searching.typing && searching.mode != Mode::Text {
            self.get_ready_to_compare();
        }
        let caught = self.catch_up(searching.patience, &mut |_, _| {}).await?;
        let scope = self
            .narrowed(&parsed.filters, searching.project, searching.listing)
            .await?;
        let query = Query {
            phrases: parsed.phrases,
            mode: searching.mode,
            limit: searching.limit,
            typing: searching.typing,
            ..Query::new(parsed.words, scope)
        };
        let mut found = self.found(query.clone(), |within| within.search).await?;
        if self.drop_outdated(&mut found.hits).await? {
            // What was erased meanwhile is gone from the index as well by now.
            self.catch_up(REBUILDING, &mut |_, _| {}).await?;
            found = self.found(query.clone(), |within| within.search).await?;
            if self.drop_outdated(&mut found.hits).await? {
                self.rebuild_mismatched(REBUILDING).await?;
                found = self.found(query, |within| within.search).await?;
                self.drop_outdated(&mut found.hits).await?;
            }
        }
        keep_what_bears(&mut found.hits);
        let mut cards: Vec<Card> = Vec::new();
        for hit in &found.hits {
            if cards.iter().all(|card| card.id != hit.session)
                && let Some(record) = crate::throughline::record_if_any(self, &hit.session).await?
            {
                cards.push(record.card);
            }
        }
        Ok(Searched {
            found,
            cards,
            behind: caught.behind,
        })
    }

    /// Asks the index; what compares again may take as long as `within` says.
    ///
    /// An index that cannot be read is rebuilt first, as far as that takes no longer than a
    /// person would wait.
    pub(super) async fn found(
        &self,
        query: Query,
        within: fn(Within) -> Duration,
    ) -> Result<Found, Error> {
        match self.try_to_find(query.clone(), within).await {
            Err(error) if needs_rebuild(&error) => {
                self.discard_index(IndexRebuild::Damaged).await?;
                self.catch_up(REBUILDING, &mut |_, _| {}).await?;
                self.try_to_find(query, within).await
            }
            found => found,
        }
    }

    async fn try_to_find(
        &self,
        query: Query,
        within: fn(Within) -> Duration,
    ) -> Result<Found, Error> {
        let shelf = Arc::clone(&self.shelf);
        // Whoever is typing is not kept waiting, and words are not a matter of meaning.
        let again = self.again.clone();
        let again = again.filter(|_| !query.typing && query.mode != Mode::Text);
        ask_index(move || {
            let index = shelf.index()?;
            let index = index.index();
            let Some(again) = again else {
                return Ok(index.search(&query)?);
            };
            let found = match again.model() {
                Ok(model) => index.search_again(&query, model, within(again.within()))?,
                Err(unable) => Found {
                    compared: Some(unable),
                    ..index.search(&query)?
                },
            };
            if let Some(compared) = &found.compared {
                again.heard(compared);
            }
            Ok(found)
        })
        .await
    }
}

/// Leaves out what merely came along: where some hits have the words, in them or around
/// them, one that has none must at least mean much the same.
fn keep_what_bears(hits: &mut Vec<Hit>) {
    const MUCH_THE_SAME: f32 = 0.6;
    if hits.iter().any(|hit| hit.why.text > 0.0) {
        hits.retain(|hit| hit.why.text > 0.0 || hit.why.late >= MUCH_THE_SAME);
    }
}
