//! Renders the status line above the prompt: session, model, context usage, tokens and cost.

use anyhow::Result;

use super::Chat;
use super::input::Input;
use crate::markdown::sanitize;
use crate::ui::truncate;
use throughline::format::abbreviate;

/// Width of the bar in columns.
const BAR_WIDTH: usize = 10;

impl Chat<'_> {
    pub(super) async fn show_status(&self) -> Result<()> {
        if matches!(self.input, Input::Pipe) {
            return Ok(());
        }
        let mut parts = Vec::new();
        let mut tokens = self.usage.total();
        match self.current_session() {
            None => parts.push("new session".to_owned()),
            Some(session) => {
                let info = session.record().await?.info;
                parts.push(truncate(&sanitize(info.title()), 32));
                tokens = info.tokens.total();
            }
        }
        parts.push(truncate(&sanitize(self.responder.name()), 28));
        if let Some((used, budget)) = self.context_usage {
            let bar = self.app.ui.bar(used, budget, BAR_WIDTH);
            let percent = used * 100 / budget.max(1);
            let percent = match percent {
                0 => "<1".to_owned(),
                some => some.to_string(),
            };
            parts.push(format!("▕{bar}▏{percent}% of {}", abbreviate(budget)));
        }
        if tokens > 0 {
            parts.push(format!("{} tokens", abbreviate(tokens)));
        }
        match self.cost {
            0.0 => {}
            little if little < 0.01 => parts.push("<$0.01".to_owned()),
            cost => parts.push(format!("${cost:.2}")),
        }
        let line = truncate(&parts.join(" · "), self.app.ui.width);
        self.app.ui.status("");
        self.app.ui.status(self.app.ui.dim_err(&line));
        Ok(())
    }
}
