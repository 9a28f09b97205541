//! Finds where literals end: quotes, numbers, regular expressions and heredocs.

/// The maximum length of a character literal: `'\u{10ffff}'`.
const MAX_CHAR_LITERAL_BYTES: usize = 12;

/// Returns the position of the closing quote.
pub(super) fn find_closing_quote(text: &str, mark: &str, escapes: bool) -> Option<usize> {
    if !escapes {
        return text.find(mark);
    }
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        if c == '\\' {
            chars.next();
        } else if text[at..].starts_with(mark) {
            return Some(at);
        }
    }
    None
}

/// Returns the length of the number at the beginning of a text.
pub(super) fn number_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let based = matches!(bytes, [b'0', base, ..] if base.is_ascii_alphabetic());
    let mut end = 0;
    while let Some(&byte) = bytes.get(end) {
        let digit_next = bytes.get(end + 1).is_some_and(u8::is_ascii_digit);
        let more = match byte {
            b'.' | b'\'' => digit_next,
            b'+' | b'-' => digit_next && !based && matches!(bytes[..end], [.., b'e' | b'E']),
            _ => byte.is_ascii_alphanumeric() || byte == b'_',
        };
        if !more {
            break;
        }
        end += 1;
    }
    end
}

/// Returns the length of a character literal.
pub(super) fn char_literal_len(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('\'')?;
    let mut chars = inside.chars();
    let length = match (chars.next()?, chars.next()?) {
        ('\\', _) => {
            find_closing_quote(inside, "'", true).filter(|&close| close < MAX_CHAR_LITERAL_BYTES)?
        }
        (c, '\'') => c.len_utf8(),
        _ => return None,
    };
    Some(length + 2)
}

/// Returns the length of a regular expression between slashes, with its flags.
pub(super) fn regex_len(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('/')?;
    if inside.starts_with([' ', '/', '*']) {
        return None;
    }
    // Between brackets, a slash is literal.
    let mut brackets = false;
    let mut chars = inside.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => {
                chars.next();
            }
            '[' => brackets = true,
            ']' => brackets = false,
            '/' if !brackets => {
                let flags = &inside[at + 1..];
                let end = flags.find(|c: char| !c.is_ascii_lowercase());
                return Some(at + 2 + end.unwrap_or(flags.len()));
            }
            _ => {}
        }
    }
    None
}

/// Returns the line that ends a heredoc announced by `<<END`; if `loose`, spaces may precede
/// the name.
pub(super) fn heredoc_terminator(text: &str, loose: bool) -> Option<&str> {
    let mut name = text.strip_prefix("<<")?;
    name = name.strip_prefix(['-', '~']).unwrap_or(name);
    if loose {
        name = name.trim_start();
    }
    name = name.strip_prefix(['"', '\'', '\\']).unwrap_or(name);
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
    name = &name[..end.unwrap_or(name.len())];
    let named = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    named.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_ends_before_a_range_and_a_method() {
        for (text, found) in [
            ("1..2", "1"),
            ("1.max(2)", "1"),
            ("1.5e-3-x", "1.5e-3"),
            ("0x1e+2", "0x1e"),
            ("1_000u64;", "1_000u64"),
            ("1'000'", "1'000"),
            ("9é", "9"),
        ] {
            assert_eq!(&text[..number_len(text)], found);
        }
    }

    #[test]
    fn an_escaped_mark_ends_nothing() {
        assert_eq!(find_closing_quote(r#"a\"b"c"#, "\"", true), Some(4));
        assert_eq!(find_closing_quote(r#"a\"b"#, "\"", false), Some(2));
        assert_eq!(find_closing_quote("a\\", "\"", true), None);
    }

    #[test]
    fn a_character_is_one() {
        assert_eq!(char_literal_len("'a'"), Some(3));
        assert_eq!(char_literal_len("'日'"), Some(5));
        assert_eq!(char_literal_len(r"'\''"), Some(4));
        assert_eq!(char_literal_len("'ab'"), None);
        assert_eq!(char_literal_len("'a"), None);
    }

    #[test]
    fn a_pattern_may_hold_slashes_in_brackets() {
        assert_eq!(regex_len(r"/[/]\//gi;"), Some(9));
        assert_eq!(regex_len("/a"), None);
        assert_eq!(regex_len("// a/"), None);
    }

    #[test]
    fn a_heredoc_is_named() {
        assert_eq!(heredoc_terminator("<<-'END' x", false), Some("END"));
        assert_eq!(heredoc_terminator("<< END", true), Some("END"));
        assert_eq!(heredoc_terminator("<< END", false), None);
        assert_eq!(heredoc_terminator("<<2", true), None);
    }
}
