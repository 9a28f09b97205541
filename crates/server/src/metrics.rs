//! Prometheus metrics.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    method: String,
    route: String,
    status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RouteLabels {
    route: String,
}

/// All metrics of the server.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    request_seconds: Family<RouteLabels, Histogram>,
    /// Current event subscribers.
    pub(crate) subscribers: Gauge,
    /// Running turns.
    pub(crate) turns: Gauge,
    /// Turns that ended without a complete answer.
    pub(crate) failed_turns: Counter<u64, AtomicU64>,
    /// Event subscribers that fell too far behind and had to be reset.
    pub(crate) lagged_subscribers: Counter<u64, AtomicU64>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("throughline");
        let metrics = Self {
            requests: Family::default(),
            request_seconds: Family::new_with_constructor(|| {
                Histogram::new([
                    0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0,
                ])
            }),
            subscribers: Gauge::default(),
            turns: Gauge::default(),
            failed_turns: Counter::default(),
            lagged_subscribers: Counter::default(),
            registry: Registry::default(),
        };
        registry.register(
            "requests",
            "Requests, by route and status",
            metrics.requests.clone(),
        );
        registry.register(
            "request_seconds",
            "Time until the response started, by route",
            metrics.request_seconds.clone(),
        );
        registry.register(
            "subscribers",
            "Current event subscribers",
            metrics.subscribers.clone(),
        );
        registry.register("turns", "Running turns", metrics.turns.clone());
        registry.register(
            "failed_turns",
            "Turns that ended without a complete answer",
            metrics.failed_turns.clone(),
        );
        registry.register(
            "subscribers_behind",
            "Event subscribers that fell too far behind",
            metrics.lagged_subscribers.clone(),
        );
        Self {
            registry,
            ..metrics
        }
    }

    /// Records an answered request. The label is the route pattern, not the path: there are few
    /// patterns, and they contain no ids.
    pub(crate) fn record_response(&self, method: &str, route: &str, status: u16, took: Duration) {
        self.requests
            .get_or_create(&RequestLabels {
                method: method.to_owned(),
                route: route.to_owned(),
                status,
            })
            .inc();
        self.request_seconds
            .get_or_create(&RouteLabels {
                route: route.to_owned(),
            })
            .observe(took.as_secs_f64());
    }

    /// Encodes all metrics in the OpenMetrics text format.
    pub(crate) fn to_openmetrics(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}
