//! A session's family: where it came from and what came of it, drawn as a tree.

use axum::response::Response;
use maud::{Markup, html};
use throughline::glance::counted;
use throughline::{Lineage, Tree};

use super::layout;
use super::session::{Tab, header};
use super::visitor::{Fault, Opened};
use super::words::{entry_place, place, since, title};

/// Of the drawing: a row's height, and a step to the right.
const ROW: usize = 52;
const STEP: usize = 22;
/// Sessions drawn, at most.
const DRAWN: usize = 500;

/// A session on its row.
struct Node<'a> {
    tree: &'a Tree,
    depth: usize,
    parent: Option<usize>,
}

/// The sessions of a family, each before what came of it.
fn rows(root: &Tree) -> Vec<Node<'_>> {
    // Without recursion: a chain of continuations may be thousands long.
    let mut waiting = vec![(root, 0, None)];
    let mut nodes = Vec::new();
    while let Some((tree, depth, parent)) = waiting.pop() {
        let index = nodes.len();
        nodes.push(Node {
            tree,
            depth,
            parent,
        });
        if nodes.len() == DRAWN {
            break;
        }
        // A continuation stays in its line; a fork goes aside.
        for child in tree.children.iter().rev() {
            let aside = matches!(child.card.lineage, Lineage::Forked { .. });
            waiting.push((child, depth + usize::from(aside), Some(index)));
        }
    }
    nodes
}

pub(super) async fn page(opened: Opened) -> Result<Response, Fault> {
    let tree = opened.session.tree().await?;
    let nodes = rows(&tree);
    let main = html! {
        (header(&opened, Tab::Lineage, None))
        section.card {
            h2 { "Lineage" }
            @if nodes.len() == 1 {
                p.muted { "This session stands alone. " a href={ (place(opened.session.id())) "/fork" } { "Fork it" }
                    " to try something without touching it." }
            }
            div.lineage {
                (drawing(&nodes, &opened))
                ol.family { @for node in &nodes { (family(node, &opened)) } }
            }
            @if nodes.len() == DRAWN { p.muted { "The first " (DRAWN) " sessions of this family." } }
        }
    };
    Ok(layout::about(&opened, "Lineage", &main))
}

/// Lines and dots, a row each, beside the list that says what they are.
fn drawing(nodes: &[Node<'_>], opened: &Opened) -> Markup {
    let deepest = nodes.iter().map(|node| node.depth).max().unwrap_or(0);
    let (width, height) = ((deepest + 1) * STEP + 4, nodes.len() * ROW);
    let place = |index: usize| (14 + nodes[index].depth * STEP, index * ROW + ROW / 2);
    html! {
        svg width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) } aria-hidden="true" {
            @for (index, node) in nodes.iter().enumerate() {
                @if let Some(parent) = node.parent {
                    @let ((px, py), (x, y)) = (place(parent), place(index));
                    @let path = if px == x { format!("M{px} {py}V{y}") }
                        else { format!("M{px} {py}V{}Q{px} {y} {} {y}H{x}", y - 10, px + 10) };
                    path.branch.merged[node.tree.merged] d=(path) {}
                }
            }
            @for (index, node) in nodes.iter().enumerate() {
                @let (x, y) = place(index);
                circle.current[node.tree.card.id == *opened.session.id()] cx=(x) cy=(y) r="6" {}
            }
        }
    }
}

fn family(node: &Node<'_>, opened: &Opened) -> Markup {
    let card = &node.tree.card;
    let (now, zone) = (
        opened.visitor.caller.tl.now(),
        &opened.visitor.app.serving.zone,
    );
    let current = card.id == *opened.session.id();
    html! {
        li {
            a href=(place(&card.id)) aria-current=[current.then_some("page")] { (title(card)) }
            @if node.tree.merged { span.badge { "merged" } }
            div.muted {
                @match &card.lineage {
                    Lineage::Root => "root",
                    Lineage::Forked { session, at } => { "forked at " a href=(entry_place(session, *at)) { "#" (at) } },
                    Lineage::Continued { .. } => "continued from its summary",
                }
                " · " (counted(card.messages, "message")) " · " (since(card.last_activity, now, zone))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use throughline::{Message, NewSession, Role, Throughline};

    use super::*;

    #[tokio::test]
    async fn children_follow_their_parents_and_forks_go_aside() {
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
        let drawn: Vec<_> = rows(&tree)
            .iter()
            .map(|node| (node.tree.card.title().to_owned(), node.depth, node.parent))
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
