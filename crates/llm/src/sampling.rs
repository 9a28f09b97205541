//! On which terms a model answers: how long, how freely, and in which form.
//!
//! Invariant: terms are kept or refused, never passed over; only
//! [`Form::JsonIfPossible`] says that it may be.

use serde_json::{Map, Value};

/// On which terms a model answers. What is not set is the model's own to choose.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingOptions {
    /// The most tokens it may answer; none for what the model can.
    pub max_output: Option<u64>,
    /// How freely it chooses its words: 0 for hardly.
    pub temperature: Option<f64>,
    /// Among which share of likely words it chooses: 1 for all.
    pub top_p: Option<f64>,
    /// In which form it answers.
    pub format: ResponseFormat,
}

impl SamplingOptions {
    /// Nothing is set.
    pub const NONE: Self = Self {
        max_output: None,
        temperature: None,
        top_p: None,
        format: ResponseFormat::Text,
    };

    /// The first of them that is set.
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

/// In which form a model answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ResponseFormat {
    /// As it likes.
    #[default]
    Text,
    /// As one JSON object, from whoever can be held to it. The messages say so too.
    JsonIfPossible,
    /// As one JSON object.
    Json,
    /// As JSON of this shape.
    JsonSchema(JsonSchemaFormat),
}

impl ResponseFormat {
    /// What there is to be kept of it.
    pub fn required_option(&self) -> Option<SamplingOption> {
        match self {
            Self::Text | Self::JsonIfPossible => None,
            Self::Json => Some(SamplingOption::Json),
            Self::JsonSchema(_) => Some(SamplingOption::JsonSchema),
        }
    }
}

/// What JSON is to look like.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonSchemaFormat {
    /// What it is called.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// The shape, as JSON Schema.
    pub schema: Map<String, Value>,
    /// Whether the answer follows the schema to the letter, where the provider knows a
    /// difference.
    pub strict: bool,
}

/// One of the terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SamplingOption {
    /// [`Terms::max_output`].
    MaxOutput,
    /// [`Terms::temperature`].
    Temperature,
    /// [`Terms::top_p`].
    TopP,
    /// [`Form::Json`].
    Json,
    /// [`Form::Shape`].
    JsonSchema,
}
