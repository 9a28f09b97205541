//! Languages of pages.

use super::super::language::{Form, Language, Quote};

const CSS: Language = Language {
    names: "css",
    block: Some(("/*", "*/")),
    quotes: &[Quote::short("\""), Quote::short("'")],
    letters: "-",
    sigils: "@#",
    separator: Some(':'),
    ..Language::PLAIN
};

pub(super) static LANGUAGES: &[Language] = &[
    Language {
        names: "html htm xml svg xhtml vue svelte astro jinja plist xsd rss",
        form: Form::Markup,
        ..Language::PLAIN
    },
    CSS,
    Language {
        names: "scss less sass stylus",
        comments: &["//"],
        sigils: "@#$",
        ..CSS
    },
    Language {
        names: "markdown md mdx",
        form: Form::Markdown,
        ..Language::PLAIN
    },
    Language {
        names: "latex tex",
        comments: &["%"],
        sigils: "\\",
        ..Language::PLAIN
    },
];
