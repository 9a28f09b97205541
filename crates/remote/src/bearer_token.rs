//! The text of a token, which is a secret.

use std::fmt;

/// What a caller shows to a server. Never shown to anybody else.
#[derive(Clone, PartialEq, Eq)]
pub struct BearerToken(String);

impl BearerToken {
    /// The text, unless it could not be sent: it is empty, or has spaces or other
    /// characters than printable ASCII.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let fit = !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic());
        fit.then(|| Self(text.to_owned()))
    }

    /// The text itself, for whoever sends or keeps it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenText(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_not_shown() {
        let token = BearerToken::new(" tl_secret\n").unwrap();
        assert_eq!(token.expose(), "tl_secret");
        assert!(!format!("{token:?}").contains("secret"));
    }

    #[test]
    fn what_cannot_be_sent_is_no_token() {
        for text in ["", " \n", "two words", "tl_\u{7}", "tl_é"] {
            assert_eq!(BearerToken::new(text), None, "{text:?}");
        }
    }
}
