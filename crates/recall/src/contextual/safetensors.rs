//! Reads published model files: safetensors and the model configuration.
//!
//! A safetensors file consists of the length of a header (u64, little-endian), the header as
//! JSON (for each tensor its type, shape, and byte range), and the bytes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ndarray::{Array1, Array2};
use serde::Deserialize;
use throughline_model::Digest;

use super::{ContextualError, read_file};

/// The minimum number of tokens per text that a model must support.
const MIN_POSITIONS: usize = 256;

/// The size of the blocks that are sampled for the digest.
const DIGEST_BLOCK_BYTES: usize = 1024;

/// The dimensions of the encoder.
#[derive(Debug, Deserialize)]
pub(super) struct EncoderConfig {
    pub(super) hidden_size: usize,
    pub(super) intermediate_size: usize,
    pub(super) max_position_embeddings: usize,
    pub(super) vocab_size: usize,
    pub(super) num_attention_heads: usize,
    pub(super) num_hidden_layers: usize,
    pub(super) layer_norm_eps: f32,
}

impl EncoderConfig {
    pub(super) fn read(file: &Path) -> Result<Self, ContextualError> {
        let malformed = |what: String| ContextualError::Malformed {
            file: file.to_owned(),
            what,
        };
        let config: Self = serde_json::from_slice(&read_file(file)?)
            .map_err(|error| malformed(error.to_string()))?;
        if config.num_attention_heads == 0
            || !config
                .hidden_size
                .is_multiple_of(config.num_attention_heads)
        {
            return Err(malformed(
                "the hidden size is not a multiple of the number of heads".to_owned(),
            ));
        }
        if config.max_position_embeddings < MIN_POSITIONS {
            return Err(malformed("the maximum text length is too short".to_owned()));
        }
        Ok(config)
    }
}

#[derive(Debug, Deserialize)]
struct Tensor {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (usize, usize),
}

/// All weights of a model.
pub(super) struct Safetensors {
    file: PathBuf,
    bytes: Vec<u8>,
    tensors: HashMap<String, Tensor>,
    data_start: usize,
}

impl Safetensors {
    pub(super) fn read(file: &Path) -> Result<Self, ContextualError> {
        let bytes = read_file(file)?;
        let malformed = |what: &str| ContextualError::Malformed {
            file: file.to_owned(),
            what: what.to_owned(),
        };
        let length = bytes
            .first_chunk()
            .and_then(|length| usize::try_from(u64::from_le_bytes(*length)).ok());
        let header = length
            .and_then(|length| bytes.get(8..length.checked_add(8)?))
            .ok_or_else(|| malformed("the header is missing"))?;
        let start = header.len() + 8;
        let all: HashMap<String, serde_json::Value> = serde_json::from_slice(header)
            .map_err(|error| malformed(&format!("the header is not valid JSON: {error}")))?;
        let mut tensors = HashMap::new();
        for (name, value) in all {
            // Skip what is not a tensor, and tensors of unsupported types, which are never
            // needed.
            if let Ok(tensor) = serde_json::from_value(value) {
                tensors.insert(name, tensor);
            }
        }
        Ok(Self {
            file: file.to_owned(),
            bytes,
            tensors,
            data_start: start,
        })
    }

    /// Returns a digest that identifies the weights. Weights that differ in only a few places
    /// may have the same digest.
    ///
    /// Only one block in 256 is hashed: hashing all of them would take longer than a search.
    pub(super) fn digest(&self) -> Digest {
        let mut looked_at = self.bytes.len().to_le_bytes().to_vec();
        looked_at.extend(&self.bytes[..self.data_start]);
        for block in self.bytes[self.data_start..]
            .chunks(DIGEST_BLOCK_BYTES)
            .step_by(256)
        {
            looked_at.extend(block);
        }
        Digest::of(&looked_at)
    }

    /// Returns a vector of this size.
    pub(super) fn vector(&self, name: &str, size: usize) -> Result<Array1<f32>, ContextualError> {
        Ok(Array1::from_vec(self.values(name, &[size])?))
    }

    /// Returns a matrix of this size.
    pub(super) fn matrix(
        &self,
        name: &str,
        (rows, columns): (usize, usize),
    ) -> Result<Array2<f32>, ContextualError> {
        let values = self.values(name, &[rows, columns])?;
        Array2::from_shape_vec((rows, columns), values)
            .map_err(|error| self.malformed(format!("{name}: {error}")))
    }

    fn values(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, ContextualError> {
        let missing = || self.malformed(format!("{name} is missing"));
        let tensor = self.tensors.get(name).ok_or_else(missing)?;
        let (from, to) = tensor.data_offsets;
        let bytes = self
            .data_start
            .checked_add(from)
            .zip(self.data_start.checked_add(to))
            .and_then(|(from, to)| self.bytes.get(from..to))
            .ok_or_else(|| self.malformed(format!("the file ends before {name} does")))?;
        let values: Vec<f32> = match tensor.dtype.as_str() {
            "F32" => {
                let whole = bytes.as_chunks().0.iter();
                whole.map(|bytes| f32::from_le_bytes(*bytes)).collect()
            }
            "F16" => {
                let whole = bytes.as_chunks().0.iter();
                whole
                    .map(|bytes| f16_to_f32(u16::from_le_bytes(*bytes)))
                    .collect()
            }
            other => return Err(self.malformed(format!("{name} has the unsupported type {other}"))),
        };
        if tensor.shape != shape || shape.iter().product::<usize>() != values.len() {
            let found = &tensor.shape;
            return Err(self.malformed(format!("{name} has shape {found:?}, expected {shape:?}")));
        }
        Ok(values)
    }

    fn malformed(&self, what: String) -> ContextualError {
        ContextualError::Malformed {
            file: self.file.clone(),
            what,
        }
    }
}

/// Converts a half-precision number.
fn f16_to_f32(bits: u16) -> f32 {
    let sign = u32::from(bits >> 15) << 31;
    let exponent = u32::from(bits >> 10) & 0x1f;
    let fraction = u32::from(bits) & 0x3ff;
    let magnitude = match exponent {
        // A subnormal number: the fraction counts in steps of 2^-24.
        0 => return f32::from_bits(sign | 0x3380_0000) * f32::from(bits & 0x3ff),
        0x1f => 0x7f80_0000 | (fraction << 13),
        _ => ((exponent + 112) << 23) | (fraction << 13),
    };
    f32::from_bits(sign | magnitude)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_read() {
        for (bits, value) in [
            (0x3c00, "1"),
            (0xc000, "-2"),
            (0x3555, "0.33325195"),
            (0x0001, "0.000000059604645"),
            (0x0000, "0"),
            (0x7c00, "inf"),
        ] {
            assert_eq!(f16_to_f32(bits).to_string(), value);
        }
    }
}
