//! `tl tree`: draws the lineage of a session.

use anyhow::Result;
use serde_json::{Value, json};
use throughline::format::pluralize;
use throughline::{Lineage, SessionSpec, SessionTree};

use crate::app::App;
use crate::markdown::sanitize;
use crate::ui::truncate;

/// Draw the lineage of a session
#[derive(clap::Args, Debug)]
pub(crate) struct TreeArgs {
    /// The session
    #[arg(default_value = "last")]
    session: SessionSpec,
}

pub(crate) async fn run(app: &App, args: TreeArgs) -> Result<()> {
    let session = app.session(&args.session).await?;
    let tree = session.tree().await?;
    if app.ui.json {
        app.ui.json(&to_json(&tree))?;
        return Ok(());
    }
    let mut text = String::new();
    draw(app, &tree, session.id().as_str(), "", "", &mut text);
    app.ui.page(&text)?;
    Ok(())
}

fn to_json(tree: &SessionTree) -> Value {
    json!({
        "id": tree.info.id,
        "name": tree.info.name,
        "lineage": tree.info.lineage,
        "head": tree.info.head,
        "messages": tree.info.messages,
        "merged": tree.merged,
        "children": tree.children.iter().map(to_json).collect::<Vec<_>>(),
    })
}

fn draw(app: &App, tree: &SessionTree, this: &str, first: &str, rest: &str, text: &mut String) {
    let info = &tree.info;
    let came = match &info.lineage {
        Lineage::Root => String::new(),
        Lineage::Forked { at, .. } => format!("forked at {at}, "),
        Lineage::Continued { .. } => "continued, ".to_owned(),
    };
    let merged = if tree.merged { ", merged" } else { "" };
    let facts = format!("({came}{}{merged})", pluralize(info.messages, "message"));
    let here = if info.id.as_str() == this { " ←" } else { "" };
    let name = info.name.as_ref().map_or_else(
        || format!("“{}”", sanitize(&info.preview)),
        |name| sanitize(name.as_str()).into_owned(),
    );
    let room = app
        .ui
        .width
        .saturating_sub(first.chars().count() + info.id.as_str().len() + facts.len() + 6);
    let name = if name == "“”" {
        String::new()
    } else {
        format!(" {}", truncate(&name, room.max(8)))
    };
    text.push_str(&format!(
        "{}{}{} {}{here}\n",
        app.ui.dim(first),
        info.id,
        app.ui.bold(&name),
        app.ui.dim(&facts)
    ));
    for (index, child) in tree.children.iter().enumerate() {
        let last = index + 1 == tree.children.len();
        let (branch, trunk) = if last {
            ("└─ ", "   ")
        } else {
            ("├─ ", "│  ")
        };
        draw(
            app,
            child,
            this,
            &format!("{rest}{branch}"),
            &format!("{rest}{trunk}"),
            text,
        );
    }
}
