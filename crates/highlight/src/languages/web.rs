//! Markup and style languages.

use super::super::language::{Language, LexerKind, Quote};

const CSS: Language = Language {
    names: "css",
    block_comment: Some(("/*", "*/")),
    quotes: &[Quote::single_line("\""), Quote::single_line("'")],
    word_chars: "-",
    sigils: "@#",
    separator: Some(':'),
    ..Language::PLAIN
};

pub(super) static LANGUAGES: &[Language] = &[
    Language {
        names: "html htm xml svg xhtml vue svelte astro jinja plist xsd rss",
        lexer_kind: LexerKind::Markup,
        ..Language::PLAIN
    },
    CSS,
    Language {
        names: "scss less sass stylus",
        line_comments: &["//"],
        sigils: "@#$",
        ..CSS
    },
    Language {
        names: "markdown md mdx",
        lexer_kind: LexerKind::Markdown,
        ..Language::PLAIN
    },
    Language {
        names: "latex tex",
        line_comments: &["%"],
        sigils: "\\",
        ..Language::PLAIN
    },
];
