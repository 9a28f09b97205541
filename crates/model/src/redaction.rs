//! Detects and redacts secrets in text: keys, tokens and passwords.
//!
//! Secrets are recognized by well-known prefixes, by labels before them, and by high
//! entropy. Commit hashes, digests and UUIDs are not treated as secrets.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;

/// Known kinds of secrets: prefix, minimum length, description.
const KNOWN_SECRETS: &[(&str, usize, &str)] = &[
    ("sk-", 20, "an API key"),
    ("sk_live_", 16, "an API key"),
    ("sk_test_", 16, "an API key"),
    ("rk_live_", 16, "an API key"),
    ("ghp_", 20, "a GitHub token"),
    ("gho_", 20, "a GitHub token"),
    ("ghu_", 20, "a GitHub token"),
    ("ghs_", 20, "a GitHub token"),
    ("ghr_", 20, "a GitHub token"),
    ("github_pat_", 20, "a GitHub token"),
    ("glpat-", 16, "a GitLab token"),
    ("xoxa-", 16, "a Slack token"),
    ("xoxb-", 16, "a Slack token"),
    ("xoxp-", 16, "a Slack token"),
    ("xoxs-", 16, "a Slack token"),
    ("xapp-", 16, "a Slack token"),
    ("AKIA", 20, "an AWS key"),
    ("ASIA", 20, "an AWS key"),
    ("AIza", 30, "a Google key"),
    ("ya29.", 20, "a Google token"),
    ("npm_", 20, "an npm token"),
    ("pypi-", 20, "a PyPI token"),
    ("hf_", 20, "a Hugging Face token"),
    ("SG.", 20, "a SendGrid key"),
    ("dop_v1_", 20, "a DigitalOcean token"),
    ("shpat_", 20, "a Shopify token"),
    ("AGE-SECRET-KEY-", 20, "a private key"),
    ("gsk_", 20, "an API key"),
    ("xai-", 20, "an API key"),
    ("pplx-", 20, "an API key"),
    ("nvapi-", 20, "an API key"),
    ("r8_", 20, "an API key"),
    ("whsec_", 20, "an API key"),
    ("lin_api_", 20, "an API key"),
    ("glsa_", 20, "a Grafana token"),
    ("figd_", 20, "a Figma token"),
    ("sntrys_", 20, "a Sentry token"),
    ("dckr_pat_", 20, "a Docker token"),
    ("hvs.", 20, "a Vault token"),
    (crate::TOKEN_PREFIX, 30, "a token"),
];
/// Labels that announce a secret.
const SECRET_LABELS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "api_key",
    "api-key",
    "access_key",
    "secret_key",
    "auth_token",
    "bearer",
    "credential",
    "credentials",
    "key",
    "pwd",
    "accountkey",
    "sharedaccesskey",
    "secretaccesskey",
    "client_secret",
    "clientsecret",
];
/// The minimum length of an unlabelled high-entropy secret.
const MIN_RANDOM_LEN: usize = 24;
/// The minimum length of a high-entropy secret after a label.
const MIN_LABELLED_LEN: usize = 16;
/// The minimum entropy per character, in bits, for text to count as random.
const MIN_ENTROPY_BITS: f64 = 3.9;

/// JSON keys whose strings look random but are not secrets.
const UNREDACTED_KEYS: &[&str] = &[
    "id",
    "call_id",
    "external_id",
    "signature",
    "encrypted_content",
    "blob",
    "digest",
    "kind",
    "type",
    "role",
    "session",
    "from",
    "media_type",
];

/// A range of a text that looks like a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretSpan {
    /// Its position, in bytes.
    pub range: Range<usize>,
    /// The kind of secret it appears to be.
    pub description: &'static str,
}

/// The kind of the first secret found in a text, if any.
pub fn detect_secret(text: &str) -> Option<&'static str> {
    find_secrets(text).first().map(|span| span.description)
}

/// Finds everything in a text that looks like a secret, in order.
pub fn find_secrets(text: &str) -> Vec<SecretSpan> {
    let mut spans = find_private_keys(text);
    let mut labelled = false;
    let mut at = 0;
    for word in text.split(char::is_whitespace) {
        let start = at;
        at += word.len();
        // One whitespace character follows the word.
        at += text[at..].chars().next().map_or(0, char::len_utf8);
        if !word.is_empty() && !spans.iter().any(|span| span.range.contains(&start)) {
            scan_word(word, start, &mut labelled, &mut spans);
        }
    }
    spans.sort_by_key(|span| (span.range.start, span.range.end));
    // Skip a span that begins within the previous one.
    let mut end = 0;
    spans.retain(|span| {
        let apart = span.range.start >= end;
        end = end.max(span.range.end);
        apart
    });
    spans
}

/// Replaces everything that looks like a secret.
pub fn redact(text: &str) -> Cow<'_, str> {
    let spans = find_secrets(text);
    if spans.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    let mut from = 0;
    for span in &spans {
        safe.push_str(&text[from..span.range.start]);
        safe.push_str(&redaction_mark(span.description));
        from = span.range.end;
    }
    safe.push_str(&text[from..]);
    Cow::Owned(safe)
}

fn redaction_mark(what: &str) -> String {
    format!("[redacted: {what}]")
}

/// Redacts every string in a JSON value; returns how many contained a secret.
pub fn redact_json(value: &mut Value) -> usize {
    match value {
        Value::String(text) => match redact(text) {
            Cow::Borrowed(_) => 0,
            Cow::Owned(safe) => {
                *text = safe;
                1
            }
        },
        Value::Array(items) => items.iter_mut().map(redact_json).sum(),
        Value::Object(members) => members
            .iter_mut()
            .filter(|(name, _)| !UNREDACTED_KEYS.contains(&name.as_str()))
            .map(|(name, value)| match value {
                // The key labels the value, as in `{"password": "…"}`.
                Value::String(text) if is_label(name) && is_secret_value(text) => {
                    *text = redaction_mark("a password");
                    1
                }
                value => redact_json(value),
            })
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Finds PEM blocks of private keys, from the first line to the last.
fn find_private_keys(text: &str) -> Vec<SecretSpan> {
    const BEGIN: &str = "-----BEGIN";
    const END: &str = "-----END";
    let mut spans = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find(BEGIN).map(|at| from + at) {
        let rest = &text[start + BEGIN.len()..];
        let title = rest.split("-----").next().unwrap_or_default();
        if !title.contains("PRIVATE KEY") {
            from = start + BEGIN.len();
            continue;
        }
        let end = rest.find(END).map_or(text.len(), |at| {
            let last = start + BEGIN.len() + at + END.len();
            let closed = text[last..].find("-----").map(|at| last + at + 5);
            closed.unwrap_or(text.len())
        });
        spans.push(SecretSpan {
            range: start..end,
            description: "a private key",
        });
        from = end;
    }
    spans
}

/// Records the secrets in one word of a text. `labelled` says whether the previous word
/// announces a secret, and is updated for the next word.
fn scan_word(word: &str, start: usize, labelled: &mut bool, spans: &mut Vec<SecretSpan>) {
    let found = spans.len();
    let around = |c: char| "\"'`()[]{}<>,;.!?".contains(c);
    let bare = word.trim_matches(around);
    let start = start + (word.len() - word.trim_start_matches(around).len());
    let mut note = |inner: &str, what| {
        // `inner` is a slice of `bare`: compute its offset from the pointers.
        let at = start + (inner.as_ptr() as usize - bare.as_ptr() as usize);
        let range = at..at + inner.len();
        spans.push(SecretSpan {
            range,
            description: what,
        });
    };
    if let Some((_, rest)) = bare.split_once("://")
        && let Some((who, _)) = rest.split_once('@')
        && let Some((_, password)) = who.split_once(':')
        && !password.is_empty()
    {
        note(password, "a password in an address");
    }
    let announced = *labelled;
    *labelled = false;
    for part in bare.split(['=', ':', '/', '"', '\'', ',', '&', '?', '{', '}', '(', ')']) {
        if let Some(known) = KNOWN_SECRETS
            .iter()
            .find(|kind| is_known_secret(part, kind))
        {
            note(part, known.2);
        } else if part.starts_with("eyJ") && part.matches('.').count() == 2 && part.len() > 30 {
            note(part, "a token");
        } else if is_high_entropy(part) {
            note(part, "a key");
        }
    }
    if let Some((name, value)) = bare.split_once(['=', ':'])
        && is_label(name.trim_matches(['"', '\'']))
        && is_secret_value(value)
    {
        note(value, "a password");
    } else if announced && is_secret_value(bare) {
        note(bare, "a password");
    }
    if spans.len() > found {
        return;
    }
    let name = bare.trim_end_matches([':', '=']).trim_matches(['"', '\'']);
    // "the password is hunter2": the label applies until another word follows.
    let goes_on = || {
        ["", "is", "was"]
            .iter()
            .any(|word| name.eq_ignore_ascii_case(word))
    };
    *labelled = is_label(name) || (announced && goes_on());
}

fn is_known_secret(part: &str, (start, least, _): &(&str, usize, &str)) -> bool {
    let token = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    part.len() >= *least
        && part.starts_with(start)
        && part.chars().all(token)
        && part.chars().any(|c| c.is_ascii_digit())
}

fn is_label(name: &str) -> bool {
    // Runs for every word of a text: labels are ASCII, so nothing is copied.
    SECRET_LABELS.iter().any(|label| {
        let Some(at) = name.len().checked_sub(label.len()) else {
            return false;
        };
        let (before, last) = name.as_bytes().split_at(at);
        last.eq_ignore_ascii_case(label.as_bytes())
            && matches!(before.last(), None | Some(b'_' | b'-'))
    })
}

/// Whether a value after a label is the secret itself: not a plain word, path or
/// variable name.
fn is_secret_value(value: &str) -> bool {
    let value = value.trim_matches(|c: char| "\"'`".contains(c));
    let digits = value.chars().filter(char::is_ascii_digit).count();
    let letters = value.chars().filter(|c| c.is_alphabetic()).count();
    let marks = value.chars().any(|c| "!@#$%^&*+".contains(c));
    let reference = value.contains('/') || value.starts_with(['$', '<', '{']);
    value.len() >= 6
        && letters > 0
        && !reference
        && (marks
            || (digits > 0 && value.len() >= MIN_LABELLED_LEN)
            || (digits > 0 && is_mixed_alphanumeric(value)))
}

/// Whether letters and digits alternate, as in passwords but not in words.
fn is_mixed_alphanumeric(value: &str) -> bool {
    value.chars().all(|c| c.is_ascii_alphanumeric())
        && value.ends_with(|c: char| c.is_ascii_digit())
}

/// Whether the text is as random as a generated key.
fn is_high_entropy(part: &str) -> bool {
    let key = |c: char| c.is_ascii_alphanumeric() || "+-_".contains(c);
    let part = part.trim_end_matches('=');
    if part.len() < MIN_RANDOM_LEN || !part.chars().all(key) {
        return false;
    }
    // Commit hashes, digests and UUIDs.
    if part.chars().all(|c| c.is_ascii_hexdigit() || c == '-') {
        return false;
    }
    let digit: Vec<bool> = part.chars().map(|c| c.is_ascii_digit()).collect();
    let turns = digit.windows(2).filter(|pair| pair[0] != pair[1]).count();
    // Ids with a date and time have digits in several dashed groups.
    let dashes = part.matches(['-', '_']).count();
    turns >= 6 && dashes <= 3 && entropy_bits(part) >= MIN_ENTROPY_BITS
}

/// The entropy per character in bits, from character frequencies.
#[allow(clippy::cast_precision_loss, reason = "lengths of words")]
fn entropy_bits(text: &str) -> f64 {
    let mut counts = std::collections::BTreeMap::new();
    for c in text.chars() {
        *counts.entry(c).or_insert(0_u32) += 1;
    }
    let all = text.chars().count() as f64;
    let share = |count: &u32| f64::from(*count) / all;
    counts
        .values()
        .map(|count| -share(count) * share(count).log2())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Generated, so that no secret scanner reports this file.
    fn fake_secret(start: &str) -> String {
        format!("{start}4f9aK2lmN8qRt7uVw3xYz1b2C3d4E5f6G7h8")
    }

    #[test]
    fn every_well_known_kind_is_recognised() {
        for (start, _, what) in KNOWN_SECRETS {
            for text in [
                fake_secret(start),
                format!("the thing is `{}`.", fake_secret(start)),
                format!("export THING=\"{}\"", fake_secret(start)),
            ] {
                assert_eq!(detect_secret(&text), Some(*what), "{text:?}");
            }
        }
    }

    #[test]
    fn keys_tokens_and_passwords_are_recognised() {
        let dots = format!(
            "{}.{}.{}",
            fake_secret("eyJ"),
            fake_secret("eyJ"),
            fake_secret("")
        );
        for text in [
            "-----BEGIN OPENSSH PRIVATE KEY----- b3BlbnNzaC1rZXk",
            "postgres://app:hunter2@db.example.org/app",
            "the password is hunter2",
            "password: correct!horse",
            "DB_PASSWORD=s3cretpw1",
            "token 9f86d081884c7d659a2feaa0c55ad015",
            "Authorization: Bearer abc123def456ghi789jkl",
            &dots,
            &format!("it is {}", fake_secret("")),
        ] {
            assert!(detect_secret(text).is_some(), "{text:?} passed");
        }
    }

    #[test]
    fn what_is_secret_is_replaced_and_nothing_else() {
        let key = fake_secret("sk-ant-api03-");
        let pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc\n-----END RSA PRIVATE KEY-----";
        let token = format!(
            "{}.{}.{}",
            fake_secret("eyJ"),
            fake_secret("eyJ"),
            fake_secret("x")
        );
        for (text, safe) in [
            (
                format!("Use `{key}`, then restart."),
                "Use `[redacted: an API key]`, then restart.".to_owned(),
            ),
            (
                format!("export A=\"{key}\" B={token}"),
                "export A=\"[redacted: an API key]\" B=[redacted: a token]".to_owned(),
            ),
            (
                format!("before\n{pem}\nafter"),
                "before\n[redacted: a private key]\nafter".to_owned(),
            ),
            (
                "postgres://app:hunter2@db.example.org/app ok".to_owned(),
                "postgres://app:[redacted: a password in an address]@db.example.org/app ok"
                    .to_owned(),
            ),
            (
                "the password is hunter2, don't tell".to_owned(),
                "the password is [redacted: a password], don't tell".to_owned(),
            ),
            (
                "DB_PASSWORD=s3cretpw1\nPORT=80".to_owned(),
                "DB_PASSWORD=[redacted: a password]\nPORT=80".to_owned(),
            ),
            (
                "Nothing to see: ключ".to_owned(),
                "Nothing to see: ключ".to_owned(),
            ),
        ] {
            assert_eq!(redact(&text), safe);
            assert_eq!(redact(&safe), safe, "redacting twice changes nothing");
        }
    }

    #[test]
    fn json_keeps_its_shape_and_its_ids() {
        let mut value = serde_json::json!({
            "id": fake_secret("toolu_"),
            "input": {"password": "s3cretpw1", "path": "src/a.rs", "n": 7},
            "text": [format!("key {}", fake_secret("ghp_"))],
        });
        assert_eq!(redact_json(&mut value), 2);
        assert_eq!(value["id"], fake_secret("toolu_"));
        assert_eq!(value["input"]["path"], "src/a.rs");
        assert_eq!(value["input"]["password"], "[redacted: a password]");
        assert_eq!(value["text"][0], "key [redacted: a GitHub token]");
    }

    #[test]
    fn talk_about_them_is_no_secret() {
        for text in [
            "Passwords are hashed with argon2id.",
            "The password is stored in the vault.",
            "The token expires after 15 minutes.",
            "API keys come from $OPENAI_API_KEY.",
            "The secret is kept in config/secrets.yaml.",
            "Fixed in 6e03ca6f0a1b2c3d4e5f60718293a4b5c6d7e8f9.",
            "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "Session 2026-11-15-21-03-07-412-k3x9qd has the details.",
            "Entry 0190e6a1-7c2b-7f3e-8a4d-5b6c7d8e9f00 is the one.",
            "The primary key is user_id.",
            "Use Http2ServerConnectionBuilder, not the old one.",
            "The port is 8080 and the version is 3.11.",
            "See https://example.org/docs/getting-started-with-sessions?page=2",
            "task-runner_with-many_dashes-and_words-2024",
            "The sk-learn pipeline is in src/ml.",
        ] {
            assert_eq!(detect_secret(text), None, "{text:?}");
        }
    }
}
