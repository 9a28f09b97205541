//! What the model would be sent, section by section.

use axum::response::Response;
use maud::html;
use serde::Deserialize;
use throughline::Content;
use throughline::glance::thousands;

use super::chart::gauge;
use super::layout;
use super::markdown::start;
use super::session::{Tab, header};
use super::visitor::{Fault, Opened};
use super::words::place;
use crate::extract::Query;

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct PreviewQuery {
    #[serde(default)]
    message: String,
}

pub(super) async fn page(
    opened: Opened,
    Query(query): Query<PreviewQuery>,
) -> Result<Response, Fault> {
    let voice = opened.visitor.app.voice(&opened.session).await?;
    let message = (!query.message.trim().is_empty()).then(|| Content::text(query.message.as_str()));
    let request = opened
        .session
        .request(&voice.asking(message.as_ref()))
        .await?;
    let main = html! {
        (header(&opened, Tab::Request, None))
        form.card method="get" action={ (place(opened.session.id())) "/request" } {
            label for="message" { "What would be sent if you said" }
            div.inline {
                input id="message" name="message" value=(query.message) placeholder="nothing yet";
                button type="submit" { "Preview" }
            }
        }
        section.card {
            p { b { (thousands(request.tokens)) } " of " (thousands(request.budget)) " tokens, "
                (request.messages.len()) " messages, policy " code { (request.policy) } }
            (gauge(&request, None))
        }
        @for section in &request.sections {
            details.card.section open[section.tokens > 0 && section.text.len() < 4_000] {
                summary {
                    h2 { (section.name) }
                    span.muted { (thousands(section.tokens)) " tokens · " (format!("{:.1} %", section.share)) }
                    @if section.cache_breakpoint { span.badge title="The same as last time up to here" { "cached" } }
                }
                @if section.text.is_empty() { p.muted { "Empty" } }
                @else {
                    @let (text, whole) = start(&section.text);
                    pre.request { code { (text) } }
                    @if !whole { p.muted { "and more, " (thousands(section.text.len() as u64)) " bytes in all" } }
                }
                @for left in &section.left_out {
                    p.muted.left-out {
                        "Left out: " (left.what) " (" (left.why) ")"
                        @if let Some(tokens) = left.tokens { ", " (thousands(tokens)) " tokens" }
                    }
                }
            }
        }
        @if !request.repairs.is_empty() {
            section.card {
                h2 { "Repaired" }
                ul { @for repair in &request.repairs {
                    li { @if let Some(seq) = repair.seq { "#" (seq) ": " } (repair.what) }
                } }
            }
        }
    };
    Ok(layout::about(&opened, "Request", &main))
}
