//! Which model compares again what a search finds: the setting `semantic`.
//!
//! The static model is in the binary and always ranks first. A contextual one may have been
//! added to the data folder; a provider's embeddings may be asked over the network.

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

/// The model in the binary.
pub(crate) const STATIC: &str = "static";
/// The contextual model that can be added.
pub(crate) const MINILM: &str = "minilm";
/// An example of a provider's model, for people.
pub(crate) const EXAMPLE_MODEL: &str = "openai/text-embedding-3-small";

/// What the setting may mean.
#[derive(Clone, Debug)]
pub(crate) enum SemanticModel {
    /// The model in the binary alone.
    Static,
    /// The contextual one.
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
        let wanted = ModelSpec::parse(text).map_err(|_| refused())?;
        let is_known = wanted.provider.is_some() || wanted.base_url.is_some();
        // Whoever is named without a model would be asked for vectors from one that talks.
        if !is_known || wanted.model.is_none() {
            return Err(refused());
        }
        Ok(Self::Embeddings(wanted))
    }
}

impl SemanticModel {
    /// What compares again; none for the model in the binary alone.
    ///
    /// What is wrong with it is found out when it is first needed.
    pub(crate) fn reranker(&self, places: &Paths, seed: u64) -> Option<LazyReranker> {
        match self {
            Self::Static => None,
            Self::Minilm => {
                let folder = minilm_folder(places);
                Some(LazyReranker::new(MINILM, RerankBudget::LOCAL, move || {
                    if !folder.is_dir() {
                        return Err("it is not installed; run `tl models add minilm`".into());
                    }
                    Ok(Box::new(ContextualModel::load(MINILM, &folder)?))
                }))
            }
            Self::Embeddings(wanted) => {
                let at = connect_embeddings(places, wanted);
                let name = at.as_ref().map_or_else(
                    |_| display_name(wanted),
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

    /// Refuses what cannot work, for somebody who asks for it now.
    pub(crate) fn validate(&self, places: &Paths) -> Result<()> {
        match self {
            Self::Static => Ok(()),
            Self::Minilm if minilm_folder(places).is_dir() => Ok(()),
            Self::Minilm => Err(UserError {
                what: format!("{MINILM} is not installed"),
                hint: Some("`tl models add minilm` fetches it".to_owned()),
                kind: throughline::ErrorKind::NotFound,
            }
            .into()),
            Self::Embeddings(wanted) => {
                let at = connect_embeddings(places, wanted)?;
                Provider::for_embeddings(at, TimeoutPolicy::default(), 0)
                    .map(|_| ())
                    .map_err(|error| UserError::invalid(error.to_string()).into())
            }
        }
    }
}

/// Where the contextual model is, if it is installed.
pub(crate) fn minilm_folder(places: &Paths) -> PathBuf {
    places.models_folder().join(MINILM)
}

/// How a provider's embeddings are reached.
pub(crate) fn connect_embeddings(places: &Paths, wanted: &ModelSpec) -> Result<ModelEndpoint> {
    let environment = |name: &str| places.variable(name).map(ToOwned::to_owned);
    let keys: ApiKeys = load_keys(places)?;
    let found = resolve_endpoint(wanted, &keys, &environment);
    let found = found.map_err(|error| UserError::invalid(error.to_string()))?;
    found.ok_or_else(|| UserError::invalid("no provider is named").into())
}

/// What a person calls it.
fn display_name(wanted: &ModelSpec) -> String {
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    format!("{}/{}", part(&wanted.provider), part(&wanted.model))
        .trim_matches('/')
        .to_owned()
}
