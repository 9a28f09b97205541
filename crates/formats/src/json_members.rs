//! Parses the fields of a JSON object written by another system.
//!
//! Fields are parsed one by one from raw JSON, so that an error can name the wrong one.

use std::borrow::Cow;

use jiff::{SignedDuration, Timestamp, Unit};
use serde::Deserialize;
use serde_json::value::RawValue;
use throughline_model::{Usage, truncate_to_micros};

use crate::LineError;
use crate::error::parser_message;
use crate::json_string::parse_string;

/// Decodes an object. Rejects arrays, which serde would accept for a struct.
pub(crate) fn parse_object<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, String> {
    if json.starts_with('{') {
        serde_json::from_str(json).map_err(|error| parser_message(&error))
    } else {
        Err("not an object".to_owned())
    }
}

/// Parses a string field.
pub(crate) fn parse_text(
    member: &'static str,
    raw: Option<&RawValue>,
) -> Result<Option<String>, LineError> {
    let bad = || LineError::BadMember {
        member,
        expected: "a string",
    };
    raw.map(|raw| parse_string(raw).map(Cow::into_owned).ok_or_else(bad))
        .transpose()
}

/// Parses a string field; a number is returned as written.
pub(crate) fn parse_text_or_number(
    member: &'static str,
    raw: Option<&RawValue>,
) -> Result<Option<String>, LineError> {
    match raw.map(RawValue::get) {
        Some(number) if number.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => {
            Ok(Some(number.to_owned()))
        }
        _ => parse_text(member, raw).map_err(|_| LineError::BadMember {
            member,
            expected: "a string or a number",
        }),
    }
}

/// Parses a boolean field; absent means false.
pub(crate) fn parse_flag(member: &'static str, raw: Option<&RawValue>) -> Result<bool, LineError> {
    raw.map_or(Ok(false), |raw| {
        serde_json::from_str(raw.get()).map_err(|_| LineError::BadMember {
            member,
            expected: "true or false",
        })
    })
}

/// Parses a field in milliseconds; fractions are dropped.
pub(crate) fn parse_millis(
    member: &'static str,
    raw: Option<&RawValue>,
) -> Result<Option<u64>, LineError> {
    let Some(raw) = raw else { return Ok(None) };
    let whole = serde_json::from_str::<u64>(raw.get()).ok();
    let rounded = || {
        let millis: f64 = serde_json::from_str(raw.get()).ok()?;
        let duration = std::time::Duration::try_from_secs_f64(millis / 1000.0).ok()?;
        u64::try_from((duration + std::time::Duration::from_micros(500)).as_millis()).ok()
    };
    let bad = LineError::BadMember {
        member,
        expected: "a number of milliseconds",
    };
    whole.or_else(rounded).ok_or(bad).map(Some)
}

/// Parses an RFC 3339 time or a Unix time in seconds or, if too large, milliseconds.
pub(crate) fn parse_time(raw: Option<&RawValue>) -> Result<Option<Timestamp>, LineError> {
    const SECONDS: f64 = 1e11;

    let Some(raw) = raw else { return Ok(None) };
    let read = || {
        let json = raw.get();
        if json.starts_with('"') {
            return parse_string(raw)?.trim().parse().ok();
        }
        let number: f64 = serde_json::from_str(json).ok()?;
        let in_millis = number.abs() > SECONDS;
        if let Ok(whole) = serde_json::from_str::<i64>(json) {
            return if in_millis {
                Timestamp::from_millisecond(whole).ok()
            } else {
                Timestamp::from_second(whole).ok()
            };
        }
        let seconds = if in_millis { number / 1000.0 } else { number };
        let since = SignedDuration::try_from_secs_f64(seconds).ok()?;
        Timestamp::from_duration(since.round(Unit::Microsecond).ok()?).ok()
    };
    match read() {
        Some(at) => Ok(Some(truncate_to_micros(at))),
        None => Err(LineError::BadTime(truncate(raw.get()))),
    }
}

/// Shortens a text for an error message.
fn truncate(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Parses token usage under our field names or those of the large providers.
pub(crate) fn parse_usage(raw: Option<&RawValue>) -> Result<Option<Usage>, LineError> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct CachedTokenDetails {
        cached_tokens: Option<u64>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct RawUsage {
        input: Option<u64>,
        input_tokens: Option<u64>,
        prompt_tokens: Option<u64>,
        output: Option<u64>,
        output_tokens: Option<u64>,
        completion_tokens: Option<u64>,
        cache_read: Option<u64>,
        cache_write: Option<u64>,
        cache_read_input_tokens: Option<u64>,
        cache_creation_input_tokens: Option<u64>,
        input_tokens_details: Option<CachedTokenDetails>,
        prompt_tokens_details: Option<CachedTokenDetails>,
    }

    let Some(raw) = raw else { return Ok(None) };
    let bad = |_| LineError::BadMember {
        member: "usage",
        expected: "an object of token counts",
    };
    let figures: RawUsage = parse_object(raw.get()).map_err(bad)?;
    // Some systems write the same figure under two names.
    let input = (figures.input)
        .or(figures.input_tokens)
        .or(figures.prompt_tokens);
    let output = (figures.output)
        .or(figures.output_tokens)
        .or(figures.completion_tokens);
    if input.is_none() && output.is_none() {
        return Ok(None);
    }
    // Systems with these names do not count cached tokens as input.
    let beside = [
        figures.cache_read_input_tokens,
        figures.cache_creation_input_tokens,
    ];
    let input = beside
        .into_iter()
        .flatten()
        .fold(input.unwrap_or(0), u64::saturating_add);
    let details = (figures.input_tokens_details)
        .or(figures.prompt_tokens_details)
        .unwrap_or_default();
    Ok(Some(Usage {
        input,
        output: output.unwrap_or(0),
        cache_read: (figures.cache_read)
            .or(figures.cache_read_input_tokens)
            .or(details.cached_tokens)
            .unwrap_or(0),
        cache_write: (figures.cache_write)
            .or(figures.cache_creation_input_tokens)
            .unwrap_or(0),
    }))
}
