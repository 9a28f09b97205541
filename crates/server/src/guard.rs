//! Middleware that every request passes through.
//!
//! Before the handler: checks host and origin, authenticates the caller, applies rate limits,
//! quotas and timeouts. After it: sets the request id and security headers, logs and records
//! metrics.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use axum::body::{Body, HttpBody as _};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use throughline::{TokenRole, is_loopback_host};

use crate::access_monitor::{AccessWatch, Credential};
use crate::auth::{AuthResult, access_ended};
use crate::client_address::Client;
use crate::listen::Peer;
use crate::metered_body::{CloseMode, METERED_MIN_BYTES, MeteredBody};
use crate::quota::{CallerKey, QuotaPermit};
use crate::rate_limit::RateKey;
use crate::request_body::InFlightRequest;
use crate::{AccessMode, App, Caller, Problem, openai, page};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Maximum length of a client-supplied request id.
const MAX_REQUEST_ID_LEN: usize = 64;
/// Content security policy where the handler sets none: nothing is allowed.
const DENY_ALL_CSP: &str = "default-src 'none'; frame-ancestors 'none'";

/// A slot in the stream quota, with a watch on its holder's access.
#[derive(Debug)]
pub(crate) struct StreamSlot {
    pub(crate) watch: AccessWatch,
    _permit: QuotaPermit,
}

/// What an admitted request holds until it is answered.
struct Admission {
    in_flight: Arc<InFlightRequest>,
    permit: Option<QuotaPermit>,
    stream: Option<Arc<StreamSlot>>,
    /// What the caller was authenticated with; `None` without a valid token.
    credential: Option<Credential>,
}

/// Admits a request or answers with the reason it was refused.
pub(crate) async fn guard(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let began = Instant::now();
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or_else(|| "other".to_owned(), |path| path.as_str().to_owned());
    let id = request_id(&app, request.headers());
    let client = resolve_client(&app, &request);
    request.extensions_mut().insert(client);
    let secure = (app.config.secure || client.https)
        && request_host(&request).is_some_and(|host| !is_loopback_host(strip_port(&host)));
    let mut owner = String::new();
    let response = match admit(&app, &mut request, &route, &client, &mut owner).await {
        Err(problem) => problem.into_response(),
        Ok(admission) => respond(&app, &route, request, next, admission).await,
    };
    if !method.is_safe() {
        app.hub.wake();
    }
    let response = finalize_response(response, &path, &id, secure);
    let took = began.elapsed();
    let status = response.status().as_u16();
    app.metrics
        .record_response(method.as_str(), &route, status, took);
    // Log the route, not the path: paths contain names that users chose.
    let millis = took.as_secs_f64() * 1_000.0;
    if response.status().is_server_error() {
        tracing::error!(%id, %method, route, status, millis, owner, "answered");
    } else {
        tracing::info!(%id, %method, route, status, millis, owner, "answered");
    }
    response
}

/// Determines the client address of a request.
fn resolve_client(app: &App, request: &Request) -> Client {
    let peer = request.extensions().get::<Peer>();
    let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0.ip());
    let client = Client::from_headers(peer, request.headers(), &app.config.trusted_proxies);
    if client.untrusted_proxy && !app.proxy_warned.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            proxy = %client.ip,
            "requests come through a proxy that is not trusted; until it is configured \
             (`--trusted-proxy {}`) its clients share one rate limit", client.ip
        );
    }
    client
}

/// Checks whether a request may proceed and records its caller in the request extensions.
async fn admit(
    app: &App,
    request: &mut Request,
    route: &str,
    client: &Client,
    owner: &mut String,
) -> Result<Admission, Problem> {
    let headers = request.headers();
    check_single_host(request)?;
    let host = request_host(request);
    // Without tokens, a browser could be tricked into calling the server, so host and origin are
    // always checked.
    let open = matches!(app.config.gate, AccessMode::Open(_));
    check_host(app, host.as_deref(), open)?;
    check_origin(app, headers, host.as_deref(), request.method())?;
    let caller = app.authenticator.authenticate(headers).await;
    if let Ok(caller) = &caller {
        caller.owner().as_str().clone_into(owner);
        if caller.by_cookie && !request.method().is_safe() {
            check_same_site(headers)?;
        }
    }
    if route != HEALTH {
        check_rate(app, route, client, caller.as_ref().ok())?;
    }
    let key = match &caller {
        Ok(caller) => CallerKey::Owner(caller.principal.clone()),
        Err(_) => CallerKey::Address(client.rate_limit_address()),
    };
    let flight = Arc::new(InFlightRequest::new(key));
    let credential = caller.as_ref().ok().map(|caller| caller.credential);
    let stream = match credential {
        Some(credential) if is_stream(route) => {
            Some(acquire_stream_slot(app, &flight, credential)?)
        }
        _ => None,
    };
    let share = if stream.is_none() && route != HEALTH {
        Some(app.request_quota.acquire(&flight.caller, 1)?)
    } else {
        None
    };
    let extensions = request.extensions_mut();
    extensions.insert(AuthResult(caller));
    extensions.insert(Arc::clone(&flight));
    if let Some(stream) = &stream {
        extensions.insert(Arc::clone(stream));
    }
    Ok(Admission {
        in_flight: flight,
        permit: share,
        stream,
        credential,
    })
}

fn acquire_stream_slot(
    app: &App,
    flight: &InFlightRequest,
    credential: Credential,
) -> Result<Arc<StreamSlot>, Problem> {
    Ok(Arc::new(StreamSlot {
        _permit: app.stream_quota.acquire(&flight.caller, 1)?,
        watch: app.access_monitor.watch(credential),
    }))
}

/// Applies the rate limit. A service is limited as a whole, and each of its users as well.
fn check_rate(
    app: &App,
    route: &str,
    client: &Client,
    caller: Option<&Caller>,
) -> Result<(), Problem> {
    let keys = match caller {
        Some(caller) if caller.token.is_none() && !app.limits().rate_while_open => [None, None],
        Some(caller) => {
            let service = caller.token.clone().map(RateKey::Service);
            let service = service.filter(|_| caller.role == TokenRole::Service);
            [service, Some(RateKey::Owner(caller.owner().clone()))]
        }
        None => {
            let address = client.rate_limit_address();
            let login = matches!(route, "/login" | "/assets/{hash}/{name}");
            let key = if login {
                RateKey::Login(address)
            } else {
                RateKey::Address(address)
            };
            [None, Some(key)]
        }
    };
    for key in keys.iter().flatten() {
        app.rate_limiter.check(key).map_err(|seconds| {
            Problem::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too_many_requests",
                format!("rate limit exceeded; try again in {seconds} s"),
            )
            .with_retry_after(seconds)
        })?;
    }
    Ok(())
}

/// Runs the handler of an admitted request. Quotas are released when the response is sent.
async fn respond(
    app: &App,
    route: &str,
    request: Request,
    next: Next,
    admission: Admission,
) -> Response {
    let Admission {
        in_flight: flight,
        permit: share,
        stream,
        credential,
    } = admission;
    let Some(stream) = stream else {
        let response = run_with_timeout(app, route, request, next).await;
        let is_sized = response.body().size_hint().exact().is_some();
        return match credential {
            // A response of unknown length is a stream, even on a route that is not listed as one.
            Some(credential) if !is_sized => match acquire_stream_slot(app, &flight, credential) {
                Ok(stream) => monitor_stream(route, response, stream),
                Err(problem) => problem.into_response(),
            },
            _ => meter_response(app, &flight, share, response),
        };
    };
    let response = tokio::select! {
        response = run_with_timeout(app, route, request, next) => response,
        end = stream.watch.ended() => return access_ended(end).into_response(),
    };
    // A WebSocket holds the slot itself.
    if response.status() == StatusCode::SWITCHING_PROTOCOLS
        || response.body().size_hint().exact().is_some()
    {
        return response;
    }
    monitor_stream(route, response, stream)
}

/// Ends a streaming response when the token it was opened with stops being valid.
fn monitor_stream(route: &str, response: Response, stream: Arc<StreamSlot>) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE);
    let events = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    let closing = match events {
        true if route.starts_with("/v1/") => CloseMode::OpenAiError,
        true => CloseMode::Event,
        false => CloseMode::Abort,
    };
    response.map(|body| MeteredBody::for_stream(body, stream, closing))
}

/// Counts the bytes of a large response until they are sent.
fn meter_response(
    app: &App,
    flight: &InFlightRequest,
    share: Option<QuotaPermit>,
    response: Response,
) -> Response {
    let bytes = response.body().size_hint().exact().unwrap_or(0);
    if bytes < METERED_MIN_BYTES {
        return response;
    }
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    match app.body_quota.acquire(&flight.caller, bytes) {
        Ok(sent) => {
            let shares = share.into_iter().chain([sent]).collect();
            response.map(|body| MeteredBody::with_permits(body, shares))
        }
        Err(problem) => problem.into_response(),
    }
}

/// Runs the handler within the response timeout.
async fn run_with_timeout(app: &App, route: &str, request: Request, next: Next) -> Response {
    let answered = next.run(request);
    if is_exempt_from_timeout(route) {
        return answered.await;
    }
    match tokio::time::timeout(app.limits().response_timeout, answered).await {
        Ok(response) => response,
        Err(_) => Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "timeout",
            "the request timed out; whatever was appended is stored, and a retry with the same \
             Idempotency-Key does not append it twice",
        )
        .with_retry_after(1)
        .into_response(),
    }
}

/// The one route that is answered no matter how busy the server is.
const HEALTH: &str = "/health";

/// Routes without a response timeout: they call models, or send for as long as the client reads.
fn is_exempt_from_timeout(route: &str) -> bool {
    calls_model(route) || route.ends_with("/blobs")
}

fn calls_model(route: &str) -> bool {
    const LONG: [&str; 4] = ["/turns", "/compact", "/continue", "/responses"];
    LONG.iter().any(|end| route.ends_with(end)) || route.contains("/turns/")
}

/// Routes that may run for long: counted as streams, and ended with the token that opened them.
fn is_stream(route: &str) -> bool {
    calls_model(route)
        || matches!(
            route,
            "/api/events"
                | "/api/events/ws"
                | "/api/sessions/{id}/events"
                | "/api/sessions/{id}/export"
                | "/store/v1/changed"
        )
}

fn request_id(app: &App, headers: &HeaderMap) -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(1);
    let fit = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let sent = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
    match sent {
        Some(id) if !id.is_empty() && id.len() <= MAX_REQUEST_ID_LEN && id.chars().all(fit) => {
            id.to_owned()
        }
        _ => {
            let count = COUNTER.fetch_add(1, Ordering::Relaxed);
            let second = app.config.tl.now().as_second();
            format!("{second:x}-{count:x}")
        }
    }
}

/// The host name in the request.
fn request_host(request: &Request) -> Option<String> {
    let authority = request
        .uri()
        .authority()
        .map(axum::http::uri::Authority::as_str);
    let header = request
        .headers()
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    authority.or(header).map(str::to_ascii_lowercase)
}

/// Requires exactly one host: a proxy must not use a different one than we do.
fn check_single_host(request: &Request) -> Result<(), Problem> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (first, more) = (hosts.next(), hosts.next());
    let named = request.uri().authority();
    let differs = match (first, named) {
        (Some(host), Some(named)) => !host
            .as_bytes()
            .eq_ignore_ascii_case(named.as_str().as_bytes()),
        _ => false,
    };
    if more.is_some() || differs {
        return Err(Problem::bad_request(
            "bad_host",
            "the request names more than one host",
        ));
    }
    if first.is_none() && named.is_none() && request.version() == Version::HTTP_11 {
        return Err(Problem::bad_request(
            "bad_host",
            "the header Host is missing",
        ));
    }
    Ok(())
}

/// Strips the port from a host.
fn strip_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.chars().all(|c| c.is_ascii_digit()) && !name.ends_with(':') => {
            name
        }
        _ => host,
    }
}

/// Checks the host name, against DNS rebinding: another site may point its name at this server.
fn check_host(app: &App, host: Option<&str>, open: bool) -> Result<(), Problem> {
    let named = &app.config.hosts;
    let fits = match host {
        None => !open && named.is_empty(),
        Some(host) => {
            is_loopback_host(strip_port(host))
                || named
                    .iter()
                    .any(|name| name.eq_ignore_ascii_case(strip_port(host)))
                || (!open && named.is_empty())
        }
    };
    if fits {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::MISDIRECTED_REQUEST,
        "wrong_host",
        "host name not allowed; allow it with `tl serve --host NAME`",
    ))
}

/// Checks the `Origin`: only the server's own pages and configured origins may call from a browser.
fn check_origin(
    app: &App,
    headers: &HeaderMap,
    host: Option<&str>,
    method: &Method,
) -> Result<(), Problem> {
    let refused = || {
        Err(Problem::forbidden(
            "wrong_origin",
            "origin not allowed; allow it with `tl serve --origin URL`",
        ))
    };
    if let Some(origin) = headers.get(header::ORIGIN) {
        let Ok(origin) = origin.to_str() else {
            return refused();
        };
        let own = origin
            .split_once("://")
            .is_some_and(|(_, rest)| Some(rest.to_ascii_lowercase().as_str()) == host);
        let named = app.config.origins.iter().any(|named| named == origin);
        return if own || named { Ok(()) } else { refused() };
    }
    let site = headers
        .get("sec-fetch-site")
        .and_then(|site| site.to_str().ok());
    match site {
        Some("cross-site" | "same-site") if !method.is_safe() => refused(),
        _ => Ok(()),
    }
}

/// Protects against cross-site request forgery: a cookie alone does not prove the user's intent.
fn check_same_site(headers: &HeaderMap) -> Result<(), Problem> {
    let own = headers.contains_key(header::ORIGIN)
        || headers
            .get("sec-fetch-site")
            .is_some_and(|site| site == "same-origin");
    if own {
        return Ok(());
    }
    Err(Problem::forbidden(
        "wrong_origin",
        "a change with a cookie requires the Origin header",
    ))
}

/// Sets the headers that every response has.
fn finalize_response(mut response: Response, path: &str, id: &str, secure: bool) -> Response {
    if let Some(mut problem) = response.extensions_mut().remove::<Problem>() {
        problem.request_id = Some(id.into());
        response = if path.starts_with("/v1/") {
            openai::error_response(&problem)
        } else {
            let mut with_id = problem.into_response();
            with_id.extensions_mut().remove::<Problem>();
            with_id
        };
    }
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert(REQUEST_ID, id);
    }
    let fixed = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::CONTENT_SECURITY_POLICY, DENY_ALL_CSP),
        (header::CACHE_CONTROL, "no-store"),
    ];
    if secure {
        let year = HeaderValue::from_static("max-age=31536000");
        headers.insert(header::STRICT_TRANSPORT_SECURITY, year);
    }
    for (name, value) in fixed {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    response
}

pub(crate) async fn not_found(headers: HeaderMap) -> Response {
    let problem = Problem::not_found(
        "no_such_path",
        "no such path; GET /api/openapi.json lists all paths",
    );
    let accepts = headers
        .get(header::ACCEPT)
        .and_then(|kinds| kinds.to_str().ok());
    // A browser gets an HTML page.
    if accepts.is_some_and(|kinds| kinds.contains("text/html")) {
        return page::error_page(&problem);
    }
    problem.into_response()
}

pub(crate) async fn method_not_allowed() -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "wrong_method",
        "method not allowed for this path; GET /api/openapi.json lists all paths",
    )
}

/// An empty response with this status.
pub(crate) fn empty_response(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::strip_port;

    #[test]
    fn the_port_is_stripped_from_a_host() {
        for (host, name) in [
            ("localhost:8080", "localhost"),
            ("localhost", "localhost"),
            ("127.0.0.1:1", "127.0.0.1"),
            ("[::1]:80", "[::1]"),
            ("[::1]", "[::1]"),
            ("example.org:", "example.org"),
        ] {
            assert_eq!(strip_port(host), name, "{host}");
        }
    }
}
