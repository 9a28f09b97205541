//! The HTTP client.
//!
//! TLS is rustls with ring and the system's certificates: nothing but a C compiler is
//! needed to build it. What runs on this machine is reached without a proxy.

use reqwest::Url;
use throughline_model::is_this_machine;

use super::Timing;
use crate::{Cause, ConnectError};

/// The address, where it is one.
pub(super) fn address(base_url: &str) -> Result<Url, ConnectError> {
    Url::parse(base_url).map_err(|_| ConnectError::BadAddress(base_url.to_owned()))
}

/// A client for one address. It reads the system's certificates, which takes a while.
pub(super) fn client(url: &Url, timing: &Timing) -> Result<genai::Client, Cause> {
    // Whoever embeds this may have chosen another; theirs stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .connect_timeout(timing.connect)
        .tcp_nodelay(true);
    if url.host_str().is_some_and(is_this_machine) {
        builder = builder.no_proxy();
    }
    let client = builder.build()?;
    Ok(genai::Client::builder().with_reqwest(client).build()?)
}
