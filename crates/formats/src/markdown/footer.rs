//! The footer of an answer: `*Time: 3.2s | Tokens: 345 (in: 123, out: 222)*`.
//!
//! Unknown parts are left out; an empty footer is not written.

use throughline_model::Usage;
use throughline_model::format::format_thousands;

/// Latency and token usage of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Footer {
    pub(super) latency_ms: Option<u64>,
    pub(super) usage: Option<Usage>,
    /// Total tokens; some transcripts have only this.
    pub(super) tokens: Option<u64>,
}

impl Footer {
    /// Adds the figures of one message.
    pub(super) fn add(&mut self, usage: Option<Usage>, latency_ms: Option<u64>) {
        if let Some(usage) = usage {
            *self.usage.get_or_insert_default() += usage;
        }
        if let Some(latency) = latency_ms {
            let sum = self.latency_ms.unwrap_or(0).saturating_add(latency);
            self.latency_ms = Some(sum);
        }
    }

    /// Renders the line; `None` if there are no figures.
    pub(super) fn render_line(&self) -> Option<String> {
        let mut parts = Vec::new();
        if let Some(latency) = self.latency_ms {
            let tenths = latency.saturating_add(50) / 100;
            parts.push(format!("Time: {}.{}s", tenths / 10, tenths % 10));
        }
        if let Some(usage) = self.usage {
            parts.push(format!(
                "Tokens: {} (in: {}, out: {})",
                format_thousands(usage.total()),
                format_thousands(usage.input),
                format_thousands(usage.output)
            ));
        }
        (!parts.is_empty()).then(|| format!("*{}*", parts.join(" | ")))
    }

    /// Parses a line, if it is a footer.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let inside = line.trim_end().strip_prefix('*')?.strip_suffix('*')?;
        let mut footer = Self::default();
        for part in inside.split(" | ") {
            if let Some(time) = part.strip_prefix("Time: ") {
                let seconds: f64 = time.strip_suffix('s')?.parse().ok()?;
                let duration = std::time::Duration::try_from_secs_f64(seconds).ok()?;
                let rounded = duration + std::time::Duration::from_micros(500);
                footer.latency_ms = Some(u64::try_from(rounded.as_millis()).ok()?);
            } else {
                let counts = part.strip_prefix("Tokens: ")?;
                let (total, split) = match counts.split_once(" (in: ") {
                    Some((total, split)) => (total, Some(split)),
                    None => (counts, None),
                };
                footer.tokens = Some(parse_grouped(total)?);
                if let Some(split) = split {
                    let (input, output) = split.strip_suffix(')')?.split_once(", out: ")?;
                    footer.usage = Some(Usage {
                        input: parse_grouped(input)?,
                        output: parse_grouped(output)?,
                        ..Usage::default()
                    });
                }
            }
        }
        Some(footer)
    }
}

/// Parses a number with or without thousands separators.
pub(super) fn parse_grouped(text: &str) -> Option<u64> {
    text.trim().replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_were_written() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (2345, "2,345"),
            (1_000_000, "1,000,000"),
        ] {
            assert_eq!(format_thousands(number), text);
            assert_eq!(parse_grouped(text), Some(number));
        }
    }

    #[test]
    fn a_footer_reads_back_and_leaves_out_what_is_unknown() {
        let usage = Usage {
            input: 1123,
            output: 222,
            ..Usage::default()
        };
        for (latency, usage, line) in [
            (
                Some(3200),
                Some(usage),
                Some("*Time: 3.2s | Tokens: 1,345 (in: 1,123, out: 222)*"),
            ),
            (Some(60_000), None, Some("*Time: 60.0s*")),
            (
                None,
                Some(usage),
                Some("*Tokens: 1,345 (in: 1,123, out: 222)*"),
            ),
            (None, None, None),
        ] {
            let mut footer = Footer::default();
            footer.add(usage, latency);
            assert_eq!(footer.render_line().as_deref(), line);
            if let Some(read) = line.map(|line| Footer::parse(line).unwrap()) {
                assert_eq!((read.latency_ms, read.usage), (latency, usage));
                assert_eq!(read.tokens, usage.map(|usage| usage.total()));
            }
        }
        assert_eq!(Footer::parse("*Tokens: 7*").unwrap().tokens, Some(7));
        for line in [
            "",
            "*",
            "**",
            "*Time: x*",
            "*Tokens: 1 (in: 2)*",
            "*emphasis*",
        ] {
            assert_eq!(Footer::parse(line), None, "{line}");
        }
    }
}
