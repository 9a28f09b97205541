//! The semantic model inside the binary: one vector a token, and nothing else.
//!
//! It was distilled from a sentence model (`model/NOTICE.md`, `cargo xtask distill`). A
//! text's vector is the weighted mean of its tokens' vectors: rare words count more than
//! common ones. It knows which words are alike; it does not know word order.
//!
//! Invariant: the index records [`DIGEST`], and is built again when the model changes.

mod embedding_table;
mod simd;
mod wordpiece;

pub(crate) use embedding_table::{DIM, EmbeddingTable, TokenVector};
pub(crate) use simd::{Work, dispatch_simd, dot, widen};
pub(crate) use wordpiece::WordPieceTokenizer;

use std::sync::OnceLock;

/// What the index records of the model: the blake3 digest of its file.
pub const DIGEST: &str = "5457b6bccea902f4e649153d02a5bc0d9c407b8d36320a70fadeaf0ddee2feee";

static FILE: &[u8] = include_bytes!("../../model/static.bin");

/// How large the model is.
pub const BYTES: u64 = FILE.len() as u64;

/// The model, read the first time it is asked for.
pub(crate) fn static_model() -> &'static StaticModel {
    static MODEL: OnceLock<StaticModel> = OnceLock::new();
    MODEL.get_or_init(|| StaticModel::new(FILE))
}

/// A token of the model.
pub(crate) type TokenId = u16;

/// Token vectors, and how text is cut into tokens.
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

    /// The tokens of a text; of a long one, the first `limit`.
    pub(crate) fn tokenize(&self, text: &str, limit: usize) -> Vec<TokenId> {
        let mut tokens = Vec::new();
        self.tokenizer.tokenize(text, limit, &mut tokens);
        tokens
    }

    /// Whether these are the names of its tokens, one a line.
    #[cfg(feature = "contextual")]
    pub(crate) fn has_vocabulary(&self, names: &[u8]) -> bool {
        self.vocabulary.trim_end().as_bytes() == names.trim_ascii_end()
    }

    /// The names of its tokens, one a line.
    #[cfg(feature = "contextual")]
    pub(crate) fn vocabulary(&self) -> &'static str {
        self.vocabulary
    }

    /// The tokens' vectors.
    pub(crate) fn table(&self) -> &EmbeddingTable {
        &self.table
    }

    /// The weighted mean of the tokens, of length one; zero for no tokens.
    pub(crate) fn mean_pool(&self, tokens: impl IntoIterator<Item = (TokenId, f32)>) -> Vec<f32> {
        let mut sum = vec![0.0; DIM];
        for (token, weight) in tokens {
            self.table.add_weighted(token, weight, &mut sum);
        }
        normalize(&mut sum);
        sum
    }
}

/// How alike two texts are as a whole, by the model in the binary: 1 for the same words,
/// about 0 for texts that have nothing to do with each other.
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

/// Scales a vector to length one; zero stays zero.
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
