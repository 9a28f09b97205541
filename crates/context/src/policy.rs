//! How big the sections may be, when to compact, and what to keep.
//!
//! Policies are numbers with a name; nothing else in the crate asks which one it is.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// When a session is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum CompactionTrigger {
    /// When a request reaches so many percent of the window: `90%`.
    Share(u8),
    /// When a request reaches so many tokens: `15000`.
    Tokens(u64),
    /// When a chat ends, or when asked: `exit`.
    OnExit,
    /// Only when asked: `never`.
    Never,
}

/// What stays as it was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Retention {
    /// On compaction, whole turns up to so many percent of the window: `tail 30%`.
    Tail {
        /// Percent of the window.
        share: u8,
    },
    /// In every request, the last messages and no others: `2 messages 500 chars`.
    Messages {
        /// How many.
        count: usize,
        /// How many characters of each.
        chars: Option<usize>,
    },
    /// On compaction, nothing: `nothing`.
    Nothing,
    /// All there is, as far as it fits: `everything`.
    Everything,
    /// What comes after the checkpoint: `after checkpoint`.
    AfterCheckpoint,
}

/// How much of a budget the optional sections may take, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SectionShares {
    /// Project context.
    pub context: u8,
    /// Memory.
    pub memory: u8,
    /// Recalled excerpts, where there is not room for everything else.
    pub recall: u8,
}

/// How requests are made and when sessions are compacted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// What it is called.
    pub name: String,
    /// The most tokens a request may have, where less than the model's window.
    pub window: Option<u64>,
    /// When to compact.
    pub compact_at: CompactionTrigger,
    /// What to keep as it was said.
    pub keep: Retention,
    /// How much the optional sections may take.
    pub shares: SectionShares,
    /// Tool results and attachments of more tokens than this are bulky.
    pub elide_over: u64,
    /// How many of the newest of those are never elided.
    pub keep_results: usize,
    /// Whether to bring back what was said before.
    pub recall: bool,
    /// The most tokens of it.
    pub recall_tokens: u64,
}

impl Policy {
    /// The presets' names.
    pub const PRESETS: [&'static str; 6] = ["default", "aiarmy", "chain", "bot", "agent", "dagent"];

    /// A preset by name.
    pub fn preset(name: &str) -> Option<Self> {
        let (window, compact_at, keep, recall) = match name {
            "default" => (
                None,
                CompactionTrigger::Share(90),
                Retention::Tail { share: 30 },
                true,
            ),
            "aiarmy" => (
                Some(100_000),
                CompactionTrigger::Tokens(15_000),
                keep_last_messages(20, None),
                true,
            ),
            "chain" => (None, CompactionTrigger::OnExit, Retention::Nothing, false),
            "bot" => (
                Some(8_000),
                CompactionTrigger::Never,
                keep_last_messages(2, Some(500)),
                false,
            ),
            "agent" => (None, CompactionTrigger::Never, Retention::Everything, false),
            "dagent" => (
                Some(100_000),
                CompactionTrigger::Share(90),
                Retention::AfterCheckpoint,
                false,
            ),
            _ => return None,
        };
        Some(Self {
            name: name.to_owned(),
            window,
            compact_at,
            keep,
            recall,
            ..Self::default()
        })
    }

    /// The window a session has with a model of this window: the smaller of the two.
    pub fn effective_window(&self, model: u64) -> u64 {
        self.window.map_or(model, |own| own.min(model))
    }

    /// At how many tokens of a request to compact, where size decides.
    pub fn compaction_threshold(&self, model: u64) -> Option<u64> {
        let window = self.effective_window(model);
        match self.compact_at {
            CompactionTrigger::Share(percent) => Some(percent_of(window, percent)),
            CompactionTrigger::Tokens(tokens) => Some(tokens.min(window)),
            CompactionTrigger::OnExit | CompactionTrigger::Never => None,
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            name: "default".to_owned(),
            window: None,
            compact_at: CompactionTrigger::Share(90),
            keep: Retention::Tail { share: 30 },
            shares: SectionShares {
                context: 25,
                memory: 5,
                recall: 10,
            },
            elide_over: 500,
            keep_results: 5,
            recall: true,
            recall_tokens: 4_000,
        }
    }
}

fn keep_last_messages(count: usize, chars: Option<usize>) -> Retention {
    Retention::Messages { count, chars }
}

/// So many percent of a whole.
pub(crate) fn percent_of(whole: u64, percent: u8) -> u64 {
    let share = u128::from(whole) * u128::from(percent) / 100;
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// Reads `90%`.
pub(crate) fn parse_percent(text: &str) -> Option<u8> {
    let percent: u8 = text.strip_suffix('%')?.trim().parse().ok()?;
    (percent <= 100).then_some(percent)
}

impl fmt::Display for CompactionTrigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share(percent) => write!(f, "{percent}%"),
            Self::Tokens(tokens) => write!(f, "{tokens}"),
            Self::OnExit => f.write_str("exit"),
            Self::Never => f.write_str("never"),
        }
    }
}

impl FromStr for CompactionTrigger {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = match text.trim() {
            "exit" => Some(Self::OnExit),
            "never" => Some(Self::Never),
            share if share.ends_with('%') => parse_percent(share).map(Self::Share),
            tokens => tokens.parse().ok().map(Self::Tokens),
        };
        read.ok_or_else(|| "use a share (90%), tokens (15000), exit or never".to_owned())
    }
}

impl fmt::Display for Retention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tail { share } => write!(f, "tail {share}%"),
            Self::Messages { count, chars: None } => write!(f, "{count} messages"),
            Self::Messages {
                count,
                chars: Some(chars),
            } => write!(f, "{count} messages {chars} chars"),
            Self::Nothing => f.write_str("nothing"),
            Self::Everything => f.write_str("everything"),
            Self::AfterCheckpoint => f.write_str("after checkpoint"),
        }
    }
}

impl FromStr for Retention {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let read = match words.as_slice() {
            ["nothing"] => Some(Self::Nothing),
            ["everything"] => Some(Self::Everything),
            ["after", "checkpoint"] => Some(Self::AfterCheckpoint),
            ["tail", share] => parse_percent(share).map(|share| Self::Tail { share }),
            [count, "message" | "messages"] => count
                .parse()
                .ok()
                .map(|count| keep_last_messages(count, None)),
            [count, "message" | "messages", chars, "chars"] => count
                .parse()
                .ok()
                .zip(chars.parse().ok())
                .map(|(count, chars)| keep_last_messages(count, Some(chars))),
            _ => None,
        };
        read.ok_or_else(|| {
            "use tail 30%, 20 messages, 2 messages 500 chars, nothing, everything or \
             after checkpoint"
                .to_owned()
        })
    }
}

macro_rules! written_as_text {
    ($type:ty) => {
        impl TryFrom<String> for $type {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                text.parse()
                    .map_err(|why: String| format!("{text:?} is not one: {why}"))
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> Self {
                value.to_string()
            }
        }
    };
}

written_as_text!(CompactionTrigger);
written_as_text!(Retention);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_presets_are_those_of_the_design() {
        for name in Policy::PRESETS {
            let policy = Policy::preset(name).unwrap();
            assert_eq!(policy.name, name);
            let json = serde_json::to_string(&policy).unwrap();
            assert_eq!(serde_json::from_str::<Policy>(&json).unwrap(), policy);
        }
        assert_eq!(Policy::preset("default"), Some(Policy::default()));
        assert_eq!(Policy::preset("other"), None);
    }

    #[test]
    fn the_threshold_is_of_the_smaller_window() {
        let threshold = |name, window| Policy::preset(name).unwrap().compaction_threshold(window);
        assert_eq!(threshold("default", 200_000), Some(180_000));
        assert_eq!(threshold("dagent", 200_000), Some(90_000));
        assert_eq!(threshold("dagent", 10_000), Some(9_000));
        assert_eq!(threshold("aiarmy", 200_000), Some(15_000));
        assert_eq!(threshold("chain", 200_000), None);
        assert_eq!(threshold("bot", 200_000), None);
        assert_eq!(threshold("default", u64::MAX), Some(u64::MAX / 10 * 9 + 4));
    }

    #[test]
    fn what_is_written_reads_back() {
        for text in ["90%", "15000", "exit", "never"] {
            assert_eq!(text.parse::<CompactionTrigger>().unwrap().to_string(), text);
        }
        for text in [
            "tail 30%",
            "20 messages",
            "2 messages 500 chars",
            "nothing",
            "everything",
            "after checkpoint",
        ] {
            assert_eq!(text.parse::<Retention>().unwrap().to_string(), text);
        }
        assert!("101%".parse::<CompactionTrigger>().is_err());
        assert!("-1 messages".parse::<Retention>().is_err());
    }
}
