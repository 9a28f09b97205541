//! Converts between conversation items and session entries.
//!
//! [`new_item`] converts an item to an entry, [`entry_items`] an entry to items. A part of a
//! message is a block; fields that a block cannot represent are stored in a foreign block after the
//! others ([`ExtraFields`](extra_fields::ExtraFields)), so that the model sees the text and the
//! caller gets everything back.

mod content_part;
mod entry_items;
mod extra_fields;
#[cfg(test)]
mod fuzz;
mod new_item;

pub(super) use entry_items::{Item, items_of_entry};
pub(super) use new_item::{NewItem, parse_item};
