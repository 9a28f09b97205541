//! Turns, steps and messages of a request under construction.
//!
//! A turn is a query and everything until the next one. A step is what is sent or left
//! out as a unit: a user message, or an assistant message with the results of its tool
//! calls.
//!
//! Invariant: leaving out steps never separates a call from its result.

use std::borrow::Cow;

use throughline_model::{Block, Role, Seq};

use crate::token_cost::MESSAGE_TOKENS;

/// A block with its role, source entry and cost.
#[derive(Clone, Debug)]
pub(crate) struct CountedBlock<'a> {
    /// User, assistant or tool.
    pub(crate) role: Role,
    pub(crate) block: Cow<'a, Block>,
    pub(crate) seq: Seq,
    /// Without the cost of the message around it.
    pub(crate) tokens: u64,
    /// Whether it is the first block of a query.
    pub(crate) opens_turn: bool,
}

/// Consecutive blocks of one role.
#[derive(Clone, Debug)]
pub(crate) struct TurnMessage<'a> {
    pub(crate) role: Role,
    pub(crate) blocks: Vec<CountedBlock<'a>>,
}

/// Messages that are sent or left out as a unit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Step<'a> {
    pub(crate) messages: Vec<TurnMessage<'a>>,
}

impl Step<'_> {
    pub(crate) fn tokens(&self) -> u64 {
        saturating_sum(self.messages.iter().map(|message| {
            let blocks = saturating_sum(message.blocks.iter().map(|piece| piece.tokens));
            blocks.saturating_add(MESSAGE_TOKENS)
        }))
    }

    pub(crate) fn first_role(&self) -> Option<Role> {
        self.messages.first().map(|message| message.role)
    }

    pub(crate) fn seqs(&self) -> impl Iterator<Item = Seq> {
        self.messages
            .iter()
            .flat_map(|message| message.blocks.iter().map(|piece| piece.seq))
    }
}

/// A query and everything until the next one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turn<'a> {
    pub(crate) steps: Vec<Step<'a>>,
}

impl Turn<'_> {
    pub(crate) fn tokens(&self) -> u64 {
        saturating_sum(self.steps.iter().map(Step::tokens))
    }

    pub(crate) fn first_role(&self) -> Option<Role> {
        self.steps.first().and_then(Step::first_role)
    }
}

/// A saturating sum: stored counts are untrusted and may be absurd.
pub(crate) fn saturating_sum(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}
