//! A contextual model, in a size that fits a test: it means nothing, but is read, run and
//! heard like one that does.

#![cfg(feature = "contextual")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::fs;
use std::path::Path;
use std::time::Duration;

use common::{Fed, everywhere, places};
use tempfile::TempDir;
use throughline_recall::{Contextual, ContextualError};

const WIDTH: usize = 8;
const WIDE: usize = 16;
const WORDS: usize = 30_522;

/// The names of the static model's tokens.
fn vocabulary() -> Vec<u8> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("model/static.bin");
    let bytes = fs::read(file).unwrap();
    bytes[16 + WORDS * (8 + 256)..].to_vec()
}

/// A model with one layer, whose weights are numbers of no meaning.
fn small(folder: &Path) {
    let layer = "encoder.layer.0";
    let mut shapes = vec![
        (
            "embeddings.word_embeddings.weight".to_owned(),
            vec![WORDS, WIDTH],
        ),
        (
            "embeddings.position_embeddings.weight".to_owned(),
            vec![512, WIDTH],
        ),
        (
            "embeddings.token_type_embeddings.weight".to_owned(),
            vec![2, WIDTH],
        ),
        (
            format!("{layer}.intermediate.dense.weight"),
            vec![WIDE, WIDTH],
        ),
        (format!("{layer}.intermediate.dense.bias"), vec![WIDE]),
        (format!("{layer}.output.dense.weight"), vec![WIDTH, WIDE]),
        (format!("{layer}.output.dense.bias"), vec![WIDTH]),
    ];
    for name in ["self.query", "self.key", "self.value", "output.dense"] {
        shapes.push((
            format!("{layer}.attention.{name}.weight"),
            vec![WIDTH, WIDTH],
        ));
        shapes.push((format!("{layer}.attention.{name}.bias"), vec![WIDTH]));
    }
    for name in [
        "embeddings",
        &format!("{layer}.attention.output"),
        &format!("{layer}.output"),
    ] {
        shapes.push((format!("{name}.LayerNorm.weight"), vec![WIDTH]));
        shapes.push((format!("{name}.LayerNorm.bias"), vec![WIDTH]));
    }
    let mut header = serde_json::Map::new();
    let mut bytes = Vec::new();
    for (name, shape) in shapes {
        let from = bytes.len();
        for index in 0..shape.iter().product::<usize>() {
            let value = u8::try_from((index * 31 + name.len() * 7) % 97).unwrap();
            bytes.extend((f32::from(value) / 97.0 - 0.5).to_le_bytes());
        }
        let tensor = serde_json::json!({
            "dtype": "F32", "shape": shape, "data_offsets": [from, bytes.len()],
        });
        header.insert(name, tensor);
    }
    let header = serde_json::to_vec(&header).unwrap();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header);
    file.extend(bytes);
    fs::write(folder.join("model.safetensors"), file).unwrap();
    fs::write(folder.join("vocab.txt"), vocabulary()).unwrap();
    let config = r#"{"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1,
                     "intermediate_size": 16, "max_position_embeddings": 512,
                     "vocab_size": 30522, "layer_norm_eps": 1e-12}"#;
    fs::write(folder.join("config.json"), config).unwrap();
}

#[test]
fn a_contextual_model_has_its_say_in_the_score() {
    let folder = TempDir::new().unwrap();
    small(folder.path());
    let contextual = Contextual::load(folder.path()).unwrap();
    let fed = Fed::with(&["a cat on a mat", "a dog in the fog", "the cat again", ""]);
    let query = everywhere("cat");
    let again = |limit| fed.index.search_again(&query, &contextual, limit).unwrap();
    let found = again(Duration::from_secs(600));
    assert!(found.hits.iter().all(|hit| hit.why.contextual.is_some()));
    assert!(found.hits.is_sorted_by(|a, b| a.score >= b.score));
    assert_eq!(found, again(Duration::from_secs(600)));
    // Without time, everything is as without the model.
    let first = fed.search(&query);
    assert_eq!(places(&again(Duration::ZERO)), places(&first));
}

#[test]
fn what_is_no_model_says_what_is_wrong_with_it() {
    let load = |break_it: fn(&Path)| {
        let folder = TempDir::new().unwrap();
        small(folder.path());
        break_it(folder.path());
        Contextual::load(folder.path()).unwrap_err()
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
    for bytes in [
        &b""[..],
        b"\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x02\0\0\0\0\0\0\0{}",
    ] {
        let folder = TempDir::new().unwrap();
        small(folder.path());
        fs::write(folder.path().join("model.safetensors"), bytes).unwrap();
        let error = Contextual::load(folder.path()).unwrap_err();
        assert!(
            matches!(error, ContextualError::Malformed { .. }),
            "{error}"
        );
    }
}
