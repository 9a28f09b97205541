//! Sections made of items: as many as fit, whole, and a word on the rest.

use crate::token_cost::MESSAGE_TOKENS;
use crate::{Encoding, EntryRef, Omission, Section};

/// A heading and what stands under it.
pub(crate) struct ItemGroup {
    pub(crate) heading: &'static str,
    pub(crate) items: Vec<ListItem>,
}

/// One line, and the entry it comes from.
pub(crate) struct ListItem {
    pub(crate) text: String,
    pub(crate) source: Option<EntryRef>,
}

impl ListItem {
    pub(crate) fn new(text: &str, source: Option<EntryRef>) -> Self {
        Self {
            text: text.trim().replace('\n', "\n  "),
            source,
        }
    }
}

/// In which order the items that fit are told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItemOrder {
    /// As they were given.
    Given,
    /// By the entries they come from, so that which matters more changes nothing.
    BySource,
}

/// Fills a section with the items that fit, the first ones first.
pub(crate) fn fill_section(
    section: &mut Section,
    intro: &str,
    groups: Vec<ItemGroup>,
    order: ItemOrder,
    room: Budget,
    encoding: Encoding,
) {
    let mut items: Vec<(&'static str, ListItem)> = groups
        .into_iter()
        .flat_map(|group| {
            group
                .items
                .into_iter()
                .map(move |item| (group.heading, item))
        })
        .filter(|(_, item)| !item.text.is_empty())
        .collect();
    let all = items.len();
    if all == 0 {
        return;
    }
    let render = |items: &[(&'static str, ListItem)]| render_items(intro, items, order);
    let cost = |text: &str| MESSAGE_TOKENS + encoding.count(text);
    let mut text = render(&items);
    let mut tokens = cost(&text);
    if tokens > room.tokens {
        // Each item by itself, then the whole to be sure.
        let mut left = room.tokens.saturating_sub(cost(intro));
        let mut heading = "";
        items.retain(|(under, item)| {
            let mut price = encoding.count(&item.text) + 3;
            if heading != *under {
                price += encoding.count(under) + 4;
            }
            let fits = price <= left;
            if fits {
                left -= price;
                heading = under;
            }
            fits
        });
        text = render(&items);
        tokens = cost(&text);
        while tokens > room.tokens && items.pop().is_some() {
            text = render(&items);
            tokens = cost(&text);
        }
    }
    let dropped = all - items.len();
    if dropped > 0 {
        let what = format!("{dropped} of {all} {}", section.name);
        section
            .left_out
            .push(Omission::new(what + " items", room.limit_reason));
    }
    if items.is_empty() {
        return;
    }
    section.text = text;
    section.tokens = tokens;
    for (_, item) in items {
        if let Some(source) = item.source
            && !section.entries.contains(&source)
        {
            section.entries.push(source);
        }
    }
}

/// How much may be said, and why no more.
#[derive(Clone, Copy)]
pub(crate) struct Budget {
    pub(crate) tokens: u64,
    pub(crate) limit_reason: &'static str,
}

impl Budget {
    /// What is left, but no more than a share.
    pub(crate) fn capped(left: u64, share: u64) -> Self {
        if share <= left {
            Self {
                tokens: share,
                limit_reason: "over its share",
            }
        } else {
            Self {
                tokens: left,
                limit_reason: "no room",
            }
        }
    }

    /// What is left.
    pub(crate) fn remaining(left: u64) -> Self {
        Self::capped(left, u64::MAX)
    }
}

fn render_items(intro: &str, items: &[(&'static str, ListItem)], order: ItemOrder) -> String {
    let mut text = intro.to_owned();
    let mut heading = "";
    let mut items: Vec<_> = items.iter().collect();
    if order == ItemOrder::BySource {
        items.sort_by_key(|(_, item)| item.source.as_ref().map(|from| (&from.session, from.seq)));
    }
    for (under, item) in items {
        if heading != *under {
            text.extend(["\n\n", under, ":"]);
            heading = under;
        }
        text.extend(["\n- ", &item.text]);
    }
    text
}
