//! Shells, and files made of commands.

use super::super::language::LanguageFeature::{
    CaseInsensitive, Commands, Heredocs, MultiWordKeys, SpacedComments,
};
use super::super::language::{Language, LexerKind, Quote};

const SHELL: Language = Language {
    names: "bash sh shell zsh ksh fish",
    line_comments: &["#"],
    quotes: &[Quote::multi_line("\""), Quote::raw("'", "'")],
    word_chars: "-./:+%,~?@^",
    sigils: "$",
    keywords: "if then elif else fi for while until do done case esac in select function time",
    function_keywords: "function",
    features: &[Commands, Heredocs, SpacedComments],
    ..Language::PLAIN
};

pub(super) static LANGUAGES: &[Language] = &[
    SHELL,
    Language {
        names: "console shell-session shellsession sh-session terminal",
        lexer_kind: LexerKind::Console,
        ..SHELL
    },
    Language {
        names: "powershell ps1 pwsh posh",
        line_comments: &["#"],
        block_comment: Some(("<#", "#>")),
        quotes: &[
            Quote::raw("@\"", "\"@"),
            Quote::raw("@'", "'@"),
            Quote::raw("\"", "\""),
            Quote::raw("'", "'"),
        ],
        word_chars: "-",
        sigils: "$",
        keywords: "begin break catch class continue data do dynamicparam else elseif end enum exit \
            filter finally for foreach from function if in param process return switch throw trap \
            try until using while",
        function_keywords: "function",
        type_keywords: "class enum",
        features: &[CaseInsensitive],
        ..Language::PLAIN
    },
    Language {
        names: "bat batch cmd dosbatch",
        line_comments: &["::", "rem ", "REM ", "@rem ", "@REM "],
        quotes: &[Quote {
            escapes: false,
            ..Quote::single_line("\"")
        }],
        keywords: "call cd copy defined del do echo else endlocal equ errorlevel exist exit for geq \
            goto gtr if in leq lss md mkdir move neq not pause popd pushd rd ren rmdir set setlocal \
            shift start",
        features: &[CaseInsensitive],
        ..Language::PLAIN
    },
    Language {
        names: "dockerfile docker containerfile",
        line_comments: &["#"],
        quotes: &[Quote::single_line("\""), Quote::single_line("'")],
        word_chars: "-./:",
        sigils: "$",
        keywords: "ADD ARG AS CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL MAINTAINER \
            ONBUILD RUN SHELL STOPSIGNAL USER VOLUME WORKDIR",
        separator: Some('='),
        features: &[Heredocs, SpacedComments],
        ..Language::PLAIN
    },
    Language {
        names: "makefile make mk just justfile",
        line_comments: &["#"],
        quotes: &[Quote::single_line("\""), Quote::single_line("'")],
        word_chars: "-./",
        sigils: "$",
        separator: Some(':'),
        keywords: "define else endef endif export ifdef ifeq ifndef ifneq include override private \
            undefine unexport vpath",
        features: &[MultiWordKeys, SpacedComments],
        ..Language::PLAIN
    },
    Language {
        names: "cmake",
        line_comments: &["#"],
        quotes: &[Quote::multi_line("\"")],
        sigils: "$",
        keywords: "break continue else elseif endforeach endfunction endif endmacro endwhile foreach \
            function if macro return while",
        constants: "ON OFF TRUE FALSE",
        features: &[CaseInsensitive],
        ..Language::PLAIN
    },
    Language {
        names: "nix",
        line_comments: &["#"],
        block_comment: Some(("/*", "*/")),
        quotes: &[Quote::raw("''", "''"), Quote::multi_line("\"")],
        word_chars: "-'",
        separator: Some('='),
        keywords: "assert else if in inherit let or rec then with",
        constants: "true false null",
        ..Language::PLAIN
    },
    Language {
        names: "terraform hcl tf tfvars",
        line_comments: &["#", "//"],
        block_comment: Some(("/*", "*/")),
        quotes: &[Quote::single_line("\"")],
        word_chars: "-",
        separator: Some('='),
        keywords: "data dynamic for if in locals module moved output provider resource terraform \
            variable",
        builtin_types: "any bool list map number object set string tuple",
        constants: "true false null",
        features: &[Heredocs],
        ..Language::PLAIN
    },
];
