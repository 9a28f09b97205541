//! What can be typed in the chat besides talking.
//!
//! A line that begins with a slash is a command; so are a few bare words that the
//! systems we take after have. Everything else is said to the agent.

use throughline::SessionSpec;

/// A command of the chat.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// Its name, without the slash.
    pub(crate) name: &'static str,
    /// What it takes.
    pub(crate) takes: &'static str,
    /// What it does.
    pub(crate) about: &'static str,
}

const fn word(name: &'static str, takes: &'static str, about: &'static str) -> Word {
    Word { name, takes, about }
}

/// Everything that can be typed, in the order `/help` tells it.
pub(crate) const WORDS: &[Word] = &[
    word("help", "", "what can be typed"),
    word(
        "sessions",
        "[--all]",
        "the sessions of this project, by number",
    ),
    word(
        "resume",
        "[SPEC]",
        "go to a session: number, id, name or transcript",
    ),
    word(
        "continue",
        "",
        "go on in a new session, from a summary of this",
    ),
    word("new", "[NAME]", "start another session"),
    word("retry", "", "have the last message answered again"),
    word(
        "compact",
        "[--undo]",
        "summarize what came before, or take that back",
    ),
    word("clear", "", "start anew here; what was said stays readable"),
    word("history", "[N]", "the last messages"),
    word("show", "[--all]", "this session"),
    word("search", "QUERY", "find what was ever said"),
    word(
        "context",
        "[--message TEXT]",
        "what the model would be sent now",
    ),
    word("pin", "TEXT", "keep a fact always in view"),
    word("unpin", "TEXT or NUMBER", "let a pin go"),
    word("decide", "TEXT", "note a decision"),
    word("facts", "", "facts and decisions so far"),
    word("tasks", "", "what is open"),
    word("tag", "TAG…", "tag this session"),
    word("rename", "NAME", "name this session"),
    word(
        "fork",
        "[--at ENTRY]",
        "try something else without losing this",
    ),
    word(
        "merge",
        "[--append | --summary TEXT]",
        "bring this fork back to where it came from",
    ),
    word("rewind", "ENTRY", "take back what was said after an entry"),
    word("tree", "", "what came from what"),
    word("workspace", "[FOLDER]", "the folder this session is in"),
    word("agent", "[FILE]", "the agent that answers"),
    word("model", "[MODEL]", "the model that answers"),
    word(
        "memory",
        "[add TEXT | forget ID …]",
        "what is remembered of this project",
    ),
    word("archive", "", "put this session away"),
    word("export", "[-o FILE]", "write this session to a file"),
    word("stats", "", "counts and tokens"),
    word("doctor", "", "check the store"),
    word("exit", "", "leave; also quit, or Ctrl-D"),
];

/// A line as it was meant.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Nothing.
    Empty,
    /// Something said to the agent.
    Say(String),
    /// A command and what came after it.
    Do(&'static str, String),
    /// `resume` and what may be a session, or just the way somebody began to speak.
    Resume(SessionSpec),
    /// A command that does not exist, and the nearest that does.
    Unknown(String, Option<&'static str>),
}

impl Line {
    pub(crate) fn parse(line: &str) -> Self {
        let line = line.trim();
        if line.is_empty() {
            return Self::Empty;
        }
        match line.to_lowercase().as_str() {
            "exit" | "quit" => return Self::Do("exit", String::new()),
            "help" => return Self::Do("help", String::new()),
            "compact" => return Self::Do("compact", String::new()),
            "resume" => return Self::Do("resume", String::new()),
            _ => {}
        }
        if let Some(("resume", spec)) = line.split_once(' ')
            && !spec.trim().contains(' ')
            && let Ok(spec) = spec.trim().parse()
        {
            return Self::Resume(spec);
        }
        let Some(typed) = line.strip_prefix('/') else {
            return Self::Say(line.to_owned());
        };
        let (name, rest) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
        // A path is something to talk about.
        if name.contains('/') || name.is_empty() {
            return Self::Say(line.to_owned());
        }
        let name = match name {
            "quit" | "q" => "exit",
            "?" => "help",
            other => other,
        };
        match WORDS.iter().find(|word| word.name == name) {
            Some(word) => Self::Do(word.name, rest.trim().to_owned()),
            None => Self::Unknown(name.to_owned(), nearest(name)),
        }
    }
}

/// The command somebody may have meant.
fn nearest(typed: &str) -> Option<&'static str> {
    let near = WORDS
        .iter()
        .map(|word| (strsim::damerau_levenshtein(typed, word.name), word.name));
    let begins = WORDS.iter().find(|word| word.name.starts_with(typed));
    begins.map(|word| word.name).or_else(|| {
        near.min()
            .filter(|(far, _)| *far <= 2)
            .map(|(_, name)| name)
    })
}

/// A hint as it is typed in the chat, where the session is known: `tl sessions` is
/// /sessions here.
pub(crate) fn as_typed_here(hint: &str) -> String {
    let mut hint = hint
        .replace("`--model ", "`/model ")
        .replace(" SESSION", "");
    for Word { name, .. } in WORDS {
        for end in ["`", " "] {
            hint = hint.replace(&format!("`tl {name}{end}"), &format!("`/{name}{end}"));
        }
    }
    hint
}

/// Arguments as a shell would read them.
pub(crate) fn arguments(text: &str) -> Result<Vec<String>, String> {
    shell_words::split(text).map_err(|_| format!("a quote in {text:?} has no end"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(name: &'static str, rest: &str) -> Line {
        Line::Do(name, rest.to_owned())
    }

    #[test]
    fn commands_are_told_from_talk() {
        assert_eq!(Line::parse("  "), Line::Empty);
        assert_eq!(
            Line::parse("/pin the port is 8080 "),
            done("pin", "the port is 8080")
        );
        assert_eq!(Line::parse("exit"), done("exit", ""));
        assert_eq!(Line::parse("Quit"), done("exit", ""));
        assert_eq!(Line::parse("/quit"), done("exit", ""));
        assert_eq!(Line::parse("compact"), done("compact", ""));
        assert_eq!(Line::parse("resume 1"), Line::Resume("1".parse().unwrap()));
        for talk in [
            "compact this function",
            "help me",
            "resume the work on auth",
            "/usr/bin/env is missing",
            "exit code 3?",
        ] {
            assert_eq!(Line::parse(talk), Line::Say(talk.to_owned()), "{talk}");
        }
    }

    #[test]
    fn a_hint_names_what_can_be_typed_here() {
        for (outside, here) in [
            (
                "`tl sessions --all` lists every session",
                "`/sessions --all` lists every session",
            ),
            ("`tl tree SESSION` shows it", "`/tree` shows it"),
            (
                "`tl restore a1` brings it back",
                "`tl restore a1` brings it back",
            ),
            (
                "`--model offline` needs no key",
                "`/model offline` needs no key",
            ),
        ] {
            assert_eq!(as_typed_here(outside), here);
        }
    }

    #[test]
    fn a_slip_is_told_with_what_was_meant() {
        let unknown = |typed: &str, near| Line::Unknown(typed.to_owned(), near);
        assert_eq!(Line::parse("/serach x"), unknown("serach", Some("search")));
        assert_eq!(Line::parse("/hist"), unknown("hist", Some("history")));
        assert_eq!(Line::parse("/frobnicate"), unknown("frobnicate", None));
    }
}
