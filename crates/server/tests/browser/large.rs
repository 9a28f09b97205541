//! Many sessions and long sessions: the page holds only part of them at a time.

use futures_util::{StreamExt as _, stream};
use throughline::{ConflictPolicy, Expect, Message, NewSession, Role};

use crate::browser::browser;
use crate::harness::Server;

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_sessions_are_listed_a_page_at_a_time() {
    let server = Server::start().await;
    let tl = &server.tl;
    stream::iter(0..10_000)
        .map(|n| async move {
            tl.create(NewSession::named(&format!("session-{n:05}")).unwrap())
                .await
                .unwrap()
        })
        .buffer_unordered(256)
        .for_each(|_| async {})
        .await;
    let browser = browser!(server);
    browser.goto("/").await;
    browser.wait_for_text("10,000 sessions").await;
    let first = browser.count("#list a.row").await;
    assert!((50..=150).contains(&first), "{first}");

    for _ in 0..30 {
        browser
            .eval("scrollTo(0, document.body.scrollHeight); return 1")
            .await;
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    }
    browser
        .wait_until("return document.querySelectorAll('#list a.row').length >= 500")
        .await;
    assert!(browser.count("*").await < 10_000);
    assert_eq!(
        browser.count("#list a.row").await,
        500,
        "after that one turns pages"
    );
    let unique = browser.eval("return new Set([...document.querySelectorAll('#list li')].map((row) => row.dataset.id)).size").await;
    assert_eq!(unique, serde_json::json!(500));
    browser.click("[data-more]").await;
    browser.wait_until("return location.search.includes('after=') && document.querySelectorAll('#list a.row').length >= 50").await;

    browser.goto("/").await;
    browser.fill("#q", "session-00007").await;
    browser
        .wait_until("return document.querySelectorAll('#list a.row').length === 1")
        .await;
    browser.wait_for_text("session-00007").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_entries_are_read_a_page_at_a_time() {
    const ALL: usize = 100_000;
    let server = Server::start().await;
    let session = server
        .tl
        .create(NewSession::named("endless").unwrap())
        .await
        .unwrap();
    for start in (1..=ALL).step_by(5_000) {
        let entries = (start..start + 5_000)
            .map(|n| {
                let role = if n % 2 == 1 {
                    Role::User
                } else {
                    Role::Assistant
                };
                session.new_entry(Message::text(role, format!("message {n}")))
            })
            .collect();
        session
            .append_all(entries, Expect::Any, ConflictPolicy::Reject)
            .await
            .unwrap();
    }
    let id = session.id();
    let browser = browser!(server);
    browser.goto(&format!("/s/{id}")).await;
    browser.wait_for_text("message 100000").await;
    let first = browser.count("#entries [data-seq]").await;
    assert!((50..=150).contains(&first), "{first}");

    // Far back, with no more entries in the page than before.
    browser
        .wait_until("scrollTo(0, 0); return Math.min(...[...document.querySelectorAll('#entries [data-seq]')].map((entry) => Number(entry.dataset.seq))) < 99200")
        .await;
    let held = browser.count("#entries [data-seq]").await;
    assert!(held <= 300, "{held}");
    let dense = browser.eval("const all = [...document.querySelectorAll('#entries [data-seq]')].map((entry) => Number(entry.dataset.seq)); return all.every((seq, at) => at === 0 || seq === all[at - 1] + 1)").await;
    assert_eq!(
        dense,
        serde_json::json!(true),
        "no entry is skipped or doubled"
    );
    assert!(browser.count("*").await < 10_000);

    // And forward to the end.
    browser
        .wait_until(
            "scrollTo(0, document.body.scrollHeight); return document.querySelector('#e100000')",
        )
        .await;
    assert!(browser.count("#entries [data-seq]").await <= 300);

    browser.goto(&format!("/s/{id}/e/50000#e50000")).await;
    browser
        .wait_until("return document.activeElement?.id === 'e50000'")
        .await;
    assert!(browser.count("#entries [data-seq]").await <= 150);
    browser.goto(&format!("/s/{id}/status")).await;
    browser.wait_for_text("100,000").await;
    let requests = browser
        .eval("return performance.getEntriesByType('resource').length")
        .await;
    assert!(requests.as_u64().unwrap() < 20, "{requests}");
}
