//! A contextual model, which can be added: it reads a passage as a whole, and knows what
//! a word means where it stands.
//!
//! It is too slow for everything ever said, and compares the first hits again within a
//! time limit. Any BERT encoder with the vocabulary of the static model will do; the
//! weights are read as they are published, from a folder.

mod bert_encoder;
mod maxsim;
mod safetensors;

use std::path::{Path, PathBuf};

use bert_encoder::Encoder;
use safetensors::{EncoderConfig, Safetensors};
use throughline_model::Digest;

use crate::static_model::{self, static_model};

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
pub struct ContextualModel {
    name: String,
    digest: Digest,
    encoder: Encoder,
}

impl ContextualModel {
    /// Loads the model in a folder: `config.json`, `model.safetensors` and `vocab.txt`, as
    /// they are published for all-MiniLM-L6-v2. A person knows it by the `name`.
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

    /// The names of the tokens that a model must have, as they stand in its `vocab.txt`.
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

/// Tokens that stand for no word.
const CLS_TOKEN: static_model::TokenId = 101;
const SEP_TOKEN: static_model::TokenId = 102;
