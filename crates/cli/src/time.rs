//! Parses and formats times and durations of the command line.

use jiff::{SignedDuration, Timestamp, tz::TimeZone};

/// Parses a duration: `30d`, `12h`, `45m`, `10s`, `2w`, or a combination.
pub(crate) fn parse_duration(text: &str) -> Result<SignedDuration, String> {
    let wrong = || format!("{text:?} is not a duration: use 30d, 12h, 45m, 10s or 2w");
    let mut total = SignedDuration::ZERO;
    let mut digits = String::new();
    for c in text.trim().chars() {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        let count: i64 = digits.parse().map_err(|_| wrong())?;
        digits.clear();
        let seconds = match c {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            'w' => 604_800,
            _ => return Err(wrong()),
        };
        let part = count.checked_mul(seconds).ok_or_else(wrong)?;
        total = total
            .checked_add(SignedDuration::from_secs(part))
            .ok_or_else(wrong)?;
    }
    if !digits.is_empty() || total.is_zero() && !text.contains('0') {
        return Err(wrong());
    }
    Ok(total)
}

/// Parses an instant: RFC 3339, a day, or an age.
pub(crate) fn parse_instant(
    text: &str,
    now: Timestamp,
    zone: &TimeZone,
) -> Result<Timestamp, String> {
    let text = text.trim();
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Ok(instant);
    }
    if let Ok(time) = text.parse::<jiff::civil::DateTime>() {
        return time
            .to_zoned(zone.clone())
            .map(|zoned| zoned.timestamp())
            .map_err(|error| error.to_string());
    }
    if let Ok(ago) = parse_duration(text) {
        return now.checked_sub(ago).map_err(|error| error.to_string());
    }
    Err(format!(
        "{text:?} is not a time: use 2026-11-15, 2026-11-15T10:00:00Z or an age like 3d"
    ))
}

/// Formats a time of day, with the date if it is not today.
pub(crate) fn format_time(at: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let local = at.to_zoned(zone.clone());
    let format = if local.date() == now.to_zoned(zone.clone()).date() {
        "%H:%M:%S"
    } else {
        "%Y-%m-%d %H:%M"
    };
    local.strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read() {
        assert_eq!(
            parse_duration("30d").unwrap(),
            SignedDuration::from_hours(720)
        );
        assert_eq!(
            parse_duration("1h30m").unwrap(),
            SignedDuration::from_mins(90)
        );
        assert_eq!(parse_duration("0d").unwrap(), SignedDuration::ZERO);
        for wrong in ["", "d", "3", "3y", "99999999999999999999d", "-1d"] {
            assert!(parse_duration(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn instants_are_read() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let at = |text| {
            parse_instant(text, now, &TimeZone::UTC)
                .unwrap()
                .to_string()
        };
        assert_eq!(at("2026-11-01"), "2026-11-01T00:00:00Z");
        assert_eq!(at("2026-11-01T08:00:00Z"), "2026-11-01T08:00:00Z");
        assert_eq!(at("2h"), "2026-11-15T10:00:00Z");
        assert!(parse_instant("yesterday-ish", now, &TimeZone::UTC).is_err());
    }
}
