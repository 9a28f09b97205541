//! Coming in with a token.

use throughline::TokenRole;

use crate::browser::browser;
use crate::harness::Server;

#[tokio::test(flavor = "multi_thread")]
async fn one_comes_in_with_a_token_and_sees_ones_own_sessions_only() {
    let server = Server::guarded().await;
    let alice = server.token("alice", TokenRole::User).await;
    let bob = server.token("bob", TokenRole::User).await;
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

    browser.go(&format!("/s/{}", hers.id())).await;
    assert!(
        browser.place().await.starts_with("/login?next="),
        "{}",
        browser.place().await
    );
    browser.write("#token", "tl_nothing").await;
    browser.click("form.stack button").await;
    browser.until_said("not known here").await;
    browser.write("#token", &alice).await;
    browser.click("form.stack button").await;
    browser.until_said("Nothing said yet").await;
    assert_eq!(browser.place().await, format!("/s/{}", hers.id()));
    assert_eq!(
        browser.js("return document.cookie").await,
        "",
        "no script sees the token"
    );

    // Changes by cookie work from the page itself.
    browser.write("#message", "hello").await;
    browser.click("#composer button[type=submit]").await;
    browser
        .until("return document.querySelectorAll('.entry').length === 2")
        .await;
    browser.go(&format!("/s/{}/rename", hers.id())).await;
    browser.write("#name", "hers").await;
    browser.click("form.stack button").await;
    browser.until_said("Renamed").await;

    browser.go(&format!("/s/{}", his.id())).await;
    browser.until_said("404").await;
    browser.go("/admin").await;
    browser.until_said("403").await;
    assert_eq!(browser.count("nav a[href='/admin']").await, 0);

    browser.go("/").await;
    assert_eq!(browser.count("a.row").await, 1);
    browser.click("form[action='/logout'] button").await;
    browser.until("return location.pathname === '/login'").await;
    browser.go("/").await;
    assert!(browser.place().await.starts_with("/login"));
    browser.write("#token", &bob).await;
    browser.click("form.stack button").await;
    browser
        .until(&format!(
            "return document.querySelector('li[data-id=\"{}\"]')",
            his.id()
        ))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_makes_a_token_and_takes_it_back() {
    let server = Server::guarded().await;
    let admin = server.token("root", TokenRole::Admin).await;
    let browser = browser!(server);
    browser.go("/admin").await;
    browser.write("#token", &admin).await;
    browser.click("form.stack button").await;
    browser.write("#user", "carol").await;
    browser.write("#label", "her phone").await;
    browser.click("button[value=make]").await;
    let made = browser
        .until("return document.querySelector('#made')?.textContent")
        .await;
    let made = made.as_str().unwrap().to_owned();
    assert!(
        server
            .tl
            .token(&made)
            .await
            .unwrap()
            .unwrap()
            .is_good(server.tl.now())
    );
    browser.until_said("her phone").await;
    browser.go("/admin").await;
    browser.until_said("carol").await;
    assert!(
        !browser.client.source().await.unwrap().contains(&made),
        "it is shown once"
    );

    let row =
        "[...document.querySelectorAll('tr')].find((row) => row.innerText.includes('her phone'))";
    browser
        .js(&format!("{row}.querySelector('button').click(); return 1"))
        .await;
    browser.until_said("The token was taken back").await;
    assert!(
        !server
            .tl
            .token(&made)
            .await
            .unwrap()
            .unwrap()
            .is_good(server.tl.now())
    );
}
