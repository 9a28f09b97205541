//! Languages that look like C.

use super::super::language::Habit::{Capitals, Characters, Directives, Macros, Nested, Patterns};
use super::super::language::{Language, Quote};

const C_LIKE: Language = Language {
    comments: &["//"],
    block: Some(("/*", "*/")),
    quotes: &[Quote::short("\""), Quote::short("'")],
    habits: &[Capitals],
    ..Language::PLAIN
};

const JAVASCRIPT: Language = Language {
    names: "javascript js jsx mjs cjs node",
    quotes: &[Quote::short("\""), Quote::short("'"), Quote::long("`")],
    letters: "$",
    sigils: "@#",
    keywords: "as async await break case catch class const continue debugger default delete do \
        else export extends finally for from function get if import in instanceof let new of \
        return set static super switch this throw try typeof var void while with yield",
    functions: "function",
    types: "class extends new",
    constants: "true false null undefined NaN Infinity",
    habits: &[Capitals, Patterns],
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
            Quote::long("\""),
        ],
        prefixes: "b c",
        keywords: "as async await break const continue crate dyn else enum extern fn for if impl \
            in let loop match mod move mut pub ref return self static struct super trait type \
            union unsafe use where while yield",
        functions: "fn",
        types: "enum struct trait type union",
        known: "Self bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 usize",
        constants: "true false",
        habits: &[Capitals, Characters, Macros, Nested],
        ..C_LIKE
    },
    Language {
        names: "c h",
        keywords: C_WORDS,
        types: "enum struct union",
        known: C_TYPES,
        constants: C_CONSTANTS,
        habits: &[Capitals, Directives],
        ..C_LIKE
    },
    Language {
        names: "cpp c++ cc cxx hpp cuda arduino",
        quotes: &[
            Quote::raw("R\"(", ")\""),
            Quote::short("\""),
            Quote::short("'"),
        ],
        prefixes: "L u U u8",
        keywords: C_WORDS,
        types: "class enum struct union typename",
        known: C_TYPES,
        constants: C_CONSTANTS,
        habits: &[Capitals, Directives],
        ..C_LIKE
    },
    Language {
        names: "objc objective-c objectivec",
        sigils: "@",
        keywords: C_WORDS,
        types: "class enum struct union",
        known: C_TYPES,
        constants: C_CONSTANTS,
        habits: &[Capitals, Directives],
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
                ..Quote::short("\"")
            },
            Quote::short("\""),
            Quote::short("'"),
        ],
        keywords: "abstract as async await base break case catch checked class const continue \
            default delegate do else enum event explicit extern finally fixed for foreach get goto \
            if implicit in init interface internal is lock nameof namespace new operator out \
            override params private protected public readonly record ref required return sealed set \
            sizeof stackalloc static struct switch this throw try typeof unchecked unsafe using var \
            virtual volatile when where while with yield",
        types: "class enum interface new record struct",
        known: "bool byte char decimal double dynamic float int long nint nuint object sbyte short \
            string uint ulong ushort void",
        constants: "true false null",
        habits: &[Capitals, Directives],
        ..C_LIKE
    },
    Language {
        names: "java",
        quotes: &[Quote::long("\"\"\""), Quote::short("\""), Quote::short("'")],
        sigils: "@",
        keywords: "abstract assert break case catch class continue default do else enum extends \
            final finally for goto if implements import instanceof interface native new package \
            permits private protected public record return sealed static strictfp super switch \
            synchronized this throw throws transient try var volatile while yield",
        types: "class enum extends implements interface new record",
        known: "boolean byte char double float int long short void",
        constants: "true false null",
        ..C_LIKE
    },
    Language {
        names: "kotlin kt kts",
        quotes: &[
            Quote::raw("\"\"\"", "\"\"\""),
            Quote::short("\""),
            Quote::short("'"),
        ],
        sigils: "@",
        keywords: "abstract actual annotation as break by catch class companion const constructor \
            continue crossinline data do else enum expect external final finally for fun get if \
            import in infix init inline inner interface internal is lateinit noinline object open \
            operator out override package private protected public reified return sealed set super \
            suspend tailrec this throw try typealias val value var vararg when where while",
        functions: "fun",
        types: "class interface object typealias",
        constants: "true false null",
        habits: &[Capitals, Nested],
        ..C_LIKE
    },
    Language {
        names: "swift",
        quotes: &[Quote::long("\"\"\""), Quote::short("\"")],
        sigils: "@#",
        keywords: "actor any as associatedtype async await break case catch class continue default \
            defer deinit do else enum extension fallthrough fileprivate final for func get guard if \
            import in indirect init inout internal is lazy let mutating open operator override \
            precedencegroup private protocol public repeat required rethrows return self set some \
            static struct subscript super switch throw throws try typealias unowned var weak where \
            while willSet didSet",
        functions: "func",
        types: "actor class enum extension protocol struct typealias",
        constants: "true false nil",
        habits: &[Capitals, Nested],
        ..C_LIKE
    },
    Language {
        names: "go golang",
        quotes: &[Quote::raw("`", "`"), Quote::short("\""), Quote::short("'")],
        keywords: "break case chan const continue default defer else fallthrough for func go goto \
            if import interface map package range return select struct switch type var",
        functions: "func",
        types: "type",
        known: "any bool byte comparable complex64 complex128 error float32 float64 int int8 int16 \
            int32 int64 rune string uint uint8 uint16 uint32 uint64 uintptr",
        constants: "true false nil iota",
        habits: &[],
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
        types: "class enum extends implements interface new type",
        known: "any bigint boolean never number object string symbol unknown",
        ..JAVASCRIPT
    },
    Language {
        names: "scala sc sbt",
        quotes: &[Quote::raw("\"\"\"", "\"\"\""), Quote::short("\"")],
        prefixes: "s f raw",
        sigils: "@",
        keywords: "abstract case catch class def derives do else end enum export extends extension \
            final finally for forSome given if implicit import inline lazy match new object opaque \
            override package private protected return sealed super then this throw trait try type \
            using val var while with yield",
        functions: "def",
        types: "class enum extends object trait type with",
        constants: "true false null",
        habits: &[Capitals, Characters, Nested],
        ..C_LIKE
    },
    Language {
        names: "dart",
        quotes: &[
            Quote::long("\"\"\""),
            Quote::long("'''"),
            Quote::short("\""),
            Quote::short("'"),
        ],
        prefixes: "r",
        sigils: "@",
        keywords: "abstract as assert async await base break case catch class const continue \
            covariant default deferred do else enum export extends extension external factory final \
            finally for get hide if implements import in interface is late library mixin new on \
            operator part required rethrow return sealed set show static super switch sync this \
            throw try typedef var when while with yield",
        types: "class enum extends extension implements mixin",
        known: "bool double dynamic int num void",
        constants: "true false null",
        ..C_LIKE
    },
    Language {
        names: "groovy gradle jenkinsfile",
        quotes: &[
            Quote::long("\"\"\""),
            Quote::long("'''"),
            Quote::short("\""),
            Quote::short("'"),
        ],
        sigils: "@",
        keywords: "abstract as assert break case catch class continue def default do else enum \
            extends final finally for if implements import in instanceof interface new package \
            private protected public return static super switch this throw throws trait try var \
            void while",
        types: "class enum extends implements interface new trait",
        known: "boolean byte char double float int long short",
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
        functions: "fn",
        known: "anyerror anyopaque anytype bool comptime_float comptime_int f16 f32 f64 f128 i8 i16 \
            i32 i64 i128 isize noreturn type u8 u16 u32 u64 u128 usize void",
        constants: "true false null undefined",
        ..C_LIKE
    },
    Language {
        names: "proto protobuf proto3",
        keywords: "enum extend extensions import message oneof option optional package public \
            repeated required reserved returns rpc service stream syntax to",
        functions: "rpc",
        types: "enum message oneof service",
        known: "bool bytes double fixed32 fixed64 float int32 int64 map sfixed32 sfixed64 sint32 \
            sint64 string uint32 uint64",
        constants: "true false",
        ..C_LIKE
    },
    Language {
        names: "php",
        comments: &["//", "#"],
        sigils: "$",
        keywords: "abstract and as break case catch class clone const continue declare default do \
            echo else elseif empty enddeclare endfor endforeach endif endswitch endwhile enum exit \
            extends final finally fn for foreach function global goto if implements include \
            include_once instanceof insteadof interface isset list match namespace new or print \
            private protected public readonly require require_once return static switch throw trait \
            try unset use var while xor yield",
        functions: "function",
        types: "class enum extends implements interface new trait",
        known: "array bool callable float int iterable mixed never object self string void",
        constants: "true false null TRUE FALSE NULL",
        ..C_LIKE
    },
];
