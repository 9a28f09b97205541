//! Casefolds text for comparison: lowercase, without accents.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Returns the text in lowercase, without accents and other combining marks.
pub(crate) fn casefold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    text.nfd()
        .filter(|c| !is_combining_mark(*c))
        .flat_map(char::to_lowercase)
        .collect()
}

/// Returns whether a character belongs to a script written without spaces, so that it is a
/// word by itself.
pub(crate) fn is_cjk(c: char) -> bool {
    matches!(u32::from(c),
        0x3040..=0x30ff // kana
        | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff // Han
        | 0x20000..=0x2fa1f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accents_and_case_do_not_matter() {
        assert_eq!(casefold("Éclair CAFÉ"), "eclair cafe");
        assert_eq!(casefold("e\u{301}te\u{301}"), "ete");
        assert_eq!(casefold("plain ASCII"), "plain ascii");
    }
}
