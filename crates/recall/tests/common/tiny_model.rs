//! Writes a tiny contextual model for tests: its weights are meaningless, but it is loaded and
//! run like a real one.

use std::fs;
use std::path::Path;

const HIDDEN_SIZE: usize = 8;
const INTERMEDIATE_SIZE: usize = 16;
const VOCABULARY_SIZE: usize = 30_522;

/// Writes a model with one layer and arbitrary weights.
pub(crate) fn write_tiny_model(folder: &Path, vocabulary: &str) {
    let layer = "encoder.layer.0";
    let mut shapes = vec![
        (
            "embeddings.word_embeddings.weight".to_owned(),
            vec![VOCABULARY_SIZE, HIDDEN_SIZE],
        ),
        (
            "embeddings.position_embeddings.weight".to_owned(),
            vec![512, HIDDEN_SIZE],
        ),
        (
            "embeddings.token_type_embeddings.weight".to_owned(),
            vec![2, HIDDEN_SIZE],
        ),
        (
            format!("{layer}.intermediate.dense.weight"),
            vec![INTERMEDIATE_SIZE, HIDDEN_SIZE],
        ),
        (
            format!("{layer}.intermediate.dense.bias"),
            vec![INTERMEDIATE_SIZE],
        ),
        (
            format!("{layer}.output.dense.weight"),
            vec![HIDDEN_SIZE, INTERMEDIATE_SIZE],
        ),
        (format!("{layer}.output.dense.bias"), vec![HIDDEN_SIZE]),
    ];
    for name in ["self.query", "self.key", "self.value", "output.dense"] {
        shapes.push((
            format!("{layer}.attention.{name}.weight"),
            vec![HIDDEN_SIZE, HIDDEN_SIZE],
        ));
        shapes.push((format!("{layer}.attention.{name}.bias"), vec![HIDDEN_SIZE]));
    }
    for name in [
        "embeddings",
        &format!("{layer}.attention.output"),
        &format!("{layer}.output"),
    ] {
        shapes.push((format!("{name}.LayerNorm.weight"), vec![HIDDEN_SIZE]));
        shapes.push((format!("{name}.LayerNorm.bias"), vec![HIDDEN_SIZE]));
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
    fs::write(folder.join("vocab.txt"), vocabulary).unwrap();
    let config = r#"{"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1,
                     "intermediate_size": 16, "max_position_embeddings": 512,
                     "vocab_size": 30522, "layer_norm_eps": 1e-12}"#;
    fs::write(folder.join("config.json"), config).unwrap();
}
