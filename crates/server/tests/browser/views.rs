//! Content of the page's views.

use crate::browser::browser;
use crate::demo;
use crate::harness::Server;

#[tokio::test(flavor = "multi_thread")]
async fn every_view_of_a_session_shows_its_content() {
    let server = Server::start().await;
    let session = demo::fill_store(&server.tl).await;
    let id = session.id();
    let browser = browser!(server);

    browser.goto(&format!("/s/{id}")).await;
    browser
        .wait_until("return document.querySelector('.small-gauge')")
        .await;
    assert_eq!(
        browser.count("details.tool").await,
        2,
        "tool calls, with their results in them"
    );
    assert_eq!(browser.count("details.tool[open]").await, 0, "folded");
    browser.click("#e2 details.tool summary").await;
    browser.wait_until("return document.querySelector('#e2 pre.result').offsetParent && document.querySelector('#e2 pre.result').innerText.includes('Stack::new()')").await;
    assert_eq!(browser.count("#e4 pre code").await, 1);
    assert_eq!(browser.count("#e4 td").await, 6);
    assert_eq!(
        browser.count(".entry.covered").await,
        6,
        "beside the checkpoint that covers them"
    );
    browser.wait_until("return document.querySelector('#side').innerText.includes('Load test with 1,000 users')").await;

    let export = "const done = arguments[0]; Promise.all([...document.querySelectorAll('.actions a[download]')].map(async (link) => { const answer = await fetch(link.href); return [answer.status, (await answer.text()).includes('token bucket')]; })).then(done)";
    let exported = browser
        .client
        .execute_async(export, Vec::new())
        .await
        .unwrap();
    assert_eq!(
        exported,
        serde_json::json!([[200, true], [200, true], [200, true]])
    );

    browser.click(".tabs a[href$='/status']").await;
    browser
        .wait_until("return document.querySelectorAll('.card .gauge rect').length > 3")
        .await;
    assert_eq!(browser.count(".legend tbody tr").await, 7);
    assert_eq!(browser.count(".turns a rect.sent").await, 7, "a bar a turn");
    assert_eq!(browser.count(".turns circle.compacted").await, 1);
    assert_eq!(browser.count(".timeline li").await, 1);

    browser.click(".tabs a[href$='/request']").await;
    browser
        .wait_until("return document.querySelectorAll('details.section').length === 7")
        .await;
    browser.fill("#message", "is it done?").await;
    browser.click("form.card button").await;
    browser.wait_until("return [...document.querySelectorAll('details.section')].at(-1).innerText.includes('is it done?')").await;

    browser.click(".tabs a[href$='/lineage']").await;
    browser
        .wait_until("return document.querySelectorAll('.family li').length === 3")
        .await;
    assert_eq!(browser.count(".lineage path.branch").await, 2);

    browser.click(".tabs a[href$='/log']").await;
    browser
        .wait_until("return document.querySelectorAll('table.log tbody tr').length === 22")
        .await;
    assert_eq!(browser.console_errors().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn search_finds_while_typing_and_highlights_matches() {
    let server = Server::start().await;
    demo::fill_store(&server.tl).await;
    let browser = browser!(server);

    browser.goto("/").await;
    browser.fill("#q", "postgr").await;
    browser
        .wait_until("return document.querySelectorAll('#list a.row').length === 1")
        .await;
    browser.wait_for_text("postgres-upgrade").await;
    browser.fill("#q", "refresh token").await;
    browser
        .wait_until("return document.querySelector('#list mark')")
        .await;
    browser.wait_for_text("login-after-an-hour").await;

    browser.goto("/search").await;
    browser.fill("#q", "sorted set").await;
    browser.wait_until("return [...document.querySelectorAll('#results mark')].some((m) => m.innerText === 'sorted')").await;
    browser.click("#results a.row").await;
    browser
        .wait_until(
            "return /^#e\\d+$/.test(location.hash) && document.activeElement?.matches('.entry')",
        )
        .await;

    browser.goto("/?tag=auth").await;
    assert_eq!(browser.count("#list a.row").await, 1);
    browser.click(".chips a[aria-current]").await;
    browser
        .wait_until("return document.querySelectorAll('#list a.row').length > 5")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_is_added_accepted_and_forgotten() {
    let server = Server::start().await;
    demo::fill_store(&server.tl).await;
    let browser = browser!(server);
    browser.goto("/memory").await;
    browser.wait_for_text("Answer in British English").await;
    browser.fill("#text", "Releases are on Tuesdays").await;
    browser.click("button[value=add]").await;
    browser.wait_for_text("Remembered").await;
    browser.wait_for_text("Releases are on Tuesdays").await;

    browser.click("#project option:nth-child(2)").await;
    browser.wait_for_text("The limit is 100 requests").await;
    browser.click("button[value=accept]").await;
    browser.wait_for_text("Accepted").await;
    assert_eq!(browser.count("button[value=accept]").await, 0);
    let before = browser.count("ul.things > li").await;
    browser
        .click("main > ul.things li:first-child button[value=forget]")
        .await;
    browser.wait_for_text("Forgotten").await;
    browser.wait_for_text("no longer in effect").await;
    assert_eq!(browser.count("main > ul.things > li").await, before - 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_theme_can_be_switched_and_is_remembered() {
    let server = Server::start().await;
    let browser = browser!(server);
    browser.goto("/").await;
    let back = "return getComputedStyle(document.body).backgroundColor";
    let before = browser.eval(back).await;
    browser.click("[data-theme-switch]").await;
    let after = browser.eval(back).await;
    assert_ne!(before, after);
    browser.goto("/search").await;
    assert_eq!(browser.eval(back).await, after);
}
