//! Scripting languages and SQL.

use super::super::language::LanguageFeature::{
    CapitalizedNames, CaseInsensitive, Heredocs, NestedComments, RegexLiterals,
};
use super::super::language::{Language, Quote};

pub(super) static LANGUAGES: &[Language] = &[
    Language {
        names: "python py python3 py3 pyi pycon ipython starlark bazel",
        line_comments: &["#"],
        quotes: &[
            Quote::multi_line("\"\"\""),
            Quote::multi_line("'''"),
            Quote::single_line("\""),
            Quote::single_line("'"),
        ],
        quote_prefixes: "r b f u R B F U rb br fr rf Rb bR",
        sigils: "@",
        keywords: "and as assert async await break case class continue def del elif else except \
            finally for from global if import in is lambda match nonlocal not or pass raise return \
            try while with yield",
        function_keywords: "def",
        type_keywords: "class",
        builtin_types: "bool bytearray bytes complex dict float frozenset int list object set str tuple type",
        constants: "True False None NotImplemented Ellipsis",
        features: &[CapitalizedNames],
        ..Language::PLAIN
    },
    Language {
        names: "ruby rb rake gemfile",
        line_comments: &["#"],
        block_comment: Some(("=begin", "=end")),
        quotes: &[
            Quote::single_line("\""),
            Quote::single_line("'"),
            Quote::single_line("`"),
        ],
        word_chars: "?",
        sigils: "@$:",
        keywords: "alias and begin break case class def defined? do else elsif end ensure for if in \
            module next not or redo rescue retry return self super then undef unless until when \
            while yield attr_accessor attr_reader attr_writer extend include private protected \
            public raise require require_relative",
        function_keywords: "def",
        type_keywords: "class module",
        constants: "true false nil",
        features: &[CapitalizedNames, Heredocs, RegexLiterals],
        ..Language::PLAIN
    },
    Language {
        names: "perl pl pm",
        line_comments: &["#"],
        quotes: &[
            Quote::single_line("\""),
            Quote::single_line("'"),
            Quote::single_line("`"),
        ],
        sigils: "$@%",
        keywords: "and cmp die do else elsif eq eval for foreach ge given gt if last le local lt my \
            ne next no not or our package print qw redo require return say sub unless until use \
            when while xor",
        function_keywords: "sub",
        type_keywords: "package",
        constants: "undef",
        features: &[Heredocs, RegexLiterals],
        ..Language::PLAIN
    },
    Language {
        names: "lua luau",
        line_comments: &["--"],
        block_comment: Some(("--[[", "]]")),
        quotes: &[
            Quote::raw("[[", "]]"),
            Quote::raw("[=[", "]=]"),
            Quote::single_line("\""),
            Quote::single_line("'"),
        ],
        keywords: "and break do else elseif end for function goto if in local not or repeat return \
            then until while",
        function_keywords: "function",
        constants: "true false nil",
        ..Language::PLAIN
    },
    Language {
        names: "r rscript",
        line_comments: &["#"],
        quotes: &[Quote::single_line("\""), Quote::single_line("'")],
        word_chars: ".",
        keywords: "break else for function if in library next repeat require return while",
        constants: "TRUE FALSE NULL NA NaN Inf",
        ..Language::PLAIN
    },
    Language {
        names: "julia jl",
        line_comments: &["#"],
        block_comment: Some(("#=", "=#")),
        quotes: &[Quote::multi_line("\"\"\""), Quote::multi_line("\"")],
        word_chars: "!",
        sigils: "@",
        keywords: "abstract baremodule begin break catch const continue do else elseif end export \
            finally for function global if import in let local macro module mutable primitive quote \
            return struct try type using where while",
        function_keywords: "function macro",
        type_keywords: "struct type",
        constants: "true false nothing missing Inf NaN",
        features: &[CapitalizedNames, NestedComments],
        ..Language::PLAIN
    },
    Language {
        names: "elixir ex exs iex",
        line_comments: &["#"],
        quotes: &[
            Quote::multi_line("\"\"\""),
            Quote::multi_line("'''"),
            Quote::single_line("\""),
            Quote::single_line("'"),
        ],
        word_chars: "?!",
        sigils: "@:",
        keywords: "after alias and case catch cond def defdelegate defexception defguard defimpl \
            defmacro defmacrop defmodule defp defprotocol defstruct do else end fn for if import in \
            not or quote raise receive require rescue try unless unquote use when with",
        function_keywords: "def defdelegate defguard defmacro defmacrop defp",
        type_keywords: "defimpl defmodule defprotocol",
        constants: "true false nil",
        features: &[CapitalizedNames],
        ..Language::PLAIN
    },
    Language {
        names: "sql postgres postgresql psql mysql sqlite plsql plpgsql tsql",
        line_comments: &["--"],
        block_comment: Some(("/*", "*/")),
        quotes: &[
            Quote::raw("'", "'"),
            Quote::raw("\"", "\""),
            Quote::raw("$$", "$$"),
        ],
        keywords: "add all alter analyze and any as asc autoincrement begin between by cascade case \
            check collate column commit conflict constraint create cross database declare default \
            delete desc distinct do drop each else end escape exists explain fetch filter for \
            foreign from full function generated grant group having if ilike in index inner insert \
            intersect into is join key language lateral left like limit materialized natural not \
            nothing of offset on or order outer over partition pragma primary procedure recursive \
            references replace returning returns revoke right rollback row rows schema select set \
            strict table temp temporary then to transaction trigger truncate union unique update \
            using vacuum values view virtual when where window with without",
        builtin_types: "bigint bigserial blob bool boolean bytea char date datetime decimal double float int \
            integer interval json jsonb money numeric real serial smallint text time timestamp \
            timestamptz tinyint uuid varchar",
        constants: "true false null current_date current_time current_timestamp",
        features: &[CaseInsensitive],
        ..Language::PLAIN
    },
];
