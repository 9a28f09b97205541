//! Formats numbers and times for display, the same way everywhere.

use jiff::{Timestamp, tz::TimeZone};

/// Formats a number with thousands separators: `2,345`.
pub fn format_thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Abbreviates a number: `950`, `1.2k`, `3.4M`.
pub fn abbreviate(number: u64) -> String {
    let tenths = |unit: u64| {
        let tenths = (u128::from(number) * 10 + u128::from(unit) / 2) / u128::from(unit);
        (tenths / 10, tenths % 10)
    };
    let (unit, suffix) = match number {
        0..1_000 => return number.to_string(),
        1_000..999_950 => (1_000, "k"),
        999_950..999_950_000 => (1_000_000, "M"),
        _ => (1_000_000_000, "G"),
    };
    match tenths(unit) {
        (whole, tenth) if whole < 100 && tenth > 0 => format!("{whole}.{tenth}{suffix}"),
        (whole, _) => format!("{whole}{suffix}"),
    }
}

/// Formats a count with its noun: `1 session`, `2 sessions`.
pub fn pluralize(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", format_thousands(number))
}

/// Formats an age: `now`, `5m`, `3h`, `2d`, then the date.
pub fn format_age(at: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let seconds = now.duration_since(at).as_secs();
    match seconds {
        ..60 => "now".to_owned(),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        86_400..2_592_000 => format!("{}d", seconds / 86_400),
        _ => at.to_zoned(zone.clone()).strftime("%Y-%m-%d").to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_made_readable() {
        for (number, whole) in [
            (0, "0"),
            (12, "12"),
            (999, "999"),
            (2_345, "2,345"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(format_thousands(number), whole);
        }
        for (number, short) in [
            (999, "999"),
            (1_234, "1.2k"),
            (15_000, "15k"),
            (999_999, "1M"),
            (2_345_678, "2.3M"),
        ] {
            assert_eq!(abbreviate(number), short);
        }
        assert_eq!(pluralize(1, "entry"), "1 entry");
        assert_eq!(pluralize(2_000, "word"), "2,000 words");
    }

    #[test]
    fn ages_are_short() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let ago = |text: &str| format_age(text.parse().unwrap(), now, &TimeZone::UTC);
        assert_eq!(ago("2026-11-15T11:59:30Z"), "now");
        assert_eq!(ago("2026-11-15T12:01:00Z"), "now");
        assert_eq!(ago("2026-11-15T11:15:00Z"), "45m");
        assert_eq!(ago("2026-11-14T11:00:00Z"), "1d");
        assert_eq!(ago("2026-01-01T00:00:00Z"), "2026-01-01");
    }
}
