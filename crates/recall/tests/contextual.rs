//! A contextual model, in a size that fits a test: it means nothing, but is read, run and
//! heard like one that does.

#![cfg(feature = "contextual")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

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
    let (_folder, fed) = index_with(&["a cat on a mat", "a dog in the fog", "the cat again", ""]);
    let query = hybrid_query("cat");
    let again = |limit| {
        fed.index
            .search_reranked(&query, &contextual, limit)
            .unwrap()
    };
    let found = again(Duration::from_secs(600));
    assert!(
        found
            .hits
            .iter()
            .all(|hit| hit.score_parts.contextual.is_some())
    );
    assert!(found.hits.is_sorted_by(|a, b| a.score >= b.score));
    assert_eq!(found, again(Duration::from_secs(600)));
    // Without time, everything is as without the model.
    let first = fed.search(&query);
    assert_eq!(hit_positions(&again(Duration::ZERO)), hit_positions(&first));
}

#[test]
fn what_a_model_made_of_a_passage_is_made_once_and_goes_with_what_is_erased() {
    let folder = TempDir::new().unwrap();
    write_tiny_model(folder.path());
    let contextual = ContextualModel::load("small", folder.path()).unwrap();
    let (folder_of, mut fed) = index_with(&["a cat on a mat", "a dog in the fog", "the cat again"]);
    let query = hybrid_query("cat");
    let again = |fed: &IndexFixture| {
        let limit = Duration::from_secs(600);
        fed.index
            .search_reranked(&query, &contextual, limit)
            .unwrap()
    };
    let file = || {
        let kept = folder_of.path().join("encoded");
        let mut files = fs::read_dir(kept).into_iter().flatten();
        files.next().map(|file| file.unwrap().path())
    };
    let first = again(&fed);
    let compared = first.rerank.clone().unwrap();
    assert_eq!((compared.model.as_str(), compared.count), ("small", 3));
    let kept = file().unwrap();
    let length = fs::metadata(&kept).unwrap().len();
    assert_eq!(again(&fed), first);
    assert_eq!(fs::metadata(&kept).unwrap().len(), length, "nothing is new");
    // As it is read back, so it is made.
    fs::remove_file(&kept).unwrap();
    assert_eq!(again(&fed), first);
    // What is known takes no time; what is not does.
    let at_once = Duration::from_nanos(1);
    let known = fed.index.search_reranked(&query, &contextual, at_once);
    assert_eq!(known.unwrap(), first);
    let new = hybrid_query("a cat in the fog");
    let unknown = fed
        .index
        .search_reranked(&new, &contextual, at_once)
        .unwrap();
    assert_eq!(unknown.rerank.unwrap().count, 3, "the passages are known");
    fs::remove_file(&kept).unwrap();
    let unknown = fed
        .index
        .search_reranked(&new, &contextual, at_once)
        .unwrap();
    let unable = unknown.rerank.unwrap().error;
    assert_eq!(
        unable.as_deref(),
        Some("there was no time for it within 0 ms")
    );
    fed.remove("s", Some(3));
    fed.indexer.vacuum().unwrap();
    assert_eq!(file(), None);
    assert_eq!(again(&fed).hits.len(), 2);
}

/// A model that prefers what is short, or fails.
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
        Err("it is away".into())
    }
}

#[test]
fn whatever_compares_may_put_hits_in_order() {
    let (_folder, fed) = index_with(&[
        "a cat that sits on a mat and looks at the rain",
        "cat",
        "a cat on a mat",
    ]);
    let query = hybrid_query("the cat");
    let found = fed
        .index
        .search_reranked(&query, &ShortestFirst(true), Duration::from_secs(1))
        .unwrap();
    let likeness = |at: usize| {
        found
            .hits
            .iter()
            .find(|hit| hit.seq.0 == at as u64)
            .unwrap()
    };
    assert_eq!(likeness(2).score_parts.contextual, Some(1.0));
    assert_eq!(likeness(1).score_parts.contextual, Some(0.0));
}

#[test]
fn a_model_that_fails_leaves_the_hits_as_they_were_and_says_why() {
    let (_folder, fed) = index_with(&["a cat on a mat", "a dog in the fog", "the cat again"]);
    let query = hybrid_query("the cat");
    let found = fed
        .index
        .search_reranked(&query, &ShortestFirst(false), Duration::from_secs(1))
        .unwrap();
    assert_eq!(found.hits, fed.search(&query).hits);
    let compared = found.rerank.unwrap();
    assert_eq!(compared.count, 0);
    assert_eq!(compared.error.as_deref(), Some("it is away"));
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
        error.to_string().contains("[16, 8] and not [17, 8]"),
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
