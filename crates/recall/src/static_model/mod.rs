//! The static embedding model compiled into the binary: one vector per token.
//!
//! It was distilled from a sentence model (`model/NOTICE.md`, `cargo xtask distill`). The
//! vector of a text is the weighted mean of its token vectors, where rare words weigh more
//! than common ones. The model captures which words are similar, but not word order.
//!
//! Invariant: the index records [`DIGEST`], and is rebuilt when the model changes.

mod embedding_table;
mod simd;
mod wordpiece;

pub(crate) use embedding_table::{DIM, EmbeddingTable, TokenVector};
pub(crate) use simd::{Work, dispatch_simd, dot, widen};
pub(crate) use wordpiece::WordPieceTokenizer;

use std::sync::OnceLock;

/// The blake3 digest of the model file, recorded in every index.
pub const DIGEST: &str = "5457b6bccea902f4e649153d02a5bc0d9c407b8d36320a70fadeaf0ddee2feee";

static FILE: &[u8] = include_bytes!("../../model/static.bin");

/// The size of the model file.
pub const BYTES: u64 = FILE.len() as u64;

/// Returns the model, loading it on first use.
pub(crate) fn static_model() -> &'static StaticModel {
    static MODEL: OnceLock<StaticModel> = OnceLock::new();
    MODEL.get_or_init(|| StaticModel::new(FILE))
}

/// The id of a token in the model's vocabulary.
pub(crate) type TokenId = u16;

/// The embedding table and the tokenizer.
pub(crate) struct StaticModel {
    #[cfg(feature = "contextual")]
    vocabulary: &'static str,
    tokenizer: WordPieceTokenizer,
    table: EmbeddingTable,
}

impl StaticModel {
    fn new(file: &'static [u8]) -> Self {
        let (table, vocabulary) = EmbeddingTable::read(file);
        Self {
            #[cfg(feature = "contextual")]
            vocabulary,
            tokenizer: WordPieceTokenizer::new(vocabulary),
            table,
        }
    }

    /// Tokenizes a text; returns at most the first `limit` tokens.
    pub(crate) fn tokenize(&self, text: &str, limit: usize) -> Vec<TokenId> {
        let mut tokens = Vec::new();
        self.tokenizer.tokenize(text, limit, &mut tokens);
        tokens
    }

    /// Returns whether `names` is the model's vocabulary, one token per line.
    #[cfg(feature = "contextual")]
    pub(crate) fn has_vocabulary(&self, names: &[u8]) -> bool {
        self.vocabulary.trim_end().as_bytes() == names.trim_ascii_end()
    }

    /// Returns the vocabulary, one token per line.
    #[cfg(feature = "contextual")]
    pub(crate) fn vocabulary(&self) -> &'static str {
        self.vocabulary
    }

    /// Returns the embedding table.
    pub(crate) fn table(&self) -> &EmbeddingTable {
        &self.table
    }

    /// Returns the weighted mean of token vectors, normalized to length one; zero for no
    /// tokens.
    pub(crate) fn mean_pool(&self, tokens: impl IntoIterator<Item = (TokenId, f32)>) -> Vec<f32> {
        let mut sum = vec![0.0; DIM];
        for (token, weight) in tokens {
            self.table.add_weighted(token, weight, &mut sum);
        }
        normalize(&mut sum);
        sum
    }
}

/// Returns the similarity of two texts by the static model: 1 for the same words, about 0 for
/// unrelated texts.
pub fn text_similarity(one: &str, other: &str) -> f32 {
    const TOKENS: usize = 512;
    let vector = |text: &str| {
        let tokens = static_model().tokenize(text, TOKENS).into_iter();
        static_model().mean_pool(tokens.map(|token| (token, 1.0)))
    };
    vector(one)
        .iter()
        .zip(vector(other))
        .map(|(x, y)| x * y)
        .sum()
}

/// Normalizes a vector to length one; zero stays zero.
pub(crate) fn normalize(vector: &mut [f32]) {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if length > 0.0 {
        for x in vector {
            *x /= length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_that_of_the_file() {
        assert_eq!(blake3::hash(FILE).to_hex().as_str(), DIGEST);
    }

    #[test]
    fn words_of_like_meaning_are_alike() {
        assert!(
            text_similarity("the doctor", "a physician")
                > text_similarity("the doctor", "a bicycle")
        );
        assert!(
            text_similarity("database error", "sql failure")
                > text_similarity("database error", "sunny beach")
        );
    }

    #[test]
    fn a_text_without_tokens_is_like_nothing() {
        assert!(text_similarity("", "anything").abs() < f32::EPSILON);
    }
}
