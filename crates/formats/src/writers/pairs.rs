//! Calls and results, kept in pairs.

use throughline_model::{Content, Message, ToolResult};

/// The calls that wait for their results.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    open: Vec<String>,
}

impl Pairs {
    /// Takes note of the calls in a message.
    pub(super) fn calls(&mut self, content: &Content) {
        let ids = content.tool_calls().map(|call| call.id.clone());
        self.open.extend(ids);
    }

    /// Whether a result answers a call that waits.
    pub(super) fn answers(&mut self, result: &ToolResult) -> bool {
        match self.open.iter().position(|id| *id == result.call_id) {
            Some(place) => {
                self.open.remove(place);
                true
            }
            None => false,
        }
    }

    /// Results for the calls that are not answered and will not be, once this is said.
    pub(super) fn missing_before(&mut self, message: &Message) -> Vec<ToolResult> {
        match message.content.tool_results().next() {
            Some(_) => Vec::new(),
            None => self.missing(),
        }
    }

    /// Results for the calls that were never answered.
    pub(super) fn missing(&mut self) -> Vec<ToolResult> {
        let open = std::mem::take(&mut self.open).into_iter();
        let missing = open.map(|call_id| ToolResult {
            call_id,
            content: Content::text("No result was kept."),
            is_error: true,
        });
        missing.collect()
    }
}
