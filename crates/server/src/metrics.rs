//! What is measured, for Prometheus.

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

/// Everything that is counted.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    request_seconds: Family<RouteLabels, Histogram>,
    /// Readers of events at the moment.
    pub(crate) subscribers: Gauge,
    /// Turns under way.
    pub(crate) turns: Gauge,
    /// Turns that ended without a whole answer.
    pub(crate) failed_turns: Counter<u64, AtomicU64>,
    /// Readers of events that had to be told they were too far behind.
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
            "Time until the answer began, by route",
            metrics.request_seconds.clone(),
        );
        registry.register(
            "subscribers",
            "Readers of events at the moment",
            metrics.subscribers.clone(),
        );
        registry.register("turns", "Turns under way", metrics.turns.clone());
        registry.register(
            "failed_turns",
            "Turns that ended without a whole answer",
            metrics.failed_turns.clone(),
        );
        registry.register(
            "subscribers_behind",
            "Readers of events that were too far behind",
            metrics.lagged_subscribers.clone(),
        );
        Self {
            registry,
            ..metrics
        }
    }

    /// Notes a request that was answered. The route is the pattern and not the path: there
    /// are few of them, and no ids in them.
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

    /// All of it as Prometheus reads it.
    pub(crate) fn to_openmetrics(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}
