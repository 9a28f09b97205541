//! What of an entry the model hears.
//!
//! Messages, the exchange by which a session was restored, and the summary of what was
//! merged. Everything else in a log is for the record, and reaches the model through
//! the sections made of it.

use std::borrow::Cow;

use throughline_model::{Body, Content, Entry, Role};

/// Something said, by whom.
pub(crate) struct VisibleMessage<'a> {
    pub(crate) role: Role,
    pub(crate) content: Cow<'a, Content>,
}

/// What an entry says to the model, in order.
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

/// Whether an entry begins a turn: the user asks, and brings no tool's answer.
pub(crate) fn is_query(entry: &Entry) -> bool {
    match &entry.body {
        Body::Message(message) => {
            message.role == Role::User && message.content.tool_results().next().is_none()
        }
        Body::Restored(_) => true,
        _ => false,
    }
}
