//! What is still known after five compactions in a row, without any model.

mod common;

use std::collections::BTreeMap;

use common::{Script, brief, scripts};
use throughline_llm::{Extractive, tokens};
use throughline_model::Summary;

const BUDGET: u64 = 1_500;
const COMPACTIONS: usize = 5;

/// Compacts five times: each summary is made of the one before and the next fifth.
fn compacted(script: &Script, budget: u64) -> Summary {
    let slice = script.entries.len().div_ceil(COMPACTIONS);
    let mut summary: Option<Summary> = None;
    for entries in script.entries.chunks(slice) {
        let next = Extractive.extract(&brief(summary.as_ref(), entries, budget));
        assert!(
            tokens(&next) * 10 <= budget * 11,
            "{} is too long",
            script.name
        );
        summary = Some(next);
    }
    summary.unwrap()
}

#[derive(Default, Clone, Copy)]
struct Share {
    kept: u32,
    planted: u32,
}

impl Share {
    fn add(&mut self, kept: bool) {
        self.planted += 1;
        self.kept += u32::from(kept);
    }

    fn of(self) -> f64 {
        f64::from(self.kept) / f64::from(self.planted.max(1))
    }
}

fn row(name: &str, share: Share) {
    let Share { kept, planted } = share;
    println!(
        "{name:<12} {kept:>5} of {planted:<5} {:>6.1} %",
        share.of() * 100.0
    );
}

#[test]
fn five_compactions_in_a_row_keep_what_was_planted() {
    let mut kinds: BTreeMap<String, Share> = BTreeMap::new();
    let mut by_script: BTreeMap<&str, Share> = BTreeMap::new();
    let mut all = Share::default();
    let mut lost = Vec::new();
    for script in scripts() {
        assert!(
            (60..=150).contains(&script.entries.len()),
            "{}",
            script.entries.len()
        );
        let summary = compacted(&script, BUDGET);
        let shown = summary.to_block();
        if std::env::var_os("SHOW").is_some() {
            println!(
                "\n=== {} ({} tokens)\n{shown}\n",
                script.name,
                tokens(&summary)
            );
        }
        for (kind, text) in &script.planted {
            let kept = shown.contains(text.as_str());
            kinds.entry(kind.clone()).or_default().add(kept);
            by_script.entry(script.name).or_default().add(kept);
            all.add(kept);
            if !kept {
                lost.push(format!("{}: {kind}: {text}", script.name));
            }
        }
    }
    println!("\nretention after {COMPACTIONS} compactions at {BUDGET} tokens");
    by_script.iter().for_each(|(name, share)| row(name, *share));
    println!();
    kinds.iter().for_each(|(kind, share)| row(kind, *share));
    println!();
    row("overall", all);
    lost.iter().for_each(|text| println!("lost: {text}"));

    assert!(all.of() >= 0.85, "only {:.2} is left", all.of());
    for kind in ["decision", "task"] {
        let share = kinds[kind].of();
        assert!(share >= 0.9, "only {share:.2} of {kind}s is left");
    }
}

#[test]
fn a_reversed_decision_does_not_stand_after_five_compactions() {
    for script in scripts() {
        let summary = compacted(&script, BUDGET);
        assert!(!script.reversed.is_empty());
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
        let summary = compacted(&script, 600);
        assert!(tokens(&summary) <= 660);
        assert!(!summary.decisions.is_empty() && !summary.facts.is_empty());
    }
}
