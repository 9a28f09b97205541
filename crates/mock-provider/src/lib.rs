//! A stand-in for model providers, for tests.
//!
//! It speaks Anthropic's Messages (`/v1/messages`), OpenAI's Chat Completions
//! (`/v1/chat/completions`), Responses (`/v1/responses`) and Embeddings (`/v1/embeddings`)
//! and Google's Gemini (`/v1beta/models/…`), streaming or not, on an address of this
//! machine. A [`Script`] says what it answers, reply by reply, with the faults that real
//! providers have; without one it echoes, and summarizes when it is asked to. Texts that
//! share words have vectors that are alike. What it was sent can be looked at afterwards.
//!
//! ```
//! use throughline_mock_provider::{Reply, Script, StandIn};
//!
//! let stand_in = StandIn::start(Script::replies([Reply::text("Hello!")])).unwrap();
//! assert!(stand_in.url().starts_with("http://127.0.0.1:"));
//! assert!(stand_in.requests().is_empty());
//! ```
//!
//! Invariant: the same script and the same requests give the same answers, byte by byte.

mod echo;
mod fault;
mod http_handler;
mod provider_api;
mod reply;
mod request;
mod script;
mod server;
mod sse_frame;

pub use echo::echo;
pub use fault::Fault;
pub use provider_api::ProviderApi;
pub use reply::{Reply, ReplyBlock, TokenUsage};
pub use request::Request;
pub use script::Script;
pub use server::MockProvider;
