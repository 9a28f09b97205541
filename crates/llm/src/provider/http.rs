//! The HTTP client.
//!
//! TLS is rustls with ring and the system's certificates: nothing but a C compiler is
//! needed to build it. What runs on this machine is reached without a proxy.

use reqwest::Url;
use throughline_model::is_loopback_host;

use super::TimeoutPolicy;
use crate::{BoxError, EndpointError};

/// The address, where it is one.
pub(super) fn parse_url(base_url: &str) -> Result<Url, EndpointError> {
    Url::parse(base_url).map_err(|_| EndpointError::InvalidUrl(base_url.to_owned()))
}

/// A client for one address. It reads the system's certificates, which takes a while.
pub(super) fn build_client(url: &Url, timing: &TimeoutPolicy) -> Result<genai::Client, BoxError> {
    // Whoever embeds this may have chosen another; theirs stays.
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
