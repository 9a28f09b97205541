//! Items and entries: what a conversation has, and what a session keeps of it.
//!
//! [`given`] makes an entry of an item, [`shown`] makes items of an entry. A part of a
//! message is a block; what a block cannot say stands in a foreign block after it all
//! ([`Rest`]), so that the model sees the words and the caller gets everything back.

mod content_part;
mod entry_items;
mod extra_fields;
#[cfg(test)]
mod fuzz;
mod new_item;

pub(super) use entry_items::{Item, items_of_entry};
pub(super) use new_item::{NewItem, parse_item};
