//! `tl memory list`, `search` and `history`

use anyhow::Result;
use serde_json::json;
use throughline::{Body, Entry, Fact, FactMatch, MemoryScope, PERSON, Seq};

use super::MemoryTarget;
use super::fact::{FactId, FactView, render_table};
use crate::app::App;
use crate::markdown::{sanitize, wrap_plain};
use crate::time::format_time;

/// List what is remembered
///
/// Of the project, and owner-wide, whose ids begin with an o.
#[derive(clap::Args, Debug, Default)]
pub(super) struct ListArgs {
    /// Those proposed, replaced and forgotten too
    #[arg(long, conflicts_with_all = ["proposed", "forgotten"])]
    all: bool,
    /// Only those that wait for your word
    #[arg(long, conflicts_with = "forgotten")]
    proposed: bool,
    /// Only those forgotten
    #[arg(long)]
    forgotten: bool,
    /// Only those that belong to a file or folder (may be repeated)
    #[arg(long, value_name = "PATH")]
    file: Vec<String>,
}

/// Find facts by what they are about
#[derive(clap::Args, Debug)]
pub(super) struct SearchArgs {
    /// Words
    #[arg(required = true, value_name = "QUERY")]
    query: Vec<String>,
}

/// Show what happened to a fact, or to all
///
/// What it replaced and what replaced it, who said so and when.
#[derive(clap::Args, Debug)]
pub(super) struct HistoryArgs {
    /// Which fact [default: all]
    fact: Option<FactId>,
}

impl ListArgs {
    fn matches(&self, fact: &Fact) -> bool {
        if self.all {
            true
        } else if self.proposed {
            fact.proposed && fact.is_current()
        } else if self.forgotten {
            fact.forgotten
        } else {
            fact.is_in_effect()
        }
    }
}

/// What a listing leaves out without having been asked to.
#[derive(serde::Serialize, Default)]
struct HiddenCounts {
    proposed: u64,
    replaced: u64,
    forgotten: u64,
}

impl HiddenCounts {
    fn count(&mut self, fact: &Fact) {
        if fact.superseded_by.is_some() {
            self.replaced += 1;
        } else if fact.forgotten {
            self.forgotten += 1;
        } else {
            self.proposed += 1;
        }
    }
}

pub(super) async fn list(app: &App, place: &MemoryTarget, args: ListArgs) -> Result<()> {
    let files = args.file.iter().map(|file| place.relative_path(app, file));
    let files = files.collect::<Result<Vec<_>>>()?;
    let mut hidden = HiddenCounts::default();
    let mut facts: Vec<(&MemoryScope, Fact)> = Vec::new();
    for memory in [&place.project_memory, &place.owner_memory] {
        for fact in memory.facts().await?.iter() {
            if !files.is_empty() && !fact.is_related_to(&files) {
                continue;
            }
            if args.matches(fact) {
                facts.push((memory.scope(), fact.clone()));
            } else if !fact.is_in_effect() {
                hidden.count(fact);
            }
        }
    }
    let shown: Vec<_> = facts
        .iter()
        .map(|(scope, fact)| FactView::new(scope, fact))
        .collect();
    if app.ui.json {
        app.ui.json(&json!({
            "project": place.project.id,
            "facts": shown,
            "hidden": hidden,
        }))?;
        return Ok(());
    }
    if shown.is_empty() {
        let plain = !args.proposed && !args.forgotten && files.is_empty();
        app.ui.status(match (plain, args.proposed) {
            (true, _) => "Nothing is remembered yet: `tl memory add TEXT` remembers something.",
            (false, true) => "Nothing is proposed.",
            (false, false) => "No fact matches.",
        });
    } else {
        app.ui.page(&render_table(app, place, &shown))?;
    }
    if !args.proposed && !args.forgotten {
        report_hidden(app, &hidden);
    }
    Ok(())
}

fn report_hidden(app: &App, hidden: &HiddenCounts) {
    let mut parts = Vec::new();
    if hidden.proposed > 0 {
        parts.push(format!("{} proposed (--proposed)", hidden.proposed));
    }
    if hidden.forgotten > 0 {
        parts.push(format!("{} forgotten (--forgotten)", hidden.forgotten));
    }
    if hidden.replaced > 0 {
        parts.push(format!("{} replaced (--all)", hidden.replaced));
    }
    if !parts.is_empty() {
        app.ui
            .status(format_args!("Not shown: {}", parts.join(", ")));
    }
}

pub(super) async fn search(app: &App, place: &MemoryTarget, args: SearchArgs) -> Result<()> {
    let query = args.query.join(" ");
    let mut found: Vec<(&MemoryScope, FactMatch)> = Vec::new();
    for memory in [&place.project_memory, &place.owner_memory] {
        let here = memory.search(&query).await?;
        found.extend(here.into_iter().map(|found| (memory.scope(), found)));
    }
    found.sort_by(|(_, a), (_, b)| b.score.total_cmp(&a.score));
    let shown: Vec<_> = found
        .iter()
        .map(|(scope, found)| FactView::new(scope, &found.fact).with_score(found.score))
        .collect();
    if app.ui.json {
        app.ui.json(&json!({"query": query, "facts": shown}))?;
    } else if shown.is_empty() {
        app.ui
            .status(format_args!("No fact is about {}", sanitize(&query)));
    } else {
        app.ui.page(&render_table(app, place, &shown))?;
    }
    Ok(())
}

pub(super) async fn show_history(app: &App, place: &MemoryTarget, args: HistoryArgs) -> Result<()> {
    let mut told: Vec<(bool, Entry)> = Vec::new();
    for owner_wide in [false, true] {
        if args.fact.is_some_and(|fact| fact.owner_wide != owner_wide) {
            continue;
        }
        let seq = args.fact.map(|fact| fact.seq);
        let entries = place.memory(owner_wide).history(seq).await?;
        // How often facts were of use is noise where all are told of.
        let tells = |entry: &Entry| seq.is_some() || !matches!(entry.body, Body::Used { .. });
        told.extend(
            entries
                .into_iter()
                .filter(tells)
                .map(|entry| (owner_wide, entry)),
        );
    }
    told.sort_by_key(|(_, entry)| entry.at);
    if app.ui.json {
        let entries: Vec<_> = told
            .iter()
            .map(|(owner_wide, entry)| {
                let scope = if *owner_wide { "owner" } else { "project" };
                json!({"scope": scope, "entry": entry})
            })
            .collect();
        app.ui.json(&json!({"history": entries}))?;
        return Ok(());
    }
    if told.is_empty() {
        app.ui.status("Nothing was ever remembered here.");
        return Ok(());
    }
    let now = app.tl().await?.now();
    let mut text = String::new();
    for (owner_wide, entry) in &told {
        let owner_wide = *owner_wide;
        let seq = entry.seq;
        let id = FactId { owner_wide, seq };
        let when = format_time(entry.at, now, &app.zone);
        let start = app.ui.dim(&format!("{id:>4}  {when}"));
        text.push_str(&format!(
            "{start}  {}\n",
            sanitize(&describe_change(&entry.body, owner_wide))
        ));
        if let Body::Remembered(fact) = &entry.body {
            let lines = wrap_plain(&fact.text, app.ui.width.min(100).saturating_sub(6));
            for line in lines.lines() {
                text.push_str(format!("      {line}").trim_end());
                text.push('\n');
            }
        }
    }
    app.ui.page(&text)?;
    Ok(())
}

/// What an entry of a memory did, in a few words.
fn describe_change(body: &Body, owner_wide: bool) -> String {
    let ids = |seqs: &[Seq]| {
        let ids = seqs.iter().map(|seq| {
            let seq = *seq;
            FactId { owner_wide, seq }.to_string()
        });
        ids.collect::<Vec<_>>().join(", ")
    };
    match body {
        Body::Remembered(fact) => {
            let what = if fact.proposed {
                "proposed"
            } else {
                "remembered"
            };
            let by = match fact.by.as_str() {
                PERSON => "a person",
                program => program,
            };
            let mut told = vec![format!("{what} by {by}")];
            let source = fact.source.as_ref();
            told.extend(source.map(|at| format!("from {}:{}", at.session, at.seq)));
            if !fact.supersedes.is_empty() {
                told.push(format!("in place of {}", ids(&fact.supersedes)));
            }
            told.join(", ")
        }
        Body::Accepted { fact } => format!("{} accepted", ids(&[*fact])),
        Body::Forgotten { fact, reason } => {
            let colon = reason.as_ref().map_or("", |_| ": ");
            let reason = reason.as_deref().unwrap_or_default();
            format!("{} forgotten{colon}{reason}", ids(&[*fact]))
        }
        Body::Used { facts, session } => format!("{} of use in {session}", ids(facts)),
        other => other.kind().to_owned(),
    }
}
