//! `tl fork`

use anyhow::Result;
use throughline::{Key, Name, NewSession, Seq, SessionSpec};

use crate::app::App;

/// Fork a session
///
/// Both share their history up to the fork; neither changes the other after it. Prints
/// the new session's id.
#[derive(clap::Args, Debug)]
pub(crate) struct ForkArgs {
    /// Which session
    session: SessionSpec,
    /// The last entry to share [default: the last there is]
    #[arg(long)]
    at: Option<Seq>,
    /// What to call the fork
    #[arg(long)]
    name: Option<Name>,
    /// An agent's stable name for the fork
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
    if let Some(asked) = args.at {
        super::warn_moved_boundary(app, asked, fork.at);
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
