//! Parses dates as people type them.

use jiff::civil::Date;
use jiff::{Span, ToSpan as _, Zoned};
use throughline_model::Timestamp;

/// A text that is not a date.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a date: use 2026-11-15, 2026-11, 2026, today, yesterday, 7d, 2w, 3m or 1y")]
pub struct DateError(String);

/// Returns the instant typed, or the beginning of the day, month or year typed, in the time
/// zone of `now`.
pub(crate) fn parse_date(typed: &str, now: &Zoned) -> Result<Timestamp, DateError> {
    let found = parse_instant(typed)
        .or_else(|| parse_day(typed, now.date()).and_then(|day| start_of_day(day, now)))
        .or_else(|| {
            parse_ago(typed)
                .and_then(|span| now.checked_sub(span).ok())
                .map(|at| at.timestamp())
        });
    found.ok_or_else(|| DateError(typed.to_owned()))
}

fn parse_instant(typed: &str) -> Option<Timestamp> {
    typed.contains('T').then(|| typed.parse().ok())?
}

fn parse_day(typed: &str, today: Date) -> Option<Date> {
    match typed.to_lowercase().as_str() {
        "today" => return Some(today),
        "yesterday" => return today.checked_sub(1.day()).ok(),
        _ => {}
    }
    let mut numbers = typed.split('-').map(|part| {
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| part.parse::<i16>().ok())?
    });
    let year = numbers.next()??;
    if !typed.get(..4)?.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut next = || match numbers.next() {
        None => Some(1),
        Some(number) => i8::try_from(number?).ok(),
    };
    let (month, day) = (next()?, next()?);
    if numbers.next().is_some() {
        return None;
    }
    Date::new(year, month, day).ok()
}

fn start_of_day(day: Date, now: &Zoned) -> Option<Timestamp> {
    let at = day.to_zoned(now.time_zone().clone()).ok()?;
    Some(at.timestamp())
}

/// Parses a relative date such as `7d`.
fn parse_ago(typed: &str) -> Option<Span> {
    let (at, unit) = typed.char_indices().last()?;
    let count: i64 = typed[..at]
        .parse()
        .ok()
        .filter(|count| (0..=10_000).contains(count))?;
    match unit {
        'h' => Some(count.hours()),
        'd' => Some(count.days()),
        'w' => Some(count.weeks()),
        'm' => Some(count.months()),
        'y' => Some(count.years()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_to_string(typed: &str) -> String {
        let now = "2026-11-15T12:30[Europe/Berlin]".parse().unwrap();
        parse_date(typed, &now).map_or_else(|error| error.to_string(), |at| at.to_string())
    }

    #[test]
    fn days_months_and_years_begin_where_the_person_is() {
        assert_eq!(parse_to_string("2026-11-15"), "2026-11-14T23:00:00Z");
        assert_eq!(parse_to_string("2026-07"), "2026-06-30T22:00:00Z");
        assert_eq!(parse_to_string("2026"), "2025-12-31T23:00:00Z");
        assert_eq!(parse_to_string("Today"), "2026-11-14T23:00:00Z");
        assert_eq!(parse_to_string("yesterday"), "2026-11-13T23:00:00Z");
    }

    #[test]
    fn some_time_ago_is_counted_from_now() {
        assert_eq!(parse_to_string("7d"), "2026-11-08T11:30:00Z");
        assert_eq!(parse_to_string("2w"), "2026-11-01T11:30:00Z");
        assert_eq!(parse_to_string("1y"), "2025-11-15T11:30:00Z");
    }

    #[test]
    fn an_instant_is_taken_as_it_is() {
        assert_eq!(
            parse_to_string("2026-11-15T08:00:00Z"),
            "2026-11-15T08:00:00Z"
        );
    }

    #[test]
    fn what_is_no_date_is_named() {
        for typed in [
            "soon",
            "2026-13",
            "2026-02-30",
            "26-1-1",
            "2026-1-1-1",
            "-5d",
            "d",
            "2026-",
        ] {
            assert!(
                parse_to_string(typed).starts_with(&format!("{typed:?} is not a date")),
                "{typed}"
            );
        }
    }
}
