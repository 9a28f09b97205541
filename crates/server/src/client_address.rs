//! Determines the client address of a request behind reverse proxies.
//!
//! Invariant: a header is trusted only as far as trusted proxies have written it. The client is the
//! rightmost address that is not a trusted proxy.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::http::{HeaderMap, header};
use ipnet::IpNet;

/// The client of a request, and how it reached the first proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Client {
    /// The client's address.
    pub(crate) ip: IpAddr,
    /// Whether a trusted proxy was reached over `https`.
    pub(crate) https: bool,
    /// Whether any proxy claims `https`, trusted or not: enough to mark the caller's own cookie
    /// `Secure`.
    pub(crate) claims_https: bool,
    /// Whether forwarding headers came from an untrusted peer.
    pub(crate) untrusted_proxy: bool,
}

impl Client {
    pub(crate) fn from_headers(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> Self {
        let peer = peer.to_canonical();
        let forwarded = headers.contains_key("forwarded") || headers.contains_key(FORWARDED_FOR);
        let from_https_page = headers
            .get(header::ORIGIN)
            .is_some_and(|origin| origin.as_bytes().starts_with(b"https://"));
        let claims_https = forwarded_https(headers) || from_https_page;
        if !is_trusted(peer, trusted) {
            return Self {
                ip: peer,
                https: false,
                claims_https,
                untrusted_proxy: forwarded,
            };
        }
        let standard = parse_forwarded_chain(headers, "forwarded", |element| {
            forwarded_parameter(element, "for")
        });
        let common =
            parse_forwarded_chain(headers, FORWARDED_FOR, |element| Some(element.to_owned()));
        let client = |chain: &[Option<IpAddr>]| find_client_ip(chain, peer, trusted);
        let ip = match (standard.is_empty(), common.is_empty()) {
            (true, true) => peer,
            (false, true) => client(&standard),
            (true, false) => client(&common),
            // A proxy that sets one of them passes the other through as the client sent it.
            (false, false) => {
                let (one, other) = (client(&standard), client(&common));
                if one == other { one } else { peer }
            }
        };
        Self {
            ip,
            https: forwarded_https(headers),
            claims_https,
            untrusted_proxy: false,
        }
    }

    /// The address that limits count by. An IPv6 host has a whole network of addresses.
    pub(crate) fn rate_limit_address(&self) -> IpAddr {
        match self.ip {
            IpAddr::V4(_) => self.ip,
            IpAddr::V6(ip) => {
                let [a, b, c, d, ..] = ip.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
        }
    }
}

const FORWARDED_FOR: &str = "x-forwarded-for";

fn is_trusted(ip: IpAddr, trusted: &[IpNet]) -> bool {
    trusted.iter().any(|network| network.contains(&ip))
}

/// Returns the comma-separated elements of a header that may occur several times.
fn header_elements<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a str> {
    headers
        .get_all(name)
        .into_iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
}

/// Parses the addresses in a forwarding header, nearest to the client first; `None` for an invalid
/// one.
fn parse_forwarded_chain(
    headers: &HeaderMap,
    name: &str,
    node: impl Fn(&str) -> Option<String>,
) -> Vec<Option<IpAddr>> {
    header_elements(headers, name)
        .map(|element| node(element).and_then(|node| parse_address(&node)))
        .collect()
}

/// Returns the unquoted value of a parameter in a `Forwarded` element.
fn forwarded_parameter(element: &str, name: &str) -> Option<String> {
    element
        .split(';')
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim().trim_matches('"').to_owned())
}

/// Parses `192.0.2.1`, `192.0.2.1:80`, `[2001:db8::1]`, `[2001:db8::1]:80` or `2001:db8::1`.
fn parse_address(node: &str) -> Option<IpAddr> {
    let bare = node.trim_start_matches('[').trim_end_matches(']');
    let ip = bare
        .parse::<IpAddr>()
        .or_else(|_| node.parse::<SocketAddr>().map(|socket| socket.ip()));
    ip.ok().map(|ip| ip.to_canonical())
}

/// Finds the rightmost address that is not a trusted proxy. An unparsable element ends the search:
/// the proxy that wrote it is the last known address.
fn find_client_ip(chain: &[Option<IpAddr>], peer: IpAddr, trusted: &[IpNet]) -> IpAddr {
    let mut nearest = peer;
    for node in chain.iter().rev() {
        let Some(ip) = node else {
            return nearest;
        };
        nearest = *ip;
        if !is_trusted(nearest, trusted) {
            return nearest;
        }
    }
    nearest
}

fn forwarded_https(headers: &HeaderMap) -> bool {
    let https = |value: &str| value.eq_ignore_ascii_case("https");
    header_elements(headers, "x-forwarded-proto").any(https)
        || header_elements(headers, "forwarded")
            .filter_map(|element| forwarded_parameter(element, "proto"))
            .any(|value| https(&value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    fn resolve_client(peer: &str, headers: &[(&str, &str)]) -> (String, bool) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: HeaderName = name.parse().unwrap();
            map.append(name, HeaderValue::from_str(value).unwrap());
        }
        let trusted = ["10.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()];
        let client = Client::from_headers(peer.parse().unwrap(), &map, &trusted);
        (client.ip.to_string(), client.https)
    }

    #[test]
    fn only_trusted_proxies_set_the_client_address() {
        let spoofed = [
            ("x-forwarded-for", "1.2.3.4"),
            ("x-forwarded-proto", "https"),
        ];
        assert_eq!(
            resolve_client("192.0.2.9", &spoofed),
            ("192.0.2.9".into(), false)
        );
        assert_eq!(
            resolve_client("10.0.0.1", &spoofed),
            ("1.2.3.4".into(), true)
        );
        assert_eq!(
            resolve_client("::ffff:10.0.0.1", &spoofed),
            ("1.2.3.4".into(), true)
        );
        assert_eq!(resolve_client("10.0.0.1", &[]), ("10.0.0.1".into(), false));
    }

    #[test]
    fn the_client_is_the_rightmost_address_that_is_not_trusted() {
        for (header, value, client) in [
            ("x-forwarded-for", "6.6.6.6, 1.2.3.4", "1.2.3.4"),
            ("x-forwarded-for", "6.6.6.6, 1.2.3.4, 10.2.2.2", "1.2.3.4"),
            ("x-forwarded-for", "10.3.3.3, 10.2.2.2", "10.3.3.3"),
            ("x-forwarded-for", "6.6.6.6, nonsense", "10.0.0.1"),
            ("x-forwarded-for", "[2001:db8::7]:99", "2001:db8::7"),
            (
                "forwarded",
                "for=6.6.6.6, for=\"1.2.3.4:80\";proto=http",
                "1.2.3.4",
            ),
            ("forwarded", "For=\"[2001:db8::7]\"", "2001:db8::7"),
            ("forwarded", "for=unknown", "10.0.0.1"),
            ("forwarded", "proto=https", "10.0.0.1"),
        ] {
            assert_eq!(
                resolve_client("10.0.0.1", &[(header, value)]).0,
                client,
                "{value}"
            );
        }
        let split = [
            ("x-forwarded-for", "6.6.6.6"),
            ("x-forwarded-for", "1.2.3.4"),
        ];
        assert_eq!(resolve_client("10.0.0.1", &split).0, "1.2.3.4");
    }

    #[test]
    fn a_forwarded_header_does_not_bypass_a_limit() {
        let both = [("x-forwarded-for", "1.2.3.4"), ("forwarded", "for=9.9.9.9")];
        assert_eq!(resolve_client("10.0.0.1", &both).0, "10.0.0.1");
        let same = [("x-forwarded-for", "1.2.3.4"), ("forwarded", "for=1.2.3.4")];
        assert_eq!(resolve_client("10.0.0.1", &same).0, "1.2.3.4");
        assert!(resolve_client("10.0.0.1", &[("forwarded", "for=1.2.3.4;proto=https")]).1);
    }
}
