//! Builds the HTTP client.
//!
//! TLS is rustls with ring and the system's certificates, so only a C compiler is needed
//! to build it. Loopback addresses are reached without a proxy.

use reqwest::Url;
use throughline_model::is_loopback_host;

use super::TimeoutPolicy;
use crate::{BoxError, EndpointError};

/// Parses the base URL.
pub(super) fn parse_url(base_url: &str) -> Result<Url, EndpointError> {
    Url::parse(base_url).map_err(|_| EndpointError::InvalidUrl(base_url.to_owned()))
}

/// Builds a client for one URL. Loads the system's certificates, which is slow.
pub(super) fn build_client(url: &Url, timing: &TimeoutPolicy) -> Result<genai::Client, BoxError> {
    // Fails if the embedding program has installed another provider, which then stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .connect_timeout(timing.connect)
        .tcp_nodelay(true);
    if url.host_str().is_some_and(is_loopback_host) {
        builder = builder.no_proxy();
    }
    let client = builder.build()?;
    Ok(genai::Client::builder().with_reqwest(client).build()?)
}
