//! Items and entries: what a conversation has, and what a session keeps of it.
//!
//! [`given`] makes an entry of an item, [`shown`] makes items of an entry. A part of a
//! message is a block; what a block cannot say stands in a foreign block after it all
//! ([`Rest`]), so that the model sees the words and the caller gets everything back.

#[cfg(test)]
mod fuzz;
mod given;
mod part;
mod rest;
mod shown;

pub(super) use given::{Given, given};
pub(super) use shown::{Item, shown};
