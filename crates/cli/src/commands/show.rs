//! `tl show`: prints the entries, working set or checkpoint of a session.

use anyhow::Result;
use serde::Serialize;
use throughline::{Entry, ReadRange, Seq, Session, SessionInfo, SessionSpec};

use crate::app::App;
use crate::entry_text;
use crate::ui::PageStart;

/// Entries shown before and after the one of `--around`.
const AROUND: u64 = 5;
/// Default number of entries shown on a terminal.
const DEFAULT_TAIL: usize = 50;
/// Entries read per page.
const PAGE_SIZE: usize = 500;

/// Show a session
///
/// Shows the last entries; --all shows every entry, including those cleared, rewound or
/// compacted since. With --json, starts at --from and pages by --limit: `next` is the --from
/// of the next page.
#[derive(clap::Args, Debug)]
pub(crate) struct ShowArgs {
    /// The session
    #[arg(default_value = "last")]
    session: SessionSpec,
    /// The last N entries
    #[arg(long, value_name = "N", group = "part")]
    last: Option<usize>,
    /// The entry with this number and a few before and after it
    #[arg(long, value_name = "SEQ", group = "part")]
    around: Option<Seq>,
    /// Every entry
    #[arg(long, group = "part")]
    all: bool,
    /// Start at the entry with this number
    #[arg(long, value_name = "SEQ", group = "part")]
    from: Option<Seq>,
    /// Maximum number of entries
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Show the working set instead: summary, pins, decisions, files, messages
    #[arg(long, group = "part")]
    working_set: bool,
    /// Show the checkpoint as a document instead
    #[arg(long, group = "part")]
    checkpoint: bool,
}

#[derive(Serialize)]
struct ShowOutput<'a> {
    session: &'a SessionInfo,
    entries: &'a [Entry],
    next: Option<Seq>,
}

pub(crate) async fn run(app: &App, args: ShowArgs) -> Result<()> {
    let session = app.session(&args.session).await?;
    if args.working_set {
        app.ui
            .json(&session.working_set(20, 100_000, 1_000).await?)?;
        return Ok(());
    }
    if args.checkpoint {
        app.ui.json(&session.checkpoint_view().await?)?;
        return Ok(());
    }
    let record = session.record().await?;
    let info = &record.info;
    if let Some(seq) = args.around.filter(|seq| *seq > info.head) {
        return Err(throughline::StoreError::NoSuchEntry {
            id: info.id.clone(),
            seq,
            head: info.head,
        }
        .into());
    }
    let (from, to) = entry_range(app, &args, info.head);
    if app.ui.json {
        return print_json(app, &session, info, from, to).await;
    }
    let now = app.tl().await?.now();
    let mut text = entry_text::render_header(app, info);
    text.push('\n');
    if from.0 > 1 && !args.all {
        let hidden = format!("     … {} earlier: --all, or --from 1\n\n", from.0 - 1);
        text.push_str(&app.ui.dim(&hidden));
    }
    for_each_page(&session, from, to, |page| {
        for entry in &page {
            text.push_str(&entry_text::render_entry(app, entry, &record.state, now));
        }
        // Without a pager, each page can be printed at once.
        if !app.ui.is_terminal() {
            app.ui.page(&std::mem::take(&mut text))?;
        }
        Ok(())
    })
    .await?;
    if to < info.head {
        let more = format!(
            "     … {} later: --from {}\n",
            info.head.0 - to.0,
            to.next()
        );
        text.push_str(&app.ui.dim(&more));
    }
    // When the end of a session is requested, the pager starts at the end.
    let start = match (args.last, args.from, args.around, args.all) {
        (None, None, None, false) | (Some(_), ..) => PageStart::End,
        _ => PageStart::Top,
    };
    app.ui.page_from(&text, start)?;
    Ok(())
}

/// Returns the first and last requested entry.
fn entry_range(app: &App, args: &ShowArgs, head: Seq) -> (Seq, Seq) {
    let limit = u64::from(args.limit);
    let last = |count: u64| (Seq((head.0 + 1).saturating_sub(count).max(1)), head);
    if let Some(count) = args.last {
        return last(count as u64);
    }
    if let Some(seq) = args.around {
        let from = Seq(seq.0.saturating_sub(AROUND).max(1));
        return (from, Seq(seq.0.saturating_add(AROUND)).min(head));
    }
    if args.all {
        return (Seq(1), head);
    }
    match args.from {
        Some(from) => {
            let from = from.max(Seq(1));
            (from, Seq(from.0.saturating_add(limit - 1)).min(head))
        }
        None if app.ui.json => (Seq(1), Seq(limit).min(head)),
        None => last(DEFAULT_TAIL as u64),
    }
}

async fn print_json(
    app: &App,
    session: &Session,
    info: &SessionInfo,
    from: Seq,
    to: Seq,
) -> Result<()> {
    let mut entries = Vec::new();
    for_each_page(session, from, to, |page| {
        entries.extend(page);
        Ok(())
    })
    .await?;
    app.ui.json(&ShowOutput {
        session: info,
        entries: &entries,
        next: (to < info.head).then(|| to.next()),
    })?;
    Ok(())
}

/// Calls a function with the entries of a range, one page at a time.
async fn for_each_page(
    session: &Session,
    from: Seq,
    to: Seq,
    mut each: impl FnMut(Vec<Entry>) -> Result<()>,
) -> Result<()> {
    let mut next = from;
    while next <= to {
        let page = session
            .read(ReadRange::between(next, to, PAGE_SIZE))
            .await?;
        let Some(last) = page.last() else {
            break;
        };
        next = last.seq.next();
        each(page)?;
    }
    Ok(())
}
