//! `tl login` and `tl logout`

use std::io::{BufRead, IsTerminal, Write};

use anyhow::Result;
use serde_json::json;
use throughline::{BearerToken, ErrorKind, ServerUrl, StoreAddress};

use crate::app::App;
use crate::echo_guard::EchoGuard;
use crate::error_report::UserError;
use crate::logins::Logins;
use crate::markdown::sanitize;

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
    let server = resolve_server(app, args.server)?;
    let token = read_token(app, &server)?;
    let tl = app
        .open_at(&StoreAddress::Server(server.clone()), Some(token.clone()))
        .await?;
    Logins::read(&app.paths)?.save(&server, token)?;
    let owner = tl.owner();
    if app.ui.json {
        app.ui
            .json(&json!({"server": server.to_string(), "owner": owner}))?;
        return Ok(());
    }
    app.ui.status(format_args!(
        "Logged in to {server} as {}",
        sanitize(owner.as_str())
    ));
    if app.config.store() != server.to_string() {
        app.ui.status(format_args!(
            "`--store {server}` works there; `store = \"{server}\"` in {} always does.",
            app.paths.user_config.display()
        ));
    }
    Ok(())
}

pub(crate) fn run_logout(app: &App, args: LogoutArgs) -> Result<()> {
    let server = resolve_server(app, args.server)?;
    if !Logins::read(&app.paths)?.forget(&server)? {
        return Err(UserError {
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
fn resolve_server(app: &App, named: Option<ServerUrl>) -> Result<ServerUrl> {
    match (named, app.config.store().parse()?) {
        (Some(server), _) | (None, StoreAddress::Server(server)) => Ok(server),
        (None, _) => Err(UserError::invalid("the store is not on a server")
            .with_hint("name the server: `tl login https://tl.example.org`")
            .into()),
    }
}

/// A token, which is not shown while it is typed.
fn read_token(app: &App, server: &ServerUrl) -> Result<BearerToken> {
    let stdin = std::io::stdin();
    let mut line = String::new();
    if stdin.is_terminal() {
        if cfg!(not(unix)) {
            return Err(UserError::invalid("it would be shown while you type it")
                .with_hint("`tl login` reads the token from a pipe as well")
                .into());
        }
        let hush = EchoGuard::begin();
        eprint!("Token for {server}: ");
        std::io::stderr().flush()?;
        stdin.lock().read_line(&mut line)?;
        drop(hush);
        app.ui.status("");
    } else {
        stdin.lock().read_line(&mut line)?;
    }
    BearerToken::new(&line).ok_or_else(|| {
        UserError::invalid("that cannot be a token")
            .with_hint("`tl token create --user NAME` on the server makes one")
            .into()
    })
}
