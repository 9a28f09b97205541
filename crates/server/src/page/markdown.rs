//! What was said, as markup that can do no harm.
//!
//! Markup in a message is shown as the text it is; pictures are named and not loaded;
//! links lead to addresses of the web only. What comes of that is sanitized once more,
//! so that a mistake in the one is caught by the other.

use std::sync::LazyLock;

use maud::{Markup, PreEscaped, html};
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd};

/// The longest text that is rendered, in bytes; the rest is a link away.
pub(super) const LONGEST: usize = 40_000;

static CLEANER: LazyLock<ammonia::Builder<'static>> = LazyLock::new(|| {
    let mut cleaner = ammonia::Builder::default();
    cleaner
        .tags(
            [
                "a",
                "blockquote",
                "br",
                "code",
                "del",
                "em",
                "h1",
                "h2",
                "h3",
                "h4",
                "h5",
                "h6",
                "hr",
                "input",
                "li",
                "ol",
                "p",
                "pre",
                "strong",
                "table",
                "tbody",
                "td",
                "th",
                "thead",
                "tr",
                "ul",
            ]
            .into(),
        )
        .tag_attributes(
            [
                ("a", ["href"].into()),
                ("ol", ["start"].into()),
                ("input", ["checked", "disabled"].into()),
            ]
            .into(),
        )
        .set_tag_attribute_value("input", "type", "checkbox")
        .generic_attributes(std::collections::HashSet::new())
        .allowed_classes(std::collections::HashMap::new())
        .url_schemes(["http", "https", "mailto"].into())
        .url_relative(ammonia::UrlRelative::Deny)
        .link_rel(Some("noopener noreferrer nofollow"));
    cleaner
});

/// The beginning of a text that is not too long, and whether it is all.
pub(super) fn start(text: &str) -> (&str, bool) {
    if text.len() <= LONGEST {
        return (text, true);
    }
    let end = (0..=LONGEST)
        .rev()
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or(0);
    (&text[..end], false)
}

/// A text as it is meant.
pub(super) fn rendered(text: &str) -> Markup {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let events = Parser::new_ext(text, options).flat_map(harmless);
    let mut out = String::new();
    pulldown_cmark::html::push_html(&mut out, events);
    let clean = CLEANER.clean(&out).to_string();
    html! { div.md { (PreEscaped(clean)) } }
}

fn harmless(event: Event<'_>) -> Vec<Event<'_>> {
    match event {
        Event::Html(text) | Event::InlineHtml(text) => vec![Event::Text(text)],
        // Loading a picture would tell somebody that it was looked at.
        Event::Start(Tag::Image { dest_url, .. }) => {
            vec![Event::Text(CowStr::from(format!("[picture {dest_url}: ")))]
        }
        Event::End(TagEnd::Image) => vec![Event::Text(CowStr::Borrowed("]"))],
        // Lines of a chat are meant as they were typed.
        Event::SoftBreak => vec![Event::HardBreak],
        event => vec![event],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        rendered(text).into_string()
    }

    #[test]
    fn markdown_is_rendered() {
        let html = shown("**bold** `code`\n\n```rust\nfn a() {}\n```\n\n| a |\n|---|\n| b |\n");
        for part in [
            "<strong>bold</strong>",
            "<code>code</code>",
            "<pre>",
            "<td>b</td>",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
    }

    #[test]
    fn markup_is_shown_as_the_text_it_is() {
        for text in [
            "<script>alert(1)</script>",
            "<img src=x onerror=alert(1)>",
            "a <svg onload=alert(1)> b",
            "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
            "<style>*{display:none}</style>",
            "<a href=\"javascript:alert(1)\">x</a>",
        ] {
            let html = shown(text);
            assert!(html.contains("&lt;"), "{html}");
            for tag in ["<script", "<img", "<svg", "<iframe", "<style", "<a"] {
                assert!(!html.contains(tag), "{text}: {html}");
            }
        }
    }

    #[test]
    fn links_lead_to_the_web_and_nowhere_else() {
        for text in [
            "[x](javascript:alert(1))",
            "[x](JaVaScRiPt:alert(1))",
            "[x](java\u{0}script:alert(1))",
            "[x](&#106;avascript:alert(1))",
            "[x](data:text/html;base64,PHNjcmlwdD4=)",
            "[x](vbscript:x)",
            "<javascript:alert(1)>",
            "[x](/s/a/trash)",
            "[x][1]\n\n[1]: javascript:alert(1)",
        ] {
            assert!(!shown(text).contains("href="), "{text}: {}", shown(text));
        }
        let good = shown("[x](https://example.org/a?b=c)");
        assert!(
            good.contains("href=\"https://example.org/a?b=c\""),
            "{good}"
        );
        assert!(good.contains("noopener"), "{good}");
    }

    #[test]
    fn pictures_are_named_and_not_loaded() {
        let html = shown("![cat](https://example.org/cat.png)");
        assert!(html.contains("cat.png") && !html.contains("<img"), "{html}");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let text = "é".repeat(LONGEST);
        let (start, whole) = start(&text);
        assert!(!whole && start.len() <= LONGEST && start.chars().all(|c| c == 'é'));
    }
}
