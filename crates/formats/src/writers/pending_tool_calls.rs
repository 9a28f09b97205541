//! Calls and results, kept in pairs.

use throughline_model::{Content, Message, ToolResult};

/// The calls that wait for their results.
#[derive(Debug, Default)]
pub(super) struct PendingToolCalls {
    open: Vec<String>,
}

impl PendingToolCalls {
    /// Takes note of the calls in a message.
    pub(super) fn add_calls(&mut self, content: &Content) {
        let ids = content.tool_calls().map(|call| call.id.clone());
        self.open.extend(ids);
    }

    /// Whether a result answers a call that waits.
    pub(super) fn resolve(&mut self, result: &ToolResult) -> bool {
        match self.open.iter().position(|id| *id == result.call_id) {
            Some(place) => {
                self.open.remove(place);
                true
            }
            None => false,
        }
    }

    /// Results for the calls that are not answered and will not be, once this is said.
    pub(super) fn take_missing_before(&mut self, message: &Message) -> Vec<ToolResult> {
        match message.content.tool_results().next() {
            Some(_) => Vec::new(),
            None => self.take_missing(),
        }
    }

    /// Results for the calls that were never answered.
    pub(super) fn take_missing(&mut self) -> Vec<ToolResult> {
        let open = std::mem::take(&mut self.open).into_iter();
        let missing = open.map(|call_id| ToolResult {
            call_id,
            content: Content::text("No result was kept."),
            is_error: true,
        });
        missing.collect()
    }
}
