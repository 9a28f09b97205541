//! `tl rewind`

use anyhow::Result;
use serde_json::json;
use throughline::{Seq, SessionSpec};

use crate::app::App;

/// Take back what was said after an entry
///
/// The model no longer sees it; `tl show --all` still does. Pins, names and tags stay.
#[derive(clap::Args, Debug)]
pub(crate) struct RewindArgs {
    /// Which session
    session: SessionSpec,
    /// The last entry that still counts
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
            "Rewound to entry {to}; `show --all` has the rest"
        ));
    }
    Ok(())
}
