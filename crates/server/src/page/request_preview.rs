//! Request page: the request the model would receive now, section by section.

use axum::response::Response;
use maud::html;
use serde::Deserialize;
use throughline::Content;
use throughline::format::format_thousands;

use super::chart::gauge;
use super::layout;
use super::markdown::truncate_text;
use super::page_format::session_path;
use super::session::{Tab, session_header};
use super::visitor::{PageError, VisitorSession};
use crate::extract::Query;

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct PreviewQuery {
    #[serde(default)]
    message: String,
}

pub(super) async fn page(
    opened: VisitorSession,
    Query(query): Query<PreviewQuery>,
) -> Result<Response, PageError> {
    let responder = opened.visitor.app.responder(&opened.session).await?;
    let message = (!query.message.trim().is_empty()).then(|| Content::text(query.message.as_str()));
    let request = opened
        .session
        .request(&responder.request_options(message.as_ref()))
        .await?;
    let main = html! {
        (session_header(&opened, Tab::Request, None))
        form.card method="get" action={ (session_path(opened.session.id())) "/request" } {
            label for="message" { "Preview the request for this message" }
            div.inline {
                input id="message" name="message" value=(query.message) placeholder="No message";
                button type="submit" { "Preview" }
            }
        }
        section.card {
            p { b { (format_thousands(request.tokens)) } " of " (format_thousands(request.budget)) " tokens, "
                (request.messages.len()) " messages, policy " code { (request.policy) } }
            (gauge(&request, None))
        }
        @for section in &request.sections {
            details.card.section open[section.tokens > 0 && section.text.len() < 4_000] {
                summary {
                    h2 { (section.name) }
                    span.muted { (format_thousands(section.tokens)) " tokens · " (format!("{:.1} %", section.share)) }
                    @if section.cache_breakpoint { span.badge title="Unchanged up to here since the last request" { "cached" } }
                }
                @if section.text.is_empty() { p.muted { "Empty" } }
                @else {
                    @let (text, whole) = truncate_text(&section.text);
                    pre.request { code { (text) } }
                    @if !whole { p.muted { "Truncated; " (format_thousands(section.text.len() as u64)) " bytes in total" } }
                }
                @for left in &section.left_out {
                    p.muted.left-out {
                        "Left out: " (left.description) " (" (left.reason) ")"
                        @if let Some(tokens) = left.tokens { ", " (format_thousands(tokens)) " tokens" }
                    }
                }
            }
        }
        @if !request.repairs.is_empty() {
            section.card {
                h2 { "Repaired" }
                ul { @for repair in &request.repairs {
                    li { @if let Some(seq) = repair.seq { "#" (seq) ": " } (repair.description) }
                } }
            }
        }
    };
    Ok(layout::session_page(&opened, "Request", &main))
}
