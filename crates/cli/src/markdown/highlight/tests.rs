use proptest::prelude::*;

use super::kind::Kind;
use super::*;

/// One letter for each kind.
fn letter(kind: Kind) -> char {
    match kind {
        Kind::Plain => ' ',
        Kind::Keyword => 'k',
        Kind::Text => 's',
        Kind::Comment => 'c',
        Kind::Number => 'n',
        Kind::Constant => 'o',
        Kind::Function => 'f',
        Kind::Type => 't',
        Kind::Key => 'y',
        Kind::Added => '+',
        Kind::Removed => '-',
        Kind::Heading => 'h',
    }
}

/// Every line of a code, with the letters of its kinds below it.
fn marked(name: &str, code: &str) -> String {
    let language = Language::of(name).expect("a known language");
    let mut reader = Reader {
        language,
        open: Open::Nothing,
    };
    let mut out = String::new();
    for line in code.lines() {
        let mut marks = String::new();
        let mut start = 0;
        for (end, kind) in reader.line(line).iter() {
            let piece = &line[start..end];
            marks.extend(
                piece
                    .chars()
                    .map(|c| if c == ' ' { ' ' } else { letter(kind) }),
            );
            start = end;
        }
        out.push_str(&format!("{line}\n{}\n", marks.trim_end()));
    }
    out
}

/// The letters of one line.
fn marks(name: &str, line: &str) -> String {
    marked(name, line)
        .lines()
        .nth(1)
        .unwrap_or_default()
        .to_owned()
}

fn shown(name: &str, lines: &[&str]) -> Vec<String> {
    let mut highlighter = Highlighter::new(name, true);
    let show = |line: &&str| {
        let mut out = String::new();
        highlighter.line(line, &mut out);
        out
    };
    lines.iter().map(show).collect()
}

fn without_escapes(text: &str) -> String {
    let mut parts = text.split('\x1b');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| {
        all + part.split_once('m').map_or("", |(_, rest)| rest)
    })
}

macro_rules! samples {
    ($($name:ident $language:literal)*) => {$(
        #[test]
        fn $name() {
            let code = include_str!(concat!("samples/", $language));
            insta::assert_snapshot!($language, marked($language, code));
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
fn the_colors_are_the_terminals_own() {
    assert_eq!(
        shown("rust", &["let a = \"b\"; // c", "fn d(e: F) -> u8 { 1 }"]),
        [
            "\x1b[35mlet\x1b[0m a = \x1b[32m\"b\"\x1b[0m; \x1b[2m// c\x1b[0m",
            "\x1b[35mfn\x1b[0m \x1b[34md\x1b[0m(e: \x1b[33mF\x1b[0m) -> \x1b[33mu8\x1b[0m { \x1b[36m1\x1b[0m }",
        ]
    );
}

#[test]
fn unknown_languages_and_places_without_color_stay_plain() {
    assert_eq!(shown("klingon", &["let a = 1;"]), ["let a = 1;"]);
    assert_eq!(shown("", &["let a = 1;"]), ["let a = 1;"]);
    let mut out = String::new();
    Highlighter::new("rust", false).line("let a = 1;", &mut out);
    assert_eq!(out, "let a = 1;");
}

#[test]
fn a_comment_goes_on_over_lines_and_may_hold_others() {
    assert_eq!(
        marked("rust", "a /* b /* c */\nd */ e /*/ f */ 1"),
        "a /* b /* c */\n  cc c cc c cc\nd */ e /*/ f */ 1\nc cc   ccc c cc n\n"
    );
    assert_eq!(marks("c", "/* /* */ 1"), "cc cc cc n");
}

#[test]
fn a_character_is_told_from_a_lifetime() {
    assert_eq!(
        marks("rust", r"'a 'b' '\'' '\u{1f600}' 1"),
        "   sss ssss sssssssssss n"
    );
}

#[test]
fn a_division_is_told_from_a_pattern() {
    assert_eq!(marks("js", "a / 2 / b"), "    n");
    assert_eq!(marks("js", "= /[/\"]/g.test(b)"), "  sssssss ffff");
    assert_eq!(marks("js", "<b>1</b><i>2</i>"), "   n       n");
}

#[test]
fn a_text_without_end_ends_with_its_line_unless_it_may_go_on() {
    assert_eq!(marked("c", "\"a\nint"), "\"a\nss\nint\nttt\n");
    assert_eq!(marked("js", "`a\nb` 1"), "`a\nss\nb` 1\nss n\n");
}

#[test]
fn what_is_read_into_a_command_ends_where_it_says() {
    assert_eq!(
        marked("sh", "cat <<'EOF' > a\nif \"\nEOF\nls"),
        "cat <<'EOF' > a\nfff   sssss\nif \"\nss s\nEOF\nsss\nls\nff\n"
    );
    assert_eq!(
        marked("sh", "cat <<< EOF\nls"),
        "cat <<< EOF\nfff\nls\nff\n"
    );
    assert_eq!(
        marked("sh", "echo $((1<<n))\nls"),
        "echo $((1<<n))\nffff    n\nls\nff\n"
    );
    assert_eq!(marked("rb", "a << B\n1"), "a << B\n     t\n1\nn\n");
}

#[test]
fn a_command_that_goes_on_is_not_begun_again() {
    assert_eq!(
        marked("sh", "cargo test \\\n  all && \\\n  ls"),
        "cargo test \\\nfffff\n  all && \\\n\n  ls\n  ff\n"
    );
}

#[test]
fn from_a_line_too_long_on_code_is_plain() {
    let (fits, long) = (
        "é".repeat(LONGEST_LINE - 1) + "1",
        "1".repeat(LONGEST_LINE + 1),
    );
    let lines = shown("rust", &["1", &fits, &long, "1"]);
    let one = "\x1b[36m1\x1b[0m";
    assert_eq!(lines[0], one);
    assert_ne!(lines[1], fits + "1");
    assert_eq!(lines[2..], [long, "1".to_owned()]);
}

#[test]
fn from_a_line_too_many_on_code_is_plain() {
    let lines = shown("rust", &vec!["1"; MOST_LINES + 2]);
    assert_eq!(lines[MOST_LINES - 1], "\x1b[36m1\x1b[0m");
    assert_eq!(lines[MOST_LINES..], ["1", "1"]);
}

/// Text that has brought highlighters to a halt, and what looks like it.
const HOSTILE: [&str; 24] = [
    "(a,b)=>", "x /*", "/[", "/*/", "<<E", "<!--", "<a b=", "${", "$(", "\"\\", "'\\", "r#\"",
    "{{", "[[", "((", "a<", "`", "0x", "1.", "é", "日", ": ", "- ", "\t",
];

fn every_name() -> impl Iterator<Item = &'static str> {
    let all = languages::ALL.iter().copied().flatten();
    all.filter_map(|language| language.names.split(' ').next())
}

#[test]
fn hostile_code_keeps_its_text_in_every_language() {
    for name in every_name() {
        for unit in HOSTILE {
            let line: String = unit.chars().cycle().take(300).collect();
            for out in shown(name, &[line.as_str(); 3]) {
                assert_eq!(without_escapes(&out), line, "{name}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_but_color_is_added(
        name in prop::sample::select(every_name().collect::<Vec<_>>()),
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
        for (out, line) in shown(name, &lines).iter().zip(&lines) {
            prop_assert_eq!(without_escapes(out), *line);
        }
    }
}
