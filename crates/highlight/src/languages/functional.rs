//! Functional languages.

use super::super::language::LanguageFeature::{CapitalizedNames, CharLiterals, NestedComments};
use super::super::language::{Language, Quote};

const LISP: Language = Language {
    line_comments: &[";"],
    quotes: &[Quote::multi_line("\"")],
    word_chars: "-+*/?!<>=:.",
    ..Language::PLAIN
};

pub(super) static LANGUAGES: &[Language] = &[
    Language {
        names: "haskell hs elm purescript",
        line_comments: &["--"],
        block_comment: Some(("{-", "-}")),
        quotes: &[Quote::single_line("\"")],
        word_chars: "'",
        keywords: "case class data deriving do else family forall foreign if import in infix infixl \
            infixr instance let module newtype of qualified then type where",
        features: &[CapitalizedNames, CharLiterals, NestedComments],
        ..Language::PLAIN
    },
    Language {
        names: "ocaml ml mli reason",
        block_comment: Some(("(*", "*)")),
        quotes: &[Quote::multi_line("\"")],
        word_chars: "'",
        keywords: "and as assert begin class constraint do done downto else end exception external \
            for fun function functor if in include inherit initializer lazy let match method module \
            mutable new nonrec object of open or private rec sig struct then to try type val virtual \
            when while with",
        builtin_types: "bool bytes char exn float int list option string unit",
        constants: "true false",
        features: &[CapitalizedNames, CharLiterals, NestedComments],
        ..Language::PLAIN
    },
    Language {
        names: "fsharp fs f#",
        line_comments: &["//"],
        block_comment: Some(("(*", "*)")),
        quotes: &[Quote::multi_line("\"\"\""), Quote::multi_line("\"")],
        word_chars: "'",
        keywords: "abstract and as assert async base begin class default do done downto elif else end \
            exception extern finally for fun function if in inherit inline interface internal let \
            match member module mutable namespace new not null of open or override private public rec \
            return sig static struct then to try type use val when while with yield",
        builtin_types: "bool byte char decimal double float int int64 list obj option seq string unit",
        constants: "true false",
        features: &[CapitalizedNames, CharLiterals, NestedComments],
        ..Language::PLAIN
    },
    Language {
        names: "clojure clj cljs edn",
        sigils: ":",
        keywords: "case cond def defmacro defmethod defmulti defn defn- defonce defprotocol defrecord \
            do doseq dotimes fn for if if-let if-not let letfn loop ns quote recur require throw try \
            when when-let when-not",
        function_keywords: "def defmacro defmethod defmulti defn defn- defonce",
        type_keywords: "defprotocol defrecord",
        constants: "true false nil",
        ..LISP
    },
    Language {
        names: "lisp elisp emacs-lisp commonlisp common-lisp cl scheme racket scm",
        block_comment: Some(("#|", "|#")),
        sigils: ":",
        keywords: "and begin case cond define defmacro defparameter defstruct defun defvar do dolist \
            dotimes flet function if labels lambda let let* letrec loop not or progn quote require \
            set! setf setq unless when while",
        function_keywords: "define defmacro defun",
        constants: "nil t",
        ..LISP
    },
    Language {
        names: "erlang erl",
        line_comments: &["%"],
        quotes: &[Quote::multi_line("\""), Quote::single_line("'")],
        keywords: "after and andalso begin case catch div else end fun if maybe not of or orelse \
            receive rem throw try when xor",
        constants: "true false undefined ok error",
        ..Language::PLAIN
    },
];
