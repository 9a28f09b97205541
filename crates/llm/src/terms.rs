//! On which terms a model answers: how long, how freely, and in which form.
//!
//! Invariant: terms are kept or refused, never passed over; only
//! [`Form::JsonIfPossible`] says that it may be.

use serde_json::{Map, Value};

/// On which terms a model answers. What is not set is the model's own to choose.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// The most tokens it may answer; none for what the model can.
    pub max_output: Option<u64>,
    /// How freely it chooses its words: 0 for hardly.
    pub temperature: Option<f64>,
    /// Among which share of likely words it chooses: 1 for all.
    pub top_p: Option<f64>,
    /// In which form it answers.
    pub form: Form,
}

impl Terms {
    /// Nothing is set.
    pub const NONE: Self = Self {
        max_output: None,
        temperature: None,
        top_p: None,
        form: Form::Text,
    };

    /// The first of them that is set.
    pub fn first(&self) -> Option<Term> {
        self.max_output
            .map(|_| Term::MaxOutput)
            .or(self.temperature.map(|_| Term::Temperature))
            .or(self.top_p.map(|_| Term::TopP))
            .or(self.form.term())
    }
}

impl Default for Terms {
    fn default() -> Self {
        Self::NONE
    }
}

impl Default for &Terms {
    fn default() -> Self {
        const { &Terms::NONE }
    }
}

/// In which form a model answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Form {
    /// As it likes.
    #[default]
    Text,
    /// As one JSON object, from whoever can be held to it. The messages say so too.
    JsonIfPossible,
    /// As one JSON object.
    Json,
    /// As JSON of this shape.
    Shape(Shape),
}

impl Form {
    /// What there is to be kept of it.
    pub fn term(&self) -> Option<Term> {
        match self {
            Self::Text | Self::JsonIfPossible => None,
            Self::Json => Some(Term::Json),
            Self::Shape(_) => Some(Term::Shape),
        }
    }
}

/// What JSON is to look like.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
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
pub enum Term {
    /// [`Terms::max_output`].
    MaxOutput,
    /// [`Terms::temperature`].
    Temperature,
    /// [`Terms::top_p`].
    TopP,
    /// [`Form::Json`].
    Json,
    /// [`Form::Shape`].
    Shape,
}
