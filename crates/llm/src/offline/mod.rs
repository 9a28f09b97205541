//! The agent that is there when no model is.
//!
//! It is not a language model and says so. It answers from what it [knows](Known): it
//! quotes what was said before that bears on the message, lists what is open, decided
//! and pinned, tells what a session came to, and acknowledges a restored one. Everything
//! it says about the past was said in the past.

mod intent;
mod replies;

use async_trait::async_trait;
use throughline_model::{Block, Role, Summary};

use crate::{Answer, Delta, FinishReason, Model, ModelRequest, PartialAnswer};
use intent::{Intent, classify_intent};

/// The name answers are kept under.
pub const OFFLINE_MODEL: &str = "offline";
/// Where it comes from.
pub const OFFLINE_PROVIDER: &str = "throughline";

/// What the offline agent has to go by.
#[derive(Clone, Debug, Default)]
pub struct OfflineContext {
    /// What the session came to so far.
    pub summary: Summary,
    /// What is pinned in it.
    pub pins: Vec<String>,
    /// What was decided in it.
    pub decisions: Vec<String>,
    /// What is remembered of the project.
    pub memory: Vec<String>,
    /// What was said before that bears on the message, the best first.
    pub excerpts: Vec<OfflineExcerpt>,
}

/// Something that was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfflineExcerpt {
    /// By whom.
    pub author: String,
    /// When, as a person reads it.
    pub when: String,
    /// In which session, and where in it.
    pub location: String,
    /// What.
    pub text: String,
}

/// What the offline agent needs to know to answer a message: no more has to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfflineQuery {
    /// What the message says.
    Nothing,
    /// What the session last came to, if that is known.
    LastSummary,
    /// What the session came to up to now.
    Summary,
    /// What was said before that bears on it.
    Excerpts,
}

impl OfflineQuery {
    /// What a message needs.
    pub fn for_message(message: &str) -> Self {
        match classify_intent(message) {
            Intent::Restore(_) => Self::Nothing,
            Intent::List(_) | Intent::Recap => Self::Summary,
            Intent::Greet => Self::LastSummary,
            Intent::Other => Self::Excerpts,
        }
    }
}

/// An agent that needs no model.
#[derive(Clone, Debug, Default)]
pub struct OfflineModel {
    context: OfflineContext,
}

impl OfflineModel {
    /// The agent, knowing this.
    pub fn with_context(context: OfflineContext) -> Self {
        Self { context }
    }

    /// What it answers.
    fn reply(&self, ask: &ModelRequest<'_>) -> String {
        let said = |role| ask.messages.iter().filter(move |m| m.role == role);
        // What is recalled comes before the message itself.
        let message = said(Role::User)
            .next_back()
            .and_then(|message| message.content.0.iter().rev().find_map(Block::as_text))
            .unwrap_or_default();
        let first = said(Role::Assistant).next().is_none();
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
        ask: &ModelRequest<'_>,
        tell: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Answer, PartialAnswer> {
        let text = self.reply(ask);
        for line in text.split_inclusive('\n') {
            tell(Delta::Text(line.to_owned()));
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
        let ask = ModelRequest {
            messages: &messages,
            ..ModelRequest::default()
        };
        OfflineModel::with_context(known).reply(&ask)
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
        let said = reply(context(), &[(Role::User, "Which port does Redis use?")]);
        assert!(said.contains("> Redis runs on port 6380 in staging."));
        assert!(said.contains("auth, entry 7"), "{said}");
        assert!(said.contains("not a language model"));
        assert!(said.contains("ANTHROPIC_API_KEY"));
    }

    #[test]
    fn it_introduces_itself_once() {
        let said = reply(
            context(),
            &[
                (Role::User, "Hello"),
                (Role::Assistant, "I am here."),
                (Role::User, "Which port does Redis use?"),
            ],
        );
        assert!(!said.contains("ANTHROPIC_API_KEY"), "{said}");
    }

    #[test]
    fn it_lists_what_is_asked_for() {
        let said = reply(context(), &[(Role::User, "What tasks are still open?")]);
        assert!(said.contains("- Write the integration tests"), "{said}");
        let said = reply(context(), &[(Role::User, "list the decisions")]);
        assert!(said.contains("- Use a token bucket."), "{said}");
        let said = reply(context(), &[(Role::User, "show pins")]);
        assert!(said.contains("- The port is 8080"), "{said}");
        let said = reply(
            OfflineContext::default(),
            &[(Role::User, "any open tasks?")],
        );
        assert!(said.contains("No open tasks"), "{said}");
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
        let ask = ModelRequest {
            messages: &[message],
            ..ModelRequest::default()
        };
        let said = OfflineModel::with_context(context()).reply(&ask);
        assert!(said.contains("- The port is 8080"), "{said}");
    }

    #[test]
    fn it_acknowledges_a_restored_session_from_its_summary() {
        let prompt = format!(
            "CONTEXT RESTORATION: You are continuing a previous conversation.\n\n{}",
            context().summary.to_block()
        );
        let said = reply(OfflineContext::default(), &[(Role::User, &prompt)]);
        assert!(said.contains("Rate limiter"), "{said}");
        assert!(said.contains("Use a token bucket."), "{said}");
        assert!(said.contains("ready to continue"), "{said}");
    }

    #[test]
    fn it_makes_nothing_up_where_nothing_was_said() {
        let said = reply(
            OfflineContext::default(),
            &[(Role::User, "Why is the sky blue?")],
        );
        assert!(said.contains("Nothing"), "{said}");
        assert!(said.contains("not a language model"), "{said}");
    }
}
