//! The semantic model that reranks search results: the setting `semantic`.
//!
//! The static model is built in and always ranks first. The contextual model may be installed
//! in the data folder; a provider's embeddings are requested over the network.

use std::path::PathBuf;

use anyhow::Result;
use throughline::llm::{
    ApiKeys, ModelEndpoint, ModelSpec, Provider, TimeoutPolicy, resolve_endpoint,
};
use throughline::recall::ContextualModel;
use throughline::{EmbeddingReranker, LazyReranker, RerankBudget};

use crate::error_report::UserError;
use crate::keys::load_keys;
use crate::paths::Paths;

/// The built-in model.
pub(crate) const STATIC: &str = "static";
/// The contextual model that can be installed.
pub(crate) const MINILM: &str = "minilm";
/// An example of a provider's model, for messages.
pub(crate) const EXAMPLE_MODEL: &str = "openai/text-embedding-3-small";

/// A value of the setting.
#[derive(Clone, Debug)]
pub(crate) enum SemanticModel {
    /// The built-in model only.
    Static,
    /// The contextual model.
    Minilm,
    /// A provider's embeddings.
    Embeddings(ModelSpec),
}

impl std::str::FromStr for SemanticModel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused =
            || format!("{text:?} is not static, minilm or PROVIDER/MODEL ({EXAMPLE_MODEL})");
        match text {
            STATIC => return Ok(Self::Static),
            MINILM => return Ok(Self::Minilm),
            _ => {}
        }
        let spec = ModelSpec::parse(text).map_err(|_| refused())?;
        let is_known = spec.provider.is_some() || spec.base_url.is_some();
        // A provider without a model would use its default chat model for embeddings.
        if !is_known || spec.model.is_none() {
            return Err(refused());
        }
        Ok(Self::Embeddings(spec))
    }
}

impl SemanticModel {
    /// Returns the reranker; `None` for the built-in model only.
    ///
    /// The model is loaded, and errors occur, when it is first needed.
    pub(crate) fn reranker(&self, paths: &Paths, seed: u64) -> Option<LazyReranker> {
        match self {
            Self::Static => None,
            Self::Minilm => {
                let folder = minilm_folder(paths);
                Some(LazyReranker::new(MINILM, RerankBudget::LOCAL, move || {
                    if !folder.is_dir() {
                        return Err("it is not installed; run `tl models add minilm`".into());
                    }
                    Ok(Box::new(ContextualModel::load(MINILM, &folder)?))
                }))
            }
            Self::Embeddings(spec) => {
                let at = connect_embeddings(paths, spec);
                let name = at.as_ref().map_or_else(
                    |_| display_name(spec),
                    |at| format!("{}/{}", at.provider, at.model),
                );
                let provider = at.and_then(|at| {
                    Provider::for_embeddings(at, TimeoutPolicy::default(), seed)
                        .map_err(|error| UserError::invalid(error.to_string()).into())
                });
                Some(LazyReranker::new(name, RerankBudget::REMOTE, move || {
                    Ok(Box::new(EmbeddingReranker::new(provider?)))
                }))
            }
        }
    }

    /// Checks that an explicitly requested model can be used.
    pub(crate) fn validate(&self, paths: &Paths) -> Result<()> {
        match self {
            Self::Static => Ok(()),
            Self::Minilm if minilm_folder(paths).is_dir() => Ok(()),
            Self::Minilm => Err(UserError {
                what: format!("{MINILM} is not installed"),
                hint: Some("`tl models add minilm` downloads it".to_owned()),
                kind: throughline::ErrorKind::NotFound,
            }
            .into()),
            Self::Embeddings(spec) => {
                let at = connect_embeddings(paths, spec)?;
                Provider::for_embeddings(at, TimeoutPolicy::default(), 0)
                    .map(|_| ())
                    .map_err(|error| UserError::invalid(error.to_string()).into())
            }
        }
    }
}

/// Returns the folder of the contextual model, whether or not it is installed.
pub(crate) fn minilm_folder(paths: &Paths) -> PathBuf {
    paths.models_folder().join(MINILM)
}

/// Resolves the endpoint of a provider's embeddings.
pub(crate) fn connect_embeddings(paths: &Paths, spec: &ModelSpec) -> Result<ModelEndpoint> {
    let environment = |name: &str| paths.variable(name).map(ToOwned::to_owned);
    let keys: ApiKeys = load_keys(paths)?;
    let found = resolve_endpoint(spec, &keys, &environment);
    let found = found.map_err(|error| UserError::invalid(error.to_string()))?;
    found.ok_or_else(|| UserError::invalid("no provider specified").into())
}

/// Returns PROVIDER/MODEL for display.
fn display_name(spec: &ModelSpec) -> String {
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    format!("{}/{}", part(&spec.provider), part(&spec.model))
        .trim_matches('/')
        .to_owned()
}
