//! Embeddings over the network, as what compares hits again.
//!
//! The question and what was found are sent to the provider, and nothing else. The vectors
//! of both are kept, so that each text is sent once.

use std::time::Duration;

use throughline_llm::Provider;
use throughline_model::Digest;
use throughline_recall::{
    OwnerEncodingCache, QuantizedRows, RerankError, RerankPassage, RerankQuery, Reranker,
};

/// A provider's embeddings.
#[derive(Debug)]
pub struct EmbeddingReranker {
    name: String,
    provider: Provider,
}

impl EmbeddingReranker {
    /// Those of a provider made with [`Provider::embedding`].
    ///
    /// Comparing needs a tokio runtime with I/O and time.
    pub fn new(provider: Provider) -> Self {
        let at = provider.endpoint();
        Self {
            name: format!("{}/{}", at.provider, at.model),
            provider,
        }
    }
}

impl Reranker for EmbeddingReranker {
    fn name(&self) -> &str {
        &self.name
    }

    fn digest(&self) -> Digest {
        let at = self.provider.endpoint();
        Digest::of(format!("{} {}", at.base_url, at.model).as_bytes())
    }

    fn score_passages(
        &self,
        question: &RerankQuery<'_>,
        passages: &[RerankPassage<'_>],
        kept: &OwnerEncodingCache<'_>,
        within: Duration,
    ) -> Result<Vec<f32>, RerankError> {
        let mut texts = vec![question.text.to_owned()];
        texts.extend(passages.iter().map(passage_text));
        let mut all: Vec<Option<QuantizedRows>> = texts
            .iter()
            .map(|text| kept.get(text.as_bytes()).filter(|rows| rows.len() == 1))
            .collect();
        let mut new: Vec<String> = Vec::new();
        for (text, known) in texts.iter().zip(&all) {
            if known.is_none() && !new.contains(text) {
                new.push(text.clone());
            }
        }
        if !new.is_empty() {
            let made = self.embed(new.clone(), within)?;
            kept.put(
                new.iter()
                    .zip(&made)
                    .map(|(text, rows)| (text.as_bytes(), rows)),
            );
            for (text, slot) in texts.iter().zip(&mut all) {
                if let (None, Some(at)) = (&slot, new.iter().position(|other| other == text)) {
                    *slot = made.get(at).cloned();
                }
            }
        }
        let mut vectors = all.iter().map(|rows| match rows {
            Some(rows) => rows.values().collect(),
            None => Vec::new(),
        });
        let asked: Vec<f32> = vectors.next().unwrap_or_default();
        let likeness = |one: Vec<f32>| -> Result<f32, RerankError> {
            if one.len() != asked.len() {
                return Err("its vectors have another length than before".into());
            }
            Ok(one.iter().zip(&asked).map(|(x, y)| x * y).sum())
        };
        vectors.map(likeness).collect()
    }
}

impl EmbeddingReranker {
    /// The vectors of texts, each of length one.
    fn embed(
        &self,
        texts: Vec<String>,
        within: Duration,
    ) -> Result<Vec<QuantizedRows>, RerankError> {
        let runtime = tokio::runtime::Handle::try_current()?;
        let asked = async { tokio::time::timeout(within, self.provider.embed(texts)).await };
        let vectors = runtime.block_on(asked).map_err(|_| {
            let seconds = within.as_secs_f32();
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

/// What is sent of a passage: who said what.
fn passage_text(passage: &RerankPassage<'_>) -> String {
    match (passage.author, passage.text.trim()) {
        // Providers refuse a text without anything in it.
        (None, "") => "…".to_owned(),
        (None, text) => text.to_owned(),
        (Some(author), text) => format!("{author}: {text}"),
    }
}
