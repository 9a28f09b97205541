//! Policy overrides, from the configuration or for one session.

use std::collections::BTreeMap;

use crate::Policy;
use crate::policy::parse_percent;

/// Why a policy cannot be overridden as specified.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// There is no such setting.
    #[error("unknown policy setting {key:?}: use one of {known}", known = KEYS.join(", "))]
    UnknownKey {
        /// The given key.
        key: String,
    },
    /// There is no such preset.
    #[error("unknown policy {name:?}: use one of {known}", known = Policy::PRESETS.join(", "))]
    UnknownPolicy {
        /// The given name.
        name: String,
    },
    /// A part is not a key-value pair.
    #[error("{part:?} is not KEY=VALUE")]
    NoValue {
        /// The part.
        part: String,
    },
    /// The value is not valid for the key.
    #[error("{value:?} is not a valid policy setting for {key}: {why}")]
    BadValue {
        /// The key.
        key: String,
        /// The given value.
        value: String,
        /// What is valid.
        why: String,
    },
}

/// All settings that can be overridden.
const KEYS: [&str; 10] = [
    "window",
    "compact_at",
    "keep",
    "elide_over",
    "keep_results",
    "share.context",
    "share.memory",
    "share.recall",
    "recall",
    "recall_tokens",
];

impl Policy {
    /// Returns this policy with overrides applied.
    pub fn with_overrides(
        &self,
        overrides: &BTreeMap<String, String>,
    ) -> Result<Self, PolicyError> {
        let mut policy = self.clone();
        for (key, value) in overrides {
            policy.set_key(key, value.trim()).map_err(|why| match why {
                Some(why) => PolicyError::BadValue {
                    key: key.clone(),
                    value: value.clone(),
                    why,
                },
                None => PolicyError::UnknownKey { key: key.clone() },
            })?;
        }
        Ok(policy)
    }

    /// Returns this policy changed by a spec: `sliding-window`, `default;
    /// window=50000`, `window=50000`.
    pub fn with_spec(&self, text: &str) -> Result<Self, PolicyError> {
        let mut parts = text
            .split(';')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .peekable();
        let named = parts.next_if(|part| !part.contains('='));
        let policy = match named {
            None => self.clone(),
            Some(name) => Self::preset(name).ok_or_else(|| PolicyError::UnknownPolicy {
                name: name.to_owned(),
            })?,
        };
        let changes = parts.map(|part| match part.split_once('=') {
            Some((key, value)) => Ok((key.trim().to_owned(), value.trim().to_owned())),
            None => Err(PolicyError::NoValue {
                part: part.to_owned(),
            }),
        });
        policy.with_overrides(&changes.collect::<Result<_, _>>()?)
    }

    /// Sets one key. Fails with a description of valid values, or with `None` if the
    /// key is unknown.
    fn set_key(&mut self, key: &str, value: &str) -> Result<(), Option<String>> {
        match key {
            "window" => {
                self.window = match value {
                    "model" => None,
                    tokens => Some(parse_number(tokens).map_err(|why| why + ", or model")?),
                }
            }
            "compact_at" => self.compact_at = value.parse()?,
            "keep" => self.keep = value.parse()?,
            "elide_over" => self.elide_over = parse_number(value)?,
            "keep_results" => self.keep_results = parse_number(value)?,
            "share.context" => self.shares.context = parse_share(value)?,
            "share.memory" => self.shares.memory = parse_share(value)?,
            "share.recall" => self.shares.recall = parse_share(value)?,
            "recall" => {
                self.recall = match value {
                    "on" => true,
                    "off" => false,
                    _ => return Err(Some("use on or off".to_owned())),
                }
            }
            "recall_tokens" => self.recall_tokens = parse_number(value)?,
            _ => return Err(None),
        }
        Ok(())
    }
}

fn parse_number<T: std::str::FromStr>(value: &str) -> Result<T, String> {
    value.parse().map_err(|_| "use a whole number".to_owned())
}

/// Parses a share; `25` and `25%` are the same.
fn parse_share(value: &str) -> Result<u8, String> {
    parse_percent(&format!("{}%", value.trim_end_matches('%')))
        .ok_or_else(|| "use a percentage from 0 to 100".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CompactionTrigger, Retention};

    fn policy_with(pairs: &[(&str, &str)]) -> Result<Policy, PolicyError> {
        let overrides = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        Policy::default().with_overrides(&overrides)
    }

    #[test]
    fn any_number_can_be_changed() {
        let policy = policy_with(&[
            ("window", "5000"),
            ("compact_at", "80%"),
            ("keep", "2 messages 500 chars"),
            ("elide_over", "7"),
            ("keep_results", "0"),
            ("share.context", "1"),
            ("share.memory", "2%"),
            ("share.recall", "100"),
            ("recall", "off"),
            ("recall_tokens", "99"),
        ])
        .unwrap();
        assert_eq!(policy.window, Some(5_000));
        assert_eq!(policy.compact_at, CompactionTrigger::Share(80));
        assert_eq!(
            policy.keep,
            Retention::Messages {
                count: 2,
                chars: Some(500)
            }
        );
        assert_eq!((policy.elide_over, policy.keep_results), (7, 0));
        assert_eq!(policy.shares.context, 1);
        assert_eq!(policy.shares.memory, 2);
        assert_eq!(policy.shares.recall, 100);
        assert!(!policy.recall);
        assert_eq!(policy.recall_tokens, 99);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let unknown = policy_with(&[("windo", "1")]).unwrap_err();
        assert!(unknown.to_string().contains("\"windo\""), "{unknown}");
        for (key, value) in [
            ("window", "big"),
            ("compact_at", "120%"),
            ("keep", "some"),
            ("share.memory", "-1"),
            ("recall", "maybe"),
            ("keep_results", ""),
        ] {
            let error = policy_with(&[(key, value)]).unwrap_err();
            assert!(matches!(&error, PolicyError::BadValue { .. }));
            assert!(error.to_string().contains(key), "{error}");
        }
    }
}
