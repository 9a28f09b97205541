//! Login with a token.

use throughline::TokenRole;

use crate::browser::browser;
use crate::harness::Server;

#[tokio::test(flavor = "multi_thread")]
async fn login_with_a_token_shows_only_own_sessions() {
    let server = Server::start_with_tokens().await;
    let alice = server.create_token("alice", TokenRole::User).await;
    let bob = server.create_token("bob", TokenRole::User).await;
    let session = |owner: &str| {
        let tl = server.tl.on_behalf_of(owner.parse().unwrap());
        async move {
            tl.create(throughline::NewSession::named("mine").unwrap())
                .await
                .unwrap()
        }
    };
    let hers = session("alice").await;
    let his = session("bob").await;
    let browser = browser!(server);

    browser.goto(&format!("/s/{}", hers.id())).await;
    assert!(
        browser.current_path().await.starts_with("/login?next="),
        "{}",
        browser.current_path().await
    );
    browser.fill("#token", "tl_nothing").await;
    browser.click("form.stack button").await;
    browser.wait_for_text("unknown, expired or revoked").await;
    browser.fill("#token", &alice).await;
    browser.click("form.stack button").await;
    browser.wait_for_text("No messages yet").await;
    assert_eq!(browser.current_path().await, format!("/s/{}", hers.id()));
    assert_eq!(
        browser.eval("return document.cookie").await,
        "",
        "no script sees the token"
    );

    // Changes with a cookie work from the page itself.
    browser.fill("#message", "hello").await;
    browser.click("#composer button[type=submit]").await;
    browser
        .wait_until("return document.querySelectorAll('.entry').length === 2")
        .await;
    browser.goto(&format!("/s/{}/rename", hers.id())).await;
    browser.fill("#name", "hers").await;
    browser.click("form.stack button").await;
    browser.wait_for_text("Renamed").await;

    browser.goto(&format!("/s/{}", his.id())).await;
    browser.wait_for_text("404").await;
    browser.goto("/admin").await;
    browser.wait_for_text("403").await;
    assert_eq!(browser.count("nav a[href='/admin']").await, 0);

    browser.goto("/").await;
    assert_eq!(browser.count("a.row").await, 1);
    browser.click("form[action='/logout'] button").await;
    browser
        .wait_until("return location.pathname === '/login'")
        .await;
    browser.goto("/").await;
    assert!(browser.current_path().await.starts_with("/login"));
    browser.fill("#token", &bob).await;
    browser.click("form.stack button").await;
    browser
        .wait_until(&format!(
            "return document.querySelector('li[data-id=\"{}\"]')",
            his.id()
        ))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_creates_and_revokes_a_token() {
    let server = Server::start_with_tokens().await;
    let admin = server.create_token("root", TokenRole::Admin).await;
    let browser = browser!(server);
    browser.goto("/admin").await;
    browser.fill("#token", &admin).await;
    browser.click("form.stack button").await;
    browser.fill("#user", "carol").await;
    browser.fill("#label", "her phone").await;
    browser.click("button[value=make]").await;
    let made = browser
        .wait_until("return document.querySelector('#made')?.textContent")
        .await;
    let made = made.as_str().unwrap().to_owned();
    assert!(
        server
            .tl
            .token(&made)
            .await
            .unwrap()
            .unwrap()
            .is_valid(server.tl.now())
    );
    browser.wait_for_text("her phone").await;
    browser.goto("/admin").await;
    browser.wait_for_text("carol").await;
    assert!(
        !browser.client.source().await.unwrap().contains(&made),
        "it is shown once"
    );

    let row =
        "[...document.querySelectorAll('tr')].find((row) => row.innerText.includes('her phone'))";
    browser
        .eval(&format!("{row}.querySelector('button').click(); return 1"))
        .await;
    browser.wait_for_text("Token revoked").await;
    assert!(
        !server
            .tl
            .token(&made)
            .await
            .unwrap()
            .unwrap()
            .is_valid(server.tl.now())
    );
}
