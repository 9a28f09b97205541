//! `tl login` and `tl logout`: store and remove access tokens for servers.

use std::io::{BufRead, IsTerminal, Write};

use anyhow::Result;
use serde_json::json;
use throughline::{BearerToken, ErrorKind, ServerUrl, StoreAddress};

use crate::app::App;
use crate::echo_guard::EchoGuard;
use crate::error_report::UserError;
use crate::logins::Logins;
use crate::markdown::sanitize;

/// Save an access token for a server
///
/// Prompts for the token, or reads it from a pipe, verifies it, and saves it in tokens.toml
/// beside your config.toml. `tl --store https://…`, or `store = "https://…"` in your
/// config.toml, then uses your sessions on that server. $TL_TOKEN takes precedence if set.
#[derive(clap::Args, Debug)]
pub(crate) struct LoginArgs {
    /// The server's address [default: the store]
    server: Option<ServerUrl>,
}

/// Remove the access token for a server
///
/// The token stays valid: `tl token revoke` on the server revokes it.
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
            "Use `--store {server}`, or set `store = \"{server}\"` in {}.",
            app.paths.user_config.display()
        ));
    }
    Ok(())
}

pub(crate) fn run_logout(app: &App, args: LogoutArgs) -> Result<()> {
    let server = resolve_server(app, args.server)?;
    if !Logins::read(&app.paths)?.forget(&server)? {
        return Err(UserError {
            what: format!("no token for {server}"),
            hint: None,
            kind: ErrorKind::NotFound,
        }
        .into());
    }
    if app.ui.json {
        app.ui.json(&json!({"server": server.to_string()}))?;
    } else {
        app.ui
            .status(format_args!("Removed the token for {server}"));
    }
    Ok(())
}

/// Returns the named server, or the one that is the store.
fn resolve_server(app: &App, named: Option<ServerUrl>) -> Result<ServerUrl> {
    match (named, app.config.store().parse()?) {
        (Some(server), _) | (None, StoreAddress::Server(server)) => Ok(server),
        (None, _) => Err(UserError::invalid("the store is not on a server")
            .with_hint("name the server: `tl login https://tl.example.org`")
            .into()),
    }
}

/// Reads a token without echoing it.
fn read_token(app: &App, server: &ServerUrl) -> Result<BearerToken> {
    let stdin = std::io::stdin();
    let mut line = String::new();
    if stdin.is_terminal() {
        if cfg!(not(unix)) {
            return Err(
                UserError::invalid("the token would be visible while you type it")
                    .with_hint("pipe the token into `tl login` instead")
                    .into(),
            );
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
        UserError::invalid("this is not a valid token")
            .with_hint("`tl token create --user NAME` on the server creates one")
            .into()
    })
}
