//! Formats numbers with their unit for people.

/// What a number measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Per second.
    Rate,
    /// Seconds.
    Time,
    /// Bytes.
    Bytes,
    /// A bare number.
    Number,
}

impl Unit {
    /// Formats a number for people: `5,400/s`, `18.2 µs`, `41.0 MB`.
    pub(crate) fn format(self, value: f64) -> String {
        match self {
            Self::Rate => format!("{}/s", format_number(value)),
            Self::Time if value < 1e-3 => format!("{} µs", format_number(value * 1e6)),
            Self::Time if value < 1.0 => format!("{} ms", format_number(value * 1e3)),
            Self::Time => format!("{} s", format_number(value)),
            Self::Bytes => format!("{} MB", format_number(value / 1e6)),
            Self::Number => format_number(value),
        }
    }
}

/// Formats with three significant digits, as precise as a measurement is.
pub(crate) fn format_number(value: f64) -> String {
    if value >= 1000.0 {
        let step = 10_f64.powf(value.log10().floor() - 2.0);
        return group_digits(&format!("{:.0}", (value / step).round() * step));
    }
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

fn group_digits(digits: &str) -> String {
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Converts a count to a float; counts here are far below 2^53.
#[expect(
    clippy::cast_precision_loss,
    reason = "no count here comes near the limit"
)]
pub(crate) fn to_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_have_their_unit() {
        assert_eq!(Unit::Rate.format(54_321.9), "54,300/s");
        assert_eq!(Unit::Rate.format(1_234_567.0), "1,230,000/s");
        assert_eq!(Unit::Rate.format(15.3), "15.3/s");
        assert_eq!(Unit::Time.format(0.000_018_2), "18.2 µs");
        assert_eq!(Unit::Time.format(0.136), "136 ms");
        assert_eq!(Unit::Bytes.format(41e6), "41.0 MB");
        assert_eq!(Unit::Number.format(1.3), "1.30");
    }
}
