//! `tl token`: creates, lists and revokes access tokens of a server.

use anyhow::Result;
use serde_json::json;
use throughline::{ApiToken, NewToken, Owner, Timestamp, TokenId, TokenRole};

use crate::app::App;
use crate::markdown::sanitize;
use crate::time::{format_time, parse_duration};
use crate::ui::Table;

/// Manage access tokens of a server
///
/// A token authenticates one user to `tl serve`. A service token may also act for the users
/// of its bot (`On-Behalf-Of: NAME`), who belong to that service only; an admin token may
/// create and revoke tokens. Only a hash of a token is stored.
#[derive(clap::Args, Debug)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(clap::Subcommand, Debug)]
enum TokenCommand {
    Create(CreateArgs),
    /// List all tokens
    List,
    Revoke(RevokeArgs),
}

/// Create a token; it is shown only once
#[derive(clap::Args, Debug)]
struct CreateArgs {
    /// The user it belongs to
    #[arg(long, value_name = "NAME")]
    user: Owner,
    /// Its role: user, service or admin
    #[arg(long, default_value = "user")]
    role: TokenRole,
    /// How long it is valid: 30d, 12h [default: forever]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    expires: Option<jiff::SignedDuration>,
    /// A description of its use
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
}

/// Revoke a token
#[derive(clap::Args, Debug)]
struct RevokeArgs {
    /// Its id, as shown by `tl token list`
    token: TokenId,
}

impl TokenArgs {
    /// Returns whether the command only reads.
    pub(super) fn is_read_only(&self) -> bool {
        matches!(self.command, TokenCommand::List)
    }
}

pub(crate) async fn run(app: &App, args: TokenArgs) -> Result<()> {
    match args.command {
        TokenCommand::Create(args) => create(app, args).await,
        TokenCommand::List => list(app).await,
        TokenCommand::Revoke(args) => revoke(app, &args).await,
    }
}

/// Converts a token to JSON, without its secret.
fn token_to_json(token: &ApiToken, now: Timestamp) -> serde_json::Value {
    json!({
        "id": token.id,
        "user": token.owner,
        "role": token.role,
        "label": token.label,
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "revoked_at": token.revoked_at,
        "good": token.is_valid(now),
    })
}

async fn create(app: &App, args: CreateArgs) -> Result<()> {
    let tl = app.tl().await?;
    let now = tl.now();
    let expires_at = match args.expires {
        None => None,
        Some(after) => Some(now.checked_add(after)?),
    };
    let made = tl
        .issue_token(NewToken {
            owner: args.user,
            role: args.role,
            label: args.label,
            expires_at,
        })
        .await?;
    if app.ui.json {
        let mut value = token_to_json(&made.token, now);
        value["token"] = made.text.into();
        app.ui.json(&value)?;
        return Ok(());
    }
    app.ui.status(format_args!(
        "Created {} for {} ({}). It is shown only once:",
        made.token.id,
        sanitize(made.token.owner.as_str()),
        made.token.role,
    ));
    app.ui.data(made.text)?;
    Ok(())
}

async fn list(app: &App) -> Result<()> {
    let tl = app.tl().await?;
    let (now, tokens) = (tl.now(), tl.tokens().await?);
    if app.ui.json {
        let tokens: Vec<_> = tokens
            .iter()
            .map(|token| token_to_json(token, now))
            .collect();
        app.ui.json(&tokens)?;
        return Ok(());
    }
    if tokens.is_empty() {
        app.ui
            .status("No tokens yet. `tl token create --user NAME` creates one.");
        return Ok(());
    }
    let mut table = Table::new(&["ID", "USER", "ROLE", "CREATED", "STATE", "FOR"], &[], 5);
    for token in &tokens {
        let state = match (token.revoked_at, token.expires_at) {
            (Some(at), _) => format!("revoked {}", format_time(at, now, &app.zone)),
            (None, Some(at)) if at <= now => format!("expired {}", format_time(at, now, &app.zone)),
            (None, Some(at)) => format!("valid until {}", format_time(at, now, &app.zone)),
            (None, None) => "valid".to_owned(),
        };
        table.push_row(vec![
            token.id.to_string(),
            sanitize(token.owner.as_str()).into_owned(),
            token.role.to_string(),
            format_time(token.created_at, now, &app.zone),
            state,
            sanitize(token.label.as_deref().unwrap_or_default()).into_owned(),
        ]);
    }
    app.ui.page(&table.render(&app.ui))?;
    Ok(())
}

async fn revoke(app: &App, args: &RevokeArgs) -> Result<()> {
    let tl = app.tl().await?;
    let token = tl.revoke_token(&args.token).await?;
    if app.ui.json {
        app.ui.json(&token_to_json(&token, tl.now()))?;
    } else {
        app.ui.status(format_args!("Revoked {}", token.id));
    }
    Ok(())
}
