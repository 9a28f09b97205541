//! Quantized embedding vectors of passages.

use crate::static_model::{DIM, dot, widen};

/// The size of a stored vector: its bytes, and the scale that normalizes it to length one.
pub(crate) const ROW_BYTES: usize = DIM + 4;

/// The embedding of a passage: one byte per dimension, and a scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vector([u8; ROW_BYTES]);

impl Vector {
    /// Quantizes a vector, normalized to length one.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "scaled to between -127 and 127"
    )]
    pub(crate) fn quantize(vector: &[f32]) -> Self {
        let mut row = [0; ROW_BYTES];
        let largest = vector.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
        if largest > 0.0 {
            for (byte, x) in row.iter_mut().zip(vector) {
                *byte = ((x / largest * 127.0).round() as i8).cast_unsigned();
            }
            let length = dot(&row[..DIM], &widen(&row[..DIM])).sqrt();
            row[DIM..].copy_from_slice(&(1.0 / length).to_le_bytes());
        }
        Self(row)
    }

    /// Reads a vector from bytes; `None` if their length is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Returns the bytes to store.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the values.
    pub fn values(&self) -> impl Iterator<Item = f32> {
        let (bytes, scale) = split_scale(&self.0);
        bytes
            .iter()
            .map(move |byte| scale * f32::from(byte.cast_signed()))
    }

    /// Returns the similarity to another vector.
    pub fn similarity(&self, vector: &[f32]) -> f32 {
        let (bytes, scale) = split_scale(&self.0);
        similarity(bytes, scale, vector)
    }
}

/// Splits a stored vector into its bytes and its scale.
#[inline]
pub(crate) fn split_scale(row: &[u8]) -> (&[u8], f32) {
    let (bytes, scale) = row.split_at(DIM);
    let scale = [scale[0], scale[1], scale[2], scale[3]];
    (bytes, f32::from_le_bytes(scale))
}

/// Returns the similarity of a stored vector and another.
pub(crate) fn similarity(bytes: &[u8], scale: f32, vector: &[f32]) -> f32 {
    let products = bytes.iter().zip(vector);
    scale
        * products
            .map(|(byte, x)| f32::from(byte.cast_signed()) * x)
            .sum::<f32>()
}
