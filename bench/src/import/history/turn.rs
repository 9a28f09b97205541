//! The content of a generated turn, independent of the format.

use std::fmt::Write;

use throughline_model::Digest;

/// One turn of a coding session.
pub(super) struct Turn {
    pub(super) number: u64,
    pub(super) prompt: String,
    pub(super) thinking: String,
    pub(super) file: String,
    /// The tool's output: some fifty lines.
    pub(super) tool_output: String,
    pub(super) answer: String,
}

impl Turn {
    /// Prompt, tool call, tool output and answer.
    pub(super) const MESSAGES: u64 = 4;

    pub(super) fn new(number: u64) -> Self {
        let (module, port) = (number % 977, 1_024 + number % 60_000);
        let file = format!("src/module_{module}.rs");
        let prompt = format!(
            "Step {number}: module {module} of the gateway is to listen on port {port}. What has \
             to change for that, and which tests go through it?"
        );
        let thinking = format!(
            "The port of module {module} is read when the gateway starts. Before I say what \
             changes I should look at {file}, since the tests may have the old number in them."
        );
        let answer = format!(
            "`listen` in `{file}` takes the port from the settings and falls back to a number of \
             its own, so two places change:\n\n1. the fallback becomes {port};\n2. the test \
             `listens_where_it_is_told` expects the old one.\n\nNothing else names it. Run the \
             tests of module {module} before the next step, and write down what failed and why, \
             so that nobody has to find it out again."
        );
        Self {
            number,
            prompt,
            thinking,
            tool_output: numbered_source(module, port),
            file,
            answer,
        }
    }

    /// Returns the reasoning as opaque text, as a provider returns it encrypted.
    pub(super) fn encrypted_thinking(&self) -> String {
        let part = |part: u64| Digest::of(&[self.number, part].map(u64::to_le_bytes).concat());
        (0..8).map(|number| part(number).to_string()).collect()
    }

    /// Returns the time of one of the messages.
    pub(super) fn timestamp(&self, message: u64) -> String {
        let second = self.number * Self::MESSAGES + message;
        let (hour, minute) = (second / 3600 % 24, second / 60 % 60);
        format!("2026-01-02T{hour:02}:{minute:02}:{:02}.000Z", second % 60)
    }
}

/// Returns a source file as a tool shows it, with line numbers.
fn numbered_source(module: u64, port: u64) -> String {
    let mut text = String::new();
    for number in (1..50).step_by(4) {
        let lines = [
            format!("    /// Route {number} of module {module}, \"as it was told\"."),
            format!("    pub fn route_{number}(&self, to: &str) -> Result<Port, Error> {{"),
            format!("        self.listen(to, {})", port + number),
            "    }".to_owned(),
        ];
        for (number, line) in (number..).zip(lines) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{number:6}\t{line}");
        }
    }
    text
}
