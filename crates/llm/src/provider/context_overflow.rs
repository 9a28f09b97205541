//! Recognizes the error a provider returns when a request exceeds the context window.
//!
//! There is no common error code. The codes and phrases below are those of Anthropic,
//! OpenAI and compatible servers, Gemini, Mistral, xAI, llama.cpp, vLLM and Ollama.

use serde_json::Value;

const CODES: [&str; 4] = [
    "context_length_exceeded",
    "exceed_context_size_error",
    "request_too_large",
    "string_above_max_length",
];

const PHRASES: [&str; 12] = [
    "prompt is too long",
    "prompt too long",
    "maximum context length",
    "maximum prompt length",
    "exceed context limit",
    "exceeds the context window",
    "exceeds the available context size",
    "exceeds the context length",
    "exceeds the maximum number of tokens",
    "longer than the maximum model length",
    "too large for model",
    "reduce the length of the",
];

/// Returns the size of the request and the limit, as far as reported; `None` if this is a
/// different error.
pub(super) fn parse_context_overflow(
    status: u16,
    message: &str,
    codes: &[String],
    body: &Value,
) -> Option<(Option<u64>, Option<u64>)> {
    let message = message.to_ascii_lowercase();
    let is_overflow = codes.iter().any(|code| CODES.contains(&code.as_str()))
        || PHRASES.iter().any(|words| message.contains(words));
    // Some servers answer with an internal error instead of a client error.
    if !(status == 413 || (is_overflow && matches!(status, 400 | 422 | 500))) {
        return None;
    }
    let error = body.get("error").unwrap_or(body);
    let member = |name: &str| error[name].as_u64();
    if let (Some(tokens), Some(window)) = (member("n_prompt_tokens"), member("n_ctx")) {
        return Some((Some(tokens), Some(window)));
    }
    Some(parse_sizes(&message))
}

/// Extracts the sizes from a message. `199000 + 20000 > 200000` is a sum; otherwise the
/// largest number is the size of the request and the second largest the limit.
fn parse_sizes(message: &str) -> (Option<u64>, Option<u64>) {
    if let Some((sent, most)) = message.split_once('>') {
        let sum = parse_numbers(sent).into_iter().reduce(u64::saturating_add);
        return (sum, parse_numbers(most).first().copied());
    }
    let mut all = parse_numbers(message);
    all.sort_unstable_by(|one, other| other.cmp(one));
    match all[..] {
        [] => (None, None),
        [window] => (None, Some(window)),
        [tokens, window, ..] => (Some(tokens), Some(window)),
    }
}

/// Extracts numbers large enough to be token counts.
fn parse_numbers(text: &str) -> Vec<u64> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, ',' | '.' | '-')))
        .filter_map(|word| word.trim_matches(['.', ',']).replace(',', "").parse().ok())
        .filter(|number| *number >= 256)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_overflow(status: u16, body: &str) -> Option<(Option<u64>, Option<u64>)> {
        let body: Value = serde_json::from_str(body).unwrap();
        let error = body.get("error").unwrap_or(&body);
        let message = error.as_str().or(error["message"].as_str()).unwrap();
        let codes: Vec<String> = ["type", "code"]
            .iter()
            .filter_map(|name| error[name].as_str().map(str::to_owned))
            .collect();
        parse_context_overflow(status, message, &codes, &body)
    }

    #[test]
    fn everybody_says_it_differently() {
        let both = |tokens, window| Some((Some(tokens), Some(window)));
        for (whose, body, sizes) in [
            (
                "Anthropic",
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 215431 tokens > 200000 maximum"}}"#,
                both(215_431, 200_000),
            ),
            (
                "Anthropic, with max_tokens",
                r#"{"error":{"message":"input length and `max_tokens` exceed context limit: 199000 + 20000 > 200000, decrease input length"}}"#,
                both(219_000, 200_000),
            ),
            (
                "OpenAI",
                r#"{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 150123 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
                both(150_123, 128_000),
            ),
            (
                "OpenAI, Responses",
                r#"{"error":{"message":"Your input exceeds the context window of this model.","code":"context_length_exceeded"}}"#,
                Some((None, None)),
            ),
            (
                "llama.cpp",
                r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}"#,
                both(5_000, 4_096),
            ),
            (
                "vLLM",
                r#"{"object":"error","message":"The decoder prompt (length 5000) is longer than the maximum model length of 4096.","type":"BadRequestError","code":400}"#,
                both(5_000, 4_096),
            ),
            (
                "Ollama",
                r#"{"error":"the input length exceeds the context length"}"#,
                Some((None, None)),
            ),
            (
                "Gemini",
                r#"{"error":{"message":"The input token count (1,200,000) exceeds the maximum number of tokens allowed (1048576)."}}"#,
                both(1_200_000, 1_048_576),
            ),
        ] {
            assert_eq!(parse_overflow(400, body), sizes, "{whose}");
        }
    }

    #[test]
    fn other_refusals_are_something_else() {
        let body = r#"{"error":{"message":"max_tokens: 999999 > 64000, which is the maximum allowed","type":"invalid_request_error"}}"#;
        assert_eq!(parse_overflow(400, body), None);
        assert_eq!(
            parse_overflow(429, r#"{"error":{"message":"prompt is too long"}}"#),
            None
        );
        assert_eq!(
            parse_overflow(413, r#"{"error":{"message":"no"}}"#),
            Some((None, None))
        );
    }
}
