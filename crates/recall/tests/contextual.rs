//! Tests of the contextual model with a tiny one: its weights are meaningless, but it is
//! loaded and run like a real one.

#![cfg(feature = "contextual")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::path::Path;
use std::time::Duration;

use common::index_with;
use tempfile::TempDir;
use throughline_model::Digest;
use throughline_recall::conformance::{IndexFixture, hit_positions, hybrid_query};
use throughline_recall::{
    ContextualError, ContextualModel, OwnerEncodingCache, RerankError, RerankPassage, RerankQuery,
    Reranker,
};

fn write_tiny_model(folder: &Path) {
    common::tiny_model::write_tiny_model(folder, ContextualModel::vocabulary());
}

#[test]
fn a_contextual_model_has_its_say_in_the_score() {
    let folder = TempDir::new().unwrap();
    write_tiny_model(folder.path());
    let contextual = ContextualModel::load("small", folder.path()).unwrap();
    let (_folder, fixture) =
        index_with(&["a cat on a mat", "a dog in the fog", "the cat again", ""]);
    let query = hybrid_query("cat");
    let rerank = |limit| {
        fixture
            .index
            .search_reranked(&query, &contextual, limit)
            .unwrap()
    };
    let found = rerank(Duration::from_secs(600));
    assert!(
        found
            .hits
            .iter()
            .all(|hit| hit.score_parts.contextual.is_some())
    );
    assert!(found.hits.is_sorted_by(|a, b| a.score >= b.score));
    assert_eq!(found, rerank(Duration::from_secs(600)));
    // Without time, the result is as without the model.
    let first = fixture.search(&query);
    assert_eq!(
        hit_positions(&rerank(Duration::ZERO)),
        hit_positions(&first)
    );
}

#[test]
fn what_a_model_made_of_a_passage_is_made_once_and_goes_with_what_is_erased() {
    let folder = TempDir::new().unwrap();
    write_tiny_model(folder.path());
    let contextual = ContextualModel::load("small", folder.path()).unwrap();
    let (folder_of, mut fixture) =
        index_with(&["a cat on a mat", "a dog in the fog", "the cat again"]);
    let query = hybrid_query("cat");
    let rerank = |fixture: &IndexFixture| {
        let limit = Duration::from_secs(600);
        fixture
            .index
            .search_reranked(&query, &contextual, limit)
            .unwrap()
    };
    let file = || {
        let cache = folder_of.path().join("encoded");
        let mut files = fs::read_dir(cache).into_iter().flatten();
        files.next().map(|file| file.unwrap().path())
    };
    let first = rerank(&fixture);
    let compared = first.rerank.clone().unwrap();
    assert_eq!((compared.model.as_str(), compared.count), ("small", 3));
    let cache = file().unwrap();
    let length = fs::metadata(&cache).unwrap().len();
    assert_eq!(rerank(&fixture), first);
    assert_eq!(
        fs::metadata(&cache).unwrap().len(),
        length,
        "nothing is new"
    );
    // What is read from the cache equals what is computed.
    fs::remove_file(&cache).unwrap();
    assert_eq!(rerank(&fixture), first);
    // Cached passages take no time; others do.
    let at_once = Duration::from_nanos(1);
    let known = fixture.index.search_reranked(&query, &contextual, at_once);
    assert_eq!(known.unwrap(), first);
    let new = hybrid_query("a cat in the fog");
    let unknown = fixture
        .index
        .search_reranked(&new, &contextual, at_once)
        .unwrap();
    assert_eq!(unknown.rerank.unwrap().count, 3, "the passages are known");
    fs::remove_file(&cache).unwrap();
    let unknown = fixture
        .index
        .search_reranked(&new, &contextual, at_once)
        .unwrap();
    let unable = unknown.rerank.unwrap().error;
    assert_eq!(
        unable.as_deref(),
        Some("no passage could be scored within 0 ms")
    );
    fixture.remove("s", Some(3));
    fixture.indexer.vacuum().unwrap();
    assert_eq!(file(), None);
    assert_eq!(rerank(&fixture).hits.len(), 2);
}

/// A reranker that prefers short passages, or fails.
#[derive(Debug)]
struct ShortestFirst(bool);

impl Reranker for ShortestFirst {
    fn name(&self) -> &'static str {
        "short"
    }

    fn digest(&self) -> Digest {
        Digest::of(b"short")
    }

    #[allow(clippy::cast_precision_loss, reason = "a length of a few words")]
    fn score_passages(
        &self,
        question: &RerankQuery<'_>,
        passages: &[RerankPassage<'_>],
        _: &OwnerEncodingCache<'_>,
        _: Duration,
    ) -> Result<Vec<f32>, RerankError> {
        assert_eq!(question.text, "the cat");
        let (range, rarity) = &question.words[0];
        assert_eq!(&question.text[range.clone()], "cat");
        assert!(*rarity > 0.0 && question.words.len() == 1);
        if self.0 {
            let length = |passage: &RerankPassage<'_>| -(passage.text.len() as f32);
            return Ok(passages.iter().map(length).collect());
        }
        Err("it is unavailable".into())
    }
}

#[test]
fn whatever_compares_may_put_hits_in_order() {
    let (_folder, fixture) = index_with(&[
        "a cat that sits on a mat and looks at the rain",
        "cat",
        "a cat on a mat",
    ]);
    let query = hybrid_query("the cat");
    let found = fixture
        .index
        .search_reranked(&query, &ShortestFirst(true), Duration::from_secs(1))
        .unwrap();
    let hit_at = |at: usize| {
        found
            .hits
            .iter()
            .find(|hit| hit.seq.0 == at as u64)
            .unwrap()
    };
    assert_eq!(hit_at(2).score_parts.contextual, Some(1.0));
    assert_eq!(hit_at(1).score_parts.contextual, Some(0.0));
}

#[test]
fn a_model_that_fails_leaves_the_hits_as_they_were_and_says_why() {
    let (_folder, fixture) = index_with(&["a cat on a mat", "a dog in the fog", "the cat again"]);
    let query = hybrid_query("the cat");
    let found = fixture
        .index
        .search_reranked(&query, &ShortestFirst(false), Duration::from_secs(1))
        .unwrap();
    assert_eq!(found.hits, fixture.search(&query).hits);
    let compared = found.rerank.unwrap();
    assert_eq!(compared.count, 0);
    assert_eq!(compared.error.as_deref(), Some("it is unavailable"));
}

#[test]
fn what_is_no_model_says_what_is_wrong_with_it() {
    let load = |break_it: fn(&Path)| {
        let folder = TempDir::new().unwrap();
        write_tiny_model(folder.path());
        break_it(folder.path());
        ContextualModel::load("small", folder.path()).unwrap_err()
    };
    let error = load(|folder| fs::remove_file(folder.join("model.safetensors")).unwrap());
    assert!(matches!(error, ContextualError::File { .. }), "{error}");
    let error = load(|folder| fs::write(folder.join("vocab.txt"), "one\ntwo\n").unwrap());
    assert!(matches!(error, ContextualError::Vocabulary(_)), "{error}");
    let error = load(|folder| {
        let config = fs::read_to_string(folder.join("config.json")).unwrap();
        let other = config.replace("\"intermediate_size\": 16", "\"intermediate_size\": 17");
        fs::write(folder.join("config.json"), other).unwrap();
    });
    assert!(
        error.to_string().contains("[16, 8], expected [17, 8]"),
        "{error}"
    );
    let error = load(|folder| {
        let file = folder.join("model.safetensors");
        let bytes = fs::read(&file).unwrap();
        fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
    });
    assert!(
        error.to_string().contains("the file ends before"),
        "{error}"
    );
    for bytes in [
        &b""[..],
        b"\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x02\0\0\0\0\0\0\0{}",
    ] {
        let folder = TempDir::new().unwrap();
        write_tiny_model(folder.path());
        fs::write(folder.path().join("model.safetensors"), bytes).unwrap();
        let error = ContextualModel::load("small", folder.path()).unwrap_err();
        assert!(
            matches!(error, ContextualError::Malformed { .. }),
            "{error}"
        );
    }
}
