//! The offline agent: answers when no model is configured.
//!
//! It is not a language model and says so. It answers from an [`OfflineContext`]: it quotes
//! earlier messages relevant to the question, lists open tasks, decisions and pins, gives
//! the session's summary, and acknowledges a restored session. It only repeats what is in
//! the history.

mod intent;
mod replies;

use async_trait::async_trait;
use throughline_model::{Block, Role, Summary};

use crate::{Answer, Delta, FinishReason, Model, ModelRequest, PartialAnswer};
use intent::{Intent, classify_intent};

/// Model name that its answers are stored under.
pub const OFFLINE_MODEL: &str = "offline";
/// Provider name of the offline agent.
pub const OFFLINE_PROVIDER: &str = "throughline";

/// What the offline agent answers from.
#[derive(Clone, Debug, Default)]
pub struct OfflineContext {
    /// Summary of the session so far.
    pub summary: Summary,
    /// The session's pins.
    pub pins: Vec<String>,
    /// The session's decisions.
    pub decisions: Vec<String>,
    /// The project's memory.
    pub memory: Vec<String>,
    /// Earlier messages relevant to the question, best first.
    pub excerpts: Vec<OfflineExcerpt>,
}

/// An excerpt of an earlier message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfflineExcerpt {
    /// Who wrote it.
    pub author: String,
    /// When, formatted for people.
    pub when: String,
    /// The session and the entry.
    pub location: String,
    /// The text.
    pub text: String,
}

/// Which context the offline agent needs to answer a message, so that no more is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfflineQuery {
    /// Only the message itself.
    Nothing,
    /// The last stored summary, if there is one.
    LastSummary,
    /// An up-to-date summary of the session.
    Summary,
    /// Earlier messages relevant to it.
    Excerpts,
}

impl OfflineQuery {
    /// Returns what is needed to answer a message.
    pub fn for_message(message: &str) -> Self {
        match classify_intent(message) {
            Intent::Restore(_) => Self::Nothing,
            Intent::List(_) | Intent::Recap => Self::Summary,
            Intent::Greet => Self::LastSummary,
            Intent::Other => Self::Excerpts,
        }
    }
}

/// A model that answers without a network.
#[derive(Clone, Debug, Default)]
pub struct OfflineModel {
    context: OfflineContext,
}

impl OfflineModel {
    /// Creates an agent that answers from `context`.
    pub fn with_context(context: OfflineContext) -> Self {
        Self { context }
    }

    /// Returns the reply to a request.
    fn reply(&self, request: &ModelRequest<'_>) -> String {
        let messages_by = |role| request.messages.iter().filter(move |m| m.role == role);
        // Recalled excerpts come before the message itself.
        let message = messages_by(Role::User)
            .next_back()
            .and_then(|message| message.content.0.iter().rev().find_map(Block::as_text))
            .unwrap_or_default();
        let first = messages_by(Role::Assistant).next().is_none();
        match classify_intent(message) {
            Intent::Restore(summary) => replies::format_acknowledgement(&summary),
            Intent::List(what) => replies::format_list(what, &self.context),
            Intent::Recap => replies::format_recap(&self.context, first),
            Intent::Greet => replies::format_greeting(&self.context, first),
            Intent::Other => replies::format_excerpts(&self.context, first),
        }
    }
}

#[async_trait]
impl Model for OfflineModel {
    fn name(&self) -> &'static str {
        OFFLINE_MODEL
    }

    fn provider(&self) -> &'static str {
        OFFLINE_PROVIDER
    }

    async fn answer(
        &self,
        request: &ModelRequest<'_>,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Answer, PartialAnswer> {
        let text = self.reply(request);
        for line in text.split_inclusive('\n') {
            on_delta(Delta::Text(line.to_owned()));
        }
        Ok(Answer {
            content: throughline_model::Content::text(text),
            usage: None,
            model: None,
            finish_reason: FinishReason::Completed,
        })
    }
}

#[cfg(test)]
mod tests {
    use throughline_context::RequestMessage;
    use throughline_model::Content;

    use super::*;

    fn reply(known: OfflineContext, messages: &[(Role, &str)]) -> String {
        let messages: Vec<_> = messages
            .iter()
            .map(|(role, text)| RequestMessage {
                role: *role,
                content: Content::text(*text),
                breakpoints: Vec::new(),
            })
            .collect();
        let request = ModelRequest {
            messages: &messages,
            ..ModelRequest::default()
        };
        OfflineModel::with_context(known).reply(&request)
    }

    fn context() -> OfflineContext {
        OfflineContext {
            summary: Summary {
                topics: vec!["Rate limiter".into()],
                decisions: vec!["Use a token bucket.".into()],
                open_tasks: vec!["Write the integration tests".into()],
                ..Summary::default()
            },
            pins: vec!["The port is 8080".into()],
            excerpts: vec![OfflineExcerpt {
                author: "you".into(),
                when: "2 May 2026".into(),
                location: "auth, entry 7".into(),
                text: "Redis runs on port 6380 in staging.".into(),
            }],
            ..OfflineContext::default()
        }
    }

    #[test]
    fn it_quotes_what_was_said_and_says_what_it_is() {
        let reply_text = reply(context(), &[(Role::User, "Which port does Redis use?")]);
        assert!(reply_text.contains("> Redis runs on port 6380 in staging."));
        assert!(reply_text.contains("auth, entry 7"), "{reply_text}");
        assert!(reply_text.contains("not a language model"));
        assert!(reply_text.contains("ANTHROPIC_API_KEY"));
    }

    #[test]
    fn it_introduces_itself_once() {
        let reply_text = reply(
            context(),
            &[
                (Role::User, "Hello"),
                (Role::Assistant, "I am here."),
                (Role::User, "Which port does Redis use?"),
            ],
        );
        assert!(!reply_text.contains("ANTHROPIC_API_KEY"), "{reply_text}");
    }

    #[test]
    fn it_lists_what_is_asked_for() {
        let reply_text = reply(context(), &[(Role::User, "What tasks are still open?")]);
        assert!(
            reply_text.contains("- Write the integration tests"),
            "{reply_text}"
        );
        let reply_text = reply(context(), &[(Role::User, "list the decisions")]);
        assert!(reply_text.contains("- Use a token bucket."), "{reply_text}");
        let reply_text = reply(context(), &[(Role::User, "show pins")]);
        assert!(reply_text.contains("- The port is 8080"), "{reply_text}");
        let reply_text = reply(
            OfflineContext::default(),
            &[(Role::User, "any open tasks?")],
        );
        assert!(reply_text.contains("No open tasks"), "{reply_text}");
    }

    #[test]
    fn what_is_recalled_is_not_taken_for_the_message() {
        let message = RequestMessage {
            role: Role::User,
            content: Content(vec![
                Block::Text("Excerpts of earlier conversations: let's use Redis.".into()),
                Block::Text("show pins".into()),
            ]),
            breakpoints: Vec::new(),
        };
        let request = ModelRequest {
            messages: &[message],
            ..ModelRequest::default()
        };
        let reply_text = OfflineModel::with_context(context()).reply(&request);
        assert!(reply_text.contains("- The port is 8080"), "{reply_text}");
    }

    #[test]
    fn it_acknowledges_a_restored_session_from_its_summary() {
        let prompt = format!(
            "CONTEXT RESTORATION: You are continuing a previous conversation.\n\n{}",
            context().summary.to_block()
        );
        let reply_text = reply(OfflineContext::default(), &[(Role::User, &prompt)]);
        assert!(reply_text.contains("Rate limiter"), "{reply_text}");
        assert!(reply_text.contains("Use a token bucket."), "{reply_text}");
        assert!(reply_text.contains("ready to continue"), "{reply_text}");
    }

    #[test]
    fn it_makes_nothing_up_where_nothing_was_said() {
        let reply_text = reply(
            OfflineContext::default(),
            &[(Role::User, "Why is the sky blue?")],
        );
        assert!(reply_text.contains("Nothing"), "{reply_text}");
        assert!(reply_text.contains("not a language model"), "{reply_text}");
    }
}
