//! `tl serve`

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

/// Requests of one caller a second, where tokens are required.
const DEFAULT_RATE: u32 = 50;
/// How many times that may come at once.
const BURST_FACTOR: u32 = 4;
/// What is said where nobody is asked for a token.
const OPEN_ACCESS_WARNING: &str = "no token is required: whoever reaches this address has full access; \
                    `tl token create --user NAME --role admin` makes the first token, which \
                    closes it";
/// What is said where nobody can come in.
const NO_TOKEN_WARNING: &str = "a token is required and none is valid: `tl token create --user NAME` \
                        makes one";
/// How often it is tried whether a database that was down is there.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// How often it is logged that it is not.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Serve sessions over HTTP
///
/// The API is under /api (GET /api/openapi.json describes it), the OpenAI-compatible one
/// under /v1, the page at /. On a loopback address and without --host or a proxy it serves you
/// without a token until the first one is made (`tl token create`); from then on, and in all
/// other cases, a token is required, also after the last one was revoked or has expired.
#[derive(clap::Args, Debug)]
pub(crate) struct ServeArgs {
    /// Where to listen
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7878")]
    listen: SocketAddr,
    /// A name the server may be called by, such as its proxy's (may be repeated); a token is
    /// then always required [default: this machine's own, or any where tokens are required]
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    /// Another place whose pages may call it: `https://app.example.org` (may be repeated)
    #[arg(long = "origin", value_name = "URL")]
    origins: Vec<String>,
    /// Speak TLS with these certificates, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of the certificate, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A reverse proxy, by its address or network, whose Forwarded and X-Forwarded-* headers
    /// are believed: 127.0.0.1, 10.0.0.0/8 (may be repeated); a token is then always required
    #[arg(long = "trusted-proxy", value_name = "CIDR", value_parser = parse_network)]
    trusted_proxies: Vec<IpNet>,
    /// Callers reach it by https, through a proxy: cookies are sent by https only, and a token
    /// is always required
    #[arg(long)]
    behind_tls: bool,
    /// Requests of one caller a second (0: no limit) [default: 50 where tokens are
    /// required, otherwise no limit]
    #[arg(long, value_name = "N")]
    rate: Option<u32>,
    /// The largest body of a request, in bytes
    #[arg(long, value_name = "BYTES")]
    max_body: Option<usize>,
    /// Event streams and other long requests one caller may have at once [default: 256]
    #[arg(long, value_name = "N")]
    max_streams: Option<usize>,
    /// What is told on stderr: off, error, warn, info or debug
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log: LevelFilter,
}

pub(crate) async fn run(app: &App, args: ServeArgs) -> Result<()> {
    init_logging(args.log);
    let store: StoreAddress = app.config.store().parse()?;
    if let StoreAddress::Server(server) = &store {
        return Err(UserError::invalid(format!("{server} serves this store already")).into());
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
    // Each of these says that requests come from elsewhere, through a proxy.
    let named = !args.hosts.is_empty() || !args.trusted_proxies.is_empty() || args.behind_tls;
    let gate = AccessMode::for_address(args.listen, tl.owner().clone(), tokens, named)
        .map_err(serve_error)?;
    let guarded = gate == AccessMode::Tokens;
    let rate = args.rate.unwrap_or(DEFAULT_RATE);
    let mut limits = Limits {
        // On a server that is open now, the limit holds from the first token on.
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
    create_private_folder(&spool).with_context(|| format!("cannot make {}", spool.display()))?;
    let voices = ServedResponders::new(app)?;
    let server = Server::new(ServerConfig {
        tl,
        responders: Arc::new(voices),
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
            app.ui.warn(
                "tokens travel unencrypted: use --tls-cert and --tls-key, or a proxy that speaks TLS",
            );
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

/// Whether a store that could not be opened may be there later: its database is down or
/// starting. Nobody heals a wrong password by waiting.
fn is_store_unavailable(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| match cause.downcast_ref() {
        Some(Error::Store(error)) => is_unavailable(error),
        _ => cause.downcast_ref().is_some_and(is_unavailable),
    })
}

/// Opens the store once its database is there.
async fn open_when_available(app: &App, mut error: anyhow::Error) -> Result<&Throughline> {
    let mut told: Option<Instant> = None;
    loop {
        if told.is_none_or(|told| told.elapsed() >= LOG_INTERVAL) {
            tracing::warn!(error = %format_args!("{error:#}"), "waiting for the database");
            told = Some(Instant::now());
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
        error = match app.tl().await {
            Ok(tl) => {
                tracing::info!("the database is there");
                return Ok(tl);
            }
            Err(error) if is_store_unavailable(&error) => error,
            Err(error) => return Err(error),
        };
    }
}

fn serve_error(error: ServeError) -> anyhow::Error {
    let hint = match &error {
        ServeError::NoTokens(_) => "`tl token create --user NAME` makes one",
        _ => return error.into(),
    };
    UserError::invalid(error.to_string()).with_hint(hint).into()
}

/// Lines for people on a terminal, JSON for machines elsewhere. Neither has what was said:
/// only this program's own crates are heard, since others log what passes through them.
fn init_logging(level: LevelFilter) {
    let ours = Targets::new()
        .with_target("throughline", level)
        .with_target("tl", level);
    let lines = tracing_subscriber::fmt::layer()
        .with_target(false)
        .with_writer(std::io::stderr);
    let registry = tracing_subscriber::registry();
    // Somebody else's subscriber is as good.
    let _ = if std::io::stderr().is_terminal() {
        registry.with(lines.with_filter(ours)).try_init()
    } else {
        let lines = lines.json().flatten_event(true);
        registry.with(lines.with_filter(ours)).try_init()
    };
}

/// An address, or a network of them.
fn parse_network(text: &str) -> Result<IpNet, String> {
    text.parse::<IpNet>()
        .or_else(|_| text.parse::<std::net::IpAddr>().map(IpNet::from))
        .map_err(|_| "this is neither an address nor a network such as 10.0.0.0/8".to_owned())
}

/// Resolves when the process is asked to end.
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
