//! Data and configuration formats.

use super::super::language::LanguageFeature::{
    CapitalizedNames, CaseInsensitive, MultiWordKeys, Sections, SpacedComments,
};
use super::super::language::{Language, LexerKind, Quote};

pub(super) static LANGUAGES: &[Language] = &[
    Language {
        names: "json jsonc json5 jsonl ndjson geojson",
        line_comments: &["//"],
        block_comment: Some(("/*", "*/")),
        quotes: &[Quote::single_line("\""), Quote::single_line("'")],
        separator: Some(':'),
        constants: "true false null",
        ..Language::PLAIN
    },
    Language {
        names: "yaml yml",
        line_comments: &["#"],
        quotes: &[
            Quote::single_line("\""),
            Quote {
                escapes: false,
                ..Quote::single_line("'")
            },
        ],
        // An apostrophe within a word is not a quote.
        word_chars: "-./'",
        sigils: "&*!",
        separator: Some(':'),
        constants: "true false null yes no on off",
        features: &[MultiWordKeys, SpacedComments],
        ..Language::PLAIN
    },
    Language {
        names: "toml",
        line_comments: &["#"],
        quotes: &[
            Quote::multi_line("\"\"\""),
            Quote::raw("'''", "'''"),
            Quote::single_line("\""),
            Quote {
                escapes: false,
                ..Quote::single_line("'")
            },
        ],
        word_chars: "-.",
        separator: Some('='),
        constants: "true false inf nan",
        features: &[Sections],
        ..Language::PLAIN
    },
    Language {
        names: "ini cfg conf properties dotenv env editorconfig gitconfig systemd desktop",
        line_comments: &["#", ";"],
        quotes: &[Quote::single_line("\"")],
        word_chars: "-./",
        separator: Some('='),
        constants: "true false yes no on off",
        features: &[CaseInsensitive, Sections, SpacedComments],
        ..Language::PLAIN
    },
    Language {
        names: "graphql gql",
        line_comments: &["#"],
        quotes: &[Quote::raw("\"\"\"", "\"\"\""), Quote::single_line("\"")],
        sigils: "$@",
        separator: Some(':'),
        keywords: "directive enum extend fragment implements input interface mutation on query \
            repeatable scalar schema subscription type union",
        function_keywords: "fragment mutation query subscription",
        type_keywords: "enum implements input interface on scalar type union",
        builtin_types: "Boolean Float ID Int String",
        constants: "true false null",
        features: &[CapitalizedNames],
        ..Language::PLAIN
    },
    Language {
        names: "diff patch",
        lexer_kind: LexerKind::Diff,
        ..Language::PLAIN
    },
];
