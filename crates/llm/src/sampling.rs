//! Sampling options and response formats.
//!
//! Invariant: an option is either honored or the request is rejected, never silently
//! ignored; the only exception is [`ResponseFormat::JsonIfPossible`].

use serde_json::{Map, Value};

/// Options for sampling an answer. Unset options use the model's defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingOptions {
    /// Maximum number of output tokens.
    pub max_output: Option<u64>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Nucleus sampling threshold.
    pub top_p: Option<f64>,
    /// Format of the answer.
    pub format: ResponseFormat,
}

impl SamplingOptions {
    /// No option set.
    pub const NONE: Self = Self {
        max_output: None,
        temperature: None,
        top_p: None,
        format: ResponseFormat::Text,
    };

    /// Returns the first option that is set.
    pub fn first_set(&self) -> Option<SamplingOption> {
        self.max_output
            .map(|_| SamplingOption::MaxOutput)
            .or(self.temperature.map(|_| SamplingOption::Temperature))
            .or(self.top_p.map(|_| SamplingOption::TopP))
            .or(self.format.required_option())
    }
}

impl Default for SamplingOptions {
    fn default() -> Self {
        Self::NONE
    }
}

impl Default for &SamplingOptions {
    fn default() -> Self {
        const { &SamplingOptions::NONE }
    }
}

/// Format of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ResponseFormat {
    /// Free text.
    #[default]
    Text,
    /// One JSON object, enforced if the provider supports it; the prompt requests it too.
    JsonIfPossible,
    /// One JSON object.
    Json,
    /// JSON that matches a schema.
    JsonSchema(JsonSchemaFormat),
}

impl ResponseFormat {
    /// Returns the option the model must support for this format.
    pub fn required_option(&self) -> Option<SamplingOption> {
        match self {
            Self::Text | Self::JsonIfPossible => None,
            Self::Json => Some(SamplingOption::Json),
            Self::JsonSchema(_) => Some(SamplingOption::JsonSchema),
        }
    }
}

/// A JSON Schema for the answer.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonSchemaFormat {
    /// Name of the schema.
    pub name: String,
    /// Description of the schema.
    pub description: Option<String>,
    /// The JSON Schema.
    pub schema: Map<String, Value>,
    /// Whether the answer must match the schema strictly, where the provider makes a
    /// difference.
    pub strict: bool,
}

/// Names an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SamplingOption {
    /// [`SamplingOptions::max_output`].
    MaxOutput,
    /// [`SamplingOptions::temperature`].
    Temperature,
    /// [`SamplingOptions::top_p`].
    TopP,
    /// [`ResponseFormat::Json`].
    Json,
    /// [`ResponseFormat::JsonSchema`].
    JsonSchema,
}
