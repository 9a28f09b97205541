//! SVG charts: the composition of a request and the tokens of each turn.
//!
//! Sizes are attributes, since the content security policy forbids inline styles.

use maud::{Markup, html};
use throughline::context::{Request, SectionName};
use throughline::format::{abbreviate, format_thousands};
use throughline::{Body, Entry, Role, Seq, SessionId};

use super::page_format::entry_path;

/// The color class of a section.
fn section_color(name: SectionName) -> &'static str {
    match name {
        SectionName::Agent => "c1",
        SectionName::Context => "c2",
        SectionName::Memory => "c3",
        SectionName::Checkpoint => "c4",
        SectionName::Recent => "c5",
        SectionName::Recalled => "c6",
        SectionName::Message => "c7",
    }
}

/// A fraction in thousandths.
fn per_mille(part: u64, whole: u64) -> u64 {
    let thousandths = u128::from(part) * 1_000 / u128::from(whole.max(1));
    u64::try_from(thousandths).unwrap_or(1_000).min(1_000)
}

/// Draws how full the context is, by section.
pub(super) fn gauge(request: &Request, compact_at: Option<u64>) -> Markup {
    let mut x = 0;
    let mut parts = Vec::new();
    for section in &request.sections {
        let width = match section.tokens {
            0 => 0,
            tokens => per_mille(tokens, request.budget).max(2),
        };
        parts.push((section, x, width));
        x += width;
    }
    let percent = per_mille(request.tokens, request.budget) / 10;
    let label = format!(
        "{} of {} tokens, {percent} percent",
        format_thousands(request.tokens),
        format_thousands(request.budget)
    );
    html! {
        svg.gauge viewBox="0 0 1000 24" preserveAspectRatio="none" role="img" aria-label=(label) {
            rect.track x="0" y="0" width="1000" height="24" {}
            @for (section, x, width) in parts {
                @if width > 0 {
                    rect class=(section_color(section.name)) x=(x) y="0" width=(width) height="24" {
                        title { (section.name) ": " (format_thousands(section.tokens)) " tokens" }
                    }
                }
            }
            @if let Some(at) = compact_at {
                @let x = per_mille(at, request.budget);
                line.limit x1=(x) x2=(x) y1="0" y2="24" { title { "Compacts at " (format_thousands(at)) " tokens" } }
            }
        }
    }
}

/// Lists the sections with their tokens.
pub(super) fn legend(request: &Request) -> Markup {
    html! {
        table.legend {
            thead { tr { th { "Section" } th.number { "Tokens" } th.number { "Share" } } }
            tbody {
                @for section in &request.sections {
                    tr {
                        td { span class={ "dot " (section_color(section.name)) } {} (section.name) }
                        td.number { (format_thousands(section.tokens)) }
                        td.number { (format!("{:.1} %", section.share)) }
                    }
                }
            }
        }
    }
}

/// The token usage of one turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TurnCost {
    seq: Seq,
    input: u64,
    cached: u64,
    output: u64,
    /// The checkpoint, if the session was compacted after this turn.
    compacted: Option<Seq>,
}

/// Collects the token usage of the turns in these entries, oldest first.
pub(super) fn turn_costs(entries: &[Entry]) -> Vec<TurnCost> {
    let mut costs: Vec<TurnCost> = Vec::new();
    for entry in entries {
        match &entry.body {
            Body::Message(message) => {
                let asks =
                    message.role == Role::User && message.content.tool_results().next().is_none();
                if asks || costs.is_empty() {
                    costs.push(TurnCost {
                        seq: entry.seq,
                        ..TurnCost::default()
                    });
                }
                if let (Some(usage), Some(cost)) = (message.usage, costs.last_mut()) {
                    cost.input += usage.input;
                    cost.cached += usage.cache_read.min(usage.input);
                    cost.output += usage.output;
                }
            }
            Body::Checkpoint(_) => {
                if let Some(cost) = costs.last_mut() {
                    cost.compacted = Some(entry.seq);
                }
            }
            _ => {}
        }
    }
    costs
}

const HEIGHT: u64 = 150;
/// Width of the chart, unless there are too many turns for it.
const WIDTH: u64 = 1_060;

/// Draws tokens per turn, with compactions marked.
pub(super) fn turn_chart(session: &SessionId, costs: &[TurnCost]) -> Markup {
    let most = costs
        .iter()
        .map(|cost| cost.input + cost.output)
        .max()
        .unwrap_or(0);
    if most == 0 {
        return html! { p.muted { "No token usage reported yet." } };
    }
    let height = |tokens: u64| per_mille(tokens, most) * HEIGHT / 1_000;
    let count = costs.len() as u64;
    let step = ((WIDTH - 60) / count).clamp(12, 36);
    let bar = step - 3;
    let width = (count * step + 60).max(WIDTH);
    html! {
        div.scroll tabindex="0" role="group" aria-label="Tokens per turn" {
            svg.turns width=(width) height=(HEIGHT + 40) viewBox={ "0 0 " (width) " " (HEIGHT + 40) } role="img"
                aria-label={ "Tokens of the last " (costs.len()) " turns, at most " (format_thousands(most)) } {
                @for (share, y) in [(most, 10), (most / 2, 10 + HEIGHT / 2), (0, 10 + HEIGHT)] {
                    line.grid x1="44" x2=(width) y1=(y) y2=(y) {}
                    text.axis x="38" y=(y + 4) text-anchor="end" { (abbreviate(share)) }
                }
                @for (index, cost) in costs.iter().enumerate() {
                    @let x = 50 + index as u64 * step;
                    @let (fresh, cached, output) = (height(cost.input - cost.cached), height(cost.cached), height(cost.output));
                    @let base = 10 + HEIGHT;
                    a href=(entry_path(session, cost.seq)) {
                        title { "#" (cost.seq) ": " (format_thousands(cost.input)) " input (" (format_thousands(cost.cached)) " cached), " (format_thousands(cost.output)) " output" }
                        rect.hit x=(x - 1) y="10" width=(step) height=(HEIGHT) {}
                        rect.cached x=(x) y=(base - cached) width=(bar) height=(cached) {}
                        rect.sent x=(x) y=(base - cached - fresh) width=(bar) height=(fresh) {}
                        rect.answered x=(x) y=((base - cached - fresh).saturating_sub(output)) width=(bar) height=(output) {}
                    }
                    @if let Some(seq) = cost.compacted {
                        @let at = x + step - 2;
                        a href=(entry_path(session, seq)) {
                            title { "Compacted at #" (seq) }
                            line.compacted x1=(at) x2=(at) y1="4" y2=(base + 6) {}
                            circle.compacted cx=(at) cy=(base + 12) r="4" {}
                        }
                    }
                }
            }
        }
        p.key.muted {
            span { span.dot.sent {} "input" } span { span.dot.cached {} "cached input" }
            span { span.dot.answered {} "output" } span { span.dot.compacted {} "compacted" }
        }
    }
}
