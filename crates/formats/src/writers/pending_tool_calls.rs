//! Tracks tool calls without results, so that every call gets one.

use throughline_model::{Content, Message, ToolResult};

/// The calls that have no result yet.
#[derive(Debug, Default)]
pub(super) struct PendingToolCalls {
    open: Vec<String>,
}

impl PendingToolCalls {
    /// Adds the calls of a message.
    pub(super) fn add_calls(&mut self, content: &Content) {
        let ids = content.tool_calls().map(|call| call.id.clone());
        self.open.extend(ids);
    }

    /// Removes the call that a result answers; returns whether there was one.
    pub(super) fn resolve(&mut self, result: &ToolResult) -> bool {
        match self.open.iter().position(|id| *id == result.call_id) {
            Some(place) => {
                self.open.remove(place);
                true
            }
            None => false,
        }
    }

    /// Takes results for the calls that remain unanswered before this message.
    pub(super) fn take_missing_before(&mut self, message: &Message) -> Vec<ToolResult> {
        match message.content.tool_results().next() {
            Some(_) => Vec::new(),
            None => self.take_missing(),
        }
    }

    /// Takes results for all unanswered calls.
    pub(super) fn take_missing(&mut self) -> Vec<ToolResult> {
        let open = std::mem::take(&mut self.open).into_iter();
        let missing = open.map(|call_id| ToolResult {
            call_id,
            content: Content::text("No result was recorded."),
            is_error: true,
        });
        missing.collect()
    }
}
