//! A mock server of model provider APIs, for tests.
//!
//! It implements Anthropic's Messages (`/v1/messages`), OpenAI's Chat Completions
//! (`/v1/chat/completions`), Responses (`/v1/responses`) and Embeddings (`/v1/embeddings`) and
//! Google's Gemini (`/v1beta/models/…`), streaming or not, on a local address. A [`Script`]
//! defines its replies, with the faults that real providers have; without one it echoes, and
//! summarizes if requested. Texts that share words get similar embeddings. Tests can inspect
//! the requests it received.
//!
//! ```
//! use throughline_mock_provider::{Reply, Script, MockProvider};
//!
//! let provider = MockProvider::start(Script::replies([Reply::text("Hello!")])).unwrap();
//! assert!(provider.url().starts_with("http://127.0.0.1:"));
//! assert!(provider.requests().is_empty());
//! ```
//!
//! Invariant: the same script and the same requests produce the same replies, byte for byte.

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
