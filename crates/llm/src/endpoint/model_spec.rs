//! A model specification, as given by a flag, an agent file or the configuration.
//!
//! A spec is `provider/model`, a provider, a model whose name implies its provider, or
//! `provider=… model=… base_url=…`.

use super::EndpointError;
use super::vendor::{self, Vendor};
use crate::Secret;

/// A possibly partial model specification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelSpec {
    /// The provider.
    pub provider: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// Base URL of the provider.
    pub base_url: Option<String>,
    /// The API key.
    pub key: Option<Secret>,
    /// The context window in tokens, if it is not known from the model's name.
    pub window: Option<u64>,
}

/// A spec that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot parse {part:?} in {spec:?}: write provider/model, or provider=… model=… base_url=…"
)]
pub struct SpecError {
    spec: String,
    part: String,
}

impl ModelSpec {
    /// Parses a spec.
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
        let mut parsed = Self::default();
        for part in spec.split([' ', ',']).filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').ok_or_else(|| refused(part))?;
            let slot = match key {
                "provider" => &mut parsed.provider,
                "model" => &mut parsed.model,
                "base_url" => &mut parsed.base_url,
                _ => return Err(refused(part)),
            };
            if value.is_empty() || slot.is_some() {
                return Err(refused(part));
            }
            *slot = Some(value.to_owned());
        }
        // `model=openai/gpt-5` alone means the same as `openai/gpt-5`.
        Ok(
            match (parsed.provider.as_deref(), parsed.model.as_deref()) {
                (None, Some(model)) => Self {
                    base_url: parsed.base_url.clone(),
                    ..Self::from_name(model)
                },
                _ => parsed,
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

    /// Fills unset fields from the layer below.
    ///
    /// A layer for a different provider is ignored: its model, URL and key do not apply.
    #[must_use]
    pub fn with_fallback(self, below: Self) -> Self {
        let whose = |layer: &Self| layer.vendor().ok().flatten().map(|vendor| vendor.name);
        let named = |layer: &Self| layer.provider.clone().filter(|_| whose(layer).is_none());
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

    /// Returns the provider, as far as it can be determined.
    pub(super) fn vendor(&self) -> Result<Option<&'static Vendor>, EndpointError> {
        match (&self.provider, &self.model) {
            (Some(provider), _) => match vendor::find_vendor(provider) {
                Some(vendor) => Ok(Some(vendor)),
                // An unknown provider with a base URL is assumed to be OpenAI-compatible.
                None if self.base_url.is_some() => Ok(None),
                None => Err(EndpointError::UnknownProvider(provider.clone())),
            },
            (None, Some(model)) => Ok(vendor::find_vendor_by_model(model)),
            (None, None) => Ok(None),
        }
    }
}
