//! Serves MCP over HTTP, one request at a time.
//!
//! There is no protocol session between requests: every request is authenticated by itself, and
//! any server on the same store can answer it. Clients of older protocol versions are served
//! the same way. The caller checks hosts, origins and tokens before calling this.

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

/// The body of a response.
pub type HttpBody = BoxBody<Bytes, Infallible>;

impl McpServer {
    /// Handles one request; its body may have at most `most` bytes.
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
