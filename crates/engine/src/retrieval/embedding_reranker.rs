//! Reranks hits by the similarity of embeddings from a provider.
//!
//! Only the query and the hits are sent to the provider. Their vectors are cached, so
//! that each text is sent once.

use std::time::Duration;

use throughline_llm::Provider;
use throughline_model::Digest;
use throughline_recall::{
    OwnerEncodingCache, QuantizedRows, RerankError, RerankPassage, RerankQuery, Reranker,
};

/// A reranker that uses a provider's embeddings.
#[derive(Debug)]
pub struct EmbeddingReranker {
    name: String,
    provider: Provider,
}

impl EmbeddingReranker {
    /// Creates a reranker from a provider made with [`Provider::for_embeddings`].
    ///
    /// Scoring needs a tokio runtime with I/O and time enabled.
    pub fn new(provider: Provider) -> Self {
        let endpoint = provider.endpoint();
        Self {
            name: format!("{}/{}", endpoint.provider, endpoint.model),
            provider,
        }
    }
}

impl Reranker for EmbeddingReranker {
    fn name(&self) -> &str {
        &self.name
    }

    fn digest(&self) -> Digest {
        let endpoint = self.provider.endpoint();
        Digest::of(format!("{} {}", endpoint.base_url, endpoint.model).as_bytes())
    }

    fn score_passages(
        &self,
        question: &RerankQuery<'_>,
        passages: &[RerankPassage<'_>],
        cache: &OwnerEncodingCache<'_>,
        timeout: Duration,
    ) -> Result<Vec<f32>, RerankError> {
        let mut texts = vec![question.text.to_owned()];
        texts.extend(passages.iter().map(passage_text));
        let mut all: Vec<Option<QuantizedRows>> = texts
            .iter()
            .map(|text| cache.get(text.as_bytes()).filter(|rows| rows.len() == 1))
            .collect();
        let mut new: Vec<String> = Vec::new();
        for (text, known) in texts.iter().zip(&all) {
            if known.is_none() && !new.contains(text) {
                new.push(text.clone());
            }
        }
        if !new.is_empty() {
            let embedded = self.embed(new.clone(), timeout)?;
            cache.put(
                new.iter()
                    .zip(&embedded)
                    .map(|(text, rows)| (text.as_bytes(), rows)),
            );
            for (text, slot) in texts.iter().zip(&mut all) {
                if let (None, Some(at)) = (&slot, new.iter().position(|other| other == text)) {
                    *slot = embedded.get(at).cloned();
                }
            }
        }
        let mut vectors = all.iter().map(|rows| match rows {
            Some(rows) => rows.values().collect(),
            None => Vec::new(),
        });
        let query_vector: Vec<f32> = vectors.next().unwrap_or_default();
        let similarity = |vector: Vec<f32>| -> Result<f32, RerankError> {
            if vector.len() != query_vector.len() {
                return Err("its vectors differ in length from the cached ones".into());
            }
            Ok(vector.iter().zip(&query_vector).map(|(x, y)| x * y).sum())
        };
        vectors.map(similarity).collect()
    }
}

impl EmbeddingReranker {
    /// Returns the normalized embedding of each text.
    fn embed(
        &self,
        texts: Vec<String>,
        timeout: Duration,
    ) -> Result<Vec<QuantizedRows>, RerankError> {
        let runtime = tokio::runtime::Handle::try_current()?;
        let request = async { tokio::time::timeout(timeout, self.provider.embed(texts)).await };
        let vectors = runtime.block_on(request).map_err(|_| {
            let seconds = timeout.as_secs_f32();
            format!("it took longer than {seconds} s")
        })??;
        let rows = vectors.into_iter().map(|mut vector| {
            let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
            for x in &mut vector {
                *x /= length.max(f32::MIN_POSITIVE);
            }
            QuantizedRows::quantize(vector.len(), [vector.as_slice()])
        });
        Ok(rows.collect())
    }
}

/// The text of a passage to embed, with its author.
fn passage_text(passage: &RerankPassage<'_>) -> String {
    match (passage.author, passage.text.trim()) {
        // Providers reject empty texts.
        (None, "") => "…".to_owned(),
        (None, text) => text.to_owned(),
        (Some(author), text) => format!("{author}: {text}"),
    }
}
