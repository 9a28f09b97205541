//! Serves the web page with demo data from memory: `cargo run -p throughline-server --example page
//! -- 127.0.0.1:8080`. Nothing is stored.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "an example may")]

#[path = "../tests/demo/mod.rs"]
mod demo;

use std::sync::Arc;
use std::time::Duration;

use demo::MockResponderRegistry;
use throughline::{Owner, Throughline};
use throughline_mock_provider::{MockProvider, Reply, Script};
use throughline_server::{AccessMode, App, Limits, ServerConfig, serve};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() {
    let address = std::env::args().nth(1);
    let address = address.unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mock = MockProvider::start(Script::from_fn(|request| {
        let asked = request.body["messages"]
            .as_array()
            .and_then(|all| all.last());
        let asked = asked
            .map(|last| last["content"].to_string())
            .unwrap_or_default();
        let text =
            format!("You said {asked}. This is a stand-in: it says the same of **everything**.");
        Reply::text(text).with_delay(Duration::from_millis(60))
    }))
    .unwrap();
    let tl = Throughline::open("memory:").await.unwrap();
    let main = demo::fill_store(&tl).await;
    let app = App::new(ServerConfig {
        tl,
        responders: Arc::new(MockResponderRegistry::new(&mock)),
        gate: AccessMode::Open(Owner::local()),
        limits: Limits::default(),
        hosts: Vec::new(),
        origins: Vec::new(),
        time_zone: jiff::tz::TimeZone::UTC,
        secure: false,
        trusted_proxies: Vec::new(),
        spool_dir: None,
    });
    let listener = TcpListener::bind(&address).await.unwrap();
    println!("http://{}/s/{}", listener.local_addr().unwrap(), main.id());
    serve(listener, app, None, std::future::pending())
        .await
        .unwrap();
}
