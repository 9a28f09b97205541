//! Parses the query syntax that people type: words, "quoted phrases" and filters.
//!
//! A filter is `name:value`, or `name:"value with spaces"`. Text that looks like a filter but
//! is not one, such as `std::fs` or `http://…`, is an ordinary word.

use jiff::Zoned;
use throughline_model::{Role, Timestamp};

use crate::Scope;
use crate::date::{DateError, parse_date};

/// A parsed query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedQuery {
    /// The words, separated by spaces.
    pub words: String,
    /// The quoted phrases.
    pub phrases: Vec<String>,
    /// The filters, in the order they were typed.
    pub filters: Vec<Filter>,
}

/// A condition that hits must meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// In the session with this name or id.
    Session(String),
    /// In sessions with this tag.
    Tag(String),
    /// In sessions of this project.
    Project(String),
    /// In sessions of this agent.
    Agent(String),
    /// By this role.
    Role(Role),
    /// By an author with this name.
    Author(String),
    /// Earlier than this.
    Before(Timestamp),
    /// Not earlier than this.
    After(Timestamp),
    /// About a file whose path contains this.
    File(String),
}

/// Why a query cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// A date that cannot be parsed.
    #[error(transparent)]
    Date(#[from] DateError),
    /// An unknown role.
    #[error("{0}")]
    Role(String),
    /// A filter without a value.
    #[error("{0}: needs a value")]
    Empty(&'static str),
}

/// Parses a query; relative dates such as `today` and `7d` count from `now`.
///
/// ```
/// use throughline_recall::{Filter, parse_query};
///
/// let now = "2026-11-15T12:00[UTC]".parse().unwrap();
/// let parsed = parse_query(r#"login "token expired" tag:auth after:yesterday"#, &now)?;
/// assert_eq!(parsed.words, "login");
/// assert_eq!(parsed.phrases, ["token expired"]);
/// assert_eq!(parsed.filters[0], Filter::Tag("auth".to_owned()));
/// # Ok::<(), throughline_recall::ParseError>(())
/// ```
pub fn parse_query(typed: &str, now: &Zoned) -> Result<ParsedQuery, ParseError> {
    let mut parsed = ParsedQuery::default();
    let mut rest = typed.trim_start();
    while !rest.is_empty() {
        let (piece, after) = if let Some(quoted) = rest.strip_prefix('"') {
            let (phrase, after) = split_at_quote(quoted);
            parsed
                .phrases
                .extend((!phrase.trim().is_empty()).then(|| phrase.to_owned()));
            (None, after)
        } else if let Some((name, after)) = split_filter_name(rest) {
            let (value, after) = match after.strip_prefix('"') {
                Some(quoted) => split_at_quote(quoted),
                None => split_at_space(after),
            };
            parsed.filters.push(parse_filter(name, value, now)?);
            (None, after)
        } else {
            let (word, after) = split_at_space(rest);
            (Some(word), after)
        };
        if let Some(word) = piece {
            if !parsed.words.is_empty() {
                parsed.words.push(' ');
            }
            parsed.words.push_str(word);
        }
        rest = after.trim_start();
    }
    Ok(parsed)
}

impl Filter {
    /// Applies the filter to a scope. Returns `false` for a filter that needs the store: a
    /// session, tag, project or agent, which the caller resolves to sessions.
    pub fn narrow(&self, scope: &mut Scope) -> bool {
        match self {
            Self::Session(_) | Self::Tag(_) | Self::Project(_) | Self::Agent(_) => return false,
            Self::Role(role) => scope.roles.push(*role),
            Self::Author(author) => scope.authors.push(author.clone()),
            Self::File(file) => scope.files.push(file.clone()),
            Self::Before(at) => {
                scope.before = Some(scope.before.map_or(*at, |before| before.min(*at)));
            }
            Self::After(at) => {
                scope.after = Some(scope.after.map_or(*at, |after| after.max(*at)));
            }
        }
        true
    }
}

const FILTER_NAMES: [&str; 9] = [
    "session", "tag", "project", "agent", "role", "author", "before", "after", "file",
];

/// Splits off the filter name at the beginning of a text; returns the name and the text after
/// the colon.
fn split_filter_name(text: &str) -> Option<(&'static str, &str)> {
    let (name, after) = text.split_once(':')?;
    let name = FILTER_NAMES
        .into_iter()
        .find(|known| known.eq_ignore_ascii_case(name))?;
    // `file::open` is code.
    (!after.starts_with(':')).then_some((name, after))
}

fn parse_filter(name: &'static str, value: &str, now: &Zoned) -> Result<Filter, ParseError> {
    if value.trim().is_empty() {
        return Err(ParseError::Empty(name));
    }
    let text = || value.to_owned();
    Ok(match name {
        "session" => Filter::Session(text()),
        "tag" => Filter::Tag(text()),
        "project" => Filter::Project(text()),
        "agent" => Filter::Agent(text()),
        "author" => Filter::Author(text()),
        "file" => Filter::File(text()),
        "before" => Filter::Before(parse_date(value, now)?),
        "after" => Filter::After(parse_date(value, now)?),
        _ => Filter::Role(value.to_lowercase().parse().map_err(ParseError::Role)?),
    })
}

fn split_at_space(text: &str) -> (&str, &str) {
    text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()))
}

/// Splits at the closing quote, or at the end: the quote may not have been typed yet.
fn split_at_quote(text: &str) -> (&str, &str) {
    text.split_once('"').unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Zoned {
        "2026-11-15T12:00[UTC]".parse().unwrap()
    }

    fn parsed(typed: &str) -> ParsedQuery {
        parse_query(typed, &now()).unwrap()
    }

    #[test]
    fn words_phrases_and_filters_are_told_apart() {
        let found = parsed(r#"why  "exit code" tag:ci the Session:"my talk" build"#);
        assert_eq!(found.words, "why the build");
        assert_eq!(found.phrases, ["exit code"]);
        let filters = [
            Filter::Tag("ci".to_owned()),
            Filter::Session("my talk".to_owned()),
        ];
        assert_eq!(found.filters, filters);
    }

    #[test]
    fn what_is_no_filter_is_a_word() {
        let typed = "std::fs file::open http://x.y foo:bar 12:30";
        assert_eq!(parsed(typed).words, typed);
        assert_eq!(parsed(typed).filters, []);
    }

    #[test]
    fn an_unfinished_quote_goes_to_the_end() {
        assert_eq!(parsed(r#"a "b c"#).phrases, ["b c"]);
        assert_eq!(parsed(r#"a ""#).phrases, [""; 0]);
    }

    #[test]
    fn what_cannot_be_meant_is_an_error_that_names_it() {
        let error = |typed| parse_query(typed, &now()).unwrap_err().to_string();
        assert!(error("before:tomorow").contains("tomorow"));
        assert!(error("role:boss").contains("boss"));
        assert_eq!(error("tag: x"), "tag: needs a value");
    }

    #[test]
    fn filters_on_what_never_changes_narrow_the_scope() {
        let mut scope = Scope::new(throughline_model::Owner::local());
        let found = parsed("role:user author:Ada after:2026-11 after:2026-10 tag:x");
        let left: Vec<_> = found
            .filters
            .iter()
            .filter(|one| !one.narrow(&mut scope))
            .collect();
        assert_eq!(left, [&Filter::Tag("x".to_owned())]);
        assert_eq!(scope.roles, [Role::User]);
        assert_eq!(scope.after.unwrap().to_string(), "2026-11-01T00:00:00Z");
    }
}
