//! What is typed at a prompt, and files of such commands.

use super::super::language::Habit::{AnyCase, Commands, Heredocs, Keys, Spaced};
use super::super::language::{Form, Language, Quote};

const SHELL: Language = Language {
    names: "bash sh shell zsh ksh fish",
    comments: &["#"],
    quotes: &[Quote::long("\""), Quote::raw("'", "'")],
    letters: "-./:+%,~?@^",
    sigils: "$",
    keywords: "if then elif else fi for while until do done case esac in select function time",
    functions: "function",
    habits: &[Commands, Heredocs, Spaced],
    ..Language::PLAIN
};

pub(super) static LANGUAGES: &[Language] = &[
    SHELL,
    Language {
        names: "console shell-session shellsession sh-session terminal",
        form: Form::Console,
        ..SHELL
    },
    Language {
        names: "powershell ps1 pwsh posh",
        comments: &["#"],
        block: Some(("<#", "#>")),
        quotes: &[
            Quote::raw("@\"", "\"@"),
            Quote::raw("@'", "'@"),
            Quote::raw("\"", "\""),
            Quote::raw("'", "'"),
        ],
        letters: "-",
        sigils: "$",
        keywords: "begin break catch class continue data do dynamicparam else elseif end enum exit \
            filter finally for foreach from function if in param process return switch throw trap \
            try until using while",
        functions: "function",
        types: "class enum",
        habits: &[AnyCase],
        ..Language::PLAIN
    },
    Language {
        names: "bat batch cmd dosbatch",
        comments: &["::", "rem ", "REM ", "@rem ", "@REM "],
        quotes: &[Quote {
            escapes: false,
            ..Quote::short("\"")
        }],
        keywords: "call cd copy defined del do echo else endlocal equ errorlevel exist exit for geq \
            goto gtr if in leq lss md mkdir move neq not pause popd pushd rd ren rmdir set setlocal \
            shift start",
        habits: &[AnyCase],
        ..Language::PLAIN
    },
    Language {
        names: "dockerfile docker containerfile",
        comments: &["#"],
        quotes: &[Quote::short("\""), Quote::short("'")],
        letters: "-./:",
        sigils: "$",
        keywords: "ADD ARG AS CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL MAINTAINER \
            ONBUILD RUN SHELL STOPSIGNAL USER VOLUME WORKDIR",
        separator: Some('='),
        habits: &[Heredocs, Spaced],
        ..Language::PLAIN
    },
    Language {
        names: "makefile make mk just justfile",
        comments: &["#"],
        quotes: &[Quote::short("\""), Quote::short("'")],
        letters: "-./",
        sigils: "$",
        separator: Some(':'),
        keywords: "define else endef endif export ifdef ifeq ifndef ifneq include override private \
            undefine unexport vpath",
        habits: &[Keys, Spaced],
        ..Language::PLAIN
    },
    Language {
        names: "cmake",
        comments: &["#"],
        quotes: &[Quote::long("\"")],
        sigils: "$",
        keywords: "break continue else elseif endforeach endfunction endif endmacro endwhile foreach \
            function if macro return while",
        constants: "ON OFF TRUE FALSE",
        habits: &[AnyCase],
        ..Language::PLAIN
    },
    Language {
        names: "nix",
        comments: &["#"],
        block: Some(("/*", "*/")),
        quotes: &[Quote::raw("''", "''"), Quote::long("\"")],
        letters: "-'",
        separator: Some('='),
        keywords: "assert else if in inherit let or rec then with",
        constants: "true false null",
        ..Language::PLAIN
    },
    Language {
        names: "terraform hcl tf tfvars",
        comments: &["#", "//"],
        block: Some(("/*", "*/")),
        quotes: &[Quote::short("\"")],
        letters: "-",
        separator: Some('='),
        keywords: "data dynamic for if in locals module moved output provider resource terraform \
            variable",
        known: "any bool list map number object set string tuple",
        constants: "true false null",
        habits: &[Heredocs],
        ..Language::PLAIN
    },
];
