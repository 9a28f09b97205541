//! An optional contextual model that reranks hits by the meaning of words in context.
//!
//! It is too slow to score every passage, so it rescores the first hits within a time limit.
//! Any BERT encoder with the vocabulary of the static model works; the weights are loaded from
//! a folder in their published format.

mod bert_encoder;
mod maxsim;
mod safetensors;

use std::path::{Path, PathBuf};

use bert_encoder::Encoder;
use safetensors::{EncoderConfig, Safetensors};
use throughline_model::Digest;

use crate::static_model::{self, static_model};

/// Why a folder cannot be loaded as a contextual model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContextualError {
    /// A file cannot be read.
    #[error("{} cannot be read", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The I/O error.
        source: std::io::Error,
    },
    /// A file does not have the expected content.
    #[error("{} is not as expected: {what}", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The model has another vocabulary.
    #[error("the vocabulary in {} is not the one of the static model", .0.display())]
    Vocabulary(PathBuf),
}

/// A loaded contextual model.
pub struct ContextualModel {
    name: String,
    digest: Digest,
    encoder: Encoder,
}

impl ContextualModel {
    /// Loads the model in a folder with `config.json`, `model.safetensors` and `vocab.txt`, as
    /// published for all-MiniLM-L6-v2. `name` is shown to users.
    pub fn load(name: &str, folder: &Path) -> Result<Self, ContextualError> {
        let file = folder.join("vocab.txt");
        let names = read_file(&file)?;
        if !static_model().has_vocabulary(&names) {
            return Err(ContextualError::Vocabulary(file));
        }
        let config = EncoderConfig::read(&folder.join("config.json"))?;
        if config.vocab_size != static_model().table().len() {
            return Err(ContextualError::Vocabulary(file));
        }
        let weights = Safetensors::read(&folder.join("model.safetensors"))?;
        Ok(Self {
            name: name.to_owned(),
            digest: weights.digest(),
            encoder: Encoder::new(&config, &weights)?,
        })
    }

    /// Returns the vocabulary that a model must have, in the format of `vocab.txt`.
    pub fn vocabulary() -> &'static str {
        static_model().vocabulary()
    }
}

impl std::fmt::Debug for ContextualModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Contextual")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

fn read_file(file: &Path) -> Result<Vec<u8>, ContextualError> {
    std::fs::read(file).map_err(|source| ContextualError::File {
        file: file.to_owned(),
        source,
    })
}

/// Special tokens.
const CLS_TOKEN: static_model::TokenId = 101;
const SEP_TOKEN: static_model::TokenId = 102;
