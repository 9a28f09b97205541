//! Counts the tokens of a text with a model's encoding.
//!
//! The tables are slow to load, so they are loaded once per process and only on first
//! use. Text that looks like a control token is counted as ordinary text.
//!
//! Invariant: counting takes time linear in the length of the text, whatever it
//! contains. The tokenizer slows down on long runs without a break and fails on very
//! long runs of whitespace, so it never gets more than [`MAX_CHUNK_BYTES`] bytes at a
//! time.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use tiktoken_rs::CoreBPE;

/// Chunks end at the first token boundary after this many bytes…
const CHUNK_BYTES: usize = 16 * 1024;
/// …and at any character boundary after this many.
const MAX_CHUNK_BYTES: usize = 32 * 1024;

/// A token encoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Encoding {
    /// The encoding of newer OpenAI models, and the closest known one for many others.
    #[default]
    #[serde(rename = "o200k_base")]
    O200k,
    /// The encoding of GPT-4 and GPT-3.5, similar to that of Llama 3 and Qwen.
    #[serde(rename = "cl100k_base")]
    Cl100k,
    /// Four characters per token, for models whose encoding is unknown.
    #[serde(rename = "rough")]
    Rough,
}

/// The name of no known encoding.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an encoding: use o200k_base, cl100k_base or rough")]
pub struct UnknownEncoding(String);

impl Encoding {
    /// All encodings.
    pub const ALL: [Self; 3] = [Self::O200k, Self::Cl100k, Self::Rough];

    /// The name as serialized.
    pub fn name(self) -> &'static str {
        match self {
            Self::O200k => "o200k_base",
            Self::Cl100k => "cl100k_base",
            Self::Rough => "rough",
        }
    }

    /// The encoding of a model, or the closest known one.
    ///
    /// Claude and Gemini do not publish theirs: they are counted as `o200k_base` and
    /// calibrated with the usage they report. An unknown model is counted as
    /// [`Encoding::Rough`].
    pub fn for_model(model: &str) -> Self {
        const CL100K: &[&str] = &["gpt-4", "gpt-3.5", "text-embedding", "llama", "qwen"];
        const O200K: &[&str] = &[
            "gpt-4o", "gpt-4.", "gpt-5", "gpt-6", "gpt-oss", "chatgpt", "codex", "o1", "o3", "o4",
            "claude", "gemini", "gemma", "mistral", "mixtral", "deepseek", "grok", "command",
            "kimi", "glm",
        ];
        let model = model.to_ascii_lowercase();
        // Routers write `vendor/model`, cloud providers `vendor.model`.
        let is_named = |name: &&str| {
            model
                .match_indices(*name)
                .any(|(at, _)| at == 0 || matches!(model.as_bytes()[at - 1], b'/' | b'.' | b':'))
        };
        if O200K.iter().any(is_named) || model.contains("claude") {
            Self::O200k
        } else if CL100K.iter().any(is_named) {
            Self::Cl100k
        } else {
            Self::Rough
        }
    }

    /// Whether counting is slower than looking up a stored count.
    pub fn is_slow(self) -> bool {
        self != Self::Rough
    }

    /// Counts the tokens of a text.
    pub fn count(self, text: &str) -> u64 {
        if text.is_empty() {
            return 0;
        }
        match self.tokenizer() {
            Some(table) => split_chunks(text)
                .map(|piece| table.count_ordinary(piece) as u64)
                .sum(),
            None => estimate_tokens(text),
        }
    }

    fn tokenizer(self) -> Option<&'static CoreBPE> {
        static O200K: OnceLock<Option<CoreBPE>> = OnceLock::new();
        static CL100K: OnceLock<Option<CoreBPE>> = OnceLock::new();
        match self {
            Self::O200k => O200K.get_or_init(|| tiktoken_rs::o200k_base().ok()),
            Self::Cl100k => CL100K.get_or_init(|| tiktoken_rs::cl100k_base().ok()),
            Self::Rough => return None,
        }
        .as_ref()
    }
}

impl std::fmt::Display for Encoding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl std::str::FromStr for Encoding {
    type Err = UnknownEncoding;

    fn from_str(text: &str) -> Result<Self, UnknownEncoding> {
        match text {
            "o200k_base" | "o200k" => Ok(Self::O200k),
            "cl100k_base" | "cl100k" => Ok(Self::Cl100k),
            "rough" => Ok(Self::Rough),
            other => Err(UnknownEncoding(other.to_owned())),
        }
    }
}

fn estimate_tokens(text: &str) -> u64 {
    (text.chars().count() as u64).div_ceil(4)
}

/// Splits a text into chunks short enough for the tokenizer.
fn split_chunks(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, after) = rest.split_at(find_chunk_end(rest));
        rest = after;
        Some(piece)
    })
}

/// Finds the end of a chunk: before a single space between two letters, which is a
/// token boundary in every encoding, so cutting there does not change the count.
fn find_chunk_end(text: &str) -> usize {
    if text.len() <= MAX_CHUNK_BYTES {
        return text.len();
    }
    let bytes = text.as_bytes();
    (CHUNK_BYTES..MAX_CHUNK_BYTES)
        .find(|&at| {
            bytes[at] == b' '
                && bytes[at - 1].is_ascii_alphabetic()
                && bytes[at + 1].is_ascii_alphabetic()
        })
        .or_else(|| (1..=MAX_CHUNK_BYTES).rfind(|&at| text.is_char_boundary(at)))
        .unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_the_encodings() {
        assert_eq!(Encoding::O200k.count("hello world"), 2);
        assert_eq!(Encoding::Cl100k.count("hello world"), 2);
        assert_eq!(Encoding::Rough.count("hello world"), 3);
        for encoding in Encoding::ALL {
            assert_eq!(encoding.count(""), 0);
            assert_eq!(encoding.name().parse(), Ok(encoding));
        }
    }

    #[test]
    fn a_control_token_in_the_text_is_ordinary_text() {
        assert!(Encoding::O200k.count("<|endoftext|>") > 1);
    }

    #[test]
    fn models_get_the_nearest_encoding() {
        for (model, encoding) in [
            ("gpt-4o-mini", Encoding::O200k),
            ("gpt-5.2", Encoding::O200k),
            ("o3", Encoding::O200k),
            ("openai/gpt-4.1", Encoding::O200k),
            ("claude-sonnet-4-5", Encoding::O200k),
            ("us.anthropic.claude-3", Encoding::O200k),
            ("gemini-2.5-pro", Encoding::O200k),
            ("gpt-4-turbo", Encoding::Cl100k),
            ("gpt-3.5-turbo", Encoding::Cl100k),
            ("meta-llama/Llama-3.1-8B", Encoding::Cl100k),
            ("meta/llama-3.1", Encoding::Cl100k),
            ("my-model", Encoding::Rough),
            ("", Encoding::Rough),
        ] {
            assert_eq!(Encoding::for_model(model), encoding, "{model}");
        }
    }

    #[test]
    fn cutting_a_long_text_changes_no_count() {
        let text =
            "The quick brown fox, 42 of them, jumped; over\n\n the lazy dog's back. ".repeat(2_000);
        let whole = tiktoken_rs::o200k_base_singleton().count_ordinary(&text) as u64;
        assert!(split_chunks(&text).count() > 3);
        assert_eq!(split_chunks(&text).collect::<String>(), text);
        assert_eq!(Encoding::O200k.count(&text), whole);
    }

    #[test]
    fn a_megabyte_without_a_break_is_counted_and_not_a_crash() {
        for run in ["a", " "] {
            assert!(Encoding::O200k.count(&run.repeat(1 << 20)) > 0);
        }
    }
}
