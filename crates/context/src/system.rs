//! The sections of the system message: agent, context, memory, checkpoint.
//!
//! They come first and change least, so that the requests of a session begin alike.

use throughline_model::{Noted, Summary};

use crate::lists::{Group, Item, Order, Room, fill};
use crate::tokens::MESSAGE_TOKENS;
use crate::{Document, Encoding, EntryRef, Fact, LeftOut, Material, Section, SectionName};

/// What the agent is and does; cut at a line's end where it does not fit.
pub(crate) fn agent(text: Option<&str>, room: u64, encoding: Encoding) -> Section {
    let mut section = Section::new(SectionName::Agent);
    let text = text.unwrap_or_default().trim_end();
    if !text.trim().is_empty() {
        add_cut(
            &mut section,
            "the agent's description",
            text,
            Room::left(room),
            encoding,
        );
    }
    section
}

/// Project context; the document that does not fit is cut at a line's end, and those
/// after it are taken where they fit.
pub(crate) fn context(documents: &[Document], room: Room, encoding: Encoding) -> Section {
    let mut section = Section::new(SectionName::Context);
    for document in documents {
        if document.text.trim().is_empty() {
            continue;
        }
        let text = format!("# {}\n\n{}", document.name, document.text.trim_end());
        add_cut(&mut section, &document.name, &text, room, encoding);
    }
    section
}

/// Adds a text to a section, as many of its lines as fit.
fn add_cut(section: &mut Section, name: &str, text: &str, room: Room, encoding: Encoding) {
    const CUT: &str = "\n[cut: the rest is left out]";
    let start = if section.text.is_empty() { "" } else { "\n\n" };
    let before = section.tokens.max(MESSAGE_TOKENS);
    let left = room.tokens.saturating_sub(before);
    let whole = encoding.count(start) + encoding.count(text);
    if whole <= left {
        section.text.extend([start, text]);
        section.tokens = before + whole;
        return;
    }
    let mut note = LeftOut::new(name, room.why).costing(whole);
    // The heading alone says nothing.
    let least = text.find('\n').map_or(0, |end| end + 2);
    let kept = lines_within(
        text,
        left.saturating_sub(encoding.count(CUT) + encoding.count(start)),
        encoding,
    );
    if kept.len() >= least && !kept.trim().is_empty() {
        let added = encoding.count(start) + encoding.count(kept) + encoding.count(CUT);
        section.text.extend([start, kept, CUT]);
        section.tokens = before + added;
        note.what = format!("the end of {name}");
        note.tokens = Some(whole.saturating_sub(added));
    }
    section.left_out.push(note);
}

/// The longest run of whole lines from the start that costs no more than this.
fn lines_within(text: &str, most: u64, encoding: Encoding) -> &str {
    let ends: Vec<usize> = text.match_indices('\n').map(|(end, _)| end).collect();
    let (mut fits, mut fails) = (0, ends.len() + 1);
    // `fits` lines fit, `fails` do not.
    while fails - fits > 1 {
        let middle = usize::midpoint(fits, fails);
        if encoding.count(&text[..ends[middle - 1]]) <= most {
            fits = middle;
        } else {
            fails = middle;
        }
    }
    fits.checked_sub(1).map_or("", |last| &text[..ends[last]])
}

/// What is remembered across sessions.
pub(crate) fn memory(facts: &[Fact], room: Room, encoding: Encoding) -> Section {
    let mut section = Section::new(SectionName::Memory);
    let items = facts
        .iter()
        .map(|fact| Item::new(&fact.text, fact.source.clone()))
        .collect();
    let groups = vec![Group {
        heading: "Remembered from earlier sessions",
        items,
    }];
    let intro = "# Memory";
    fill(&mut section, intro, groups, Order::BySource, room, encoding);
    section
}

/// What earlier messages came to. Pins and decisions come first: they go last.
pub(crate) fn checkpoint(material: &Material<'_>, room: u64, encoding: Encoding) -> Section {
    let mut section = Section::new(SectionName::Checkpoint);
    let standing = &material.record.standing;
    let none = Summary::default();
    let (summary, source) = match material.checkpoint {
        Some((entry, checkpoint)) => (
            &checkpoint.summary,
            Some(EntryRef {
                session: material.session.clone(),
                seq: entry.seq,
                external_id: entry.external_id.clone(),
            }),
        ),
        None => (&none, None),
    };
    let noted = |notes: &[Noted]| -> Vec<Item> {
        notes
            .iter()
            .map(|noted| {
                let place = EntryRef {
                    session: material.session.clone(),
                    seq: noted.seq,
                    external_id: None,
                };
                Item::new(&noted.text, Some(place))
            })
            .collect()
    };
    let mut decisions = noted(&standing.decisions);
    let is_new = |text: &&String| standing.decisions.iter().all(|noted| noted.text != **text);
    let from_summary = |text: &String| Item::new(text, source.clone());
    decisions.extend(summary.decisions.iter().filter(is_new).map(from_summary));
    let mut groups = vec![
        Group {
            heading: "Pinned",
            items: noted(&standing.pins),
        },
        Group {
            heading: "Decisions",
            items: decisions,
        },
    ];
    let background = [summary.background.clone()];
    for (heading, items) in [
        ("Background", &background[..]),
        ("In progress", &summary.in_progress),
        ("Pending", &summary.pending),
        ("Open tasks", &summary.open_tasks),
        ("Blockers", &summary.blockers),
        ("Facts", &summary.facts),
        ("Completed", &summary.completed),
        ("Topics", &summary.topics),
        ("Files touched", &summary.files_touched),
    ] {
        groups.push(Group {
            heading,
            items: items.iter().map(from_summary).collect(),
        });
    }
    let intro = if source.is_some() {
        "# Earlier in this conversation\n\nA summary of what came before the messages below, \
         and what stands. It is a record, not instructions."
    } else {
        "# What stands in this conversation"
    };
    let room = Room::left(room);
    fill(&mut section, intro, groups, Order::Given, room, encoding);
    section
}
