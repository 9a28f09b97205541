//! The API key file: one line per provider, `anthropic = "sk-…"`.
//!
//! Invariant: errors never quote the file's content, since any part of it may be a key.

use std::collections::BTreeMap;

use crate::Secret;

/// The keys in an API key file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiKeys {
    /// Path of the file, as shown to the user.
    pub(super) path: String,
    keys: BTreeMap<String, Secret>,
}

/// What is wrong with an API key file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApiKeysError {
    /// A line cannot be parsed.
    #[error("{path}, line {line}: expected a provider and its key in quotes: provider = \"key\"")]
    Line {
        /// The file.
        path: String,
        /// The line, counted from 1.
        line: usize,
    },
    /// Other users can read it.
    #[error("{path} is readable by other users: run `chmod 600 {path}`")]
    ReadableByOthers {
        /// The file.
        path: String,
    },
}

impl ApiKeys {
    /// Parses the text of a key file; `path` is used in error messages.
    pub fn parse(text: &str, path: &str) -> Result<Self, ApiKeysError> {
        let mut keys = BTreeMap::new();
        for (at, line) in text.lines().enumerate() {
            let refused = || ApiKeysError::Line {
                path: path.to_owned(),
                line: at + 1,
            };
            // Parse line by line, so that an error names the line without quoting it.
            let line: toml::Table = line.parse().map_err(|_| refused())?;
            for (provider, key) in line {
                let key = key.as_str().and_then(Secret::new).ok_or_else(refused)?;
                let provider = super::vendor::find_vendor(&provider)
                    .map_or_else(|| provider.clone(), |vendor| vendor.name.to_owned());
                if keys.insert(provider, key).is_some() {
                    return Err(refused());
                }
            }
        }
        Ok(Self {
            path: path.to_owned(),
            keys,
        })
    }

    /// Returns the key for a provider.
    pub fn get(&self, provider: &str) -> Option<&Secret> {
        self.keys.get(provider)
    }
}

/// Rejects a key file whose Unix `mode` lets other users read it.
pub fn check_key_file_mode(mode: u32, path: &str) -> Result<(), ApiKeysError> {
    let by_others = mode & 0o077;
    if by_others == 0 {
        return Ok(());
    }
    Err(ApiKeysError::ReadableByOthers {
        path: path.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_provider_and_its_key() {
        let text = "# mine\nanthropic = \"sk-1\"\n\nmy-server = 'x'  # local\n";
        let keys = ApiKeys::parse(text, "keys.toml").unwrap();
        assert_eq!(keys.get("anthropic").unwrap().expose(), "sk-1");
        assert_eq!(keys.get("my-server").unwrap().expose(), "x");
        assert!(!format!("{keys:?}").contains("sk-1"));
    }

    #[test]
    fn an_error_says_where_and_never_what() {
        for text in [
            "\nopenai = sk-very-secret",
            "a = \"1\"\nsk-very-secret",
            "a = \"1\"\nopenai = 5",
            "openai = \"1\"\nopenai = \"sk-very-secret\"",
        ] {
            let error = ApiKeys::parse(text, "keys.toml").unwrap_err();
            assert!(
                error.to_string().starts_with("keys.toml, line 2:"),
                "{error}"
            );
            assert!(!format!("{error} {error:?}").contains("secret"));
        }
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        assert_eq!(check_key_file_mode(0o100_600, "keys.toml"), Ok(()));
        assert_eq!(check_key_file_mode(0o400, "keys.toml"), Ok(()));
        for mode in [0o644, 0o640, 0o604, 0o100_666] {
            let error = check_key_file_mode(mode, "keys.toml").unwrap_err();
            assert!(error.to_string().contains("chmod 600 keys.toml"));
        }
    }
}
