//! `tl serve`: serves the HTTP API, the web page and MCP.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use ipnet::IpNet;
use serde_json::json;
use throughline::{Error, StoreAddress, Throughline, is_unavailable};
use throughline_server::{
    AccessMode, App as Server, Cap, IssuedTokens, Limits, RateLimit, ServeError, ServerConfig, Tls,
    serve, serve_until_ready,
};
use tokio::net::TcpListener;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::app::App;
use crate::chat::ServedResponders;
use crate::error_report::UserError;
use crate::lease_wait;
use crate::paths::create_private_folder;

/// Default requests per second for one caller, where tokens are required.
const DEFAULT_RATE: u32 = 50;
/// Burst size as a multiple of the rate.
const BURST_FACTOR: u32 = 4;
/// Warning for a server without authentication.
const OPEN_ACCESS_WARNING: &str = "no token is required: anyone who can reach this address has full access; \
                    `tl token create --user NAME --role admin` creates the first token, after \
                    which one is required";
/// Warning for a server that requires a token while none is valid.
const NO_TOKEN_WARNING: &str = "a token is required and none is valid: `tl token create --user NAME` \
                        creates one";
/// Interval between attempts to reach an unavailable database.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// Interval between log messages about an unavailable database.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Serve sessions over HTTP
///
/// The API is under /api (described by GET /api/openapi.json), the OpenAI-compatible API
/// under /v1, the web page at /. On a loopback address without --host or a proxy, no token is
/// required until the first one is created (`tl token create`). From then on, and in all other
/// cases, a token is required, even after the last one was revoked or has expired.
#[derive(clap::Args, Debug)]
pub(crate) struct ServeArgs {
    /// The address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7878")]
    listen: SocketAddr,
    /// A host name the server accepts, such as its proxy's (may be repeated); a token is then
    /// always required [default: this machine's names, or any if tokens are required]
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    /// An allowed CORS origin: `https://app.example.org` (may be repeated)
    #[arg(long = "origin", value_name = "URL")]
    origins: Vec<String>,
    /// Serve TLS with this certificate chain (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Address or network of a reverse proxy whose Forwarded and X-Forwarded-* headers are
    /// trusted: 127.0.0.1, 10.0.0.0/8 (may be repeated); a token is then always required
    #[arg(long = "trusted-proxy", value_name = "CIDR", value_parser = parse_network)]
    trusted_proxies: Vec<IpNet>,
    /// A proxy terminates TLS: cookies are marked secure, and a token is always required
    #[arg(long)]
    behind_tls: bool,
    /// Maximum requests per second for one caller (0: no limit) [default: 50 if tokens are
    /// required, otherwise no limit]
    #[arg(long, value_name = "N")]
    rate: Option<u32>,
    /// Maximum size of a request body, in bytes
    #[arg(long, value_name = "BYTES")]
    max_body: Option<usize>,
    /// Maximum concurrent event streams and other long requests of one caller [default: 256]
    #[arg(long, value_name = "N")]
    max_streams: Option<usize>,
    /// Log level on stderr: off, error, warn, info or debug
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log: LevelFilter,
}

pub(crate) async fn run(app: &App, args: ServeArgs) -> Result<()> {
    init_logging(args.log);
    let store: StoreAddress = app.config.store().parse()?;
    if let StoreAddress::Server(server) = &store {
        return Err(UserError::invalid(format!("{server} already serves this store")).into());
    }
    let has_database = matches!(store, StoreAddress::Postgres(_));
    let listener = TcpListener::bind(args.listen)
        .await
        .with_context(|| format!("cannot listen on {}", args.listen))?;
    let address = listener.local_addr()?;
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(certificates), Some(key)) => Some(
            Tls::from_pem_files(&app.resolve_path(certificates), &app.resolve_path(key))
                .map_err(serve_error)?,
        ),
        _ => None,
    };
    let scheme = if tls.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{address}");
    let mut is_told = false;
    let opened = match app.tl().await {
        Err(error) if has_database && is_store_unavailable(&error) => {
            print_url(app, &url)?;
            is_told = true;
            let opening =
                serve_until_ready(&listener, tls.as_ref(), open_when_available(app, error));
            tokio::select! {
                opened = opening => opened,
                () = wait_for_shutdown() => return Ok(()),
            }
        }
        opened => opened,
    };
    let zone = app.zone.clone();
    let tl = opened?
        .clone()
        .with_description(&lease_wait::describe_process("tl serve", &app.paths))
        .on_lease_wait(move |wait| tracing::info!("{}", lease_wait::format_wait(wait, &zone)));
    let now = tl.now();
    let tokens = IssuedTokens::of(&tl.tokens().await?, now);
    // Each of these means that requests come through a proxy.
    let named = !args.hosts.is_empty() || !args.trusted_proxies.is_empty() || args.behind_tls;
    let gate = AccessMode::for_address(args.listen, tl.owner().clone(), tokens, named)
        .map_err(serve_error)?;
    let guarded = gate == AccessMode::Tokens;
    let rate = args.rate.unwrap_or(DEFAULT_RATE);
    let mut limits = Limits {
        // On a server without authentication, the limit applies from the first token on.
        rate_while_open: args.rate.is_some(),
        rate: (rate > 0).then_some(RateLimit {
            per_second: rate,
            burst: rate.saturating_mul(BURST_FACTOR),
        }),
        ..Limits::default()
    };
    if let Some(most) = args.max_body {
        limits.body_bytes = most;
    }
    if let Some(most) = args.max_streams {
        limits.streams = Cap {
            per_caller: most,
            total: limits.streams.total.max(most),
        };
    }
    let spool = app.paths.cache.join("spool");
    create_private_folder(&spool).with_context(|| format!("cannot create {}", spool.display()))?;
    let responders = ServedResponders::new(app)?;
    let server = Server::new(ServerConfig {
        tl,
        responders: Arc::new(responders),
        gate,
        limits,
        hosts: args.hosts,
        origins: args.origins,
        time_zone: app.zone.clone(),
        secure: tls.is_some() || args.behind_tls,
        trusted_proxies: args.trusted_proxies,
        spool_dir: Some(spool),
    });
    if !is_told {
        print_url(app, &url)?;
    }
    if app.ui.json {
        if !guarded {
            tracing::warn!("{OPEN_ACCESS_WARNING}");
        } else if tokens != IssuedTokens::Valid {
            tracing::warn!("{NO_TOKEN_WARNING}");
        }
    } else {
        if !guarded {
            app.ui.warn(OPEN_ACCESS_WARNING);
        } else if tokens != IssuedTokens::Valid {
            app.ui.warn(NO_TOKEN_WARNING);
        }
        if guarded && tls.is_none() && !args.behind_tls {
            app.ui
                .warn("tokens are sent unencrypted: use --tls-cert and --tls-key, or a TLS proxy");
        }
    }
    serve(listener, server, tls, wait_for_shutdown())
        .await
        .map_err(serve_error)?;
    Ok(())
}

fn print_url(app: &App, url: &str) -> std::io::Result<()> {
    if app.ui.json {
        app.ui.json_line(&json!({ "url": url }))
    } else {
        app.ui.data(url)
    }
}

/// Returns whether opening the store may succeed later because its database is down or
/// starting. A wrong password, for example, is permanent.
fn is_store_unavailable(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| match cause.downcast_ref() {
        Some(Error::Store(error)) => is_unavailable(error),
        _ => cause.downcast_ref().is_some_and(is_unavailable),
    })
}

/// Opens the store once its database is available.
async fn open_when_available(app: &App, mut error: anyhow::Error) -> Result<&Throughline> {
    let mut logged_at: Option<Instant> = None;
    loop {
        if logged_at.is_none_or(|logged_at| logged_at.elapsed() >= LOG_INTERVAL) {
            tracing::warn!(error = %format_args!("{error:#}"), "waiting for the database");
            logged_at = Some(Instant::now());
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
        error = match app.tl().await {
            Ok(tl) => {
                tracing::info!("the database is available");
                return Ok(tl);
            }
            Err(error) if is_store_unavailable(&error) => error,
            Err(error) => return Err(error),
        };
    }
}

fn serve_error(error: ServeError) -> anyhow::Error {
    let hint = match &error {
        ServeError::NoTokens(_) => "`tl token create --user NAME` creates one",
        _ => return error.into(),
    };
    UserError::invalid(error.to_string()).with_hint(hint).into()
}

/// Sets up logging: text on a terminal, JSON elsewhere. Only this program's crates log,
/// because dependencies might log message content.
fn init_logging(level: LevelFilter) {
    let ours = Targets::new()
        .with_target("throughline", level)
        .with_target("tl", level);
    let lines = tracing_subscriber::fmt::layer()
        .with_target(false)
        .with_writer(std::io::stderr);
    let registry = tracing_subscriber::registry();
    // An already installed subscriber is fine.
    let _ = if std::io::stderr().is_terminal() {
        registry.with(lines.with_filter(ours)).try_init()
    } else {
        let lines = lines.json().flatten_event(true);
        registry.with(lines.with_filter(ours)).try_init()
    };
}

/// Parses an IP address or network.
fn parse_network(text: &str) -> Result<IpNet, String> {
    text.parse::<IpNet>()
        .or_else(|_| text.parse::<std::net::IpAddr>().map(IpNet::from))
        .map_err(|_| "this is neither an address nor a network such as 10.0.0.0/8".to_owned())
}

/// Resolves when the process receives a stop signal.
async fn wait_for_shutdown() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminated) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminated.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}
