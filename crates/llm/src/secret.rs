//! An API key that is never printed.
//!
//! Invariant: the key is accessible only through [`Secret::expose`].

use std::fmt;

/// An API key. Its `Debug` output does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Creates a secret without surrounding white space; `None` if nothing is left.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// Returns the key, for use in a request only.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Replaces the key in a text from elsewhere.
    pub fn scrub(&self, text: &str) -> String {
        text.replace(&self.0, "[secret]")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown() {
        let secret = Secret::new(" sk-123\n").unwrap();
        assert_eq!(
            format!("{secret:?} {:#?}", Some(&secret)),
            "[secret] Some(\n    [secret],\n)"
        );
        assert_eq!(secret.scrub("bad key sk-123!"), "bad key [secret]!");
        assert_eq!(secret.expose(), "sk-123");
        assert_eq!(Secret::new("  "), None);
    }
}
