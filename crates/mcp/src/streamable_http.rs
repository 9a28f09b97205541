//! The protocol over HTTP, one request at a time.
//!
//! No protocol session is kept between requests: whoever calls says who they are each time,
//! and any server over the same store can answer. Clients of older versions of the protocol
//! are answered so too. Hosts, origins and callers are checked by whoever calls this.

use std::convert::Infallible;
use std::fmt::Display;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::combinators::BoxBody;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::McpServer;

/// The body of an answer.
pub type HttpBody = BoxBody<Bytes, Infallible>;

impl McpServer {
    /// Answers one request whose body has at most so many bytes.
    pub async fn handle_http<B>(self, request: Request<B>, most: usize) -> Response<HttpBody>
    where
        B: Body + Send + 'static,
        B::Error: Display,
    {
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(most);
        let server = move || Ok(self.clone());
        let sessions = Arc::new(NeverSessionManager::default());
        StreamableHttpService::new(server, sessions, config)
            .handle(request)
            .await
    }
}
