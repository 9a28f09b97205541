//! Lineage page: the ancestors and descendants of a session, drawn as a tree.

use axum::response::Response;
use maud::{Markup, html};
use throughline::format::pluralize;
use throughline::{Lineage, SessionTree};

use super::layout;
use super::page_format::{entry_path, relative_time_phrase, session_path, session_title};
use super::session::{Tab, session_header};
use super::visitor::{PageError, VisitorSession};

/// Height of a row and width of an indentation step in the drawing.
const ROW_HEIGHT: usize = 52;
const INDENT_WIDTH: usize = 22;
/// Maximum number of sessions drawn.
const MAX_NODES: usize = 500;

/// A session in the tree.
struct Node<'a> {
    tree: &'a SessionTree,
    depth: usize,
    parent: Option<usize>,
}

/// Flattens the tree, each session before its descendants.
fn flatten_tree(root: &SessionTree) -> Vec<Node<'_>> {
    // Iterative: a chain of continuations may be thousands long.
    let mut waiting = vec![(root, 0, None)];
    let mut nodes = Vec::new();
    while let Some((tree, depth, parent)) = waiting.pop() {
        let index = nodes.len();
        nodes.push(Node {
            tree,
            depth,
            parent,
        });
        if nodes.len() == MAX_NODES {
            break;
        }
        // A continuation stays in its column; a fork is indented.
        for child in tree.children.iter().rev() {
            let aside = matches!(child.info.lineage, Lineage::Forked { .. });
            waiting.push((child, depth + usize::from(aside), Some(index)));
        }
    }
    nodes
}

pub(super) async fn page(opened: VisitorSession) -> Result<Response, PageError> {
    let tree = opened.session.tree().await?;
    let nodes = flatten_tree(&tree);
    let main = html! {
        (session_header(&opened, Tab::Lineage, None))
        section.card {
            h2 { "Lineage" }
            @if nodes.len() == 1 {
                p.muted { "This session has no forks or continuations. " a href={ (session_path(opened.session.id())) "/fork" } { "Fork it" }
                    " to try something without changing it." }
            }
            div.lineage {
                (render_graph(&nodes, &opened))
                ol.family { @for node in &nodes { (render_node(node, &opened)) } }
            }
            @if nodes.len() == MAX_NODES { p.muted { "Only the first " (MAX_NODES) " sessions are shown." } }
        }
    };
    Ok(layout::session_page(&opened, "Lineage", &main))
}

/// Draws lines and dots, one row per session, next to the list of names.
fn render_graph(nodes: &[Node<'_>], opened: &VisitorSession) -> Markup {
    let deepest = nodes.iter().map(|node| node.depth).max().unwrap_or(0);
    let (width, height) = ((deepest + 1) * INDENT_WIDTH + 4, nodes.len() * ROW_HEIGHT);
    let position = |index: usize| {
        (
            14 + nodes[index].depth * INDENT_WIDTH,
            index * ROW_HEIGHT + ROW_HEIGHT / 2,
        )
    };
    html! {
        svg width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) } aria-hidden="true" {
            @for (index, node) in nodes.iter().enumerate() {
                @if let Some(parent) = node.parent {
                    @let ((px, py), (x, y)) = (position(parent), position(index));
                    @let path = if px == x { format!("M{px} {py}V{y}") }
                        else { format!("M{px} {py}V{}Q{px} {y} {} {y}H{x}", y - 10, px + 10) };
                    path.branch.merged[node.tree.merged] d=(path) {}
                }
            }
            @for (index, node) in nodes.iter().enumerate() {
                @let (x, y) = position(index);
                circle.current[node.tree.info.id == *opened.session.id()] cx=(x) cy=(y) r="6" {}
            }
        }
    }
}

fn render_node(node: &Node<'_>, opened: &VisitorSession) -> Markup {
    let info = &node.tree.info;
    let (now, zone) = (
        opened.visitor.caller.tl.now(),
        &opened.visitor.app.config.time_zone,
    );
    let current = info.id == *opened.session.id();
    html! {
        li {
            a href=(session_path(&info.id)) aria-current=[current.then_some("page")] { (session_title(info)) }
            @if node.tree.merged { span.badge { "merged" } }
            div.muted {
                @match &info.lineage {
                    Lineage::Root => "root",
                    Lineage::Forked { session, at } => { "forked at " a href=(entry_path(session, *at)) { "#" (at) } },
                    Lineage::Continued { .. } => "continued from its summary",
                }
                " · " (pluralize(info.messages, "message")) " · " (relative_time_phrase(info.last_activity, now, zone))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use throughline::{Message, NewSession, Role, Throughline};

    use super::*;

    #[tokio::test]
    async fn children_follow_their_parents_and_forks_are_indented() {
        let tl = Throughline::open("memory:").await.unwrap();
        let root = tl.create(NewSession::named("root").unwrap()).await.unwrap();
        root.append(Message::text(Role::User, "a")).await.unwrap();
        let one = root
            .fork(None, NewSession::named("one").unwrap())
            .await
            .unwrap();
        one.session
            .fork(None, NewSession::named("inner").unwrap())
            .await
            .unwrap();
        root.fork(None, NewSession::named("two").unwrap())
            .await
            .unwrap();

        let tree = root.tree().await.unwrap();
        let drawn: Vec<_> = flatten_tree(&tree)
            .iter()
            .map(|node| (node.tree.info.title().to_owned(), node.depth, node.parent))
            .collect();

        assert_eq!(
            drawn,
            [
                ("root".to_owned(), 0, None),
                ("one".to_owned(), 1, Some(0)),
                ("inner".to_owned(), 2, Some(1)),
                ("two".to_owned(), 1, Some(0)),
            ]
        );
    }
}
