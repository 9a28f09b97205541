//! Measures how many facts survive five compactions in a row without a model.
//!
//! The conversations have 2,000 to 3,000 tokens, a third of them digressions, so the three
//! budgets leave about a half, a third and a quarter.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::BTreeMap;

use common::{Script, brief, scripts};
use throughline_llm::{ExtractiveSummarizer, estimate_summary_tokens};
use throughline_model::{Entry, Summary};

const BUDGET: u64 = 1_500;
const COMPACTIONS: usize = 5;

/// Compacts five times: each summary is made from the previous one and the next fifth.
fn compact_repeatedly(script: &Script, budget: u64) -> Summary {
    let slice = script.entries.len().div_ceil(COMPACTIONS);
    let mut summary: Option<Summary> = None;
    for entries in script.entries.chunks(slice) {
        let next = ExtractiveSummarizer.extract(&brief(summary.as_ref(), entries, budget));
        assert!(
            estimate_summary_tokens(&next) * 10 <= budget * 11,
            "{} is too long",
            script.name
        );
        summary = Some(next);
    }
    summary.unwrap()
}

#[derive(Default, Clone, Copy)]
struct Retention {
    kept: u32,
    planted: u32,
}

impl Retention {
    fn add(&mut self, kept: bool) {
        self.planted += 1;
        self.kept += u32::from(kept);
    }

    fn ratio(self) -> f64 {
        f64::from(self.kept) / f64::from(self.planted.max(1))
    }
}

fn print_row(name: &str, share: Retention) {
    let Retention { kept, planted } = share;
    println!(
        "{name:<12} {kept:>5} of {planted:<5} {:>6.1} %",
        share.ratio() * 100.0
    );
}

/// Share of the planted facts that survive: by script, by kind, and overall.
struct RetentionTable {
    scripts: BTreeMap<&'static str, Retention>,
    kinds: BTreeMap<String, Retention>,
    all: Retention,
    lost: Vec<String>,
}

fn measure(budget: u64) -> RetentionTable {
    let mut table = RetentionTable {
        scripts: BTreeMap::new(),
        kinds: BTreeMap::new(),
        all: Retention::default(),
        lost: Vec::new(),
    };
    for script in scripts() {
        let summary = compact_repeatedly(&script, budget);
        let shown = summary.to_block();
        for (kind, text) in &script.planted {
            let kept = shown.contains(text.as_str());
            table.kinds.entry(kind.clone()).or_default().add(kept);
            table.scripts.entry(script.name).or_default().add(kept);
            table.all.add(kept);
            if !kept {
                table.lost.push(format!("{}: {kind}: {text}", script.name));
            }
        }
    }
    table
}

impl RetentionTable {
    fn print(&self, budget: u64) {
        println!("\nretention after {COMPACTIONS} compactions at {budget} tokens");
        for (name, share) in &self.scripts {
            print_row(name, *share);
        }
        println!();
        for (kind, share) in &self.kinds {
            print_row(kind, *share);
        }
        println!();
        print_row("overall", self.all);
        for text in &self.lost {
            println!("lost: {text}");
        }
    }
}

#[test]
fn five_compactions_in_a_row_keep_what_was_planted() {
    for script in scripts() {
        let length = |entry: &Entry| entry.message().map_or(0, |m| m.content.to_text().len());
        let bytes: usize = script.entries.iter().map(length).sum();
        println!(
            "{}: {} entries, {} tokens",
            script.name,
            script.entries.len(),
            bytes / 4
        );
        assert!((60..=150).contains(&script.entries.len()));
    }
    for (budget, floor, firm) in [(1_500, 0.95, 0.95), (1_000, 0.9, 0.9), (600, 0.7, 0.75)] {
        let table = measure(budget);
        table.print(budget);
        let all = table.all.ratio();
        assert!(all >= floor, "only {all:.2} is left at {budget} tokens");
        for kind in ["decision", "task"] {
            let share = table.kinds[kind].ratio();
            assert!(
                share >= firm,
                "only {share:.2} of {kind}s is left at {budget} tokens"
            );
        }
    }
}

#[test]
fn a_reversed_decision_is_gone_after_five_compactions() {
    for script in scripts() {
        let summary = compact_repeatedly(&script, BUDGET);
        for gone in &script.reversed {
            let stands = summary
                .decisions
                .iter()
                .any(|text| text.contains(gone.as_str()));
            assert!(!stands, "{}: {gone}", script.name);
        }
    }
}

#[test]
fn a_summary_is_a_fraction_of_the_conversation() {
    for script in scripts() {
        let summary = compact_repeatedly(&script, 600);
        assert!(estimate_summary_tokens(&summary) <= 660);
        assert!(!summary.decisions.is_empty() && !summary.facts.is_empty());
    }
}
