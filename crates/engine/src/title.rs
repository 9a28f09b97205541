//! A name for a session that nobody has named, from what was said first in it.

use throughline_model::{Body, Entry, Lineage, Message, NameSource, Role, Seq};

use crate::{Error, Session};

/// How much of a session is looked at to name it.
const FIRST_ENTRIES: usize = 12;
/// How much may have been asked before it is too late to name it.
const QUESTION_COUNTS: std::ops::RangeInclusive<usize> = 1..=2;

impl Session {
    /// What was said first, where the session has no name yet and little was asked in it.
    pub async fn needs_title(&self) -> Result<Option<Vec<Message>>, Error> {
        let card = self.record().await?.info;
        if card.name.is_some() {
            return Ok(None);
        }
        // What a fork shares was said elsewhere, and has named that.
        let shared = match card.lineage {
            Lineage::Forked { at, .. } => at,
            _ => Seq::ZERO,
        };
        let first = self.entries(shared.next(), FIRST_ENTRIES).await?;
        let said: Vec<Message> = first
            .into_iter()
            .filter_map(|entry| match entry.body {
                Body::Message(message) => Some(message),
                _ => None,
            })
            .collect();
        let asked = said.iter().filter(|message| message.role == Role::User);
        Ok(QUESTION_COUNTS.contains(&asked.count()).then_some(said))
    }

    /// Names the session by a title, or else in the words of the person who said something
    /// first. Nothing where neither makes a name.
    pub async fn assign_name(
        &self,
        said: &[Message],
        title: Option<String>,
    ) -> Result<Option<Entry>, Error> {
        let question = said.iter().find(|message| message.role == Role::User);
        let plain = || throughline_llm::derive_title(&question?.content.to_text());
        // A slash in it is no path.
        let title = title
            .or_else(plain)
            .map(|title| title.replace(['/', '\\', '.'], "-"));
        let Some(name) = title.and_then(|title| title.parse().ok()) else {
            return Ok(None);
        };
        let body = Body::Renamed {
            name: Some(name),
            by: NameSource::Program,
        };
        self.append(body).await.map(Some)
    }

    /// Names the session in the words of the person, where it has no name yet and little
    /// was asked in it.
    pub async fn name_from_first_message(&self) -> Result<Option<Entry>, Error> {
        match self.needs_title().await? {
            Some(said) => self.assign_name(&said, None).await,
            None => Ok(None),
        }
    }
}
