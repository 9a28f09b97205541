//! Measures evidence recall: the share of the turns that answer a question among the first
//! hits.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use throughline_recall::{
    Batch, ContextualModel, FolderIndex, Index, Query, QueryResults, Scope, ScoreParts,
};

use super::fts5::{Fts5, split_words};
use super::locomo::{Conversation, Question};
use super::postgres_index::BlockingPostgresIndex;
use crate::units::{Unit, to_f64};

/// The numbers of hits considered (recall@k).
pub(crate) const DEPTHS: [usize; 3] = [5, 10, 20];

/// Words of questions that carry no meaning for the search.
const STOP_WORDS: [&str; 44] = [
    "a", "about", "after", "an", "and", "are", "as", "at", "be", "been", "did", "do", "does",
    "for", "from", "had", "has", "have", "her", "his", "how", "in", "is", "it", "many", "of", "on",
    "or", "s", "the", "their", "to", "was", "were", "What", "When", "Where", "Which", "Who", "Why",
    "How", "with", "would", "Would",
];

/// The scores of one ranking.
pub(crate) struct RecallScore {
    pub(crate) name: String,
    /// Recall at each of [`DEPTHS`].
    pub(crate) shares: [f64; 3],
    /// Recall at ten, by category.
    pub(crate) by_category: BTreeMap<u8, f64>,
}

/// The weights of the signals in a ranking.
struct RankingVariant {
    name: &'static str,
    score: fn(&ScoreParts) -> f32,
}

/// From words alone to all signals.
const RANKING_VARIANTS: [RankingVariant; 8] = [
    RankingVariant {
        name: "words, with context (BM25)",
        score: |why| why.text,
    },
    RankingVariant {
        name: "passage embedding, alone",
        score: |why| why.pooled,
    },
    RankingVariant {
        name: "word embeddings (late interaction), alone",
        score: |why| why.late,
    },
    RankingVariant {
        name: "words + passage embedding",
        score: |why| 0.4 * why.text + 0.2 * why.pooled,
    },
    RankingVariant {
        name: "words + word embeddings",
        score: |why| 0.4 * why.text + 0.4 * why.late,
    },
    RankingVariant {
        name: "words + passage + word embeddings",
        score: |why| 0.4 * why.text + 0.2 * why.pooled + 0.4 * why.late,
    },
    RankingVariant {
        name: "… + session",
        score: |why| 0.4 * why.text + 0.2 * why.pooled + 0.4 * why.late + 0.1 * why.session,
    },
    RankingVariant {
        name: "… + author",
        score: |why| {
            0.4 * why.text
                + 0.2 * why.pooled
                + 0.4 * why.late
                + 0.1 * why.session
                + 0.3 * why.author
        },
    },
];

/// Measures what the index finds, and what subsets of its signals would find.
pub(crate) fn measure(
    dir: &Path,
    conversations: &[Conversation],
    contextual: Option<&Path>,
    tables: Option<&BlockingPostgresIndex>,
) -> Result<Vec<RecallScore>> {
    let contextual = contextual
        .map(|folder| ContextualModel::load("minilm", folder))
        .transpose()?;
    let (mut again, mut elsewhere) = (RecallTally::default(), RecallTally::default());
    let (mut seconds, mut seconds_known) = (Vec::new(), Vec::new());
    let (mut full, mut worded, mut hybrid) = (
        RecallTally::default(),
        RecallTally::default(),
        RecallTally::default(),
    );
    let mut ways: Vec<RecallTally> = RANKING_VARIANTS
        .iter()
        .map(|_| RecallTally::default())
        .collect();
    for conversation in conversations {
        let index = FolderIndex::open(&dir.join(conversation.owner.as_str()))?;
        index_conversation(&index, conversation)?;
        if let Some(tables) = tables {
            tables.index_conversation(conversation)?;
        }
        let mut fts5 = Fts5::new(&dir.join(format!("{}.db", conversation.owner)))?;
        fts5.add(conversation.passages.iter().map(|one| one.text.as_str()))?;
        for question in &conversation.questions {
            let turns = |asked: Vec<&str>| -> Result<Vec<String>> {
                let rows = fts5.search(asked, 20)?;
                let turns = rows.into_iter().filter_map(|row| {
                    let passage = conversation.passages.get(usize::try_from(row).ok()? - 1)?;
                    passage.external_id.clone()
                });
                Ok(turns.collect())
            };
            full.add(question, &turns(split_words(&question.text).collect())?);
            let telling = split_words(&question.text).filter(|word| !STOP_WORDS.contains(word));
            worded.add(question, &turns(telling.collect())?);
            let scope = Scope::new(conversation.owner.clone());
            let query = Query::new(&*question.text, scope.clone());
            hybrid.add(question, &hit_ids(&index.search(&query)?));
            if let Some(tables) = tables {
                elsewhere.add(question, &hit_ids(&tables.search(&query)?));
            }
            if let Some(contextual) = &contextual {
                let start = Instant::now();
                let found = index.search_reranked(&query, contextual, Duration::from_secs(60))?;
                seconds.push(start.elapsed().as_secs_f64());
                again.add(question, &hit_ids(&found));
                let start = Instant::now();
                index.search_reranked(&query, contextual, Duration::from_secs(60))?;
                seconds_known.push(start.elapsed().as_secs_f64());
            }
            let all = Query {
                limit: conversation.passages.len(),
                ..query
            };
            let found = index.search(&all)?;
            for (way, tally) in RANKING_VARIANTS.iter().zip(&mut ways) {
                let mut found = found.clone();
                let score = |why: &ScoreParts| (way.score)(why);
                found
                    .hits
                    .sort_by(|a, b| score(&b.score_parts).total_cmp(&score(&a.score_parts)));
                tally.add(question, &hit_ids(&found));
            }
        }
    }
    let mut all = vec![
        full.score("FTS5, any of the words"),
        worded.score("FTS5 without the most frequent words"),
    ];
    let ways = RANKING_VARIANTS.iter().zip(&ways);
    all.extend(ways.map(|(way, tally)| tally.score(way.name)));
    all.push(hybrid.score("**hybrid search, default settings**"));
    if tables.is_some() {
        all.push(elsewhere.score("hybrid search, PostgreSQL index"));
    }
    if contextual.is_some() {
        all.push(again.score("**with a contextual model, first 32 reranked**"));
        let median = |mut seconds: Vec<f64>| {
            seconds.sort_by(f64::total_cmp);
            Unit::Time.format(seconds[seconds.len() / 2])
        };
        // The cache holds what earlier questions of the conversation found.
        let (first, known) = (median(seconds), median(seconds_known));
        eprintln!("a reranked search takes {first}, and {known} when repeated");
    }
    Ok(all)
}

/// Indexes a conversation, after what is already indexed.
pub(crate) fn index_conversation(index: &dyn Index, conversation: &Conversation) -> Result<()> {
    let Some(mut feeder) = index.indexer()? else {
        bail!("another process is writing to {index:?}");
    };
    let after = index.watermark()?;
    feeder.index_batch(Batch {
        after,
        upto: after + conversation.passages.len() as u64,
        passages: conversation.passages.clone(),
        removed: Vec::new(),
        anchors: Vec::new(),
    })?;
    Ok(())
}

fn hit_ids(found: &QueryResults) -> Vec<String> {
    found
        .hits
        .iter()
        .filter_map(|hit| hit.external_id.clone())
        .collect()
}

/// Sums over questions.
#[derive(Default)]
pub(crate) struct RecallTally {
    count: u64,
    sums: [f64; 3],
    categories: BTreeMap<u8, (u64, f64)>,
}

impl RecallTally {
    /// Adds the result of a question: the ids of the turns found, best first.
    pub(crate) fn add(&mut self, question: &Question, found: &[String]) {
        self.count += 1;
        let shares = DEPTHS.map(|depth| {
            let first = &found[..found.len().min(depth)];
            let hits = question
                .evidence
                .iter()
                .filter(|id| first.contains(id))
                .count();
            to_f64(hits as u64) / to_f64(question.evidence.len() as u64)
        });
        for (sum, share) in self.sums.iter_mut().zip(shares) {
            *sum += share;
        }
        let category = self.categories.entry(question.category).or_default();
        category.0 += 1;
        category.1 += shares[1];
    }

    pub(crate) fn score(&self, name: &str) -> RecallScore {
        let by_category = self.categories.iter();
        let by_category =
            by_category.map(|(category, (count, sum))| (*category, sum / to_f64(*count)));
        RecallScore {
            name: name.to_owned(),
            shares: self.sums.map(|sum| sum / to_f64(self.count.max(1))),
            by_category: by_category.collect(),
        }
    }
}
