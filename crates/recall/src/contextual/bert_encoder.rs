//! A BERT encoder: turns tokens into contextual embeddings.
//!
//! Texts are encoded in batches: everything done per token is one matrix product for all
//! texts, and only attention runs text by text.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2, Axis, concatenate};

use super::ContextualError;
use super::safetensors::{EncoderConfig, Safetensors};
use crate::static_model::{TokenId, Work, dispatch_simd};

/// The encoder's weights.
pub(super) struct Encoder {
    word_embeddings: Array2<f32>,
    /// The embedding of each position, with the (constant) token type embedding added.
    position_embeddings: Array2<f32>,
    norm: LayerNorm,
    layers: Vec<Layer>,
    heads: usize,
}

struct Layer {
    /// Query, key and value side by side.
    attention: Linear,
    attention_output: Linear,
    attention_norm: LayerNorm,
    intermediate: Linear,
    output: Linear,
    norm: LayerNorm,
}

impl Encoder {
    pub(super) fn new(
        config: &EncoderConfig,
        weights: &Safetensors,
    ) -> Result<Self, ContextualError> {
        let (width, wide) = (config.hidden_size, config.intermediate_size);
        let norm = |name: &str| LayerNorm::new(weights, name, config);
        let linear = |name: &str, from, to| Linear::new(weights, name, from, to);
        let table = |name: &str, rows| {
            let name = format!("embeddings.{name}_embeddings.weight");
            weights.matrix(&name, (rows, width))
        };
        let mut layers = Vec::new();
        for layer in 0..config.num_hidden_layers {
            let at = |name: &str| format!("encoder.layer.{layer}.{name}");
            let attention =
                |name: &str| linear(&at(&format!("attention.self.{name}")), width, width);
            layers.push(Layer {
                attention: Linear::concatenate(&[
                    attention("query")?,
                    attention("key")?,
                    attention("value")?,
                ]),
                attention_output: linear(&at("attention.output.dense"), width, width)?,
                attention_norm: norm(&at("attention.output.LayerNorm"))?,
                intermediate: linear(&at("intermediate.dense"), width, wide)?,
                output: linear(&at("output.dense"), wide, width)?,
                norm: norm(&at("output.LayerNorm"))?,
            });
        }
        Ok(Self {
            word_embeddings: table("word", config.vocab_size)?,
            position_embeddings: table("position", config.max_position_embeddings)?
                + table("token_type", 2)?.row(0),
            norm: norm("embeddings.LayerNorm")?,
            layers,
            heads: config.num_attention_heads,
        })
    }

    /// Returns the maximum number of tokens in a text.
    pub(super) fn max_tokens(&self) -> usize {
        self.position_embeddings.nrows()
    }

    /// Returns the length of a token's vector.
    pub(super) fn width(&self) -> usize {
        self.word_embeddings.ncols()
    }

    /// Encodes each token of each text as a vector of length one.
    pub(super) fn encode(&self, texts: &[Vec<TokenId>]) -> Vec<Array2<f32>> {
        let width = self.word_embeddings.ncols();
        let count = texts.iter().map(Vec::len).sum();
        let mut state = Array2::zeros((count, width));
        let mut rows = state.rows_mut().into_iter();
        for text in texts {
            for ((token, position), mut row) in text
                .iter()
                .zip(self.position_embeddings.rows())
                .zip(&mut rows)
            {
                row.assign(&self.word_embeddings.row(usize::from(*token)));
                row += &position;
            }
        }
        self.norm.apply(&mut state);
        for layer in &self.layers {
            let projected = layer.attention.apply(&state);
            let mut mixed = Array2::zeros((count, width));
            let mut start = 0;
            for text in texts {
                let end = start + text.len();
                self.attend(
                    &projected.slice_axis(Axis(0), (start..end).into()),
                    mixed.slice_axis_mut(Axis(0), (start..end).into()),
                );
                start = end;
            }
            state += &layer.attention_output.apply(&mixed);
            layer.attention_norm.apply(&mut state);
            let mut wide = layer.intermediate.apply(&state);
            if let Some(values) = wide.as_slice_mut() {
                dispatch_simd(Gelu(values));
            }
            state += &layer.output.apply(&wide);
            layer.norm.apply(&mut state);
        }
        let mut start = 0;
        let encoded = texts.iter().map(|text| {
            let mut own = state
                .slice_axis(Axis(0), (start..start + text.len()).into())
                .to_owned();
            start += text.len();
            for mut row in own.rows_mut() {
                let length = row.dot(&row).sqrt();
                row /= length.max(f32::MIN_POSITIVE);
            }
            own
        });
        encoded.collect()
    }

    /// Applies self-attention among the tokens of one text.
    fn attend(&self, projected: &ArrayView2<'_, f32>, mut out: ArrayViewMut2<'_, f32>) {
        let (length, width) = (projected.nrows(), projected.ncols() / 3);
        let head = width / self.heads;
        let scale = 1.0 / to_f32(head).sqrt();
        let mut scores = Array2::zeros((length, length));
        for from in (0..width).step_by(head) {
            let part = |which: usize| {
                let from = which * width + from;
                projected.slice_axis(Axis(1), (from..from + head).into())
            };
            let (query, key, value) = (part(0), part(1), part(2));
            general_mat_mul(scale, &query, &key.t(), 0.0, &mut scores);
            for mut row in scores.rows_mut() {
                let most = row.fold(f32::NEG_INFINITY, |most, x| most.max(*x));
                row.mapv_inplace(|x| (x - most).exp());
                let sum = row.sum();
                row /= sum;
            }
            let mut mixed = out.slice_axis_mut(Axis(1), (from..from + head).into());
            general_mat_mul(1.0, &scores, &value, 0.0, &mut mixed);
        }
    }
}

/// A linear layer: a weight matrix and a bias vector.
struct Linear {
    matrix: Array2<f32>,
    bias: Array1<f32>,
}

impl Linear {
    fn new(
        weights: &Safetensors,
        name: &str,
        from: usize,
        to: usize,
    ) -> Result<Self, ContextualError> {
        Ok(Self {
            matrix: weights.matrix(&format!("{name}.weight"), (to, from))?,
            bias: weights.vector(&format!("{name}.bias"), to)?,
        })
    }

    /// Concatenates several layers into one.
    fn concatenate(all: &[Self; 3]) -> Self {
        let matrices = all.each_ref().map(|one| one.matrix.view());
        let biases = all.each_ref().map(|one| one.bias.view());
        Self {
            matrix: concatenate(Axis(0), &matrices).unwrap_or_default(),
            bias: concatenate(Axis(0), &biases).unwrap_or_default(),
        }
    }

    fn apply(&self, state: &Array2<f32>) -> Array2<f32> {
        let mut out = Array2::zeros((state.nrows(), self.bias.len()));
        out += &self.bias;
        general_mat_mul(1.0, state, &self.matrix.t(), 1.0, &mut out);
        out
    }
}

/// Layer normalization.
struct LayerNorm {
    weight: Array1<f32>,
    bias: Array1<f32>,
    epsilon: f32,
}

impl LayerNorm {
    fn new(
        weights: &Safetensors,
        name: &str,
        config: &EncoderConfig,
    ) -> Result<Self, ContextualError> {
        let width = config.hidden_size;
        Ok(Self {
            weight: weights.vector(&format!("{name}.weight"), width)?,
            bias: weights.vector(&format!("{name}.bias"), width)?,
            epsilon: config.layer_norm_eps,
        })
    }

    fn apply(&self, state: &mut Array2<f32>) {
        let width = to_f32(state.ncols());
        for mut row in state.rows_mut() {
            let mean = row.sum() / width;
            row -= mean;
            let spread = (row.dot(&row) / width + self.epsilon).sqrt();
            row /= spread;
            row *= &self.weight;
            row += &self.bias;
        }
    }
}

/// The GELU activation: x times the normal cumulative distribution at x.
struct Gelu<'a>(&'a mut [f32]);

impl Work for Gelu<'_> {
    type Output = ();

    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "it must be compiled into the work that is done with it"
    )]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        for x in self.0 {
            *x *= 0.5 * (1.0 + erf(*x * std::f32::consts::FRAC_1_SQRT_2));
        }
    }
}

/// The error function as a rational approximation, accurate enough for single precision.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "it must be compiled into the work that is done with it"
)]
#[expect(
    clippy::excessive_precision,
    clippy::unreadable_literal,
    reason = "coefficients as they were published"
)]
fn erf(x: f32) -> f32 {
    let x = x.clamp(-4.0, 4.0);
    let square = x * x;
    let above = [
        -2.72614225801306e-10_f32,
        2.77068142495902e-08,
        -2.10102402082508e-06,
        -5.69250639462346e-05,
        -7.34990630326855e-04,
        -2.95459980854025e-03,
        -1.60960333262415e-02,
    ];
    let below = [
        -1.45660718464996e-05_f32,
        -2.13374055278905e-04,
        -1.68282697438203e-03,
        -7.37332916720468e-03,
        -1.42647390514189e-02,
    ];
    let horner = |sum: f32, coefficient: &f32| sum * square + coefficient;
    x * above.iter().fold(0.0, horner) / below.iter().fold(0.0, horner)
}

/// Converts a size for arithmetic.
fn to_f32(size: usize) -> f32 {
    f32::from(u16::try_from(size).unwrap_or(u16::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_function_is_what_tables_say() {
        for (x, value) in [
            (0.0, 0.0),
            (0.5, 0.520_5),
            (1.0, 0.842_7),
            (-2.0, -0.995_3),
            (9.0, 1.0),
        ] {
            assert!((erf(x) - value).abs() < 1e-4, "{x}: {}", erf(x));
        }
    }
}
