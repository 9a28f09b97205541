//! Summarizers: what a stretch of conversation came to.
//!
//! A [`Brief`] says what is to be summarized: the previous summary, what is pinned and
//! decided, and the entries since. A [`Summarizer`] turns it into a
//! [`Summary`](throughline_model::Summary). There are two:
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
//! Nothing here does I/O; a provider is whatever implements [`Model`].

mod accept;
mod ask;
mod brief;
mod error;
mod extract;
mod fallback;
mod files;
mod model;
mod offline;
mod secret;

pub use accept::{Rejected, accept, tokens};
pub use ask::{AnswerError, ModelSummarizer};
pub use brief::{Brief, SummarizeError, Summarizer, Written};
pub use error::{Cause, ModelError, ModelErrorKind};
pub use extract::Extractive;
pub use fallback::{Outcome, summarize_with_fallback};
pub use model::{Answer, Ask, Broken, Delta, Model, Stop, ToolSpec};
pub use offline::{Known, OFFLINE, Offline, Quote};
pub use secret::Secret;
