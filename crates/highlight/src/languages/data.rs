//! Languages of keys and values.

use super::super::language::Habit::{AnyCase, Capitals, Keys, Sections, Spaced};
use super::super::language::{Form, Language, Quote};

pub(super) static LANGUAGES: &[Language] = &[
    Language {
        names: "json jsonc json5 jsonl ndjson geojson",
        comments: &["//"],
        block: Some(("/*", "*/")),
        quotes: &[Quote::short("\""), Quote::short("'")],
        separator: Some(':'),
        constants: "true false null",
        ..Language::PLAIN
    },
    Language {
        names: "yaml yml",
        comments: &["#"],
        quotes: &[
            Quote::short("\""),
            Quote {
                escapes: false,
                ..Quote::short("'")
            },
        ],
        // An apostrophe amid a word quotes nothing.
        letters: "-./'",
        sigils: "&*!",
        separator: Some(':'),
        constants: "true false null yes no on off",
        habits: &[Keys, Spaced],
        ..Language::PLAIN
    },
    Language {
        names: "toml",
        comments: &["#"],
        quotes: &[
            Quote::long("\"\"\""),
            Quote::raw("'''", "'''"),
            Quote::short("\""),
            Quote {
                escapes: false,
                ..Quote::short("'")
            },
        ],
        letters: "-.",
        separator: Some('='),
        constants: "true false inf nan",
        habits: &[Sections],
        ..Language::PLAIN
    },
    Language {
        names: "ini cfg conf properties dotenv env editorconfig gitconfig systemd desktop",
        comments: &["#", ";"],
        quotes: &[Quote::short("\"")],
        letters: "-./",
        separator: Some('='),
        constants: "true false yes no on off",
        habits: &[AnyCase, Sections, Spaced],
        ..Language::PLAIN
    },
    Language {
        names: "graphql gql",
        comments: &["#"],
        quotes: &[Quote::raw("\"\"\"", "\"\"\""), Quote::short("\"")],
        sigils: "$@",
        separator: Some(':'),
        keywords: "directive enum extend fragment implements input interface mutation on query \
            repeatable scalar schema subscription type union",
        functions: "fragment mutation query subscription",
        types: "enum implements input interface on scalar type union",
        known: "Boolean Float ID Int String",
        constants: "true false null",
        habits: &[Capitals],
        ..Language::PLAIN
    },
    Language {
        names: "diff patch",
        form: Form::Diff,
        ..Language::PLAIN
    },
];
