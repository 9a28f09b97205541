//! OpenAI's Embeddings API: texts that share words get similar vectors.

use serde_json::{Value, json};

use crate::{Reply, Request};

/// The length of a vector.
const DIMENSIONS: usize = 64;

pub(super) fn body(reply: &Reply, request: &Request) -> Value {
    let data = request.texts().into_iter().enumerate();
    let data: Vec<_> = data
        .map(|(index, text)| json!({"object": "embedding", "index": index, "embedding": embed(text)}))
        .collect();
    json!({
        "object": "list",
        "data": data,
        "model": request.model(),
        "usage": {"prompt_tokens": reply.usage.input, "total_tokens": reply.usage.input},
    })
}

/// Returns a vector in which each word has a dimension of its own, except for collisions.
fn embed(text: &str) -> Vec<f32> {
    let mut vector = vec![0.0; DIMENSIONS];
    let words = text.split(|c: char| !c.is_alphanumeric());
    for word in words.filter(|word| !word.is_empty()) {
        // FNV-1a, which is stable across machines and versions.
        let hash = word
            .to_lowercase()
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        vector[usize::try_from(hash % DIMENSIONS as u64).unwrap_or(0)] += 1.0;
    }
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if length > 0.0 {
        for x in &mut vector {
            *x /= length;
        }
    }
    vector
}
