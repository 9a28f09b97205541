//! What a highlighter must know of a language, and which one a fence names.

use super::languages;

/// A language, as far as its colors go.
#[derive(Debug)]
pub(super) struct Language {
    /// What it is called after a fence, in lower case.
    pub(super) names: &'static str,
    pub(super) form: Form,
    /// What begins a comment that ends with its line.
    pub(super) comments: &'static [&'static str],
    /// What begins and ends a comment that may take many lines.
    pub(super) block: Option<(&'static str, &'static str)>,
    /// Longer ways to open come before shorter ones.
    pub(super) quotes: &'static [Quote],
    /// Letters that belong to the quote right after them.
    pub(super) prefixes: &'static str,
    /// What words may hold besides letters, digits and underscores.
    pub(super) letters: &'static str,
    /// What a word begins with that is a variable or an annotation.
    pub(super) sigils: &'static str,
    /// What stands between a key and its value.
    pub(super) separator: Option<char>,
    pub(super) keywords: &'static str,
    /// Keywords that are followed by the name of a function.
    pub(super) functions: &'static str,
    /// Keywords that are followed by the name of a type.
    pub(super) types: &'static str,
    /// Types that are part of the language.
    pub(super) known: &'static str,
    pub(super) constants: &'static str,
    pub(super) habits: &'static [Habit],
}

/// How a language is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Form {
    /// Words, numbers, quotes and comments.
    Code,
    /// Elements within angle brackets.
    Markup,
    /// The first characters of a line say what it is.
    Diff,
    Markdown,
    /// Commands after a prompt, and what they answered.
    Console,
}

/// What not every language does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Habit {
    /// Keywords are the same in upper and lower case.
    AnyCase,
    /// `Name` is a type and `NAME` a constant.
    Capitals,
    /// A single quote holds one character, or begins a name.
    Characters,
    /// The first word of a command is what is run.
    Commands,
    /// A hash and a word at the beginning of a line are an instruction.
    Directives,
    /// `<<END` begins a text that ends at a line of `END`.
    Heredocs,
    /// `name!` is a macro.
    Macros,
    /// A comment may hold comments.
    Nested,
    /// A slash where a value is due begins a regular expression.
    Patterns,
    /// A line in brackets names what follows.
    Sections,
    /// A comment begins only after white space.
    Spaced,
    /// A line may begin with a key of many words.
    Keys,
}

/// A way to quote text.
#[derive(Debug, PartialEq)]
pub(super) struct Quote {
    pub(super) open: &'static str,
    pub(super) close: &'static str,
    /// Whether a backslash takes the meaning from what is after it.
    pub(super) escapes: bool,
    /// Whether it may end on a later line.
    pub(super) lines: bool,
}

impl Quote {
    /// Ends on its line.
    pub(super) const fn short(mark: &'static str) -> Self {
        Quote {
            open: mark,
            close: mark,
            escapes: true,
            lines: false,
        }
    }

    /// May take many lines.
    pub(super) const fn long(mark: &'static str) -> Self {
        Quote {
            lines: true,
            ..Quote::short(mark)
        }
    }

    /// Means just what it says, over many lines.
    pub(super) const fn raw(open: &'static str, close: &'static str) -> Self {
        Quote {
            open,
            close,
            escapes: false,
            lines: true,
        }
    }
}

impl Language {
    /// Code of which nothing is known.
    pub(super) const PLAIN: Language = Language {
        names: "",
        form: Form::Code,
        comments: &[],
        block: None,
        quotes: &[],
        prefixes: "",
        letters: "",
        sigils: "",
        separator: None,
        keywords: "",
        functions: "",
        types: "",
        known: "",
        constants: "",
        habits: &[],
    };

    /// The language that the text after a fence names, if it is known.
    pub(super) fn of(info: &str) -> Option<&'static Language> {
        let info = info.trim_start_matches(['{', '.', ' ']);
        let end = info.find(|c: char| !c.is_ascii_alphanumeric() && !"+#-_".contains(c));
        let name = &info[..end.unwrap_or(info.len())];
        let mut all = languages::ALL.iter().copied().flatten();
        all.find(|language| !name.is_empty() && holds(language.names, name, true))
    }

    pub(super) fn has(&self, habit: Habit) -> bool {
        self.habits.contains(&habit)
    }

    /// Whether a word is one of a list of this language.
    pub(super) fn lists(&self, list: &str, word: &str) -> bool {
        holds(list, word, self.has(Habit::AnyCase))
    }
}

fn holds(list: &str, word: &str, any_case: bool) -> bool {
    // As bytes, since every word of every text is looked up.
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
        Language::of(info)?.names.split(' ').next()
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
                let found = Language::of(name).map(|found| found.names);
                assert_eq!(found, Some(language.names));
            }
        }
    }

    #[test]
    fn lists_are_words_with_one_space_between() {
        for language in languages::ALL.iter().copied().flatten() {
            let lists = [
                language.keywords,
                language.functions,
                language.types,
                language.known,
                language.constants,
            ];
            for list in lists {
                let words: Vec<&str> = list.split_whitespace().collect();
                assert_eq!(list, words.join(" "), "{}", language.names);
            }
            let follows = [language.functions, language.types].join(" ");
            for word in follows.split_whitespace() {
                assert!(
                    language.lists(language.keywords, word),
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
