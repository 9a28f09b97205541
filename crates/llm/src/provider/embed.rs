//! Computes embeddings with OpenAI or a compatible server.

use genai::embed::EmbedRequest;
use genai::{ModelIden, ServiceTarget, adapter::AdapterKind};

use super::{ApiProtocol, AttemptError, Provider, attempt_error};
use crate::{EndpointError, ModelEndpoint, ModelError};

/// Rejects an endpoint whose API has no embeddings.
pub(super) fn check_supports_embeddings(at: &ModelEndpoint) -> Result<(), EndpointError> {
    match at.protocol {
        ApiProtocol::Chat | ApiProtocol::Responses => Ok(()),
        ApiProtocol::Anthropic | ApiProtocol::Gemini => {
            Err(EndpointError::NoEmbeddings(at.provider.clone()))
        }
    }
}

impl Provider {
    /// Returns the embedding of each text, in order, all of the same length.
    ///
    /// Does not retry, because callers cannot wait long. Fails unless the provider returns
    /// one vector of finite numbers per text.
    pub async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, ModelError> {
        let count = texts.len();
        let client = self.client().map_err(|failure| failure.error)?;
        let response = client
            .exec_embed(self.embed_target(), EmbedRequest::new_batch(texts), None)
            .await
            .map_err(|error| AttemptError::from_client(error, &self.endpoint).error)?;
        let mut vectors: Vec<Option<Vec<f32>>> = vec![None; count];
        for embedding in response.embeddings {
            if let Some(slot) = vectors.get_mut(embedding.index) {
                *slot = Some(embedding.vector);
            }
        }
        let vectors: Option<Vec<_>> = vectors.into_iter().collect();
        let vectors = vectors.ok_or_else(|| {
            attempt_error::invalid_response(&self.endpoint, "an embedding is missing")
        })?;
        let size = vectors.first().map_or(0, Vec::len);
        let are_sound = vectors
            .iter()
            .all(|vector| vector.len() == size && vector.iter().all(|x| x.is_finite()));
        if count > 0 && (size == 0 || !are_sound) {
            return Err(attempt_error::invalid_response(
                &self.endpoint,
                "the embeddings differ in length or are not finite",
            ));
        }
        Ok(vectors)
    }

    fn embed_target(&self) -> ServiceTarget {
        let address = format!("{}embeddings", self.endpoint.base_url);
        ServiceTarget {
            model: ModelIden::new(AdapterKind::OpenAI, self.endpoint.model.clone()),
            ..self.target_at(address)
        }
    }
}
