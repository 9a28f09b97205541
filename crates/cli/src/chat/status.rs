//! The line above the prompt: session, model, how full the context is, tokens and cost.

use anyhow::Result;

use super::Chat;
use super::input::Input;
use crate::markdown::safe;
use crate::ui::fit;
use throughline::glance::compact;

/// Columns of the bar.
const BAR: usize = 10;

impl Chat<'_> {
    pub(super) async fn show_status(&self) -> Result<()> {
        if matches!(self.input, Input::Pipe) {
            return Ok(());
        }
        let mut parts = Vec::new();
        let mut tokens = self.spent.total();
        match self.current() {
            None => parts.push("new session".to_owned()),
            Some(session) => {
                let card = session.record().await?.card;
                parts.push(fit(&safe(card.title()), 32));
                tokens = card.tokens.total();
            }
        }
        parts.push(fit(&safe(self.voice.name()), 28));
        if let Some((used, budget)) = self.context {
            let bar = self.app.ui.bar(used, budget, BAR);
            let percent = used * 100 / budget.max(1);
            let percent = match percent {
                0 => "<1".to_owned(),
                some => some.to_string(),
            };
            parts.push(format!("▕{bar}▏{percent}% of {}", compact(budget)));
        }
        if tokens > 0 {
            parts.push(format!("{} tokens", compact(tokens)));
        }
        match self.cost {
            0.0 => {}
            little if little < 0.01 => parts.push("<$0.01".to_owned()),
            cost => parts.push(format!("${cost:.2}")),
        }
        let line = fit(&parts.join(" · "), self.app.ui.width);
        self.app.ui.status("");
        self.app.ui.status(self.app.ui.dim_err(&line));
        Ok(())
    }
}
