//! An answer as it appears: what is complete as it will stay, and a draft of the rest.

use std::io::{self, Write};

use indicatif::ProgressBar;
use throughline::llm::Delta;
use throughline::{CompactionEvent, TurnEvent};

use super::draft::Draft;
use super::speak::retrying;
use crate::markdown::{self, Stream, safe};
use crate::ui::Ui;

/// An answer as it appears.
pub(super) struct Shown<'a> {
    ui: &'a Ui,
    name: String,
    stream: Stream,
    waiting: Option<ProgressBar>,
    begun: bool,
    /// Of what is on the screen, the lines that will be drawn anew.
    draft: Draft,
    /// What the first request might have cost.
    pub(super) budget: Option<u64>,
    failed: Option<io::Error>,
}

impl<'a> Shown<'a> {
    pub(super) fn new(ui: &'a Ui, name: &str) -> Self {
        let style = markdown::Style {
            width: ui.width.min(100),
            color: ui.color(),
        };
        Self {
            ui,
            name: safe(name).into_owned(),
            stream: Stream::new(style),
            waiting: None,
            begun: false,
            draft: Draft::new(ui),
            budget: None,
            failed: None,
        }
    }

    pub(super) fn event(&mut self, event: TurnEvent) {
        match event {
            TurnEvent::Sent { budget, .. } => {
                // One that follows is smaller only because the model refused the first.
                self.budget.get_or_insert(budget);
                self.wait("thinking");
            }
            TurnEvent::Delta(Delta::Text(text)) => {
                let shown = self.stream.push(&text);
                self.print(&shown);
                self.sketch();
            }
            TurnEvent::Delta(Delta::Retrying { after, why, .. }) => {
                self.settle();
                self.ui.status(retrying(after, &why));
                self.wait("waiting");
            }
            TurnEvent::Compaction(CompactionEvent::Start { .. }) => {
                self.settle();
                self.ui.status("📝 Summarizing what came before…");
            }
            TurnEvent::Warning(warning) => {
                self.settle();
                self.ui.warn(safe(&warning));
            }
            TurnEvent::Called(call) => {
                self.settle();
                self.ui.status(format_args!("▸ {}", safe(&call.name)));
            }
            TurnEvent::Shortened => {
                self.settle();
                self.ui
                    .status("The model takes less than that: making it shorter, asking again.");
            }
            _ => {}
        }
    }

    /// Shows that something is under way.
    fn wait(&mut self, what: &'static str) {
        if self.begun {
            return;
        }
        self.settle();
        self.waiting = Some(self.ui.spinner(what));
    }

    /// Draws what is not complete yet.
    fn sketch(&mut self) {
        if self.draft.is_due() {
            let open = self.stream.draft();
            self.show(&open, true);
        }
    }

    /// Takes away what is not there to stay.
    fn settle(&mut self) {
        let taken = self.draft.taken_back();
        if !taken.is_empty() {
            self.write(&taken);
        }
        if let Some(spinner) = self.waiting.take() {
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
        self.settle();
        let mut out = String::new();
        if !std::mem::replace(&mut self.begun, true) && self.ui.is_terminal() {
            out = format!("\n{}:\n", self.ui.bold(&self.name));
        }
        out.push_str(if draft { self.draft.drawn(text) } else { text });
        self.write(&out);
    }

    fn write(&mut self, text: &str) {
        let mut out = io::stdout().lock();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        if let Err(error) = written {
            self.failed.get_or_insert(error);
        }
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        let rest = self.stream.finish();
        self.print(&rest);
        self.settle();
        self.failed.map_or(Ok(()), Err)
    }
}
