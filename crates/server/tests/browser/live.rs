//! What happens shows as it happens, in every window.

use std::sync::Arc;
use std::time::Duration;

use throughline_stand_in::{Reply, Script, StandIn};

use crate::browser::browser;
use crate::demo::StandInVoices;
use crate::harness::{Server, Wish};

/// A server whose model says this, a word at a time.
pub(crate) async fn talking(text: &str, pause: u64) -> (Server, StandIn) {
    let reply = Reply::text(text).slowly(Duration::from_millis(pause));
    let stand_in = StandIn::start(Script::by(move |_| reply.clone())).unwrap();
    let voices = Arc::new(StandInVoices::new(&stand_in));
    let wish = Wish {
        voices,
        ..Wish::default()
    };
    (Server::with(wish).await, stand_in)
}

const LONG: &str = "It is **kept** the moment it is said, and everything else can be made again from what was said; so it is safe to look away for a while and come back.";

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_streams_in_two_windows_and_ends_as_markup() {
    let (server, _model) = talking(LONG, 120).await;
    let id = server.session(&[]).await;
    let browser = browser!(server);
    browser.go(&format!("/s/{id}")).await;
    let windows = browser.second_window().await;
    browser.go(&format!("/s/{id}")).await;
    browser.switch(&windows[0]).await;

    browser.write("#message", "Is it safe?").await;
    browser.click("#composer button[type=submit]").await;
    let part = "const words = document.querySelector('#live .words')?.textContent; return words?.length > 20 && !words.includes('come back') && words";
    browser.until(part).await;
    browser.switch(&windows[1]).await;
    let seen = browser.until(part).await;
    assert!(
        seen.as_str().unwrap().starts_with("It is **kept**"),
        "from its start: {seen}"
    );

    for window in &windows {
        browser.switch(window).await;
        browser.until("return !document.querySelector('#live') && document.querySelector('.entry.assistant strong')?.innerText === 'kept'").await;
        browser.until_said("Is it safe?").await;
        assert_eq!(browser.count("#entries .entry").await, 2);
        assert_eq!(browser.complaints().await, Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_opened_amid_an_answer_shows_it_from_its_start_and_can_stop_it() {
    let (server, _model) = talking(LONG, 400).await;
    let id = server.session(&[]).await;
    let browser = browser!(server);
    browser.go(&format!("/s/{id}")).await;
    browser.write("#message", "Is it safe?").await;
    browser.click("#composer button[type=submit]").await;
    browser
        .until("return document.querySelector('#live .words')?.textContent")
        .await;

    browser.go(&format!("/s/{id}")).await;
    browser
        .until("return document.querySelector('#live .words')?.textContent.startsWith('It is')")
        .await;
    browser.click("#stop").await;
    browser
        .until("return document.querySelector('.entry.assistant:not(.live) .cut')")
        .await;
    let kept = browser
        .js("return document.querySelector('.entry.assistant').innerText")
        .await;
    assert!(!kept.as_str().unwrap().contains("come back"), "{kept}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_elsewhere_shows_in_the_list_and_in_the_events() {
    let server = Server::start().await;
    let first = server.session(&["the first"]).await;
    server.session(&["the second"]).await;
    let browser = browser!(server);
    browser.go("/").await;
    browser
        .until("return document.querySelectorAll('#list a.row').length === 2")
        .await;
    assert!(
        browser
            .js("return document.querySelector('#list a.row').innerText")
            .await
            .as_str()
            .unwrap()
            .contains("second")
    );
    let windows = browser.second_window().await;
    browser.go("/events").await;
    browser
        .until("return document.querySelector('#state').innerText === 'live'")
        .await;

    server.say(&first, "again").await;
    server.session(&["the third"]).await;
    browser
        .until("return document.querySelector('#events').innerText.includes('message_added')")
        .await;
    browser.write("#filter", "created").await;
    browser.until("return [...document.querySelectorAll('#events tbody tr')].filter((row) => !row.hidden).length === 1").await;

    browser.switch(&windows[0]).await;
    browser.until("const rows = [...document.querySelectorAll('#list a.row')].map((row) => row.innerText); return rows.length === 3 && rows[0].includes('third') && rows[1].includes('first')").await;
    server.tl.trash(&first.parse().unwrap()).await.unwrap();
    browser
        .until("return document.querySelectorAll('#list a.row').length === 2")
        .await;
}
