//! Fills sections that consist of items: as many whole items as fit, and a note on the
//! rest.

use crate::token_cost::MESSAGE_TOKENS;
use crate::{Encoding, EntryRef, Omission, Section};

/// A heading with its items.
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

/// The order in which the items that fit are rendered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItemOrder {
    /// As given.
    Given,
    /// By source entry, so that a change of ranking does not change the text.
    BySource,
}

/// Fills a section with the items that fit, in order of priority.
pub(crate) fn fill_section(
    section: &mut Section,
    intro: &str,
    groups: Vec<ItemGroup>,
    order: ItemOrder,
    budget: Budget,
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
    if tokens > budget.tokens {
        // Count each item separately, then the whole to be sure.
        let mut left = budget.tokens.saturating_sub(cost(intro));
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
        while tokens > budget.tokens && items.pop().is_some() {
            text = render(&items);
            tokens = cost(&text);
        }
    }
    let dropped = all - items.len();
    if dropped > 0 {
        let what = format!("{dropped} of {all} {}", section.name);
        section
            .left_out
            .push(Omission::new(what + " items", budget.limit_reason));
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

/// The tokens available to a section, and the reason given for what does not fit.
#[derive(Clone, Copy)]
pub(crate) struct Budget {
    pub(crate) tokens: u64,
    pub(crate) limit_reason: &'static str,
}

impl Budget {
    /// The remaining tokens, limited to a share.
    pub(crate) fn capped(left: u64, share: u64) -> Self {
        if share <= left {
            Self {
                tokens: share,
                limit_reason: "over its share of the budget",
            }
        } else {
            Self {
                tokens: left,
                limit_reason: "over the budget",
            }
        }
    }

    /// All remaining tokens.
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
