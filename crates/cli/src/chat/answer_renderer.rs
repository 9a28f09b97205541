//! Renders a streamed answer: complete Markdown blocks are final, the rest is a draft that
//! is redrawn.

use std::io::{self, Write};

use indicatif::ProgressBar;
use throughline::llm::Delta;
use throughline::{CompactionEvent, TurnEvent};

use super::chat_turn::format_retry;
use super::draft::Draft;
use crate::markdown::{self, StreamRenderer, sanitize};
use crate::ui::Ui;

/// Renders the events of one turn on the terminal.
pub(super) struct AnswerRenderer<'a> {
    ui: &'a Ui,
    name: String,
    stream: StreamRenderer,
    spinner: Option<ProgressBar>,
    has_started: bool,
    /// The lines on the screen that will be redrawn.
    draft: Draft,
    /// The token budget of the first request.
    pub(super) budget: Option<u64>,
    write_error: Option<io::Error>,
}

impl<'a> AnswerRenderer<'a> {
    pub(super) fn new(ui: &'a Ui, name: &str) -> Self {
        let style = markdown::Style {
            width: ui.width.min(100),
            color: ui.color(),
        };
        Self {
            ui,
            name: sanitize(name).into_owned(),
            stream: StreamRenderer::new(style),
            spinner: None,
            has_started: false,
            draft: Draft::new(ui),
            budget: None,
            write_error: None,
        }
    }

    pub(super) fn handle_event(&mut self, event: TurnEvent) {
        match event {
            TurnEvent::RequestSent { budget, .. } => {
                // Later requests are smaller only because the model rejected the first.
                self.budget.get_or_insert(budget);
                self.show_spinner("thinking");
            }
            TurnEvent::Delta(Delta::Text(text)) => {
                let shown = self.stream.push(&text);
                self.print(&shown);
                self.draw_draft();
            }
            TurnEvent::Delta(Delta::Retry {
                after, reason: why, ..
            }) => {
                self.clear_transient();
                self.ui.status(format_retry(after, &why));
                self.show_spinner("waiting");
            }
            TurnEvent::Compaction(CompactionEvent::Start { .. }) => {
                self.clear_transient();
                self.ui.status("📝 Summarizing earlier messages…");
            }
            TurnEvent::Warning(warning) => {
                self.clear_transient();
                self.ui.warn(sanitize(&warning));
            }
            TurnEvent::ToolCalled(call) => {
                self.clear_transient();
                self.ui.status(format_args!("▸ {}", sanitize(&call.name)));
            }
            TurnEvent::RequestShortened => {
                self.clear_transient();
                self.ui
                    .status("The request is too long for the model; retrying with a shorter one.");
            }
            _ => {}
        }
    }

    /// Shows a spinner.
    fn show_spinner(&mut self, what: &'static str) {
        if self.has_started {
            return;
        }
        self.clear_transient();
        self.spinner = Some(self.ui.spinner(what));
    }

    /// Draws the incomplete part of the answer.
    fn draw_draft(&mut self) {
        if self.draft.is_due() {
            let open = self.stream.draft();
            self.show(&open, true);
        }
    }

    /// Removes the spinner and the draft.
    fn clear_transient(&mut self) {
        let taken = self.draft.erase();
        if !taken.is_empty() {
            self.write(&taken);
        }
        if let Some(spinner) = self.spinner.take() {
            spinner.finish_and_clear();
        }
    }

    fn print(&mut self, text: &str) {
        self.show(text, false);
    }

    /// Replaces the last draft with final text or with a new draft.
    fn show(&mut self, text: &str, draft: bool) {
        if text.is_empty() {
            return;
        }
        self.clear_transient();
        let mut out = String::new();
        if !std::mem::replace(&mut self.has_started, true) && self.ui.is_terminal() {
            out = format!("\n{}:\n", self.ui.bold(&self.name));
        }
        out.push_str(if draft { self.draft.draw(text) } else { text });
        self.write(&out);
    }

    fn write(&mut self, text: &str) {
        let mut out = io::stdout().lock();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        if let Err(error) = written {
            self.write_error.get_or_insert(error);
        }
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        let rest = self.stream.finish();
        self.print(&rest);
        self.clear_transient();
        self.write_error.map_or(Ok(()), Err)
    }
}
