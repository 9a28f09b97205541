//! Which model compares again what a search finds: the setting `semantic`.
//!
//! The static model is in the binary and always ranks first. A contextual one may have been
//! added to the data folder; a provider's embeddings may be asked over the network.

use std::path::PathBuf;

use anyhow::Result;
use throughline::llm::{Connection, Keys, Provider, Timing, Wanted, connect};
use throughline::recalling::Contextual;
use throughline::{Again, Embeddings, Within};

use crate::keys::keys;
use crate::places::Places;
use crate::report::Refusal;

/// The model in the binary.
pub(crate) const STATIC: &str = "static";
/// The contextual model that can be added.
pub(crate) const MINILM: &str = "minilm";
/// An example of a provider's model, for people.
pub(crate) const EXAMPLE: &str = "openai/text-embedding-3-small";

/// What the setting may mean.
#[derive(Clone, Debug)]
pub(crate) enum Semantic {
    /// The model in the binary alone.
    Static,
    /// The contextual one.
    Minilm,
    /// A provider's embeddings.
    Embeddings(Wanted),
}

impl std::str::FromStr for Semantic {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || format!("{text:?} is not static, minilm or PROVIDER/MODEL ({EXAMPLE})");
        match text {
            STATIC => return Ok(Self::Static),
            MINILM => return Ok(Self::Minilm),
            _ => {}
        }
        let wanted = Wanted::parse(text).map_err(|_| refused())?;
        let is_known = wanted.provider.is_some() || wanted.base_url.is_some();
        // Whoever is named without a model would be asked for vectors from one that talks.
        if !is_known || wanted.model.is_none() {
            return Err(refused());
        }
        Ok(Self::Embeddings(wanted))
    }
}

impl Semantic {
    /// What compares again; none for the model in the binary alone.
    ///
    /// What is wrong with it is found out when it is first needed.
    pub(crate) fn again(&self, places: &Places, seed: u64) -> Option<Again> {
        match self {
            Self::Static => None,
            Self::Minilm => {
                let folder = minilm(places);
                Some(Again::new(MINILM, Within::HERE, move || {
                    if !folder.is_dir() {
                        return Err("it is not installed; run `tl models add minilm`".into());
                    }
                    Ok(Box::new(Contextual::load(MINILM, &folder)?))
                }))
            }
            Self::Embeddings(wanted) => {
                let at = reached(places, wanted);
                let name = at.as_ref().map_or_else(
                    |_| called(wanted),
                    |at| format!("{}/{}", at.provider, at.model),
                );
                let provider = at.and_then(|at| {
                    Provider::embedding(at, Timing::default(), seed)
                        .map_err(|error| Refusal::invalid(error.to_string()).into())
                });
                Some(Again::new(name, Within::AWAY, move || {
                    Ok(Box::new(Embeddings::new(provider?)))
                }))
            }
        }
    }

    /// Refuses what cannot work, for somebody who asks for it now.
    pub(crate) fn check(&self, places: &Places) -> Result<()> {
        match self {
            Self::Static => Ok(()),
            Self::Minilm if minilm(places).is_dir() => Ok(()),
            Self::Minilm => Err(Refusal {
                what: format!("{MINILM} is not installed"),
                hint: Some("`tl models add minilm` fetches it".to_owned()),
                kind: throughline::ErrorKind::NotFound,
            }
            .into()),
            Self::Embeddings(wanted) => {
                let at = reached(places, wanted)?;
                Provider::embedding(at, Timing::default(), 0)
                    .map(|_| ())
                    .map_err(|error| Refusal::invalid(error.to_string()).into())
            }
        }
    }
}

/// Where the contextual model is, if it is installed.
pub(crate) fn minilm(places: &Places) -> PathBuf {
    places.models().join(MINILM)
}

/// How a provider's embeddings are reached.
pub(crate) fn reached(places: &Places, wanted: &Wanted) -> Result<Connection> {
    let environment = |name: &str| places.variable(name).map(ToOwned::to_owned);
    let keys: Keys = keys(places)?;
    let found = connect(wanted, &keys, &environment);
    let found = found.map_err(|error| Refusal::invalid(error.to_string()))?;
    found.ok_or_else(|| Refusal::invalid("no provider is named").into())
}

/// What a person calls it.
fn called(wanted: &Wanted) -> String {
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    format!("{}/{}", part(&wanted.provider), part(&wanted.model))
        .trim_matches('/')
        .to_owned()
}
