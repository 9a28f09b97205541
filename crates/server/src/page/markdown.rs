//! Renders messages as safe HTML.
//!
//! HTML in a message is shown as text; images are named and not loaded; links lead to web addresses
//! only. The result is sanitized once more, so that a mistake in one step is caught by the other.

use std::sync::LazyLock;

use maud::{Markup, PreEscaped, html};
use pulldown_cmark::{CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd};
use throughline_highlight::{Highlighter, TokenKind};

/// Maximum bytes of text that are rendered; the rest is behind a link.
pub(super) const MAX_RENDERED_BYTES: usize = 40_000;

static SANITIZER: LazyLock<ammonia::Builder<'static>> = LazyLock::new(|| {
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
                "span",
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
        .set_tag_attribute_value("input", "code-type", "checkbox")
        .generic_attributes(std::collections::HashSet::new())
        .allowed_classes([("span", CODE_CLASSES.into())].into())
        .url_schemes(["http", "https", "mailto"].into())
        .url_relative(ammonia::UrlRelative::Deny)
        .link_rel(Some("noopener noreferrer nofollow"));
    cleaner
});

/// Returns the part of a text that is rendered, and whether it is the whole text.
pub(super) fn truncate_text(text: &str) -> (&str, bool) {
    if text.len() <= MAX_RENDERED_BYTES {
        return (text, true);
    }
    let end = (0..=MAX_RENDERED_BYTES)
        .rev()
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or(0);
    (&text[..end], false)
}

/// Renders a text as Markdown.
pub(super) fn render_markdown(text: &str) -> Markup {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut code = None;
    let events = Parser::new_ext(text, options).flat_map(|event| highlight_code(&mut code, event));
    let mut out = String::new();
    pulldown_cmark::html::push_html(&mut out, events);
    let clean = SANITIZER.clean(&out).to_string();
    html! { div.md { (PreEscaped(clean)) } }
}

/// Collects a code block and highlights it once it is complete; other events are made safe.
fn highlight_code<'a>(code: &mut Option<CodeBlock>, event: Event<'a>) -> Vec<Event<'a>> {
    match (code.as_mut(), event) {
        (None, Event::Start(Tag::CodeBlock(block))) => {
            let info = match block {
                CodeBlockKind::Fenced(info) => info.into_string(),
                CodeBlockKind::Indented => String::new(),
            };
            let text = String::new();
            *code = Some(CodeBlock { info, text });
            Vec::new()
        }
        (Some(open), Event::Text(text)) => {
            open.text.push_str(&text);
            Vec::new()
        }
        (Some(open), Event::End(TagEnd::CodeBlock)) => {
            let block = html! { pre { code { (open.render_highlighted()) } } };
            *code = None;
            vec![Event::Html(CowStr::from(block.into_string()))]
        }
        (_, event) => sanitize_event(event),
    }
}

/// A code block.
struct CodeBlock {
    /// The info string after its fence.
    info: String,
    text: String,
}

impl CodeBlock {
    fn render_highlighted(&self) -> Markup {
        let mut highlighter = Highlighter::new(&self.info);
        html! {
            @for line in self.text.split_inclusive('\n') {
                @let bare = line.strip_suffix('\n').unwrap_or(line);
                @for (piece, kind) in highlighter.highlight_line(bare) {
                    @match code_class(kind) {
                        Some(class) => span class=(class) { (piece) },
                        None => (piece),
                    }
                }
                @if bare.len() < line.len() { "\n" }
            }
        }
    }
}

/// CSS classes for highlighted code; the style sheet defines their looks.
const CODE_CLASSES: [&str; 11] = [
    "code-keyword",
    "code-quoted",
    "code-comment",
    "code-number",
    "code-constant",
    "code-function",
    "code-type",
    "code-key",
    "code-added",
    "code-removed",
    "code-heading",
];

fn code_class(kind: TokenKind) -> Option<&'static str> {
    Some(match kind {
        TokenKind::Plain => return None,
        TokenKind::Keyword => "code-keyword",
        TokenKind::StringLiteral => "code-quoted",
        TokenKind::Comment => "code-comment",
        TokenKind::Number => "code-number",
        TokenKind::Constant => "code-constant",
        TokenKind::Function => "code-function",
        TokenKind::Type => "code-type",
        TokenKind::Key => "code-key",
        TokenKind::Added => "code-added",
        TokenKind::Removed => "code-removed",
        TokenKind::Heading => "code-heading",
    })
}

fn sanitize_event(event: Event<'_>) -> Vec<Event<'_>> {
    match event {
        Event::Html(text) | Event::InlineHtml(text) => vec![Event::Text(text)],
        // Loading an image would reveal to its host that it was viewed.
        Event::Start(Tag::Image { dest_url, .. }) => {
            vec![Event::Text(CowStr::from(format!("[picture {dest_url}: ")))]
        }
        Event::End(TagEnd::Image) => vec![Event::Text(CowStr::Borrowed("]"))],
        // Line breaks in a chat are meant as typed.
        Event::SoftBreak => vec![Event::HardBreak],
        event => vec![event],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render_to_string(text: &str) -> String {
        render_markdown(text).into_string()
    }

    #[test]
    fn markdown_is_rendered() {
        let html =
            render_to_string("**bold** `code`\n\n```rust\nfn a() {}\n```\n\n| a |\n|---|\n| b |\n");
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
    fn code_in_a_known_language_is_highlighted() {
        let html = render_to_string("```rust\nlet a = \"<b>\"; // c\n\nfn d() {}\n```\n");
        let expected = "<pre><code><span class=\"code-keyword\">let</span> a = \
                        <span class=\"code-quoted\">\"&lt;b&gt;\"</span>; \
                        <span class=\"code-comment\">// c</span>\n\n\
                        <span class=\"code-keyword\">fn</span> <span class=\"code-function\">d</span>() {}\n\
                        </code></pre>";
        assert!(html.contains(expected), "{html}");
        for plain in [
            "```\nlet a = 1;\n```\n",
            "```klingon\nlet a = 1;\n```\n",
            "    let a = 1;\n",
        ] {
            let html = render_to_string(plain);
            assert!(
                html.contains("<pre><code>let a = 1;\n</code></pre>"),
                "{html}"
            );
        }
    }

    #[test]
    fn every_highlighting_class_passes_the_sanitizer() {
        for class in CODE_CLASSES {
            let span = format!("<span class=\"{class}\">x</span>");
            assert_eq!(SANITIZER.clean(&span).to_string(), span);
        }
        let other = SANITIZER.clean("<span class=\"composer\" id=\"x\">x</span>");
        assert_eq!(other.to_string(), "<span class=\"\">x</span>");
    }

    #[test]
    fn code_cannot_escape_its_block() {
        for text in [
            "```html\n</code></pre><script>alert(1)</script>\n```\n",
            "```\n</code></pre><script>alert(1)</script>\n",
            "```\"><script>alert(1)</script>\nx\n```\n",
            "- ```js\n  `</pre><img src=x onerror=alert(1)>`\n",
        ] {
            let html = render_to_string(text);
            for tag in ["<script", "<img"] {
                assert!(!html.contains(tag), "{text}: {html}");
            }
            assert_eq!(html.matches("</pre>").count(), 1, "{html}");
        }
    }

    #[test]
    fn html_is_shown_as_text() {
        for text in [
            "<script>alert(1)</script>",
            "<img src=x onerror=alert(1)>",
            "a <svg onload=alert(1)> b",
            "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
            "<style>*{display:none}</style>",
            "<a href=\"javascript:alert(1)\">x</a>",
        ] {
            let html = render_to_string(text);
            assert!(html.contains("&lt;"), "{html}");
            for tag in ["<script", "<img", "<svg", "<iframe", "<style", "<a"] {
                assert!(!html.contains(tag), "{text}: {html}");
            }
        }
    }

    #[test]
    fn only_web_links_are_kept() {
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
            assert!(
                !render_to_string(text).contains("href="),
                "{text}: {}",
                render_to_string(text)
            );
        }
        let good = render_to_string("[x](https://example.org/a?b=c)");
        assert!(
            good.contains("href=\"https://example.org/a?b=c\""),
            "{good}"
        );
        assert!(good.contains("noopener"), "{good}");
    }

    #[test]
    fn images_are_named_and_not_loaded() {
        let html = render_to_string("![cat](https://example.org/cat.png)");
        assert!(html.contains("cat.png") && !html.contains("<img"), "{html}");
    }

    #[test]
    fn a_long_text_is_truncated_at_a_character_boundary() {
        let text = "é".repeat(MAX_RENDERED_BYTES);
        let (start, whole) = truncate_text(&text);
        assert!(!whole && start.len() <= MAX_RENDERED_BYTES && start.chars().all(|c| c == 'é'));
    }
}
