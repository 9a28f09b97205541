//! Language models: providers, requests and answers, and summarizers.
//!
//! A [`Model`] answers a [`ModelRequest`] and streams the answer as [`Delta`]s. A
//! [`Provider`] is a model reached over the network; [`resolve_endpoint`] finds out which
//! one from a [`ModelSpec`] and the environment. [`context_window`] and [`price`] describe
//! well-known models. An [`OfflineModel`] answers without a network.
//!
//! An [`AgentFile`] defines an agent: its role, and the model it prefers.
//!
//! A [`Summarizer`] turns a [`SummaryRequest`] (the previous summary, pins, decisions and
//! the entries since) into a [`Summary`](throughline_model::Summary). There are two:
//!
//! - [`ExtractiveSummarizer`] needs no model. It selects whole sentences and list items
//!   from the entries by cue phrases and structure, and is deterministic: the same request
//!   always gives the same summary.
//! - [`ModelSummarizer`] uses a [`Model`], passes the history as data, and accepts the
//!   answer only if it is exactly the JSON that was requested.
//!
//! [`summarize_with_fallback`] combines them: the model, one retry if it fails or
//! [`check_summary`] rejects its summary, then the extractive summarizer. It always returns
//! a summary. The list of touched files is taken from the entries, never from a model.
//!
//! Only a [`Provider`] does I/O, and only when called. Clock, randomness and environment
//! are passed in.

mod agent_file;
mod endpoint;
mod error;
mod extractive;
mod fallback;
mod model;
mod model_catalog;
mod model_summarizer;
mod offline;
mod provider;
mod sampling;
mod secret;
mod summarizer;
mod summary_check;
mod summary_files;
mod title;

pub use agent_file::{AgentFile, AgentFileError, agent_candidates, agent_folders};
pub use endpoint::{
    ApiKeys, ApiKeysError, EndpointError, EnvLookup, ModelEndpoint, ModelSpec, SpecError,
    check_key_file_mode, resolve_endpoint,
};
pub use error::{BoxError, ModelError, ModelErrorKind};
pub use extractive::ExtractiveSummarizer;
pub use fallback::{SummaryOutcome, summarize_with_fallback};
pub use model::{Answer, Delta, FinishReason, Model, ModelRequest, PartialAnswer, ToolSpec};
pub use model_catalog::{Price, context_window, cost, price};
pub use model_summarizer::{ModelSummarizer, SummaryParseError};
pub use offline::{
    OFFLINE_MODEL, OFFLINE_PROVIDER, OfflineContext, OfflineExcerpt, OfflineModel, OfflineQuery,
};
pub use provider::{ApiProtocol, Provider, TimeoutPolicy};
pub use sampling::{JsonSchemaFormat, ResponseFormat, SamplingOption, SamplingOptions};
pub use secret::Secret;
pub use summarizer::{GeneratedSummary, SummarizeError, Summarizer, SummaryRequest};
pub use summary_check::{SummaryRejection, check_summary, estimate_summary_tokens};
pub use title::derive_title;
