//! Calls and results, kept in pairs.

use throughline_model::{Block, Content, ToolResult};

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

    /// Results for the calls that were never answered.
    pub(super) fn missing(&mut self) -> Vec<Block> {
        let open = std::mem::take(&mut self.open).into_iter();
        let missing = open.map(|call_id| {
            Block::ToolResult(ToolResult {
                call_id,
                content: Content::text("No result was kept."),
                is_error: true,
            })
        });
        missing.collect()
    }
}
