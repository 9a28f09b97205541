//! `tl login` and `tl logout`

use std::io::{BufRead, IsTerminal, Write};

use anyhow::Result;
use serde_json::json;
use throughline::{Address, ErrorKind, ServerUrl, TokenText};

use crate::app::App;
use crate::hush::Hush;
use crate::logins::Logins;
use crate::markdown::safe;
use crate::report::Refusal;

/// Keep a token for a server
///
/// Asks for the token, or reads it from a pipe, tries it, and keeps it in a file of your own
/// (tokens.toml beside your config.toml). `tl --store https://…`, or `store = "https://…"`
/// in your config.toml, then works on the sessions you have there. $TL_TOKEN is used instead
/// where it is set.
#[derive(clap::Args, Debug)]
pub(crate) struct LoginArgs {
    /// The server's address [default: the store]
    server: Option<ServerUrl>,
}

/// Forget the token for a server
///
/// It goes on being good: `tl token revoke` on the server takes it back.
#[derive(clap::Args, Debug)]
pub(crate) struct LogoutArgs {
    /// The server's address [default: the store]
    server: Option<ServerUrl>,
}

pub(crate) async fn run_login(app: &App, args: LoginArgs) -> Result<()> {
    let server = meant(app, args.server)?;
    let token = ask(app, &server)?;
    let tl = app
        .open_at(&Address::Server(server.clone()), Some(token.clone()))
        .await?;
    Logins::read(&app.places)?.keep(&server, token)?;
    let owner = tl.owner();
    if app.ui.json {
        app.ui
            .json(&json!({"server": server.to_string(), "owner": owner}))?;
        return Ok(());
    }
    app.ui.status(format_args!(
        "Logged in to {server} as {}",
        safe(owner.as_str())
    ));
    if app.config.store() != server.to_string() {
        app.ui.status(format_args!(
            "`--store {server}` works there; `store = \"{server}\"` in {} always does.",
            app.places.user_config.display()
        ));
    }
    Ok(())
}

pub(crate) fn run_logout(app: &App, args: LogoutArgs) -> Result<()> {
    let server = meant(app, args.server)?;
    if !Logins::read(&app.places)?.forget(&server)? {
        return Err(Refusal {
            what: format!("there is no token for {server}"),
            hint: None,
            kind: ErrorKind::NotFound,
        }
        .into());
    }
    if app.ui.json {
        app.ui.json(&json!({"server": server.to_string()}))?;
    } else {
        app.ui.status(format_args!("Forgot the token for {server}"));
    }
    Ok(())
}

/// The server that was named, or that is the store.
fn meant(app: &App, named: Option<ServerUrl>) -> Result<ServerUrl> {
    match (named, app.config.store().parse()?) {
        (Some(server), _) | (None, Address::Server(server)) => Ok(server),
        (None, _) => Err(Refusal::invalid("the store is not on a server")
            .hint("name the server: `tl login https://tl.example.org`")
            .into()),
    }
}

/// A token, which is not shown while it is typed.
fn ask(app: &App, server: &ServerUrl) -> Result<TokenText> {
    let stdin = std::io::stdin();
    let mut line = String::new();
    if stdin.is_terminal() {
        if cfg!(not(unix)) {
            return Err(Refusal::invalid("it would be shown while you type it")
                .hint("`tl login` reads the token from a pipe as well")
                .into());
        }
        let hush = Hush::begin();
        eprint!("Token for {server}: ");
        std::io::stderr().flush()?;
        stdin.lock().read_line(&mut line)?;
        drop(hush);
        app.ui.status("");
    } else {
        stdin.lock().read_line(&mut line)?;
    }
    TokenText::new(&line).ok_or_else(|| {
        Refusal::invalid("that cannot be a token")
            .hint("`tl token create --user NAME` on the server makes one")
            .into()
    })
}
