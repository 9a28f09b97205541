//! Models, and what is asked of them.
//!
//! A [`Model`] answers, and tells of what arrives as it arrives. A [`Provider`] is one
//! over the network; [`connect`] finds out which, from what is [`Wanted`] and what the
//! environment offers, and what is known of well-known models is their [`window`] and
//! their [`price`].
//!
//! An agent is an [`AgentFile`]: a role, and the model it would like.
//!
//! A [`Summarizer`] turns a [`Brief`] — the previous summary, what is pinned and decided,
//! and the entries since — into a [`Summary`](throughline_model::Summary). There are two:
//!
//! - [`Extractive`] needs nothing. It picks whole sentences and list items out of the
//!   entries, by cue phrases and structure, and never writes a word of its own but for
//!   the background. The same brief always gives the same summary.
//! - [`ModelSummarizer`] asks a [`Model`], treating the history as data, and takes the
//!   answer only if it is exactly the JSON that was asked for.
//!
//! [`summarize_with_fallback`] puts them together: the model, once more if it fails or
//! its summary is not [`accept`]ed, then the extractive one. It always answers.
//!
//! Which files were touched is never asked of a model: both take it from the entries.
//!
//! Only a [`Provider`] does I/O, and only when it is asked. Clock, chance and environment
//! are handed in.

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
