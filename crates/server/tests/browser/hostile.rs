//! Hostile content in messages must not be executed or loaded by the browser.

use serde_json::json;
use throughline::{
    AgentRef, Attachment, Block, Body, Content, Json, MemoryScope, Message, NewFact, NewSession,
    Project, Role, Summary, ToolCall, ToolResult,
};

use crate::browser::browser;
use crate::harness::Server;

/// Each of these sets `ran` if it is executed.
const ATTACKS: &[&str] = &[
    "<script>window.ran=1</script>",
    "<img src=x onerror=window.ran=1>",
    "<svg onload=window.ran=1><animate onbegin=window.ran=1 attributeName=x dur=1s>",
    "<iframe srcdoc=\"<script>parent.ran=1</script>\"></iframe>",
    "<a href=\"javascript:window.ran=1\">attack</a>",
    "[attack](javascript:window.ran=1)",
    "[attack](data:text/html,<script>opener.ran=1</script>)",
    "[attack](java\tscript:window.ran=1)",
    "![x](x\" onerror=\"window.ran=1)",
    "![x](https://example.org/beacon.png)",
    "<https://example.org/\" onmouseover=\"window.ran=1>",
    "```html\n</code></pre><script>window.ran=1</script>\n```",
    "`</code><script>window.ran=1</script>`",
    "| a |\n|---|\n| <img src=x onerror=window.ran=1> |",
    "\"><script>window.ran=1</script>",
    "</textarea></title></style></template><script>window.ran=1</script>",
    "<style>@import 'https://example.org/x.css';</style><link rel=stylesheet href=https://example.org/x.css>",
    "<form action=https://example.org><button>attack</button></form>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=window.ran=1>",
    "<base href=https://example.org/><meta http-equiv=refresh content='0;url=https://example.org'>",
    "{{constructor.constructor('window.ran=1')()}} ${window.ran=1}",
];

async fn create_attack_session(server: &Server) -> throughline::Session {
    let all = ATTACKS.join(" ");
    let one = "\"><img src=x onerror=window.ran=1>";
    let project = Project {
        id: format!("dir:/{one}").parse().unwrap(),
        name: all.clone(),
        markers: Vec::new(),
    };
    let tl = &server.tl;
    tl.store().put_project(tl.owner(), &project).await.unwrap();
    let session = tl
        .create(NewSession {
            key: Some(one.parse().unwrap()),
            project: Some(project.id.clone()),
            agent: Some(AgentRef {
                name: all.clone(),
                path: Some(one.into()),
            }),
            workspace: Some(all.clone()),
            ..NewSession::default()
        })
        .await
        .unwrap();
    for attack in ATTACKS {
        session
            .append(Message::text(Role::User, *attack))
            .await
            .unwrap();
    }
    let blob = tl
        .put_blob(b"<script>window.ran=1</script>".to_vec())
        .await
        .unwrap();
    let blocks = vec![
        Block::Text(all.clone()),
        Block::Thinking {
            text: all.clone(),
            signature: None,
        },
        Block::ToolCall(ToolCall {
            id: one.into(),
            name: all.clone(),
            input: Json::of(&json!({ (all.clone()): all })).unwrap(),
        }),
        Block::Attachment(Attachment {
            blob,
            media_type: "text/html\"><script>window.ran=1</script>".into(),
            bytes: 29,
            name: Some(all.clone()),
        }),
        Block::Foreign(Json::of(&json!({"type": all, "data": all})).unwrap()),
    ];
    let mut entry = session.new_entry(Message {
        model: Some(all.clone()),
        provider: Some(all.clone()),
        ..Message::new(Role::Assistant, Content(blocks))
    });
    entry.author = Some(all.clone());
    session
        .append_all(
            vec![entry],
            throughline::Expect::Any,
            throughline::ConflictPolicy::Reject,
        )
        .await
        .unwrap();
    let result = ToolResult {
        call_id: one.into(),
        content: Content::text(&all),
        is_error: true,
    };
    session
        .append(Message::new(
            Role::Tool,
            Content(vec![Block::ToolResult(result)]),
        ))
        .await
        .unwrap();
    let lost = ToolResult {
        call_id: all.clone(),
        content: Content::text(&all),
        is_error: false,
    };
    session
        .append(Message::new(
            Role::Tool,
            Content(vec![Block::ToolResult(lost)]),
        ))
        .await
        .unwrap();
    session
        .append(throughline::Checkpoint {
            covers: throughline::Seq(3),
            summary: Summary {
                background: all.clone(),
                decisions: vec![all.clone()],
                files_touched: vec![all.clone()],
                ..Summary::default()
            },
            by: all.clone(),
            messages: 3,
            oldest: None,
            newest: None,
            usage: None,
        })
        .await
        .unwrap();
    session.pin(&all).await.unwrap();
    session.decide(&all).await.unwrap();
    session.describe(Some(&all)).await.unwrap();
    session.set_context(&all, Some(&all)).await.unwrap();
    for scope in [MemoryScope::Owner, MemoryScope::Project(project.id)] {
        tl.memory(scope)
            .add(NewFact::from_person(truncate(&all)))
            .await
            .unwrap();
    }
    session
        .append(Body::Moved {
            workspace: all.clone(),
            project: None,
        })
        .await
        .unwrap();
    session
}

fn truncate(text: &str) -> String {
    text.chars().take(1_200).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_messages_do_not_run_load_or_navigate() {
    let server = Server::start().await;
    let session = create_attack_session(&server).await;
    let id = session.id();
    let browser = browser!(server);
    let project = "dir%3A%2F%22%3E%3Cimg%20src%3Dx%20onerror%3Dwindow.ran%3D1%3E";
    for path in [
        "/".to_owned(),
        "/?q=%3Cscript%3Ewindow.ran%3D1%3C%2Fscript%3E".to_owned(),
        format!("/?project={project}"),
        "/search?q=attack".to_owned(),
        "/search?q=%22%3E%3Cimg+src%3Dx+onerror%3Dwindow.ran%3D1%3E".to_owned(),
        "/memory".to_owned(),
        format!("/memory?project={project}"),
        format!("/events?session={project}"),
        format!("/s/{id}"),
        format!("/s/{id}/e/3"),
        format!("/s/{id}/status"),
        format!("/s/{id}/request?message=%3Cscript%3Ewindow.ran%3D1%3C%2Fscript%3E"),
        format!("/s/{id}/lineage"),
        format!("/s/{id}/log"),
        format!("/s/{id}/rename"),
        format!("/s/{id}/pin?from=1"),
        format!("/s/{project}"),
        "/login?next=javascript:window.ran=1".to_owned(),
        "/?said=%3Cscript%3Ewindow.ran%3D1%3C%2Fscript%3E".to_owned(),
    ] {
        browser.goto(&path).await;
        browser.eval("for (const part of document.querySelectorAll('details')) part.open = true; return 1").await;
        // By the time this script returns, anything that loads or runs has started.
        browser
            .client
            .execute_async(
                "const done = arguments[0]; fetch('/health').then(() => setTimeout(done, 50))",
                Vec::new(),
            )
            .await
            .unwrap();
        assert_eq!(
            browser.eval("return window.ran ?? null").await,
            json!(null),
            "{path}"
        );
        let foreign = browser.eval("return [...document.querySelectorAll('script:not([src^=\"/assets/\"]), img, iframe, object, embed, base, link:not([href^=\"/assets/\"]), style, meta[http-equiv], main form[action^=http], [onerror], [onload], a[href^=\"javascript:\"], a[href^=\"data:\"]')].map((thing) => thing.outerHTML)").await;
        assert_eq!(foreign, json!([]), "{path}");
        let loaded = browser.eval("return performance.getEntriesByType('resource').map((r) => r.name).filter((name) => !name.startsWith(location.origin))").await;
        assert_eq!(loaded, json!([]), "{path}");
        let complaints = browser.console_errors().await;
        let of_policy: Vec<_> = complaints
            .iter()
            .filter(|text| text.contains("Security Policy"))
            .collect();
        assert!(of_policy.is_empty(), "{path}: {of_policy:?}");
    }
    // The text itself is still readable.
    browser.goto(&format!("/s/{id}/e/1")).await;
    browser.wait_for_text("<script>window.ran=1</script>").await;
    browser.goto(&format!("/s/{id}/e/1/text")).await;
    assert_eq!(browser.eval("return window.ran ?? null").await, json!(null));
    assert_eq!(
        browser.eval("return document.contentType").await,
        json!("text/plain")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_streamed_answer_cannot_run_scripts() {
    use std::sync::Arc;
    use throughline_mock_provider::{MockProvider, Reply, Script};

    let text = ATTACKS.join("\n\n");
    let mock = MockProvider::start(Script::from_fn(move |_| Reply::text(&text))).unwrap();
    let server = Server::start_with(crate::harness::ServerOptions {
        responders: Arc::new(crate::demo::MockResponderRegistry::new(&mock)),
        ..crate::harness::ServerOptions::default()
    })
    .await;
    let id = server.create_session(&[]).await;
    let browser = browser!(server);
    browser.goto(&format!("/s/{id}")).await;
    browser.fill("#message", "Go on").await;
    browser.click("#composer button[type=submit]").await;
    browser
        .wait_until("return document.querySelector('.entry.assistant:not(.live)')")
        .await;
    assert_eq!(browser.eval("return window.ran ?? null").await, json!(null));
    assert_eq!(
        browser
            .count("#entries img, #entries script, #entries svg, #entries iframe")
            .await,
        0
    );
    assert_eq!(browser.console_errors().await, Vec::<String>::new());
}
