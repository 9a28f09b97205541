//! `tl serve`

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::json;
use throughline::Address;
use throughline_server::{App as Server, Gate, Limits, Rate, ServeError, Serving, Tls, serve};
use tokio::net::TcpListener;
use tracing_subscriber::filter::LevelFilter;

use crate::app::App;
use crate::chat::ServedVoices;
use crate::report::Refusal;
use crate::waiting;

/// Requests of one caller a second, where tokens are asked for.
const RATE: u32 = 50;
/// How many times that may come at once.
const BURST: u32 = 4;

/// Serve sessions over HTTP
///
/// The API is under /api (GET /api/openapi.json describes it), the OpenAI-compatible one
/// under /v1, the page at /. On this machine it serves you without a token, as long as none
/// was made; it listens elsewhere only where there are tokens (`tl token create`).
#[derive(clap::Args, Debug)]
pub(crate) struct ServeArgs {
    /// Where to listen
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7878")]
    listen: SocketAddr,
    /// A name the server may be called by (may be repeated) [default: this machine's own,
    /// or any where tokens are asked for]
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
    /// Requests of one caller a second (0: no limit) [default: 50 where tokens are asked
    /// for, otherwise no limit]
    #[arg(long, value_name = "N")]
    rate: Option<u32>,
    /// The largest body of a request, in bytes
    #[arg(long, value_name = "BYTES")]
    max_body: Option<usize>,
    /// What is told on stderr: off, error, warn, info or debug
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log: LevelFilter,
}

pub(crate) async fn run(app: &App, args: ServeArgs) -> Result<()> {
    tell(args.log);
    if let Address::Server(server) = app.config.store().parse()? {
        return Err(Refusal::invalid(format!("{server} serves this store already")).into());
    }
    let tl = app.tl().await?.clone();
    let zone = app.zone.clone();
    let tl = tl
        .described_as(&waiting::this_process("tl serve", &app.places))
        .reporting_waits(move |wait| tracing::info!("{}", waiting::notice(wait, &zone)));
    let now = tl.now();
    let has_tokens = tl.tokens().await?.iter().any(|token| token.is_good(now));
    let gate = Gate::at(args.listen, tl.owner().clone(), has_tokens).map_err(refused)?;
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(certificates), Some(key)) => {
            Some(Tls::read(&app.path(certificates), &app.path(key)).map_err(refused)?)
        }
        _ => None,
    };
    let guarded = gate == Gate::Tokens;
    let usual = if guarded { RATE } else { 0 };
    let rate = args.rate.unwrap_or(usual);
    let mut limits = Limits {
        rate: (rate > 0).then_some(Rate {
            per_second: rate,
            burst: rate.saturating_mul(BURST),
        }),
        ..Limits::default()
    };
    if let Some(most) = args.max_body {
        limits.body = most;
    }
    let listener = TcpListener::bind(args.listen)
        .await
        .with_context(|| format!("cannot listen on {}", args.listen))?;
    let address = listener.local_addr()?;
    let voices = ServedVoices::new(app)?;
    let server = Server::new(Serving {
        tl,
        voices: Arc::new(voices),
        gate,
        limits,
        hosts: args.hosts,
        origins: args.origins,
        zone: app.zone.clone(),
        secure: tls.is_some(),
    });
    let scheme = if tls.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{address}");
    if app.ui.json {
        app.ui.json_line(&json!({"url": url}))?;
    } else {
        app.ui.data(&url)?;
        if guarded && tls.is_none() {
            app.ui.warn(
                "tokens travel unencrypted: use --tls-cert and --tls-key, or a proxy that speaks TLS",
            );
        }
    }
    serve(listener, server, tls, told_to_stop())
        .await
        .map_err(refused)?;
    Ok(())
}

fn refused(error: ServeError) -> anyhow::Error {
    let hint = match &error {
        ServeError::NoTokens(_) => "`tl token create --user NAME` makes one",
        _ => return error.into(),
    };
    Refusal::invalid(error.to_string()).hint(hint).into()
}

/// Lines for people on a terminal, JSON for machines elsewhere. Neither has what was said.
fn tell(level: LevelFilter) {
    let lines = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_target(false)
        .with_writer(std::io::stderr);
    // Somebody else's subscriber is as good.
    let _ = if std::io::stderr().is_terminal() {
        lines.try_init()
    } else {
        lines.json().flatten_event(true).try_init()
    };
}

/// Resolves when the process is asked to end.
async fn told_to_stop() {
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
