//! Keyboard navigation and accessibility.

use fantoccini::key::Key;

use crate::browser::browser;
use crate::demo;
use crate::harness::Server;

fn key(key: Key) -> String {
    char::from(key).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_can_be_used_by_keyboard_alone() {
    let server = Server::start().await;
    demo::fill_store(&server.tl).await;
    let browser = browser!(server);
    browser.goto("/").await;
    browser.type_keys(&key(Key::Tab)).await;
    browser
        .wait_until("return document.activeElement.className === 'skip'")
        .await;

    browser.type_keys("jjk").await;
    browser
        .wait_until("return document.activeElement === document.querySelector('a.row')")
        .await;
    browser.type_keys("/").await;
    browser
        .wait_until("return document.activeElement.id === 'q'")
        .await;
    browser.type_keys("welcome").await;
    browser
        .wait_until("return document.querySelectorAll('#list a.row').length === 1")
        .await;
    browser.type_keys(&key(Key::Down)).await;
    browser
        .wait_until("return document.activeElement.matches('a.row')")
        .await;
    browser.type_keys(&key(Key::Enter)).await;
    browser
        .wait_until(
            "return location.pathname.startsWith('/s/') && document.querySelector('#composer')",
        )
        .await;

    browser.type_keys("c").await;
    browser
        .wait_until("return document.activeElement.id === 'message'")
        .await;
    browser.type_keys("shorter").await;
    browser.type_keys(&key(Key::Enter)).await;
    browser
        .wait_until("return document.querySelectorAll('.entry.assistant:not(.live)').length === 2")
        .await;
    browser
        .wait_until("return document.querySelector('#message').value === ''")
        .await;
    browser.type_keys(&key(Key::Escape)).await;
    browser.type_keys("k").await;
    browser
        .wait_until("return document.activeElement.matches('.entry')")
        .await;

    browser.type_keys("?").await;
    browser
        .wait_until("return document.querySelector('dialog').open")
        .await;
    browser.type_keys(&key(Key::Escape)).await;
    browser
        .wait_until("return !document.querySelector('dialog').open")
        .await;
    browser.type_keys("gm").await;
    browser
        .wait_until("return location.pathname === '/memory'")
        .await;
}

/// Accessibility audit for screen readers: landmarks, one heading, a name for every control.
const AUDIT: &str = r"
const wrong = [];
const named = (thing) => thing.textContent.trim() || thing.getAttribute('aria-label') || thing.title || thing.querySelector('title')?.textContent;
if (document.querySelectorAll('main').length !== 1) wrong.push('main');
if (document.querySelectorAll('h1').length !== 1) wrong.push('h1');
if (!document.documentElement.lang) wrong.push('lang');
for (const nav of document.querySelectorAll('nav')) if (!nav.getAttribute('aria-label')) wrong.push('nav without a name');
for (const field of document.querySelectorAll('input:not([type=hidden]), select, textarea'))
  if (!field.closest('.md') && field.labels.length === 0 && !field.getAttribute('aria-label')) wrong.push('field ' + field.outerHTML);
for (const thing of document.querySelectorAll('a, button, summary')) if (!named(thing) && thing.offsetParent) wrong.push('nameless ' + thing.outerHTML);
for (const picture of document.querySelectorAll('svg')) if (picture.getAttribute('role') !== 'img' && picture.getAttribute('aria-hidden') !== 'true') wrong.push('picture');
const ids = [...document.querySelectorAll('[id]')].map((thing) => thing.id);
if (new Set(ids).size !== ids.length) wrong.push('ids twice');
if (document.documentElement.scrollWidth > innerWidth + 1) wrong.push('wider than the window: ' + document.documentElement.scrollWidth);
return wrong";

#[tokio::test(flavor = "multi_thread")]
async fn every_page_is_accessible_and_fits_a_phone() {
    let server = Server::start().await;
    let id = demo::fill_store(&server.tl).await.id().to_string();
    let browser = browser!(server);
    for width in [1280, 390] {
        browser.client.set_window_size(width, 844).await.unwrap();
        for path in [
            "/",
            "/?q=redis",
            "/search?q=redis",
            "/memory",
            "/events",
            "/trash",
            "/admin",
            "/s/ID",
            "/s/ID/e/4",
            "/s/ID/status",
            "/s/ID/request",
            "/s/ID/lineage",
            "/s/ID/log",
            "/s/ID/rename",
            "/s/ID/fork",
            "/s/ID/merge",
            "/s/ID/tags",
            "/s/ID/pin?from=4",
            "/s/ID/rewind?to=4",
            "/s/no-such-session",
        ] {
            browser.goto(&path.replace("ID", &id)).await;
            let wrong = browser.eval(AUDIT).await;
            let page = browser.eval("return document.body.innerText").await;
            assert_eq!(wrong, serde_json::json!([]), "{path} at {width}: {page}");
        }
    }
}
