//! Extracts the messages of an entry that are visible to the model.
//!
//! Visible are messages, the exchange that restored a session, and the summary of a
//! merge. Everything else in a log reaches the model only through the sections built
//! from it.

use std::borrow::Cow;

use throughline_model::{Body, Content, Entry, Role};

/// A visible message and its role.
pub(crate) struct VisibleMessage<'a> {
    pub(crate) role: Role,
    pub(crate) content: Cow<'a, Content>,
}

/// The messages that an entry shows to the model, in order.
pub(crate) fn visible_messages(entry: &Entry) -> Vec<VisibleMessage<'_>> {
    let text = |role, text: String| VisibleMessage {
        role,
        content: Cow::Owned(Content::text(text)),
    };
    match &entry.body {
        Body::Message(message) => vec![VisibleMessage {
            role: message.role,
            content: Cow::Borrowed(&message.content),
        }],
        Body::Restored(restored) => {
            let mut exchange = vec![text(Role::User, restored.prompt.clone())];
            if let Some(answer) = &restored.acknowledgement {
                exchange.push(text(Role::Assistant, answer.clone()));
            }
            exchange
        }
        Body::Merged(merge) => merge
            .summary
            .iter()
            .map(|summary| {
                text(
                    Role::User,
                    format!("[merged from session {}]\n{summary}", merge.from),
                )
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// Whether an entry starts a turn: a user message without tool results.
pub(crate) fn is_query(entry: &Entry) -> bool {
    match &entry.body {
        Body::Message(message) => {
            message.role == Role::User && message.content.tool_results().next().is_none()
        }
        Body::Restored(_) => true,
        _ => false,
    }
}
