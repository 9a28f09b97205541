//! The vectors of the tokens, as they are in the file.
//!
//! The file is, little-endian: `TLSTATIC`, the number of tokens and of dimensions (u32);
//! for each token its scale and its weight (f32); for each token its bytes (i8); then the
//! tokens' names, one a line. Bytes times scale is a vector of length one; the weight is
//! how much the token counts in a text.

use super::TokenId;
use super::simd::{dispatch_simd, dot, widen};

/// Dimensions of every vector.
pub(crate) const DIM: usize = 256;

const MAGIC: &[u8; 8] = b"TLSTATIC";
const HEADER_BYTES: usize = 16;

/// A token's vector, made ready to be compared with many.
pub(crate) struct TokenVector {
    row: Vec<i16>,
    scale: f32,
}

/// The vectors of all tokens.
pub(crate) struct EmbeddingTable {
    scales: Vec<f32>,
    weights: Vec<f32>,
    rows: &'static [u8],
}

impl EmbeddingTable {
    /// The table in a file, and the names of its tokens.
    ///
    /// The file is part of the binary and checked by a test, so that it being wrong is a
    /// mistake of ours and not an error to handle.
    pub(crate) fn read(file: &'static [u8]) -> (Self, &'static str) {
        let number = |at: usize| {
            let bytes = [file[at], file[at + 1], file[at + 2], file[at + 3]];
            u32::from_le_bytes(bytes)
        };
        assert_eq!(&file[..8], MAGIC, "the model's file is not a model");
        assert_eq!(number(12) as usize, DIM, "the model has other dimensions");
        let count = number(8) as usize;
        let figures = |from: usize| -> Vec<f32> {
            (0..count)
                .map(|index| f32::from_bits(number(from + 4 * index)))
                .collect()
        };
        let rows = HEADER_BYTES + 8 * count;
        let names = rows + DIM * count;
        let table = Self {
            scales: figures(HEADER_BYTES),
            weights: figures(HEADER_BYTES + 4 * count),
            rows: &file[rows..names],
        };
        let names = std::str::from_utf8(&file[names..]).unwrap_or_default();
        (table, names)
    }

    /// How many tokens there are.
    pub(crate) fn len(&self) -> usize {
        self.scales.len()
    }

    /// A token, to be compared with others.
    pub(crate) fn token_vector(&self, token: TokenId) -> TokenVector {
        TokenVector {
            row: widen(self.row(token)),
            scale: self.scales[usize::from(token)],
        }
    }

    /// How alike two tokens are, between -1 and 1.
    pub(crate) fn similarity(&self, a: TokenId, b: &TokenVector) -> f32 {
        let row = self.row(a);
        self.scales[usize::from(a)] * b.scale * dispatch_simd(|| dot(row, &b.row))
    }

    /// Adds a token's vector, times its weight and `weight`.
    pub(crate) fn add_weighted(&self, token: TokenId, weight: f32, to: &mut [f32]) {
        let index = usize::from(token);
        let weight = weight * self.weights[index] * self.scales[index];
        let row = self.row(token);
        dispatch_simd(|| {
            for (sum, byte) in to.iter_mut().zip(row) {
                *sum += weight * f32::from(byte.cast_signed());
            }
        });
    }

    fn row(&self, token: TokenId) -> &[u8] {
        let start = usize::from(token) * DIM;
        &self.rows[start..start + DIM]
    }
}
