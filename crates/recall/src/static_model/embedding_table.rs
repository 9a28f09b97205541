//! The token embeddings, as stored in the model file.
//!
//! File format, little-endian: `TLSTATIC`, the number of tokens and of dimensions (u32); for
//! each token its scale and its weight (f32); for each token its bytes (i8); then the token
//! names, one per line. Bytes times scale is a vector of length one; the weight is how much
//! the token counts in a text.

use super::TokenId;
use super::simd::{dispatch_simd, dot, widen};

/// The dimensions of every vector.
pub(crate) const DIM: usize = 256;

const MAGIC: &[u8; 8] = b"TLSTATIC";
const HEADER_BYTES: usize = 16;

/// A token's vector, widened for fast comparison with many others.
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
    /// Reads the table and the token names from a file.
    ///
    /// Panics on a malformed file: it is part of the binary and checked by a test, so an error
    /// would be a bug here.
    pub(crate) fn read(file: &'static [u8]) -> (Self, &'static str) {
        let number = |at: usize| {
            let bytes = [file[at], file[at + 1], file[at + 2], file[at + 3]];
            u32::from_le_bytes(bytes)
        };
        assert_eq!(&file[..8], MAGIC, "the model file is malformed");
        assert_eq!(
            number(12) as usize,
            DIM,
            "the model has the wrong dimensions"
        );
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

    /// Returns the number of tokens.
    pub(crate) fn len(&self) -> usize {
        self.scales.len()
    }

    /// Prepares a token's vector for comparisons.
    pub(crate) fn token_vector(&self, token: TokenId) -> TokenVector {
        TokenVector {
            row: widen(self.row(token)),
            scale: self.scales[usize::from(token)],
        }
    }

    /// Returns the similarity of two tokens, between -1 and 1.
    pub(crate) fn similarity(&self, a: TokenId, b: &TokenVector) -> f32 {
        let row = self.row(a);
        self.scales[usize::from(a)] * b.scale * dispatch_simd(|| dot(row, &b.row))
    }

    /// Adds a token's vector to `to`, multiplied by the token's own weight and by `weight`.
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
