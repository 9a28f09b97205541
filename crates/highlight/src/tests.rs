//! Tests of syntax highlighting: the token kinds of each language.

use proptest::prelude::*;

use super::*;

/// Returns the letter of a kind.
fn kind_letter(kind: TokenKind) -> char {
    match kind {
        TokenKind::Plain => ' ',
        TokenKind::Keyword => 'k',
        TokenKind::StringLiteral => 's',
        TokenKind::Comment => 'c',
        TokenKind::Number => 'n',
        TokenKind::Constant => 'o',
        TokenKind::Function => 'f',
        TokenKind::Type => 't',
        TokenKind::Key => 'y',
        TokenKind::Added => '+',
        TokenKind::Removed => '-',
        TokenKind::Heading => 'h',
    }
}

/// Returns every line of code, with the letters of its kinds below it.
fn annotate(name: &str, code: &str) -> String {
    assert!(Language::from_info(name).is_some(), "{name}");
    let mut highlighter = Highlighter::new(name);
    let mut out = String::new();
    for line in code.lines() {
        let mut marks = String::new();
        for (piece, kind) in highlighter.highlight_line(line) {
            let mark = |c| if c == ' ' { ' ' } else { kind_letter(kind) };
            marks.extend(piece.chars().map(mark));
        }
        out.push_str(&format!("{line}\n{}\n", marks.trim_end()));
    }
    out
}

/// Returns the letters of one line.
fn annotate_line(name: &str, line: &str) -> String {
    annotate(name, line)
        .lines()
        .nth(1)
        .unwrap_or_default()
        .to_owned()
}

/// Returns the tokens of every line.
fn highlight_lines<'a>(name: &str, lines: &[&'a str]) -> Vec<Vec<(&'a str, TokenKind)>> {
    let mut highlighter = Highlighter::new(name);
    let lines = lines.iter();
    lines
        .map(|line| highlighter.highlight_line(line).collect())
        .collect()
}

fn join_text(spans: &[(&str, TokenKind)]) -> String {
    spans.iter().map(|(piece, _)| *piece).collect()
}

macro_rules! samples {
    ($($name:ident $language:literal)*) => {$(
        #[test]
        fn $name() {
            let code = include_str!(concat!("samples/", $language));
            insta::assert_snapshot!($language, annotate($language, code));
        }
    )*};
}

samples! {
    rust_is_colored "rust"
    python_is_colored "python"
    javascript_is_colored "javascript"
    typescript_is_colored "typescript"
    go_is_colored "go"
    c_is_colored "c"
    bash_is_colored "bash"
    console_is_colored "console"
    sql_is_colored "sql"
    json_is_colored "json"
    yaml_is_colored "yaml"
    toml_is_colored "toml"
    html_is_colored "html"
    css_is_colored "css"
    markdown_is_colored "markdown"
    diff_is_colored "diff"
    dockerfile_is_colored "dockerfile"
    makefile_is_colored "makefile"
    ruby_is_colored "ruby"
    haskell_is_colored "haskell"
}

#[test]
fn unknown_languages_are_plain() {
    for name in ["klingon", ""] {
        let line = "let a = 1;";
        assert_eq!(highlight_lines(name, &[line]), [[(line, TokenKind::Plain)]]);
    }
}

#[test]
fn a_comment_goes_on_over_lines_and_may_hold_others() {
    assert_eq!(
        annotate("rust", "a /* b /* c */\nd */ e /*/ f */ 1"),
        "a /* b /* c */\n  cc c cc c cc\nd */ e /*/ f */ 1\nc cc   ccc c cc n\n"
    );
    assert_eq!(annotate_line("c", "/* /* */ 1"), "cc cc cc n");
}

#[test]
fn a_character_is_distinguished_from_a_lifetime() {
    assert_eq!(
        annotate_line("rust", r"'a 'b' '\'' '\u{1f600}' 1"),
        "   sss ssss sssssssssss n"
    );
}

#[test]
fn a_division_is_distinguished_from_a_regex() {
    assert_eq!(annotate_line("js", "a / 2 / b"), "    n");
    assert_eq!(annotate_line("js", "= /[/\"]/g.test(b)"), "  sssssss ffff");
    assert_eq!(annotate_line("js", "<b>1</b><i>2</i>"), "   n       n");
}

#[test]
fn a_text_without_end_ends_with_its_line_unless_it_may_go_on() {
    assert_eq!(annotate("c", "\"a\nint"), "\"a\nss\nint\nttt\n");
    assert_eq!(annotate("js", "`a\nb` 1"), "`a\nss\nb` 1\nss n\n");
}

#[test]
fn what_is_read_into_a_command_ends_where_it_says() {
    assert_eq!(
        annotate("sh", "cat <<'EOF' > a\nif \"\nEOF\nls"),
        "cat <<'EOF' > a\nfff   sssss\nif \"\nss s\nEOF\nsss\nls\nff\n"
    );
    assert_eq!(
        annotate("sh", "cat <<< EOF\nls"),
        "cat <<< EOF\nfff\nls\nff\n"
    );
    assert_eq!(
        annotate("sh", "echo $((1<<n))\nls"),
        "echo $((1<<n))\nffff    n\nls\nff\n"
    );
    assert_eq!(annotate("rb", "a << B\n1"), "a << B\n     t\n1\nn\n");
}

#[test]
fn a_command_that_goes_on_is_not_begun_again() {
    assert_eq!(
        annotate("sh", "cargo test \\\n  all && \\\n  ls"),
        "cargo test \\\nfffff\n  all && \\\n\n  ls\n  ff\n"
    );
}

#[test]
fn from_a_line_too_long_on_code_is_plain() {
    let (fits, long) = (
        "é".repeat(MAX_LINE_CHARS - 2) + " 1",
        "1".repeat(MAX_LINE_CHARS + 1),
    );
    let lines = highlight_lines("rust", &["1", &fits, &long, "1"]);
    assert_eq!(lines[0], [("1", TokenKind::Number)]);
    assert_eq!(lines[1].last(), Some(&("1", TokenKind::Number)));
    assert_eq!(lines[2], [(long.as_str(), TokenKind::Plain)]);
    assert_eq!(lines[3], [("1", TokenKind::Plain)]);
}

#[test]
fn from_a_line_too_many_on_code_is_plain() {
    let lines = highlight_lines("rust", &vec!["1"; MAX_LINES + 2]);
    assert_eq!(lines[MAX_LINES - 1], [("1", TokenKind::Number)]);
    assert_eq!(
        lines[MAX_LINES..],
        [[("1", TokenKind::Plain)], [("1", TokenKind::Plain)]]
    );
}

/// Text that is known to hang highlighters, and similar text.
const HOSTILE: [&str; 24] = [
    "(a,b)=>", "x /*", "/[", "/*/", "<<E", "<!--", "<a b=", "${", "$(", "\"\\", "'\\", "r#\"",
    "{{", "[[", "((", "a<", "`", "0x", "1.", "é", "日", ": ", "- ", "\t",
];

fn language_names() -> impl Iterator<Item = &'static str> {
    let all = languages::ALL.iter().copied().flatten();
    all.filter_map(|language| language.names.split(' ').next())
}

#[test]
fn hostile_code_keeps_its_text_in_every_language() {
    for name in language_names() {
        for unit in HOSTILE {
            let line: String = unit.chars().cycle().take(300).collect();
            for spans in highlight_lines(name, &[line.as_str(); 3]) {
                assert_eq!(join_text(&spans), line, "{name}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_pieces_of_a_line_are_the_line(
        name in prop::sample::select(language_names().collect::<Vec<_>>()),
        lines in prop::collection::vec(
            prop_oneof![
                "[^\\p{Cc}]{0,30}",
                "[-+*/=<>!?@#$%&|:;.,(){}\\[\\]'\"`\\\\_~^ \taEf01é日]{0,40}",
                prop::collection::vec(prop::sample::select(HOSTILE.to_vec()), 0..8)
                    .prop_map(|units| units.concat()),
            ],
            0..12,
        ),
    ) {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        for (spans, line) in highlight_lines(name, &lines).iter().zip(&lines) {
            prop_assert_eq!(join_text(spans), *line);
        }
    }
}
