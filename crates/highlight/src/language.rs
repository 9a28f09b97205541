//! The definition of a language, and the lookup by the name after a code fence.

use super::languages;

/// What the highlighter knows about a language.
#[derive(Debug)]
pub(super) struct Language {
    /// Its names after a code fence, in lowercase.
    pub(super) names: &'static str,
    pub(super) lexer_kind: LexerKind,
    /// The markers of line comments.
    pub(super) line_comments: &'static [&'static str],
    /// The delimiters of block comments.
    pub(super) block_comment: Option<(&'static str, &'static str)>,
    /// Its kinds of quotes; longer openings come before shorter ones.
    pub(super) quotes: &'static [Quote],
    /// Letters that belong to the quote right after them.
    pub(super) quote_prefixes: &'static str,
    /// The characters in words besides letters, digits and underscores.
    pub(super) word_chars: &'static str,
    /// The characters that begin a variable or an annotation.
    pub(super) sigils: &'static str,
    /// The character between a key and its value.
    pub(super) separator: Option<char>,
    pub(super) keywords: &'static str,
    /// Keywords that are followed by the name of a function.
    pub(super) function_keywords: &'static str,
    /// Keywords that are followed by the name of a type.
    pub(super) type_keywords: &'static str,
    /// Types that are part of the language.
    pub(super) builtin_types: &'static str,
    pub(super) constants: &'static str,
    pub(super) features: &'static [LanguageFeature],
}

/// How the lines of a language are lexed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LexerKind {
    /// Words, numbers, quotes and comments.
    Code,
    /// Elements within angle brackets.
    Markup,
    /// Diffs: the first characters of a line decide its kind.
    Diff,
    Markdown,
    /// Commands after a prompt, and their output.
    Console,
}

/// Features that only some languages have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LanguageFeature {
    /// Keywords are case-insensitive.
    CaseInsensitive,
    /// `Name` is a type and `NAME` a constant.
    CapitalizedNames,
    /// A single quote encloses one character, or begins a name.
    CharLiterals,
    /// The first word of a command is the program.
    Commands,
    /// A hash and a word at the beginning of a line are a directive.
    Directives,
    /// `<<END` begins a text that ends at a line with `END`.
    Heredocs,
    /// `name!` is a macro.
    Macros,
    /// Comments can be nested.
    NestedComments,
    /// A slash where a value is expected begins a regular expression.
    RegexLiterals,
    /// A line in brackets is a section heading.
    Sections,
    /// A comment begins only after white space.
    SpacedComments,
    /// A line may begin with a key of several words.
    MultiWordKeys,
}

/// A kind of quoted text.
#[derive(Debug, PartialEq)]
pub(super) struct Quote {
    pub(super) open: &'static str,
    pub(super) close: &'static str,
    /// Whether a backslash escapes the next character.
    pub(super) escapes: bool,
    /// Whether it may end on a later line.
    pub(super) multiline: bool,
}

impl Quote {
    /// Quoted text that ends on its line.
    pub(super) const fn single_line(mark: &'static str) -> Self {
        Quote {
            open: mark,
            close: mark,
            escapes: true,
            multiline: false,
        }
    }

    /// Quoted text that may span lines.
    pub(super) const fn multi_line(mark: &'static str) -> Self {
        Quote {
            multiline: true,
            ..Quote::single_line(mark)
        }
    }

    /// Raw text without escapes that may span lines.
    pub(super) const fn raw(open: &'static str, close: &'static str) -> Self {
        Quote {
            open,
            close,
            escapes: false,
            multiline: true,
        }
    }
}

impl Language {
    /// The rules for code in an unknown language.
    pub(super) const PLAIN: Language = Language {
        names: "",
        lexer_kind: LexerKind::Code,
        line_comments: &[],
        block_comment: None,
        quotes: &[],
        quote_prefixes: "",
        word_chars: "",
        sigils: "",
        separator: None,
        keywords: "",
        function_keywords: "",
        type_keywords: "",
        builtin_types: "",
        constants: "",
        features: &[],
    };

    /// Returns the language named after a code fence, if it is known.
    pub(super) fn from_info(info: &str) -> Option<&'static Language> {
        let info = info.trim_start_matches(['{', '.', ' ']);
        let end = info.find(|c: char| !c.is_ascii_alphanumeric() && !"+#-_".contains(c));
        let name = &info[..end.unwrap_or(info.len())];
        let mut all = languages::ALL.iter().copied().flatten();
        all.find(|language| !name.is_empty() && contains_word(language.names, name, true))
    }

    pub(super) fn has_feature(&self, habit: LanguageFeature) -> bool {
        self.features.contains(&habit)
    }

    /// Returns whether a word is in a list of this language.
    pub(super) fn list_contains(&self, list: &str, word: &str) -> bool {
        contains_word(
            list,
            word,
            self.has_feature(LanguageFeature::CaseInsensitive),
        )
    }
}

fn contains_word(list: &str, word: &str, any_case: bool) -> bool {
    // Compared as bytes, since every word of every text is looked up.
    let word = word.as_bytes();
    let mut words = list.as_bytes().split(|&byte| byte == b' ');
    if any_case {
        words.any(|one| one.eq_ignore_ascii_case(word))
    } else {
        words.any(|one| one == word)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn first_name(info: &str) -> Option<&'static str> {
        Language::from_info(info)?.names.split(' ').next()
    }

    #[test]
    fn a_fence_names_its_language_in_many_ways() {
        for info in [
            "rust",
            "Rust",
            "rs",
            "rust,no_run",
            "rust title=\"a\"",
            "{.rust}",
        ] {
            assert_eq!(first_name(info), Some("rust"), "{info}");
        }
        assert_eq!(first_name("c++"), Some("cpp"));
        assert_eq!(first_name("C#"), Some("csharp"));
        for info in ["", " ", "{}", "rusty", "text", "\u{1b}rust", "ру"] {
            assert_eq!(first_name(info), None, "{info}");
        }
    }

    #[test]
    fn no_name_means_two_languages() {
        let mut seen = HashSet::new();
        for language in languages::ALL.iter().copied().flatten() {
            for name in language.names.split(' ') {
                assert!(seen.insert(name), "{name}");
                assert_eq!(name, name.to_lowercase());
                let found = Language::from_info(name).map(|found| found.names);
                assert_eq!(found, Some(language.names));
            }
        }
    }

    #[test]
    fn lists_are_words_with_one_space_between() {
        for language in languages::ALL.iter().copied().flatten() {
            let lists = [
                language.keywords,
                language.function_keywords,
                language.type_keywords,
                language.builtin_types,
                language.constants,
            ];
            for list in lists {
                let words: Vec<&str> = list.split_whitespace().collect();
                assert_eq!(list, words.join(" "), "{}", language.names);
            }
            let follows = [language.function_keywords, language.type_keywords].join(" ");
            for word in follows.split_whitespace() {
                assert!(
                    language.list_contains(language.keywords, word),
                    "{word} of {}",
                    language.names
                );
            }
        }
    }

    #[test]
    fn the_longer_of_two_quotes_comes_first() {
        for language in languages::ALL.iter().copied().flatten() {
            for (i, quote) in language.quotes.iter().enumerate() {
                let mut later = language.quotes[i + 1..].iter();
                assert!(
                    !later.any(|later| later.open.starts_with(quote.open)),
                    "{} of {}",
                    quote.open,
                    language.names
                );
            }
        }
    }
}
