//! Names a session that has no name, from its first messages.

use throughline_model::{Body, Entry, Lineage, Message, NameSource, Role, Seq};

use crate::{Error, Session};

/// The number of entries considered for a name.
const FIRST_ENTRIES: usize = 12;
/// The number of questions with which a session is named; later is too late.
const QUESTION_COUNTS: std::ops::RangeInclusive<usize> = 1..=2;

impl Session {
    /// Returns the first messages, if the session has no name and few questions yet.
    pub async fn needs_title(&self) -> Result<Option<Vec<Message>>, Error> {
        let info = self.record().await?.info;
        if info.name.is_some() {
            return Ok(None);
        }
        // The shared entries of a fork have named its origin.
        let shared = match info.lineage {
            Lineage::Forked { at, .. } => at,
            _ => Seq::ZERO,
        };
        let first = self.entries(shared.next(), FIRST_ENTRIES).await?;
        let messages: Vec<Message> = first
            .into_iter()
            .filter_map(|entry| match entry.body {
                Body::Message(message) => Some(message),
                _ => None,
            })
            .collect();
        let questions = messages.iter().filter(|message| message.role == Role::User);
        Ok(QUESTION_COUNTS
            .contains(&questions.count())
            .then_some(messages))
    }

    /// Names the session by a title or, without one, from the first user message.
    /// Returns `None` if neither makes a valid name.
    pub async fn assign_name(
        &self,
        messages: &[Message],
        title: Option<String>,
    ) -> Result<Option<Entry>, Error> {
        let question = messages.iter().find(|message| message.role == Role::User);
        let from_question = || throughline_llm::derive_title(&question?.content.to_text());
        // A slash in a title is not a path separator.
        let title = title
            .or_else(from_question)
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

    /// Names the session from the first user message, if it has no name and few
    /// questions yet.
    pub async fn name_from_first_message(&self) -> Result<Option<Entry>, Error> {
        match self.needs_title().await? {
            Some(messages) => self.assign_name(&messages, None).await,
            None => Ok(None),
        }
    }
}
