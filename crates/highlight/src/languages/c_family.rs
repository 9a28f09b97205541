//! C and languages with similar syntax.

use super::super::language::LanguageFeature::{
    CapitalizedNames, CharLiterals, Directives, Macros, NestedComments, RegexLiterals,
};
use super::super::language::{Language, Quote};

const C_LIKE: Language = Language {
    line_comments: &["//"],
    block_comment: Some(("/*", "*/")),
    quotes: &[Quote::single_line("\""), Quote::single_line("'")],
    features: &[CapitalizedNames],
    ..Language::PLAIN
};

const JAVASCRIPT: Language = Language {
    names: "javascript js jsx mjs cjs node",
    quotes: &[
        Quote::single_line("\""),
        Quote::single_line("'"),
        Quote::multi_line("`"),
    ],
    word_chars: "$",
    sigils: "@#",
    keywords: "as async await break case catch class const continue debugger default delete do \
        else export extends finally for from function get if import in instanceof let new of \
        return set static super switch this throw try typeof var void while with yield",
    function_keywords: "function",
    type_keywords: "class extends new",
    constants: "true false null undefined NaN Infinity",
    features: &[CapitalizedNames, RegexLiterals],
    ..C_LIKE
};

const C_WORDS: &str = "alignas alignof asm auto break case catch class co_await co_return co_yield \
    concept const const_cast consteval constexpr constinit continue decltype default delete do \
    dynamic_cast else enum explicit export extern final for friend goto if import inline module \
    mutable namespace new noexcept operator override private protected public register \
    reinterpret_cast requires restrict return sizeof static static_assert static_cast struct \
    switch template this thread_local throw try typedef typeid typename union using virtual \
    volatile while";

const C_TYPES: &str = "bool char char8_t char16_t char32_t double float int int8_t int16_t int32_t \
    int64_t intptr_t long ptrdiff_t short signed size_t ssize_t uint8_t uint16_t uint32_t uint64_t \
    uintptr_t unsigned void wchar_t";

const C_CONSTANTS: &str = "true false nullptr NULL YES NO nil";

pub(super) static LANGUAGES: &[Language] = &[
    Language {
        names: "rust rs",
        quotes: &[
            Quote::raw("r##\"", "\"##"),
            Quote::raw("r#\"", "\"#"),
            Quote::raw("r\"", "\""),
            Quote::raw("br#\"", "\"#"),
            Quote::raw("br\"", "\""),
            Quote::multi_line("\""),
        ],
        quote_prefixes: "b c",
        keywords: "as async await break const continue crate dyn else enum extern fn for if impl \
            in let loop match mod move mut pub ref return self static struct super trait type \
            union unsafe use where while yield",
        function_keywords: "fn",
        type_keywords: "enum struct trait type union",
        builtin_types: "Self bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 usize",
        constants: "true false",
        features: &[CapitalizedNames, CharLiterals, Macros, NestedComments],
        ..C_LIKE
    },
    Language {
        names: "c h",
        keywords: C_WORDS,
        type_keywords: "enum struct union",
        builtin_types: C_TYPES,
        constants: C_CONSTANTS,
        features: &[CapitalizedNames, Directives],
        ..C_LIKE
    },
    Language {
        names: "cpp c++ cc cxx hpp cuda arduino",
        quotes: &[
            Quote::raw("R\"(", ")\""),
            Quote::single_line("\""),
            Quote::single_line("'"),
        ],
        quote_prefixes: "L u U u8",
        keywords: C_WORDS,
        type_keywords: "class enum struct union typename",
        builtin_types: C_TYPES,
        constants: C_CONSTANTS,
        features: &[CapitalizedNames, Directives],
        ..C_LIKE
    },
    Language {
        names: "objc objective-c objectivec",
        sigils: "@",
        keywords: C_WORDS,
        type_keywords: "class enum struct union",
        builtin_types: C_TYPES,
        constants: C_CONSTANTS,
        features: &[CapitalizedNames, Directives],
        ..C_LIKE
    },
    Language {
        names: "csharp cs c#",
        quotes: &[
            Quote::raw("\"\"\"", "\"\"\""),
            Quote::raw("@\"", "\""),
            Quote::raw("$@\"", "\""),
            Quote {
                open: "$\"",
                ..Quote::single_line("\"")
            },
            Quote::single_line("\""),
            Quote::single_line("'"),
        ],
        keywords: "abstract as async await base break case catch checked class const continue \
            default delegate do else enum event explicit extern finally fixed for foreach get goto \
            if implicit in init interface internal is lock nameof namespace new operator out \
            override params private protected public readonly record ref required return sealed set \
            sizeof stackalloc static struct switch this throw try typeof unchecked unsafe using var \
            virtual volatile when where while with yield",
        type_keywords: "class enum interface new record struct",
        builtin_types: "bool byte char decimal double dynamic float int long nint nuint object sbyte short \
            string uint ulong ushort void",
        constants: "true false null",
        features: &[CapitalizedNames, Directives],
        ..C_LIKE
    },
    Language {
        names: "java",
        quotes: &[
            Quote::multi_line("\"\"\""),
            Quote::single_line("\""),
            Quote::single_line("'"),
        ],
        sigils: "@",
        keywords: "abstract assert break case catch class continue default do else enum extends \
            final finally for goto if implements import instanceof interface native new package \
            permits private protected public record return sealed static strictfp super switch \
            synchronized this throw throws transient try var volatile while yield",
        type_keywords: "class enum extends implements interface new record",
        builtin_types: "boolean byte char double float int long short void",
        constants: "true false null",
        ..C_LIKE
    },
    Language {
        names: "kotlin kt kts",
        quotes: &[
            Quote::raw("\"\"\"", "\"\"\""),
            Quote::single_line("\""),
            Quote::single_line("'"),
        ],
        sigils: "@",
        keywords: "abstract actual annotation as break by catch class companion const constructor \
            continue crossinline data do else enum expect external final finally for fun get if \
            import in infix init inline inner interface internal is lateinit noinline object open \
            operator out override package private protected public reified return sealed set super \
            suspend tailrec this throw try typealias val value var vararg when where while",
        function_keywords: "fun",
        type_keywords: "class interface object typealias",
        constants: "true false null",
        features: &[CapitalizedNames, NestedComments],
        ..C_LIKE
    },
    Language {
        names: "swift",
        quotes: &[Quote::multi_line("\"\"\""), Quote::single_line("\"")],
        sigils: "@#",
        keywords: "actor any as associatedtype async await break case catch class continue default \
            defer deinit do else enum extension fallthrough fileprivate final for func get guard if \
            import in indirect init inout internal is lazy let mutating open operator override \
            precedencegroup private protocol public repeat required rethrows return self set some \
            static struct subscript super switch throw throws try typealias unowned var weak where \
            while willSet didSet",
        function_keywords: "func",
        type_keywords: "actor class enum extension protocol struct typealias",
        constants: "true false nil",
        features: &[CapitalizedNames, NestedComments],
        ..C_LIKE
    },
    Language {
        names: "go golang",
        quotes: &[
            Quote::raw("`", "`"),
            Quote::single_line("\""),
            Quote::single_line("'"),
        ],
        keywords: "break case chan const continue default defer else fallthrough for func go goto \
            if import interface map package range return select struct switch type var",
        function_keywords: "func",
        type_keywords: "type",
        builtin_types: "any bool byte comparable complex64 complex128 error float32 float64 int int8 int16 \
            int32 int64 rune string uint uint8 uint16 uint32 uint64 uintptr",
        constants: "true false nil iota",
        features: &[],
        ..C_LIKE
    },
    JAVASCRIPT,
    Language {
        names: "typescript ts tsx mts cts",
        keywords: "abstract as asserts async await break case catch class const continue debugger \
            declare default delete do else enum export extends finally for from function get if \
            implements import in infer instanceof interface is keyof let module namespace new of \
            override private protected public readonly return satisfies set static super switch \
            this throw try type typeof var void while with yield",
        type_keywords: "class enum extends implements interface new type",
        builtin_types: "any bigint boolean never number object string symbol unknown",
        ..JAVASCRIPT
    },
    Language {
        names: "scala sc sbt",
        quotes: &[Quote::raw("\"\"\"", "\"\"\""), Quote::single_line("\"")],
        quote_prefixes: "s f raw",
        sigils: "@",
        keywords: "abstract case catch class def derives do else end enum export extends extension \
            final finally for forSome given if implicit import inline lazy match new object opaque \
            override package private protected return sealed super then this throw trait try type \
            using val var while with yield",
        function_keywords: "def",
        type_keywords: "class enum extends object trait type with",
        constants: "true false null",
        features: &[CapitalizedNames, CharLiterals, NestedComments],
        ..C_LIKE
    },
    Language {
        names: "dart",
        quotes: &[
            Quote::multi_line("\"\"\""),
            Quote::multi_line("'''"),
            Quote::single_line("\""),
            Quote::single_line("'"),
        ],
        quote_prefixes: "r",
        sigils: "@",
        keywords: "abstract as assert async await base break case catch class const continue \
            covariant default deferred do else enum export extends extension external factory final \
            finally for get hide if implements import in interface is late library mixin new on \
            operator part required rethrow return sealed set show static super switch sync this \
            throw try typedef var when while with yield",
        type_keywords: "class enum extends extension implements mixin",
        builtin_types: "bool double dynamic int num void",
        constants: "true false null",
        ..C_LIKE
    },
    Language {
        names: "groovy gradle jenkinsfile",
        quotes: &[
            Quote::multi_line("\"\"\""),
            Quote::multi_line("'''"),
            Quote::single_line("\""),
            Quote::single_line("'"),
        ],
        sigils: "@",
        keywords: "abstract as assert break case catch class continue def default do else enum \
            extends final finally for if implements import in instanceof interface new package \
            private protected public return static super switch this throw throws trait try var \
            void while",
        type_keywords: "class enum extends implements interface new trait",
        builtin_types: "boolean byte char double float int long short",
        constants: "true false null",
        ..C_LIKE
    },
    Language {
        names: "zig",
        sigils: "@",
        keywords: "align allowzero and asm async await break callconv catch comptime const \
            continue defer else enum errdefer error export extern fn for if inline linksection \
            noalias noinline or orelse packed pub resume return struct suspend switch test \
            threadlocal try union unreachable usingnamespace var volatile while",
        function_keywords: "fn",
        builtin_types: "anyerror anyopaque anytype bool comptime_float comptime_int f16 f32 f64 f128 i8 i16 \
            i32 i64 i128 isize noreturn type u8 u16 u32 u64 u128 usize void",
        constants: "true false null undefined",
        ..C_LIKE
    },
    Language {
        names: "proto protobuf proto3",
        keywords: "enum extend extensions import message oneof option optional package public \
            repeated required reserved returns rpc service stream syntax to",
        function_keywords: "rpc",
        type_keywords: "enum message oneof service",
        builtin_types: "bool bytes double fixed32 fixed64 float int32 int64 map sfixed32 sfixed64 sint32 \
            sint64 string uint32 uint64",
        constants: "true false",
        ..C_LIKE
    },
    Language {
        names: "php",
        line_comments: &["//", "#"],
        sigils: "$",
        keywords: "abstract and as break case catch class clone const continue declare default do \
            echo else elseif empty enddeclare endfor endforeach endif endswitch endwhile enum exit \
            extends final finally fn for foreach function global goto if implements include \
            include_once instanceof insteadof interface isset list match namespace new or print \
            private protected public readonly require require_once return static switch throw trait \
            try unset use var while xor yield",
        function_keywords: "function",
        type_keywords: "class enum extends implements interface new trait",
        builtin_types: "array bool callable float int iterable mixed never object self string void",
        constants: "true false null TRUE FALSE NULL",
        ..C_LIKE
    },
];
