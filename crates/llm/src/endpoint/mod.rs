//! Resolves which model to use and how to reach it.
//!
//! A [`ModelSpec`] is merged from layers: a flag, the agent file, the configuration. Keys
//! come from the environment or from a file that only its owner can read. Without a spec,
//! the first provider configured in the environment is used; without one of those there is
//! no [`ModelEndpoint`], and the program works offline.
//!
//! The environment is passed in; nothing here reads it.

mod api_keys;
mod base_url;
mod model_spec;
mod vendor;

use crate::{ApiProtocol, Secret, model_catalog};
use throughline_context::Encoding;
use throughline_model::Usage;
use vendor::Vendor;

pub use api_keys::{ApiKeys, ApiKeysError, check_key_file_mode};
pub use model_spec::{ModelSpec, SpecError};

/// How to reach a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelEndpoint {
    /// The provider: `anthropic`, `openai`, `ollama`…
    pub provider: String,
    /// The provider's name for the model.
    pub model: String,
    /// Base URL of the API, with a trailing slash.
    pub base_url: String,
    /// The API key, if one is needed.
    pub key: Option<Secret>,
    /// Where the key came from, or is expected: the name of a variable, or a file.
    pub key_source: Option<String>,
    /// The API protocol.
    pub protocol: ApiProtocol,
    /// The model's context window in tokens, if known.
    pub window: Option<u64>,
}

impl ModelEndpoint {
    /// Returns the token encoding closest to the model's.
    pub fn encoding(&self) -> Encoding {
        Encoding::for_model(&self.model)
    }

    /// Returns the cost of an answer in dollars, if prices are known.
    pub fn cost(&self, usage: &Usage) -> Option<f64> {
        model_catalog::cost(&self.provider, &self.model, usage)
    }
}

/// Why a model spec cannot be resolved to an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// The provider is unknown and no base URL was given.
    #[error("unknown provider {0:?}: use one of {known}, or set base_url", known = vendor::names())]
    UnknownProvider(String),
    /// The provider cannot be derived from the model's name.
    #[error("cannot tell which provider serves {0:?}: write provider/model with one of {known}", known = vendor::names())]
    UnknownModelProvider(String),
    /// The provider has no default model.
    #[error("no model given for {0}: write {0}/MODEL")]
    MissingModel(String),
    /// There is no API key for the provider.
    #[error("no API key for {provider}: set {variable}")]
    MissingKey {
        /// The provider.
        provider: String,
        /// The variable to set.
        variable: String,
    },
    /// The provider has no embeddings, or none that are supported.
    #[error(
        "{0} embeddings are not supported: use openai/text-embedding-3-small, ollama/MODEL, or base_url=… model=…"
    )]
    NoEmbeddings(String),
    /// The base URL is not valid.
    #[error("{0:?} is not a valid URL: write http://HOST:PORT/v1")]
    InvalidUrl(String),
}

/// Looks up an environment variable.
pub type EnvLookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Resolves a spec to an endpoint; `None` if nothing is specified and nothing configured.
pub fn resolve_endpoint(
    spec: &ModelSpec,
    keys: &ApiKeys,
    environment: EnvLookup<'_>,
) -> Result<Option<ModelEndpoint>, EndpointError> {
    let found = |variable: &str| environment(variable).filter(|text| !text.trim().is_empty());
    let vendor = match spec.vendor()? {
        Some(vendor) => vendor,
        None if spec.base_url.is_some() => &vendor::COMPATIBLE,
        None => match find_available_vendor(keys, &found) {
            Some(vendor) => vendor,
            None => {
                return match &spec.model {
                    Some(model) => Err(EndpointError::UnknownModelProvider(model.clone())),
                    None => Ok(None),
                };
            }
        },
    };
    build_endpoint(spec, vendor, keys, &found).map(Some)
}

/// Returns the first provider with a key, or with a base URL if it needs no key.
fn find_available_vendor(keys: &ApiKeys, found: EnvLookup<'_>) -> Option<&'static Vendor> {
    let has_key = |vendor: &&Vendor| {
        vendor
            .key_variables
            .iter()
            .any(|name| found(name).is_some())
            || (!vendor.needs_key
                && vendor.default_model.is_some()
                && vendor
                    .address_variables
                    .iter()
                    .any(|name| found(name).is_some()))
    };
    let has_stored_key = |vendor: &&Vendor| keys.get(vendor.name).is_some();
    let mut vendors = vendor::VENDORS.iter();
    vendors
        .clone()
        .find(has_key)
        .or_else(|| vendors.find(has_stored_key))
}

fn build_endpoint(
    spec: &ModelSpec,
    vendor: &'static Vendor,
    keys: &ApiKeys,
    found: EnvLookup<'_>,
) -> Result<ModelEndpoint, EndpointError> {
    let name = spec.provider.clone().map_or_else(
        || vendor.name.to_owned(),
        |named| vendor::find_vendor(&named).map_or(named, |vendor| vendor.name.to_owned()),
    );
    let address = spec.base_url.clone().or_else(|| {
        let mut variables = vendor.address_variables.iter();
        variables.find_map(|variable| found(variable))
    });
    let base_url = match (&address, vendor.base_url) {
        (Some(address), _) => base_url::complete_url(address, vendor.protocol)?,
        (None, Some(default)) => default.to_owned(),
        (None, None) => return Err(EndpointError::UnknownProvider(name)),
    };
    let (key, key_from) = find_key(spec, vendor, &name, keys, found);
    // A custom server may not need a key.
    if key.is_none() && vendor.needs_key && address.is_none() {
        return Err(EndpointError::MissingKey {
            provider: name,
            variable: key_from.unwrap_or_default(),
        });
    }
    let model = spec
        .model
        .clone()
        .or(vendor.default_model.map(str::to_owned));
    let model = model.ok_or_else(|| EndpointError::MissingModel(name.clone()))?;
    let wire = vendor.protocol_for(&model, address.is_none());
    let window = spec
        .window
        .or_else(|| model_catalog::context_window(&model));
    Ok(ModelEndpoint {
        provider: name,
        base_url,
        key,
        key_source: key_from,
        protocol: wire,
        window,
        model,
    })
}

/// Returns the key and its source, or where it is expected.
fn find_key(
    spec: &ModelSpec,
    vendor: &Vendor,
    name: &str,
    keys: &ApiKeys,
    found: EnvLookup<'_>,
) -> (Option<Secret>, Option<String>) {
    if let Some(key) = &spec.key {
        return (Some(key.clone()), None);
    }
    for variable in vendor.key_variables {
        if let Some(key) = found(variable).as_deref().and_then(Secret::new) {
            return (Some(key), Some((*variable).to_owned()));
        }
    }
    if let Some(key) = keys.get(name) {
        return (Some(key.clone()), Some(keys.path.clone()));
    }
    (
        None,
        vendor.key_variables.first().map(|name| (*name).to_owned()),
    )
}

#[cfg(test)]
mod tests;
