//! Tests of Markdown rendering in the terminal.

use proptest::prelude::*;
use unicode_width::UnicodeWidthStr;

use super::*;

/// A text rendered without color.
pub(super) fn plain(text: &str, width: usize) -> String {
    render(
        text,
        &Style {
            width,
            color: false,
        },
    )
}

fn colored(text: &str) -> String {
    render(
        text,
        &Style {
            width: 80,
            color: true,
        },
    )
}

#[test]
fn nothing_renders_to_nothing() {
    assert_eq!(plain("", 80), "");
    assert_eq!(plain("\n \n", 80), "");
}

#[test]
fn paragraphs_are_wrapped_and_kept_apart() {
    assert_eq!(
        plain("The quick brown fox\njumps over it.\n\n\nAgain.", 20),
        "The quick brown fox\njumps over it.\n\nAgain.\n"
    );
    assert_eq!(plain("hard  \nbreak\\\nhere", 20), "hard\nbreak\nhere\n");
}

#[test]
fn headings_stand_out() {
    assert_eq!(
        plain("# One\n## Two\ntext", 80),
        "# One\n\n## Two\n\ntext\n"
    );
    assert_eq!(
        colored("# One\n## Two"),
        "\x1b[1m\x1b[4mOne\x1b[0m\n\n\x1b[1mTwo\x1b[0m\n"
    );
}

#[test]
fn inline_styles_need_color() {
    let text = "*a* **b** `c` ~~d~~";
    assert_eq!(plain(text, 80), "a b `c` ~~d~~\n");
    assert_eq!(
        colored(text),
        "\x1b[3ma\x1b[0m \x1b[1mb\x1b[0m \x1b[36mc\x1b[0m \x1b[9md\x1b[0m\n"
    );
}

#[test]
fn code_is_indented_and_otherwise_left_alone() {
    let long = "x".repeat(100);
    assert_eq!(
        plain(
            &format!("```rust\nif a {{\n\n\tb();\n}}\n{long}\n\n```\nend"),
            20
        ),
        format!("  rust\n  if a {{\n\n  \tb();\n  }}\n  {long}\n\nend\n")
    );
    assert_eq!(plain("    a\n\n      b\n\nc", 20), "  a\n\n    b\n\nc\n");
    assert_eq!(colored("~~~x\nls\n~~~"), "  \x1b[2mx\x1b[0m\n  ls\n");
    assert_eq!(plain("a\n\n```\n```\nb", 20), "a\n\nb\n");
}

#[test]
fn code_has_color_where_its_language_is_known() {
    let code = "  \x1b[2mrust, ignore\x1b[0m\n  \x1b[2m/* a\x1b[0m\n\n  \x1b[2mb */\x1b[0m \x1b[35mlet\x1b[0m\n";
    assert_eq!(colored("```rust, ignore\n/* a\n\nb */ let\n```"), code);
    let quoted = colored("> ```rust, ignore\n> /* a\n>\n> b */ let\n> ```");
    let bar = "\x1b[2m│\x1b[0m";
    let marked = code.lines().map(|line| match line {
        "" => format!("{bar}\n"),
        line => format!("{bar} {line}\n"),
    });
    assert_eq!(quoted, marked.collect::<String>());
    // Each block begins anew.
    assert_eq!(
        colored("```c\n/*\n```\n```c\n1\n```"),
        "  \x1b[2mc\x1b[0m\n  \x1b[2m/*\x1b[0m\n\n  \x1b[2mc\x1b[0m\n  \x1b[36m1\x1b[0m\n"
    );
}

#[test]
fn quotes_are_marked_on_every_line() {
    assert_eq!(
        plain(
            "> The quick brown fox jumps.\n>\n> > deep\nlazy\n>\n> ```\n> a\n>\n> b\n> ```",
            20
        ),
        "│ The quick brown\n│ fox jumps.\n│\n│ │ deep lazy\n│\n│   a\n│\n│   b\n"
    );
    assert_eq!(colored("> a"), "\x1b[2m│\x1b[0m a\n");
    assert_eq!(plain("a\n\n>\n\nb", 20), "a\n\n│\n\nb\n");
}

#[test]
fn lists_hang_under_their_markers() {
    assert_eq!(
        plain(
            "- one two three four five\n- six\n  1. nine and some more\n  2. ten\n+ x",
            20
        ),
        "- one two three four\n  five\n- six\n  1. nine and some\n     more\n  2. ten\n\n- x\n"
    );
    assert_eq!(
        plain("- a\n\n  b\n- c\n\nd", 20),
        "- a\n\n  b\n\n- c\n\nd\n"
    );
    assert_eq!(plain("-\n- - a\n", 20), "-\n- - a\n");
    assert_eq!(
        plain("- [x] done\n- [ ] open\n", 20),
        "- [x] done\n- [ ] open\n"
    );
    assert_eq!(plain("3) c\n4) d\n", 20), "3. c\n4. d\n");
}

#[test]
fn code_in_a_list_belongs_to_its_item() {
    assert_eq!(
        plain("1. run\n   ```sh\n   ls\n\n   # ok\n   ```\n2. done", 20),
        "1. run\n     sh\n     ls\n\n     # ok\n2. done\n"
    );
}

#[test]
fn a_rule_crosses_the_page() {
    assert_eq!(
        plain("a\n\n***\nb", 20),
        format!("a\n\n{}\n\nb\n", "─".repeat(20))
    );
}

#[test]
fn a_link_shows_its_address_once() {
    assert_eq!(
        plain(
            "[a](http://b.c) <http://d.e> [http://f.g](http://f.g) <h@i.j>",
            80
        ),
        "a (http://b.c) http://d.e http://f.g h@i.j\n"
    );
    assert_eq!(
        colored("[a](http://b.c)"),
        "\x1b[4ma\x1b[0m\x1b[2m (http://b.c)\x1b[0m\n"
    );
    assert_eq!(
        plain("![alt *text*](u) ![](v)", 80),
        "[image: alt text] [image: v]\n"
    );
}

#[test]
fn a_definition_serves_the_links_after_it() {
    assert_eq!(
        plain("[a][X]\n\n[x]: http://y\n\n[a][X]", 80),
        "[a][X]\n\n[x]: http://y\n\na (http://y)\n"
    );
}

#[test]
fn html_and_footnotes_are_text() {
    assert_eq!(
        plain(
            "<div>\n  a\n\n<!--\n\nb -->\n\nc <b>d</b>[^1]\n\n[^1]: e\n\n    f",
            80
        ),
        "<div>\n  a\n\n<!--\n\nb -->\n\nc <b>d</b>[^1]\n\n[^1]: e\n\n      f\n"
    );
}

#[test]
fn no_control_of_the_text_gets_through() {
    assert_eq!(plain("a\x1b[31mb\u{202e}c", 80), "a␛[31mb\u{fffd}c\n");
    assert_eq!(
        plain("&#27;[2J [x](http://a&#7;b)", 80),
        "␛[2J x (http://a␇b)\n"
    );
    assert_eq!(
        plain("```\x1b]0;t\n\x1b[2J\r\n```", 80),
        "  ␛]0;t\n  ␛[2J\n"
    );
    assert_eq!(plain("a\rb\r\nc", 80), "a␍b c\n");
}

#[test]
fn nesting_past_reason_is_shown_as_text() {
    let deep = ">".repeat(70);
    assert_eq!(
        plain(&format!("{deep} a\n\n> b"), 100),
        format!("{deep} a\n\n│ b\n")
    );
}

#[test]
fn a_stream_shows_what_is_complete() {
    let mut stream = StreamRenderer::new(Style {
        width: 40,
        color: false,
    });
    assert_eq!(stream.push("One\ntwo"), "");
    assert_eq!(stream.push(".\n\n```sh\nl"), "One two.\n\n  sh\n");
    assert_eq!(stream.push("s\npwd\n"), "  ls\n  pwd\n");
    assert_eq!(stream.push("```\n- a\n\n- b\n"), "");
    assert_eq!(stream.push("\nend"), "");
    assert_eq!(stream.finish(), "\n- a\n\n- b\n\nend\n");
    assert_eq!(stream.finish(), "");
}

const SAMPLES: [&str; 6] = [
    "# Title\r\n\r\nSome *text* with 日本語 and 🎉.\r\n\r\n- a\r\n- b\r\n\r\n  c\r\n",
    "Intro:\n```rust\nfn main() {\n\n\tx();\n}\n```\n1. one\n\n   ```\n   code\n\n   more\n   ```\n2. two\nlazy\n\nEnd [l].",
    "> quote\n> - item\n>\n> ~~~\n> code\n> ~~~\nout\n\n|a|b|\n|-|-|\n|1|2|\n\n---\n\n    code\n\n    more\n",
    "```rust\n/* a\n\nb */ let c: &'static str = \"\n日\"; // d\n```\n\n- ```sh\n  cat <<E \\\n  $a\n  E\n  ls -l\n  ```\n",
    "> ```html\n> <a\n> b='c'>&lt;<!--\n>\n> -->\n> ```\n~~~~py\n'''x\x1b[31m\n\u{202e}''' def f():\n~~~\n~~~~\n```diff\n+a\n-b",
    "[l]: http://x\n\n[l] and [^n]\n\n[^n]: note\n    more\n\n<pre>\n\n# no\n</pre>\nafter\n\n```\nopen\n\n",
];

/// Lines that open, continue and close every kind of block.
fn line() -> impl Strategy<Value = String> {
    let indent = prop::sample::select(vec![
        "", "", "", " ", "  ", "   ", "    ", "- ", "> ", "2. ",
    ]);
    let text = prop::sample::select(vec![
        "",
        "",
        "",
        "a",
        "text b",
        "# h",
        "---",
        "===",
        "***",
        "- i",
        "1. n",
        "2. m",
        "-",
        "> q",
        ">",
        "```",
        "~~~ x",
        "````",
        "<div>",
        "<!--",
        "-->",
        "<b>",
        "</pre>",
        "<pre>",
        "[^1]: f",
        "* * *",
        "```rust",
        "~~~ sh",
        "/* a \"",
        "b */ let",
        "cat <<E \\",
        "E",
    ]);
    (indent, text).prop_map(|(indent, text)| format!("{indent}{text}"))
}

fn document() -> impl Strategy<Value = String> {
    prop::collection::vec(line(), 0..16).prop_map(|lines| lines.join("\n"))
}

/// The same text with nothing cut into blocks before it is parsed.
fn whole(text: &str, style: Style) -> String {
    let mut page = BlockRenderer::new(style);
    page.render_markdown(text, &mut LinkDefinitions::default());
    page.finish()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chunks_do_not_matter(
        text in prop_oneof![prop::sample::select(SAMPLES.to_vec()).prop_map(str::to_owned), document()],
        cuts in prop::collection::vec(1..9_usize, 0..200),
        color: bool,
    ) {
        let style = Style { width: 30, color };
        let mut stream = StreamRenderer::new(style);
        let mut out = String::new();
        let mut rest = text.as_str();
        for cut in cuts {
            let end = rest.char_indices().nth(cut).map_or(rest.len(), |(at, _)| at);
            out.push_str(&stream.push(&rest[..end]));
            rest = &rest[end..];
        }
        out.push_str(&stream.push(rest));
        out.push_str(&stream.finish());
        prop_assert_eq!(out, render(&text, &style));
    }

    #[test]
    fn blocks_read_the_same_alone(text in document()) {
        let style = Style { width: 30, color: false };
        // How much white space code begins with, and ends with, may differ: tabs.
        let lines = |out: String| -> Vec<String> {
            let lines = out.lines().map(str::trim);
            lines.filter(|line| !line.is_empty()).map(str::to_owned).collect()
        };
        prop_assert_eq!(lines(render(&text, &style)), lines(whole(&text, style)));
    }

    #[test]
    fn any_text_at_any_width_is_rendered_safely(
        text in prop_oneof!["\\PC*", any::<String>(), "[-*_>`~#\\[\\]()!|<&;:\\\\ \t\n\ra1日🎉\u{1b}\u{200d}\u{301}]{0,80}"],
        width in 0..200_usize,
        color: bool,
    ) {
        let out = render(&text, &Style { width, color });
        prop_assert!(out.is_empty() || (out.ends_with('\n') && !out.ends_with("\n\n")));
        let bare = render(&text, &Style { width, color: false });
        prop_assert_eq!(sanitize(&bare), bare.as_str());
        // With color, every escape is one of ours: it sets a look.
        let looks = |part: &str| part.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with('m');
        prop_assert!(out.split('\x1b').skip(1).all(|part| part.strip_prefix('[').is_some_and(looks)));
    }

    #[test]
    fn prose_keeps_to_the_width(text in "[-*>#|a-c日🎉\u{301}\u{200d}❤\u{fe0f}🇫 \n]{0,120}", width in 20..60_usize) {
        // Code is not wrapped; without indentation there is none.
        let lines: Vec<String> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        let out = render(&lines.join("\n"), &Style { width, color: false });
        for line in out.lines() {
            prop_assert!(line.width() <= width, "{line:?}");
        }
    }
}
