//! What model is wanted, as far as somebody said.
//!
//! A spec is `provider/model`, a provider, a model whose name tells whose it is, or
//! `provider=… model=… base_url=…`.

use super::EndpointError;
use super::vendor::{self, Vendor};
use crate::Secret;

/// What model is wanted, as far as somebody said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelSpec {
    /// Who is to serve it.
    pub provider: Option<String>,
    /// Which model.
    pub model: Option<String>,
    /// Where to reach the provider.
    pub base_url: Option<String>,
    /// The key for it.
    pub key: Option<Secret>,
    /// How many tokens the model takes, where its name does not tell.
    pub window: Option<u64>,
}

/// A spec that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{part:?} in {spec:?} says nothing: write provider/model, or provider=… model=… base_url=…"
)]
pub struct SpecError {
    spec: String,
    part: String,
}

impl ModelSpec {
    /// Reads a spec.
    pub fn parse(spec: &str) -> Result<Self, SpecError> {
        let spec = spec.trim();
        let refused = |part: &str| SpecError {
            spec: spec.to_owned(),
            part: part.to_owned(),
        };
        if spec.is_empty() {
            return Err(refused(""));
        }
        if !spec.contains('=') {
            return Ok(Self::from_name(spec));
        }
        let mut wanted = Self::default();
        for part in spec.split([' ', ',']).filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').ok_or_else(|| refused(part))?;
            let slot = match key {
                "provider" => &mut wanted.provider,
                "model" => &mut wanted.model,
                "base_url" => &mut wanted.base_url,
                _ => return Err(refused(part)),
            };
            if value.is_empty() || slot.is_some() {
                return Err(refused(part));
            }
            *slot = Some(value.to_owned());
        }
        // `model=openai/gpt-5` alone is the short form at length.
        Ok(
            match (wanted.provider.as_deref(), wanted.model.as_deref()) {
                (None, Some(model)) => Self {
                    base_url: wanted.base_url.clone(),
                    ..Self::from_name(model)
                },
                _ => wanted,
            },
        )
    }

    fn from_name(spec: &str) -> Self {
        let (provider, model) = match spec.split_once('/') {
            Some((provider, model))
                if vendor::find_vendor(provider).is_some() && !model.is_empty() =>
            {
                (Some(provider), Some(model))
            }
            _ if vendor::find_vendor(spec).is_some() => (Some(spec), None),
            _ => (None, Some(spec)),
        };
        Self {
            provider: provider.map(str::to_owned),
            model: model.map(str::to_owned),
            ..Self::default()
        }
    }

    /// Fills what was not said from a layer below.
    ///
    /// A layer that speaks of another provider has nothing to add: its model, its
    /// address and its key are of no use here.
    #[must_use]
    pub fn with_fallback(self, below: Self) -> Self {
        let whose = |wanted: &Self| wanted.vendor().ok().flatten().map(|vendor| vendor.name);
        let named = |wanted: &Self| wanted.provider.clone().filter(|_| whose(wanted).is_none());
        let differ = match (whose(&self), whose(&below)) {
            (Some(ours), Some(theirs)) => ours != theirs,
            _ => named(&self).is_some() && named(&self) != named(&below),
        };
        if differ {
            return self;
        }
        Self {
            provider: self.provider.or(below.provider),
            model: self.model.or(below.model),
            base_url: self.base_url.or(below.base_url),
            key: self.key.or(below.key),
            window: self.window.or(below.window),
        }
    }

    /// Whose model it is, as far as can be told.
    pub(super) fn vendor(&self) -> Result<Option<&'static Vendor>, EndpointError> {
        match (&self.provider, &self.model) {
            (Some(provider), _) => match vendor::find_vendor(provider) {
                Some(vendor) => Ok(Some(vendor)),
                // Somebody unknown, at an address, is taken to be compatible.
                None if self.base_url.is_some() => Ok(None),
                None => Err(EndpointError::UnknownProvider(provider.clone())),
            },
            (None, Some(model)) => Ok(vendor::find_vendor_by_model(model)),
            (None, None) => Ok(None),
        }
    }
}
