//! `tl rewind`: hides the messages after an entry from the model.

use anyhow::Result;
use serde_json::json;
use throughline::{Seq, SessionSpec};

use crate::app::App;

/// Rewind a session to an entry
///
/// The model no longer sees later messages; `tl show --all` still shows them. Pins, names and
/// tags stay.
#[derive(clap::Args, Debug)]
pub(crate) struct RewindArgs {
    /// The session
    session: SessionSpec,
    /// The last entry to keep
    #[arg(long)]
    to: Seq,
}

pub(crate) async fn run(app: &App, args: RewindArgs) -> Result<()> {
    let session = app.session(&args.session).await?;
    let to = session.rewind(args.to).await?;
    super::warn_moved_boundary(app, args.to, to);
    if app.ui.json {
        app.ui.json(&json!({"id": session.id(), "to": to}))?;
    } else {
        app.ui.status(format_args!(
            "Rewound to entry {to}; `show --all` shows the rest"
        ));
    }
    Ok(())
}
