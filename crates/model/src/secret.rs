//! Texts that look like keys, tokens and passwords, which nobody should remember.
//!
//! Told by well-known beginnings, by what stands around them, and by how much like
//! chance they look. Commits, digests and UUIDs are none of these.

/// What the well-known kinds begin with, how long they are at least, and what they are.
const KINDS: &[(&str, usize, &str)] = &[
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
];
/// Words that say that what comes next is not for everybody.
const LABELS: &[&str] = &[
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
];
/// The shortest that looks like chance.
const LONG: usize = 24;
/// The shortest of those after a word that announces them.
const LABELLED: usize = 16;
/// Bits a character has at least where it looks like chance.
const BITS: f64 = 3.9;

/// What kind of secret a text seems to hold, if any.
pub fn looks_secret(text: &str) -> Option<&'static str> {
    if text.contains("-----BEGIN") && text.contains("PRIVATE KEY") {
        return Some("a private key");
    }
    let mut labelled = false;
    for word in text.split_whitespace() {
        if let Some(found) = in_word(word, &mut labelled) {
            return Some(found);
        }
    }
    None
}

/// `labelled` says whether the word before announces a secret, and is set for the next.
fn in_word(word: &str, labelled: &mut bool) -> Option<&'static str> {
    let bare = word.trim_matches(|c: char| "\"'`()[]{}<>,;.!?".contains(c));
    if let Some((_, rest)) = bare.split_once("://")
        && let Some((who, _)) = rest.split_once('@')
        && who
            .split_once(':')
            .is_some_and(|(_, password)| !password.is_empty())
    {
        return Some("a password in an address");
    }
    let announced = *labelled;
    *labelled = false;
    for part in bare.split(['=', ':', '/', '"', '\'', ',', '&', '?']) {
        if let Some(known) = KINDS.iter().find(|kind| is_kind(part, kind)) {
            return Some(known.2);
        }
        if part.starts_with("eyJ") && part.matches('.').count() == 2 && part.len() > 30 {
            return Some("a token");
        }
        if like_chance(part) {
            return Some("a key");
        }
    }
    if let Some((name, value)) = bare.split_once(['=', ':'])
        && is_label(name)
        && guarded(value)
    {
        return Some("a password");
    }
    if announced && guarded(bare) {
        return Some("a password");
    }
    let lower = bare.trim_end_matches([':', '=']).to_lowercase();
    // "the password is hunter2": the label holds until something that is not it.
    *labelled = is_label(&lower) || (announced && matches!(lower.as_str(), "" | "is" | "was"));
    None
}

fn is_kind(part: &str, (start, least, _): &(&str, usize, &str)) -> bool {
    let token = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    part.starts_with(start)
        && part.len() >= *least
        && part.chars().all(token)
        && part.chars().any(|c| c.is_ascii_digit())
}

fn is_label(name: &str) -> bool {
    let name = name.to_lowercase();
    LABELS.iter().any(|label| {
        name == *label
            || name.ends_with(&format!("_{label}"))
            || name.ends_with(&format!("-{label}"))
    })
}

/// Whether a word after a label is the secret itself and not talk about it: it is no
/// plain word, no path and no name of a variable.
fn guarded(value: &str) -> bool {
    let value = value.trim_matches(|c: char| "\"'`".contains(c));
    let digits = value.chars().filter(char::is_ascii_digit).count();
    let letters = value.chars().filter(|c| c.is_alphabetic()).count();
    let marks = value.chars().any(|c| "!@#$%^&*+".contains(c));
    let reference = value.contains('/') || value.starts_with(['$', '<', '{']);
    value.len() >= 6
        && letters > 0
        && !reference
        && (marks || (digits > 0 && value.len() >= LABELLED) || (digits > 0 && mixed(value)))
}

/// Letters and digits in turns, as passwords have them and words do not.
fn mixed(value: &str) -> bool {
    value.chars().all(|c| c.is_ascii_alphanumeric())
        && value.ends_with(|c: char| c.is_ascii_digit())
}

/// Whether something is as unlike a word as a random key is.
fn like_chance(part: &str) -> bool {
    let key = |c: char| c.is_ascii_alphanumeric() || "+-_".contains(c);
    let part = part.trim_end_matches('=');
    if part.len() < LONG || !part.chars().all(key) {
        return false;
    }
    // Commits, digests and UUIDs.
    if part.chars().all(|c| c.is_ascii_hexdigit() || c == '-') {
        return false;
    }
    let digit: Vec<bool> = part.chars().map(|c| c.is_ascii_digit()).collect();
    let turns = digit.windows(2).filter(|pair| pair[0] != pair[1]).count();
    // A date and a time in an id are digits in a few groups.
    let dashes = part.matches(['-', '_']).count();
    turns >= 6 && dashes <= 3 && bits(part) >= BITS
}

/// How many bits of information a character has, by how often each occurs.
#[allow(clippy::cast_precision_loss, reason = "lengths of words")]
fn bits(text: &str) -> f64 {
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

    /// Made here, so that no scanner takes this file for a leak.
    fn made(start: &str) -> String {
        format!("{start}4f9aK2lmN8qRt7uVw3xYz1b2C3d4E5f6G7h8")
    }

    #[test]
    fn every_well_known_kind_is_recognised() {
        for (start, _, what) in KINDS {
            for text in [
                made(start),
                format!("the thing is `{}`.", made(start)),
                format!("export THING=\"{}\"", made(start)),
            ] {
                assert_eq!(looks_secret(&text), Some(*what), "{text:?}");
            }
        }
    }

    #[test]
    fn keys_tokens_and_passwords_are_recognised() {
        let dots = format!("{}.{}.{}", made("eyJ"), made("eyJ"), made(""));
        for text in [
            "-----BEGIN OPENSSH PRIVATE KEY----- b3BlbnNzaC1rZXk",
            "postgres://app:hunter2@db.example.org/app",
            "the password is hunter2",
            "password: correct!horse",
            "DB_PASSWORD=s3cretpw1",
            "token 9f86d081884c7d659a2feaa0c55ad015",
            "Authorization: Bearer abc123def456ghi789jkl",
            &dots,
            &format!("it is {}", made("")),
        ] {
            assert!(looks_secret(text).is_some(), "{text:?} passed");
        }
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
            assert_eq!(looks_secret(text), None, "{text:?}");
        }
    }
}
