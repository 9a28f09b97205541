//! Policies: the size of sections, when to compact, and what to keep verbatim.
//!
//! A policy is a named set of numbers; the rest of the crate never depends on its name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// When a session is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum CompactionTrigger {
    /// When a request reaches this percentage of the window: `90%`.
    Share(u8),
    /// When a request reaches this many tokens: `15000`.
    Tokens(u64),
    /// When a chat ends, or on request: `exit`.
    OnExit,
    /// Only on request: `never`.
    Never,
}

/// What stays verbatim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Retention {
    /// After compaction, whole turns up to a percentage of the window: `tail 30%`.
    Tail {
        /// The percentage of the window.
        share: u8,
    },
    /// In every request, only the last messages: `2 messages 500 chars`.
    Messages {
        /// The number of messages.
        count: usize,
        /// The maximum number of characters of each.
        chars: Option<usize>,
    },
    /// After compaction, nothing: `nothing`.
    Nothing,
    /// Everything, as far as it fits: `everything`.
    Everything,
    /// Everything after the checkpoint: `after checkpoint`.
    AfterCheckpoint,
}

/// The maximum shares of the optional sections, in percent of the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SectionShares {
    /// Project context.
    pub context: u8,
    /// Memory.
    pub memory: u8,
    /// Recalled excerpts, if the other sections do not leave enough unused.
    pub recall: u8,
}

/// How requests are built and when sessions are compacted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// The policy's name.
    pub name: String,
    /// The maximum tokens of a request, if less than the model's window.
    pub window: Option<u64>,
    /// When to compact.
    pub compact_at: CompactionTrigger,
    /// What to keep verbatim.
    pub keep: Retention,
    /// The limits of the optional sections.
    pub shares: SectionShares,
    /// Tool results and attachments with more tokens than this can be elided.
    pub elide_over: u64,
    /// How many of the newest of those are never elided.
    pub keep_results: usize,
    /// Whether to include recalled excerpts.
    pub recall: bool,
    /// The maximum tokens of recalled excerpts.
    pub recall_tokens: u64,
}

impl Policy {
    /// The names of the presets.
    pub const PRESETS: [&'static str; 6] = [
        "default",
        "last-messages",
        "summary-chain",
        "sliding-window",
        "full-history",
        "after-checkpoint",
    ];

    /// Returns the preset with this name, or with this former name.
    pub fn preset(name: &str) -> Option<Self> {
        let name = current_name(name);
        let (window, compact_at, keep, recall) = match name {
            "default" => (
                None,
                CompactionTrigger::Share(90),
                Retention::Tail { share: 30 },
                true,
            ),
            "last-messages" => (
                Some(100_000),
                CompactionTrigger::Tokens(15_000),
                keep_last_messages(20, None),
                true,
            ),
            "summary-chain" => (None, CompactionTrigger::OnExit, Retention::Nothing, false),
            "sliding-window" => (
                Some(8_000),
                CompactionTrigger::Never,
                keep_last_messages(2, Some(500)),
                false,
            ),
            "full-history" => (None, CompactionTrigger::Never, Retention::Everything, false),
            "after-checkpoint" => (
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

    /// The smaller of the policy's window and the model's.
    pub fn effective_window(&self, model: u64) -> u64 {
        self.window.map_or(model, |own| own.min(model))
    }

    /// The number of tokens that triggers compaction, if the trigger is a size.
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

/// Computes a percentage of a whole.
pub(crate) fn percent_of(whole: u64, percent: u8) -> u64 {
    let share = u128::from(whole) * u128::from(percent) / 100;
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// Parses `90%`.
pub(crate) fn parse_percent(text: &str) -> Option<u8> {
    let percent: u8 = text.strip_suffix('%')?.trim().parse().ok()?;
    (percent <= 100).then_some(percent)
}

/// Maps the former name of a preset to its current one; other names stay.
fn current_name(name: &str) -> &str {
    match name {
        "aiarmy" => "last-messages",
        "chain" => "summary-chain",
        "bot" => "sliding-window",
        "agent" => "full-history",
        "dagent" => "after-checkpoint",
        name => name,
    }
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
                    .map_err(|why: String| format!("{text:?} is invalid: {why}"))
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
    fn former_preset_names_are_aliases() {
        let former = [
            ("aiarmy", "last-messages"),
            ("chain", "summary-chain"),
            ("bot", "sliding-window"),
            ("agent", "full-history"),
            ("dagent", "after-checkpoint"),
        ];
        for (alias, name) in former {
            assert_eq!(Policy::preset(alias), Policy::preset(name));
            assert_eq!(Policy::preset(alias).unwrap().name, name);
        }
    }

    #[test]
    fn the_threshold_is_of_the_smaller_window() {
        let threshold = |name, window| Policy::preset(name).unwrap().compaction_threshold(window);
        assert_eq!(threshold("default", 200_000), Some(180_000));
        assert_eq!(threshold("after-checkpoint", 200_000), Some(90_000));
        assert_eq!(threshold("after-checkpoint", 10_000), Some(9_000));
        assert_eq!(threshold("last-messages", 200_000), Some(15_000));
        assert_eq!(threshold("summary-chain", 200_000), None);
        assert_eq!(threshold("sliding-window", 200_000), None);
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
