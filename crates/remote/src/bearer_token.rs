//! A bearer token, a secret that is never logged or displayed.

use std::fmt;

/// The token a client authenticates with. Its `Debug` output hides the text.
#[derive(Clone, PartialEq, Eq)]
pub struct BearerToken(String);

impl BearerToken {
    /// Wraps the text, trimmed. `None` if it could not be sent in a header: empty, or with
    /// spaces or other characters than printable ASCII.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let fit = !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic());
        fit.then(|| Self(text.to_owned()))
    }

    /// Returns the text itself, for sending or storing it.
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
