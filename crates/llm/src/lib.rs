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

mod accept;
mod agent;
mod ask;
mod brief;
mod connect;
mod error;
mod extract;
mod fallback;
mod files;
mod known;
mod model;
mod offline;
mod provider;
mod secret;
mod terms;
mod title;

pub use accept::{Rejected, accept, tokens};
pub use agent::{AgentFile, AgentFileError, agent_candidates, agent_folders};
pub use ask::{AnswerError, ModelSummarizer};
pub use brief::{Brief, SummarizeError, Summarizer, Written};
pub use connect::{
    ConnectError, Connection, Environment, Keys, KeysError, SpecError, Wanted, check_mode, connect,
};
pub use error::{Cause, ModelError, ModelErrorKind};
pub use extract::Extractive;
pub use fallback::{Outcome, summarize_with_fallback};
pub use known::{Price, cost, price, window};
pub use model::{Answer, Ask, Broken, Delta, Model, Stop, ToolSpec};
pub use offline::{Known, Needs, OFFLINE, OFFLINE_PROVIDER, Offline, Quote};
pub use provider::{Provider, Timing, Wire};
pub use secret::Secret;
pub use terms::{Form, Shape, Term, Terms};
pub use title::title;
