//! A contextual model, which can be added: it reads a passage as a whole, and knows what
//! a word means where it stands.
//!
//! It is too slow for everything ever said, and compares the first hits again within a
//! time limit. Any BERT encoder with the vocabulary of the static model will do; the
//! weights are read as they are published, from a folder.

mod compare;
mod encoder;
mod weights;

use std::path::{Path, PathBuf};

use encoder::Encoder;
use throughline_model::Digest;
use weights::{Config, Weights};

use crate::model::{self, model};

/// Why a folder is not a contextual model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContextualError {
    /// A file cannot be read.
    #[error("{} cannot be read", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{} is not as expected: {what}", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// It cuts words in other ways.
    #[error("the vocabulary in {} is not the one of the static model", .0.display())]
    Vocabulary(PathBuf),
}

/// A contextual model, loaded.
pub struct Contextual {
    name: String,
    digest: Digest,
    encoder: Encoder,
}

impl Contextual {
    /// Loads the model in a folder: `config.json`, `model.safetensors` and `vocab.txt`, as
    /// they are published for all-MiniLM-L6-v2. A person knows it by the `name`.
    pub fn load(name: &str, folder: &Path) -> Result<Self, ContextualError> {
        let file = folder.join("vocab.txt");
        let names = read(&file)?;
        if !model().has_names(&names) {
            return Err(ContextualError::Vocabulary(file));
        }
        let config = Config::read(&folder.join("config.json"))?;
        if config.vocab_size != model().table().len() {
            return Err(ContextualError::Vocabulary(file));
        }
        let weights = Weights::read(&folder.join("model.safetensors"))?;
        Ok(Self {
            name: name.to_owned(),
            digest: weights.digest(),
            encoder: Encoder::new(&config, &weights)?,
        })
    }

    /// The names of the tokens that a model must have, as they stand in its `vocab.txt`.
    pub fn vocabulary() -> &'static str {
        model().names()
    }
}

impl std::fmt::Debug for Contextual {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Contextual")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

fn read(file: &Path) -> Result<Vec<u8>, ContextualError> {
    std::fs::read(file).map_err(|source| ContextualError::File {
        file: file.to_owned(),
        source,
    })
}

/// Tokens that stand for no word.
const BEGIN: model::TokenId = 101;
const END: model::TokenId = 102;
