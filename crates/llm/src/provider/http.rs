//! The HTTP client.
//!
//! TLS is rustls with ring and the system's certificates: nothing but a C compiler is
//! needed to build it. What runs on this machine is reached without a proxy.

use reqwest::Url;

use super::Timing;
use crate::ConnectError;

/// A client for one address.
pub(super) fn client(base_url: &str, timing: &Timing) -> Result<reqwest::Client, ConnectError> {
    let refused = || ConnectError::BadAddress(base_url.to_owned());
    let url = Url::parse(base_url).map_err(|_| refused())?;
    // Whoever embeds this may have chosen another; theirs stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .connect_timeout(timing.connect)
        .tcp_nodelay(true);
    if is_here(&url) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|_| refused())
}

fn is_here(url: &Url) -> bool {
    url.host_str().is_some_and(|host| {
        let host = host.trim_matches(['[', ']']);
        host == "localhost"
            || host
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback())
    })
}
