//! Session actions through the web page.

use serde_json::json;
use throughline::{Message, NewSession, Role};

use crate::browser::{Browser, browser};
use crate::demo;
use crate::harness::Server;
use crate::live_updates;

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_created_renamed_tagged_pinned_archived_deleted_and_restored() {
    let server = Server::start().await;
    let browser = browser!(server);
    browser.goto("/").await;
    browser.wait_for_text("No sessions yet").await;

    browser.click("form[action='/new'] button").await;
    browser.wait_for_text("No messages yet").await;
    browser.fill("#message", "How do we store sessions?").await;
    browser.click("#composer button[type=submit]").await;
    browser
        .wait_until("return document.querySelectorAll('.entry.assistant:not(.live)').length")
        .await;

    choose_action(&browser, "rename").await;
    browser.fill("#name", "Storing Sessions!").await;
    browser.click("form.stack button").await;
    browser.wait_for_text("storing-sessions").await;

    choose_action(&browser, "tags").await;
    browser.fill("#tags", "db design").await;
    browser.click("form.stack button").await;
    browser
        .wait_until("return document.querySelectorAll('.session-head .tag').length === 2")
        .await;

    choose_action(&browser, "pin").await;
    browser
        .fill("#text", "Everything is appended, nothing changed")
        .await;
    browser.click("form.stack button").await;
    browser
        .wait_until("return document.querySelector('.pins')?.innerText.includes('appended')")
        .await;
    browser.click(".pins button").await;
    browser.wait_for_text("No pins").await;

    choose_action(&browser, "archive").await;
    browser.wait_for_text("archived").await;
    browser.goto("/").await;
    browser.wait_for_text("No sessions yet").await;
    browser.click(".segments a[href='/?status=archived']").await;
    browser.click("a.row").await;
    choose_action(&browser, "unarchive").await;
    browser.wait_for_text("Unarchived").await;

    choose_action(&browser, "trash").await;
    browser.wait_for_text("Moved to the trash").await;
    browser.click(".top nav a[href='/trash']").await;
    browser.click("form[action$='/restore'] button").await;
    browser.wait_for_text("Restored").await;
    assert_eq!(browser.console_errors().await, Vec::<String>::new());
}

/// Chooses an action from a session's menu.
async fn choose_action(browser: &Browser, what: &str) {
    browser.click(".menu.actions summary").await;
    browser
        .click(&format!(
            ".menu.actions a[href$='/{what}'], .menu.actions form[action$='/{what}'] button"
        ))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_is_created_at_a_message_and_merged_back() {
    let server = Server::start().await;
    let id = server.create_session(&["one", "two", "three"]).await;
    let browser = browser!(server);
    browser.goto(&format!("/s/{id}")).await;

    browser.click("#e2 .menu summary").await;
    browser.click("#e2 .menu a[href*='fork']").await;
    browser.fill("#name", "aside").await;
    browser.click("form.stack button").await;
    browser.wait_for_text("This is the new fork").await;
    assert_eq!(browser.count("#entries .entry").await, 2);

    browser.fill("#message", "something else").await;
    browser.click("#composer button[type=submit]").await;
    browser
        .wait_until("return document.querySelectorAll('.entry.assistant:not(.live)').length")
        .await;
    choose_action(&browser, "merge").await;
    browser.click("form.stack button").await;
    browser.wait_for_text("Merged").await;
    assert!(
        browser
            .current_path()
            .await
            .starts_with(&format!("/s/{id}?")),
        "{}",
        browser.current_path().await
    );
    browser.wait_for_text("something else").await;
    assert_eq!(browser.count("#entries .entry").await, 5);

    browser.click(".tabs a[href$='/lineage']").await;
    browser
        .wait_until("return document.querySelectorAll('.family li').length === 2")
        .await;
    assert_eq!(browser.count(".lineage circle").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn compaction_can_be_undone_and_cleared_messages_remain_readable() {
    let (server, _model) = live_updates::start_with_reply("Noted.", 0).await;
    let long: Vec<String> = (0..30)
        .map(|n| {
            format!(
                "Task {n}: we decided to move part {n}. {}",
                "It takes a while. ".repeat(20)
            )
        })
        .collect();
    let texts: Vec<&str> = long.iter().map(String::as_str).collect();
    let id = server.create_session(&texts).await;
    let browser = browser!(server);
    browser.goto(&format!("/s/{id}")).await;
    choose_action(&browser, "compact").await;
    browser
        .wait_for_text("Compacted: earlier messages are summarized")
        .await;
    browser
        .wait_until("return document.querySelector('section.checkpoint .badge')")
        .await;
    assert!(browser.count(".entry.covered").await > 0);

    choose_action(&browser, "undo").await;
    browser.wait_for_text("Undid the last compaction").await;
    assert_eq!(browser.count(".entry.covered").await, 0);

    choose_action(&browser, "clear").await;
    browser.wait_for_text("Context cleared").await;
    assert_eq!(
        browser.count(".entry.unseen").await,
        browser.count("#entries .entry").await
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn links_open_an_entry_and_the_back_button_works() {
    let server = Server::start().await;
    let session = server
        .tl
        .create(NewSession::named("long").unwrap())
        .await
        .unwrap();
    for n in 1..=200 {
        session
            .append(Message::text(Role::User, format!("word{n}")))
            .await
            .unwrap();
    }
    let browser = browser!(server);
    let id = session.id();

    browser.goto(&format!("/s/{id}#e70")).await;
    browser
        .wait_until("return document.activeElement?.id === 'e70'")
        .await;
    assert_eq!(browser.current_path().await, format!("/s/{id}/e/70#e70"));

    browser.goto("/").await;
    browser.click("a.row").await;
    browser
        .wait_until("return document.querySelector('#e200')")
        .await;
    browser.click("#e200 a.num").await;
    browser
        .wait_until(&format!("return location.pathname === '/s/{id}/e/200'"))
        .await;
    browser.client.back().await.unwrap();
    browser
        .wait_until(&format!("return location.pathname === '/s/{id}'"))
        .await;
    browser.client.back().await.unwrap();
    browser
        .wait_until("return location.pathname === '/' && document.querySelector('a.row')")
        .await;

    browser.goto(&format!("/s/{id}/e/999")).await;
    browser.wait_for_text("404").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_works_without_scripts() {
    let server = Server::start().await;
    demo::fill_store(&server.tl).await;
    let Some(browser) = Browser::open(&server.url, false).await else {
        return;
    };
    browser.goto("/").await;
    browser.fill("#q", "token bucket").await;
    browser.click("[data-filter] button").await;
    browser.click("a.row").await;
    browser.fill("#message", "hello there").await;
    browser.click("#composer button[type=submit]").await;
    browser.click("article.assistant a.num").await;
    let source = browser.client.source().await.unwrap();
    assert!(source.contains("hello there"), "{source}");
    browser.click(".menu.actions summary").await;
    browser.click(".menu.actions a[href$='/rename']").await;
    browser.fill("#name", "plain").await;
    browser.click("form.stack button").await;
    browser.click("p.flash").await;
    let card = server
        .tl
        .list(&throughline::SessionFilter::default(), None, 1)
        .await
        .unwrap();
    assert_eq!(json!(card.items[0].name.as_ref().unwrap()), json!("plain"));
}
