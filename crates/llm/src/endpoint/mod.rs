//! Which model to talk to, and how to reach it.
//!
//! What is [`Wanted`] comes in layers: a flag, the agent's file, the configuration. The
//! keys come from the environment or from a file that nobody else can read. Where
//! nothing is wanted, whatever the environment offers is taken; where it offers nothing
//! there is no [`Connection`], and the program works offline.
//!
//! The environment is handed in; nothing here reads it.

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

/// How a model is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelEndpoint {
    /// Who serves it: `anthropic`, `openai`, `ollama`…
    pub provider: String,
    /// What the provider calls it.
    pub model: String,
    /// The address that the wire's paths are put after, with a slash at its end.
    pub base_url: String,
    /// The key, where one is needed.
    pub key: Option<Secret>,
    /// Where the key came from, or would come from: a variable's name, or a file.
    pub key_source: Option<String>,
    /// What is spoken there.
    pub protocol: ApiProtocol,
    /// How many tokens the model takes in all, where known.
    pub window: Option<u64>,
}

impl ModelEndpoint {
    /// The encoding that is nearest to the model's.
    pub fn encoding(&self) -> Encoding {
        Encoding::for_model(&self.model)
    }

    /// What an answer cost in dollars, where prices are known.
    pub fn cost(&self, usage: &Usage) -> Option<f64> {
        model_catalog::cost(&self.provider, &self.model, usage)
    }
}

/// What is wanted cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// Nobody by this name is known, and there is no address either.
    #[error("{0:?} is not a provider: use one of {known}, or give its address", known = vendor::names())]
    UnknownProvider(String),
    /// The model's name does not tell whose it is.
    #[error("who serves {0:?}? write provider/model: {known}", known = vendor::names())]
    UnknownModelProvider(String),
    /// There is no default for this provider.
    #[error("which model of {0}? write {0}/MODEL")]
    MissingModel(String),
    /// There is no key.
    #[error("there is no key for {provider}: set {variable}")]
    MissingKey {
        /// For whom.
        provider: String,
        /// The variable to set.
        variable: String,
    },
    /// It has no model that turns texts into vectors, or not in a way that is known here.
    #[error(
        "{0} has no embeddings here: use openai/text-embedding-3-small, ollama/MODEL, or base_url=… model=…"
    )]
    NoEmbeddings(String),
    /// The address is not one.
    #[error("{0:?} is not an address: write http://HOST:PORT/v1")]
    InvalidUrl(String),
}

/// Reads one variable of the environment.
pub type EnvLookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// How to reach what is wanted; none where nothing is wanted and nothing is at hand.
pub fn resolve_endpoint(
    wanted: &ModelSpec,
    keys: &ApiKeys,
    environment: EnvLookup<'_>,
) -> Result<Option<ModelEndpoint>, EndpointError> {
    let found = |variable: &str| environment(variable).filter(|text| !text.trim().is_empty());
    let vendor = match wanted.vendor()? {
        Some(vendor) => vendor,
        None if wanted.base_url.is_some() => &vendor::COMPATIBLE,
        None => match find_available_vendor(keys, &found) {
            Some(vendor) => vendor,
            None => {
                return match &wanted.model {
                    Some(model) => Err(EndpointError::UnknownModelProvider(model.clone())),
                    None => Ok(None),
                };
            }
        },
    };
    build_endpoint(wanted, vendor, keys, &found).map(Some)
}

/// The first for whom there is a key, or an address where none is needed.
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
    let is_kept = |vendor: &&Vendor| keys.get(vendor.name).is_some();
    let mut vendors = vendor::VENDORS.iter();
    vendors
        .clone()
        .find(has_key)
        .or_else(|| vendors.find(is_kept))
}

fn build_endpoint(
    wanted: &ModelSpec,
    vendor: &'static Vendor,
    keys: &ApiKeys,
    found: EnvLookup<'_>,
) -> Result<ModelEndpoint, EndpointError> {
    let name = wanted.provider.clone().map_or_else(
        || vendor.name.to_owned(),
        |named| vendor::find_vendor(&named).map_or(named, |vendor| vendor.name.to_owned()),
    );
    let address = wanted.base_url.clone().or_else(|| {
        let mut variables = vendor.address_variables.iter();
        variables.find_map(|variable| found(variable))
    });
    let base_url = match (&address, vendor.base_url) {
        (Some(address), _) => base_url::complete_url(address, vendor.protocol)?,
        (None, Some(default)) => default.to_owned(),
        (None, None) => return Err(EndpointError::UnknownProvider(name)),
    };
    let (key, key_from) = find_key(wanted, vendor, &name, keys, found);
    // An address of one's own may well be open.
    if key.is_none() && vendor.needs_key && address.is_none() {
        return Err(EndpointError::MissingKey {
            provider: name,
            variable: key_from.unwrap_or_default(),
        });
    }
    let model = wanted
        .model
        .clone()
        .or(vendor.default_model.map(str::to_owned));
    let model = model.ok_or_else(|| EndpointError::MissingModel(name.clone()))?;
    let wire = vendor.protocol_for(&model, address.is_none());
    let window = wanted
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

/// The key and where it is from, or should be from.
fn find_key(
    wanted: &ModelSpec,
    vendor: &Vendor,
    name: &str,
    keys: &ApiKeys,
    found: EnvLookup<'_>,
) -> (Option<Secret>, Option<String>) {
    if let Some(key) = &wanted.key {
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
