//! Recognizes loopback host names.

use std::net::IpAddr;

/// Whether a host, without its port, always refers to this machine.
pub fn is_loopback_host(host: &str) -> bool {
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || literal.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::is_loopback_host;

    #[test]
    fn only_names_of_this_machine_are_its_own() {
        for here in ["localhost", "127.0.0.1", "127.9.9.9", "[::1]", "::1"] {
            assert!(is_loopback_host(here), "{here}");
        }
        for away in [
            "localhost.example.org",
            "10.0.0.1",
            "[::2]",
            "",
            "example.org",
        ] {
            assert!(!is_loopback_host(away), "{away}");
        }
    }
}
