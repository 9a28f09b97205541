//! `tl fork`: forks a session at an entry.

use anyhow::Result;
use throughline::{Key, Name, NewSession, Seq, SessionSpec};

use crate::app::App;

/// Fork a session
///
/// Both share their history up to the fork and are independent after it. Prints
/// the new session's id.
#[derive(clap::Args, Debug)]
pub(crate) struct ForkArgs {
    /// The session
    session: SessionSpec,
    /// The last shared entry [default: the session's last]
    #[arg(long)]
    at: Option<Seq>,
    /// Name of the fork
    #[arg(long)]
    name: Option<Name>,
    /// A stable key for the fork
    #[arg(long)]
    key: Option<Key>,
}

pub(crate) async fn run(app: &App, args: ForkArgs) -> Result<()> {
    let session = app.session(&args.session).await?;
    let new = NewSession {
        name: args.name,
        key: args.key,
        ..NewSession::default()
    };
    let fork = session.fork(args.at, new).await?;
    if let Some(requested) = args.at {
        super::warn_moved_boundary(app, requested, fork.at);
    }
    super::warn_duplicate_name(app, &fork.session).await?;
    if app.ui.json {
        app.ui.json(&fork.session.record().await?.info)?;
    } else {
        app.ui.status(format_args!(
            "Forked from {} at entry {}",
            session.id(),
            fork.at
        ));
        app.ui.data(fork.session.id())?;
    }
    Ok(())
}
