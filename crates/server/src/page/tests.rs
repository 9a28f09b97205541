//! Tests that hold for every page: access control and browser safety.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use axum::response::Response;
use http_body_util::BodyExt as _;
use throughline::{Message, NewSession, NewToken, Role, Session, Throughline, TokenRole};
use tower::ServiceExt as _;

use super::routes;
use crate::{AccessMode, App, Limits, OfflineRegistry, ServerConfig};

async fn app(secure: bool) -> App {
    App::new(ServerConfig {
        tl: Throughline::open("memory:").await.unwrap(),
        responders: Arc::new(OfflineRegistry),
        gate: AccessMode::Tokens,
        limits: Limits::default(),
        hosts: Vec::new(),
        origins: Vec::new(),
        time_zone: jiff::tz::TimeZone::UTC,
        secure,
        trusted_proxies: Vec::new(),
        spool_dir: None,
    })
}

async fn token(app: &App, owner: &str, role: TokenRole) -> String {
    let new = NewToken {
        owner: owner.parse().unwrap(),
        role,
        label: None,
        expires_at: None,
    };
    app.config.tl.issue_token(new).await.unwrap().text
}

/// A session of alice, with one message.
async fn alice_session(app: &App) -> Session {
    let tl = app.config.tl.on_behalf_of("alice".parse().unwrap());
    let session = tl.create(NewSession::default()).await.unwrap();
    let message = Message::text(Role::User, "hers alone");
    session.append(message).await.unwrap();
    session
}

/// Every field of every form.
const ALL_FORM_FIELDS: &str = "message=x&name=x&description=x&tags=x&text=x&pin=1&at=1&which=&style=append\
                    &summary=x&to=1&act=add&token=x&user=x&role=user";

async fn call(app: &App, method: &str, path: &str, headers: &[(&str, &str)]) -> Response {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, "localhost")
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = Body::from(if method == "POST" {
        ALL_FORM_FIELDS
    } else {
        ""
    });
    let request = request.body(body).unwrap();
    crate::router(app).oneshot(request).await.unwrap()
}

async fn text(response: Response) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Every path, with its parameters filled in.
fn paths(id: &str) -> Vec<String> {
    let fill = |(path, _): (&str, _)| {
        path.replace("{id}", id)
            .replace("{seq}", "1")
            .replace("{hash}", "0")
            .replace("{name}", "style.css")
    };
    routes().into_iter().map(fill).collect()
}

fn is_public(path: &str) -> bool {
    path == "/login" || path == "/logout" || path.starts_with("/assets/")
}

#[tokio::test]
async fn every_page_requires_a_token() {
    let app = app(false).await;
    let session = alice_session(&app).await;
    for path in paths(session.id().as_str()) {
        for method in ["GET", "POST"] {
            let response = call(&app, method, &path, &[]).await;
            if is_public(&path) || response.status() == StatusCode::METHOD_NOT_ALLOWED {
                continue;
            }
            assert_eq!(response.status(), StatusCode::SEE_OTHER, "{method} {path}");
            let to = response.headers()[header::LOCATION].to_str().unwrap();
            assert!(to.starts_with("/login?next="), "{method} {path}: {to}");
        }
    }
    let part = format!("/s/{}/entries?part=1", session.id());
    let response = call(&app, "GET", &part, &[]).await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn no_page_shows_another_owners_session() {
    let app = app(false).await;
    let session = alice_session(&app).await;
    let before = session.record().await.unwrap();
    let his = format!("Bearer {}", token(&app, "bob", TokenRole::Admin).await);
    let mut asked = 0;
    for path in paths(session.id().as_str()) {
        for method in ["GET", "POST"] {
            let response = call(&app, method, &path, &[("authorization", &his)]).await;
            let status = response.status();
            if path.starts_with("/s/") && status != StatusCode::METHOD_NOT_ALLOWED {
                asked += 1;
                assert_eq!(status, StatusCode::NOT_FOUND, "{method} {path}");
            }
            assert!(
                !text(response).await.contains("hers alone"),
                "{method} {path}"
            );
        }
    }
    assert!(asked > 25, "{asked}");
    assert_eq!(session.record().await.unwrap(), before);
}

#[tokio::test]
async fn login_stores_the_token_in_an_http_only_cookie() {
    for secure in [false, true] {
        let app = app(secure).await;
        let alice = token(&app, "alice", TokenRole::User).await;
        let form = format!("token={alice}&next=//evil.example/");
        let request = Request::post("/login")
            .header(header::HOST, "localhost")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Body::from(form))
            .unwrap();
        let response = crate::router(&app).oneshot(request).await.unwrap();
        assert_eq!(response.headers()[header::LOCATION], "/");
        let cookie = response.headers()[header::SET_COOKIE].to_str().unwrap();
        for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
            assert!(cookie.contains(part), "{cookie}");
        }
        assert_eq!(cookie.contains("Secure"), secure, "{cookie}");
    }
}

#[tokio::test]
async fn forms_are_accepted_only_from_the_same_origin() {
    let app = app(false).await;
    let session = alice_session(&app).await;
    let cookie = format!("tl_token={}", token(&app, "alice", TokenRole::User).await);
    let path = format!("/s/{}/clear", session.id());
    let before = session.record().await.unwrap().info.head;
    for origin in [
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("x-nothing", "said"),
    ] {
        let response = call(&app, "POST", &path, &[("cookie", &cookie), origin]).await;
        assert_eq!(response.status(), StatusCode::FORBIDDEN, "{origin:?}");
    }
    assert_eq!(session.record().await.unwrap().info.head, before);
    let own = [("cookie", cookie.as_str()), ("origin", "http://localhost")];
    let response = call(&app, "POST", &path, &own).await;
    assert_eq!(response.status(), StatusCode::SEE_OTHER);
    assert!(session.record().await.unwrap().info.head > before);
}

#[tokio::test]
async fn content_security_policy_allows_only_own_resources() {
    let app = app(false).await;
    let session = alice_session(&app).await;
    let hers = format!("Bearer {}", token(&app, "alice", TokenRole::Admin).await);
    for path in paths(session.id().as_str()) {
        let response = call(&app, "GET", &path, &[("authorization", &hers)]).await;
        let html = response
            .headers()
            .get(header::CONTENT_TYPE)
            .is_some_and(|kind| kind.to_str().unwrap().starts_with("text/html"));
        let policy = response.headers()[header::CONTENT_SECURITY_POLICY]
            .to_str()
            .unwrap();
        assert!(policy.starts_with("default-src 'none'"), "{path}: {policy}");
        assert!(
            !policy.contains("unsafe") && !policy.contains("http"),
            "{path}: {policy}"
        );
        if html {
            let text = text(response).await;
            assert!(
                !text.contains("<script>") && !text.contains(" style="),
                "{path}: {text}"
            );
            assert!(
                !text.contains("src=\"http") && !text.contains("href=\"http"),
                "{path}"
            );
        }
    }
}

#[tokio::test]
async fn assets_contain_no_external_urls_and_are_cached_forever() {
    let app = app(false).await;
    for name in [
        "style.css",
        "theme.js",
        "base.js",
        "live.js",
        "list.js",
        "session.js",
        "search.js",
        "events.js",
        "status.js",
        "icon.svg",
    ] {
        let response = call(&app, "GET", &super::asset::url(name), &[]).await;
        assert_eq!(response.status(), StatusCode::OK, "{name}");
        let cache_control = response.headers()[header::CACHE_CONTROL].to_str().unwrap();
        assert!(
            cache_control.contains("immutable"),
            "{name}: {cache_control}"
        );
        let text = text(response)
            .await
            .replace("http://www.w3.org/2000/svg", "");
        assert!(
            !text.contains("http://") && !text.contains("https://"),
            "{name}"
        );
    }
    let old = call(&app, "GET", "/assets/0/style.css", &[]).await;
    assert_eq!(old.status(), StatusCode::NOT_FOUND);
}
