//! Live updates appear in every window.

use std::sync::Arc;
use std::time::Duration;

use throughline_mock_provider::{MockProvider, Reply, Script};

use crate::browser::browser;
use crate::demo::MockResponderRegistry;
use crate::harness::{Server, ServerOptions};

/// Starts a server whose model streams this reply word by word.
pub(crate) async fn start_with_reply(text: &str, pause: u64) -> (Server, MockProvider) {
    let reply = Reply::text(text).with_delay(Duration::from_millis(pause));
    let mock = MockProvider::start(Script::from_fn(move |_| reply.clone())).unwrap();
    let voices = Arc::new(MockResponderRegistry::new(&mock));
    let options = ServerOptions {
        responders: voices,
        ..ServerOptions::default()
    };
    (Server::start_with(options).await, mock)
}

const LONG: &str = "It is **kept** the moment it is said, and everything else can be made again from what was said; so it is safe to look away for a while and come back.";

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_streams_in_two_windows_and_ends_as_markup() {
    let (server, _model) = start_with_reply(LONG, 120).await;
    let id = server.create_session(&[]).await;
    let browser = browser!(server);
    browser.goto(&format!("/s/{id}")).await;
    let windows = browser.second_window().await;
    browser.goto(&format!("/s/{id}")).await;
    browser.switch(&windows[0]).await;

    browser.fill("#message", "Is it safe?").await;
    browser.click("#composer button[type=submit]").await;
    let part = "const words = document.querySelector('#live .words')?.textContent; return words?.length > 20 && !words.includes('come back') && words";
    browser.wait_until(part).await;
    browser.switch(&windows[1]).await;
    let seen = browser.wait_until(part).await;
    assert!(
        seen.as_str().unwrap().starts_with("It is **kept**"),
        "from its start: {seen}"
    );

    for window in &windows {
        browser.switch(window).await;
        browser.wait_until("return !document.querySelector('#live') && document.querySelector('.entry.assistant strong')?.innerText === 'kept'").await;
        browser.wait_for_text("Is it safe?").await;
        assert_eq!(browser.count("#entries .entry").await, 2);
        assert_eq!(browser.console_errors().await, Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_opened_during_an_answer_shows_all_of_it_and_can_stop_it() {
    let (server, _model) = start_with_reply(LONG, 400).await;
    let id = server.create_session(&[]).await;
    let browser = browser!(server);
    browser.goto(&format!("/s/{id}")).await;
    browser.fill("#message", "Is it safe?").await;
    browser.click("#composer button[type=submit]").await;
    browser
        .wait_until("return document.querySelector('#live .words')?.textContent")
        .await;

    browser.goto(&format!("/s/{id}")).await;
    browser
        .wait_until(
            "return document.querySelector('#live .words')?.textContent.startsWith('It is')",
        )
        .await;
    browser.click("#stop").await;
    browser
        .wait_until("return document.querySelector('.entry.assistant:not(.live) .cut')")
        .await;
    let stored = browser
        .eval("return document.querySelector('.entry.assistant').innerText")
        .await;
    assert!(!stored.as_str().unwrap().contains("come back"), "{stored}");
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_by_others_appear_in_the_list_and_events() {
    let server = Server::start().await;
    let first = server.create_session(&["the first"]).await;
    server.create_session(&["the second"]).await;
    let browser = browser!(server);
    browser.goto("/").await;
    browser
        .wait_until("return document.querySelectorAll('#list a.row').length === 2")
        .await;
    assert!(
        browser
            .eval("return document.querySelector('#list a.row').innerText")
            .await
            .as_str()
            .unwrap()
            .contains("second")
    );
    let windows = browser.second_window().await;
    browser.goto("/events").await;
    browser
        .wait_until("return document.querySelector('#state').innerText === 'Live'")
        .await;

    server.post_message(&first, "again").await;
    server.create_session(&["the third"]).await;
    browser
        .wait_until("return document.querySelector('#events').innerText.includes('message_added')")
        .await;
    browser.fill("#filter", "created").await;
    browser.wait_until("return [...document.querySelectorAll('#events tbody tr')].filter((row) => !row.hidden).length === 1").await;

    browser.switch(&windows[0]).await;
    browser.wait_until("const rows = [...document.querySelectorAll('#list a.row')].map((row) => row.innerText); return rows.length === 3 && rows[0].includes('third') && rows[1].includes('first')").await;
    server.tl.trash(&first.parse().unwrap()).await.unwrap();
    browser
        .wait_until("return document.querySelectorAll('#list a.row').length === 2")
        .await;
}
