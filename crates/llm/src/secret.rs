//! A key that is never shown.
//!
//! Invariant: what it holds leaves only through [`Secret::expose`].

use std::fmt;

/// A key. Neither printed nor logged, whatever holds it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps `text`, without the white space that copying adds; none where nothing is left.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// The key itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// A text of somebody else's, without the key in it.
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
