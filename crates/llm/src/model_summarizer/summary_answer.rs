//! Parses a model's summary; anything but the requested JSON is an error.

use serde::Deserialize;
use throughline_model::Summary;

/// What is wrong with a model's answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SummaryParseError {
    /// There is text before or after the object, or no object at all.
    #[error("it is not one JSON object")]
    NotAnObject,
    /// The object is not valid JSON, or its fields do not match.
    #[error("it does not have the requested fields")]
    Shape(#[from] serde_json::Error),
    /// All its fields are empty.
    #[error("it is empty")]
    Empty,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SummaryAnswer {
    background: String,
    topics: Vec<String>,
    completed: Vec<String>,
    in_progress: Vec<String>,
    pending: Vec<String>,
    blockers: Vec<String>,
    decisions: Vec<String>,
    facts: Vec<String>,
    // Ignored, since files are taken from the log; requested to keep the familiar shape.
    #[serde(default, rename = "files_touched")]
    _files: Vec<String>,
    open_tasks: Vec<String>,
}

/// Parses an answer. One code fence around it is accepted, nothing else.
pub(super) fn parse_summary(text: &str) -> Result<Summary, SummaryParseError> {
    let object = strip_fence(text.trim()).trim();
    // serde would accept an array with the fields in order.
    if !object.starts_with('{') || !object.ends_with('}') {
        return Err(SummaryParseError::NotAnObject);
    }
    let answer: SummaryAnswer = serde_json::from_str(object)?;
    let summary = Summary {
        background: to_one_line(&answer.background),
        topics: clean_items(&answer.topics),
        completed: clean_items(&answer.completed),
        in_progress: clean_items(&answer.in_progress),
        pending: clean_items(&answer.pending),
        blockers: clean_items(&answer.blockers),
        decisions: clean_items(&answer.decisions),
        facts: clean_items(&answer.facts),
        files_touched: Vec::new(),
        open_tasks: clean_items(&answer.open_tasks),
    };
    if summary.is_empty() {
        return Err(SummaryParseError::Empty);
    }
    Ok(summary)
}

fn strip_fence(text: &str) -> &str {
    let inside = text
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
        .and_then(|rest| rest.split_once('\n'));
    match inside {
        Some((tag, body)) if matches!(tag.trim(), "" | "json" | "JSON") => body,
        _ => text,
    }
}

fn clean_items(items: &[String]) -> Vec<String> {
    let lines = items.iter().map(|item| to_one_line(item));
    lines.filter(|item| !item.is_empty()).collect()
}

fn to_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"background":"b","topics":["t"],"completed":[],"in_progress":[],
        "pending":[" p\nq ",""],"blockers":[],"decisions":[],"facts":[],
        "files_touched":["made/up.rs"],"open_tasks":[]}"#;

    #[test]
    fn an_answer_is_read_with_or_without_a_fence() {
        for text in [
            GOOD.to_owned(),
            format!("  ```json\n{GOOD}\n```\n"),
            format!("```\n{GOOD}```"),
        ] {
            let summary = parse_summary(&text).unwrap();
            assert_eq!(summary.topics, ["t"]);
            assert_eq!(summary.pending, ["p q"]);
            assert!(summary.files_touched.is_empty());
        }
    }

    #[test]
    fn anything_else_than_asked_for_is_refused() {
        let more = GOOD.replacen('{', r#"{"mood":"good","#, 1);
        let wrong = GOOD.replace(r#"["t"]"#, r#""t""#);
        let number = GOOD.replace(r#""b""#, "7");
        let less = GOOD.replace(r#""facts":[],"#, "");
        let twice = GOOD.replacen('{', r#"{"facts":[],"#, 1);
        for text in [more, wrong, number, less, twice] {
            assert!(
                matches!(parse_summary(&text), Err(SummaryParseError::Shape(_))),
                "{text}"
            );
        }
        for text in ["", "Sure!", "[]", "null", "Here: {}", "{} {} x"] {
            assert!(
                matches!(parse_summary(text), Err(SummaryParseError::NotAnObject)),
                "{text}"
            );
        }
        let talk = format!("Here you are:\n```json\n{GOOD}\n```");
        assert!(parse_summary(&talk).is_err());
        let empty = GOOD
            .replace(r#""b""#, r#""""#)
            .replace(r#""t""#, "")
            .replace(r#"" p\nq ","""#, "");
        assert!(matches!(
            parse_summary(&empty),
            Err(SummaryParseError::Empty)
        ));
    }
}
