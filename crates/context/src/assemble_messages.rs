//! Assembles the messages of a request in an order that every provider accepts.
//!
//! Invariant: the system message comes first, then a user message; roles alternate;
//! tool results directly follow their calls.

use throughline_model::{Block, Content, Role};

use crate::recent_turns::PLACEHOLDER;
use crate::repair::render_orphan_result;
use crate::request::{Repair, RepairKind, RequestMessage, Section, SectionName};
use crate::turn::Turn;

/// Assembles the final messages from the fitted sections and repaired turns.
pub(crate) struct MessageAssembler<'a, 's> {
    pub(crate) sections: &'s mut [Section],
    pub(crate) turns: Vec<Turn<'a>>,
    /// The calls that the new message answers.
    pub(crate) pending_calls: Vec<(String, String)>,
    pub(crate) new_blocks: Vec<Block>,
    pub(crate) repairs: &'s mut Vec<Repair>,
}

impl MessageAssembler<'_, '_> {
    /// Assembles the messages, and writes the text of the recent ones into their
    /// section.
    pub(crate) fn assemble(mut self) -> Vec<RequestMessage> {
        let mut messages = Vec::new();
        messages.extend(self.system_message());
        let before = messages.len();
        self.append_recent(&mut messages);
        self.render_recent(&messages[before..]);
        if messages.len() > before
            && let Some(last) = messages.last_mut()
        {
            last.breakpoints.push(last.content.0.len() - 1);
        }
        self.append_tail(&mut messages);
        messages
    }

    fn system_message(&self) -> Option<RequestMessage> {
        let mut blocks = Vec::new();
        let mut breakpoints = Vec::new();
        for section in self.sections.iter() {
            let is_system = section.name < SectionName::Recent;
            if is_system && !section.text.is_empty() {
                if section.cache_breakpoint {
                    breakpoints.push(blocks.len());
                }
                blocks.push(Block::Text(section.text.clone()));
            }
        }
        (!blocks.is_empty()).then_some(RequestMessage {
            role: Role::System,
            content: Content(blocks),
            breakpoints,
        })
    }

    fn append_recent(&mut self, messages: &mut Vec<RequestMessage>) {
        let turns = std::mem::take(&mut self.turns);
        let mut spoken = turns
            .into_iter()
            .flat_map(|turn| turn.steps)
            .flat_map(|step| step.messages)
            .peekable();
        if let Some(first) = spoken.peek()
            && first.role != Role::User
        {
            let seq = first.blocks.first().map(|piece| piece.seq);
            let what = "the conversation did not start with the user; a placeholder was added";
            self.repairs
                .push(Repair::new(RepairKind::FirstRole, seq, what));
            messages.push(new_message(
                Role::User,
                vec![Block::Text(PLACEHOLDER.to_owned())],
            ));
        }
        for message in spoken {
            let seq = message.blocks.first().map(|piece| piece.seq);
            let blocks: Vec<Block> = message
                .blocks
                .into_iter()
                .map(|piece| piece.block.into_owned())
                .collect();
            if is_same_role(messages, message.role) && message.role != Role::Tool {
                let what = "joined with the message before: the same speaker";
                self.repairs
                    .push(Repair::new(RepairKind::SameRole, seq, what));
            }
            append_blocks(messages, message.role, blocks);
        }
    }

    fn render_recent(&mut self, messages: &[RequestMessage]) {
        let recent = self
            .sections
            .iter_mut()
            .find(|section| section.name == SectionName::Recent);
        if let Some(recent) = recent {
            recent.text = messages
                .iter()
                .map(|message| format!("{}: {}", message.role, render_blocks(&message.content.0)))
                .collect::<Vec<_>>()
                .join("\n\n");
        }
    }

    /// Appends what follows the stable part: pending tool results, recalled excerpts
    /// and the new message.
    fn append_tail(self, messages: &mut Vec<RequestMessage>) {
        let mut asked: Vec<(String, String)> = self
            .pending_calls
            .into_iter()
            .filter(|(_, id)| is_awaiting_result(messages, id))
            .collect();
        let mut results = Vec::new();
        let mut blocks: Vec<Block> = self
            .sections
            .iter()
            .filter(|section| section.name == SectionName::Recalled && !section.text.is_empty())
            .map(|section| Block::Text(section.text.clone()))
            .collect();
        for block in self.new_blocks {
            let Block::ToolResult(mut result) = block else {
                blocks.push(block);
                continue;
            };
            let call = asked.iter().position(|(id, _)| *id == result.call_id);
            if let Some(call) = call {
                result.call_id = asked.swap_remove(call).1;
                results.push(Block::ToolResult(result));
            } else {
                let what = format!(
                    "result of unknown call {:?} was sent as text",
                    result.call_id
                );
                self.repairs
                    .push(Repair::new(RepairKind::UnpairedResult, None, what));
                blocks.push(render_orphan_result(&result));
            }
        }
        if !results.is_empty() {
            append_blocks(messages, Role::Tool, results);
        }
        if !blocks.is_empty() {
            if is_same_role(messages, Role::User) {
                let what = "the new message was joined with the one before: the same speaker";
                self.repairs
                    .push(Repair::new(RepairKind::SameRole, None, what));
            }
            append_blocks(messages, Role::User, blocks);
        }
    }
}

/// Whether the last messages contain a call with this id that has no result yet.
fn is_awaiting_result(messages: &[RequestMessage], id: &str) -> bool {
    messages
        .iter()
        .rev()
        .find(|message| message.role != Role::Tool)
        .is_some_and(|message| message.content.tool_calls().any(|call| call.id == id))
}

fn is_same_role(messages: &[RequestMessage], role: Role) -> bool {
    messages.last().is_some_and(|last| last.role == role)
}

/// Appends blocks, to the last message if it has the same role.
fn append_blocks(messages: &mut Vec<RequestMessage>, role: Role, mut blocks: Vec<Block>) {
    match messages.last_mut() {
        Some(last) if last.role == role => last.content.0.append(&mut blocks),
        _ => messages.push(new_message(role, blocks)),
    }
}

fn new_message(role: Role, blocks: Vec<Block>) -> RequestMessage {
    RequestMessage {
        role,
        content: Content(blocks),
        breakpoints: Vec::new(),
    }
}

/// Renders blocks as readable text.
pub(crate) fn render_blocks(blocks: &[Block]) -> String {
    let lines: Vec<String> = blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text(text) => Some(text.clone()),
            Block::Thinking { .. } => Some("[thinking]".to_owned()),
            Block::ToolCall(call) => Some(format!("[tool call: {} {}]", call.name, call.input)),
            Block::ToolResult(result) => Some(format!(
                "[tool result] {}",
                render_blocks(&result.content.0)
            )),
            Block::Attachment(attachment) => {
                Some(crate::token_cost::describe_attachment(attachment))
            }
            Block::Foreign(json) => Some(json.to_string()),
            _ => None,
        })
        .collect();
    lines.join("\n")
}
