//! An answer as it appears: what is complete as it will stay, and a draft of the rest.

use std::io::{self, Write};

use indicatif::ProgressBar;
use throughline::llm::Delta;
use throughline::{CompactionEvent, TurnEvent};

use super::chat_turn::format_retry;
use super::draft::Draft;
use crate::markdown::{self, StreamRenderer, sanitize};
use crate::ui::Ui;

/// An answer as it appears.
pub(super) struct AnswerRenderer<'a> {
    ui: &'a Ui,
    name: String,
    stream: StreamRenderer,
    spinner: Option<ProgressBar>,
    has_started: bool,
    /// Of what is on the screen, the lines that will be drawn anew.
    draft: Draft,
    /// What the first request might have cost.
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
                // One that follows is smaller only because the model refused the first.
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
                self.ui.status("📝 Summarizing what came before…");
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
                    .status("The model takes less than that: making it shorter, asking again.");
            }
            _ => {}
        }
    }

    /// Shows that something is under way.
    fn show_spinner(&mut self, what: &'static str) {
        if self.has_started {
            return;
        }
        self.clear_transient();
        self.spinner = Some(self.ui.spinner(what));
    }

    /// Draws what is not complete yet.
    fn draw_draft(&mut self) {
        if self.draft.is_due() {
            let open = self.stream.draft();
            self.show(&open, true);
        }
    }

    /// Takes away what is not there to stay.
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

    /// Shows what is complete, or a draft of what is not, in place of the last draft.
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
