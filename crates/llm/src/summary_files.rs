//! Selects the files that a summary lists.
//!
//! They are taken from the log, never from a model. If there are too many, those mentioned
//! often and recently are selected.

use std::collections::HashMap;

use throughline_model::{Entry, extract_touched_files};

use crate::SummaryRequest;

/// Files may use the budget divided by this.
const BUDGET_DIVISOR: u64 = 4;
/// Longer paths are left out.
const MAX_PATH_LEN: usize = 240;

struct FileMention {
    path: String,
    first: usize,
    weight: f64,
}

/// Returns the files of the previous summary and of the entries, in order of first
/// mention, as many as fit into a quarter of the budget.
pub(crate) fn select_files(request: &SummaryRequest<'_>) -> Vec<String> {
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut named: Vec<FileMention> = Vec::new();
    let previous = request.previous.iter().flat_map(|old| &old.files_touched);
    for path in previous.filter(|path| !path.trim().is_empty()) {
        record_mention(&mut known, &mut named, path, 1.5);
    }
    let count = request.entries.len().max(1);
    for (at, entry) in request.entries.iter().enumerate() {
        if !matches!(entry.message(), Some(message) if !message.content.0.is_empty()) {
            continue;
        }
        for path in extract_touched_files(std::iter::once(entry) as std::iter::Once<&Entry>) {
            record_mention(&mut known, &mut named, &path, 0.5 + ratio(at, count));
        }
    }
    let room =
        usize::try_from(request.budget.saturating_mul(4) / BUDGET_DIVISOR).unwrap_or(usize::MAX);
    fit_to_budget(named, room)
}

fn record_mention(
    known: &mut HashMap<String, usize>,
    named: &mut Vec<FileMention>,
    path: &str,
    weight: f64,
) {
    if path.len() > MAX_PATH_LEN || path.contains(['\n', '\r']) {
        return;
    }
    if let Some(&at) = known.get(path) {
        named[at].weight += weight;
    } else {
        known.insert(path.to_owned(), named.len());
        named.push(FileMention {
            path: path.to_owned(),
            first: named.len(),
            weight,
        });
    }
}

fn fit_to_budget(mut named: Vec<FileMention>, room: usize) -> Vec<String> {
    named.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(b.first.cmp(&a.first)));
    let mut left = room;
    named.retain(|file| {
        let cost = file.path.len() + 3;
        let fits = cost <= left;
        if fits {
            left -= cost;
        }
        fits
    });
    named.sort_by_key(|file| file.first);
    named.into_iter().map(|file| file.path).collect()
}

#[allow(clippy::cast_precision_loss, reason = "a rank, not a count")]
pub(crate) fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}
