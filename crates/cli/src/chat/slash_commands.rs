//! Parses the chat's input lines into slash commands and messages.
//!
//! A line that begins with a slash is a command; so are a few bare words known from the
//! reference chat loop. Everything else is sent to the agent.

use throughline::SessionSpec;

/// A slash command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SlashCommand {
    /// Its name, without the slash.
    pub(crate) name: &'static str,
    /// Its arguments.
    pub(crate) usage: &'static str,
    /// What it does.
    pub(crate) help: &'static str,
}

const fn slash_command(
    name: &'static str,
    takes: &'static str,
    about: &'static str,
) -> SlashCommand {
    SlashCommand {
        name,
        usage: takes,
        help: about,
    }
}

/// All slash commands, in the order of `/help`.
pub(crate) const SLASH_COMMANDS: &[SlashCommand] = &[
    slash_command("help", "", "list these commands"),
    slash_command(
        "sessions",
        "[--all]",
        "list this project's sessions, by number",
    ),
    slash_command(
        "resume",
        "[SPEC]",
        "open a session: number, id, name or transcript",
    ),
    slash_command("continue", "", "continue in a new session from a summary"),
    slash_command("new", "[NAME]", "start a new session"),
    slash_command("retry", "", "answer the last message again"),
    slash_command(
        "compact",
        "[--undo]",
        "summarize earlier messages, or undo that",
    ),
    slash_command("clear", "", "start over here; messages stay readable"),
    slash_command("history", "[N]", "show the last messages"),
    slash_command("show", "[--all]", "show this session"),
    slash_command("search", "QUERY", "search all sessions"),
    slash_command(
        "context",
        "[--message TEXT]",
        "show the request the model would receive",
    ),
    slash_command("pin", "TEXT", "pin a fact"),
    slash_command("unpin", "TEXT or NUMBER", "remove a pin"),
    slash_command("decide", "TEXT", "record a decision"),
    slash_command("facts", "", "list facts and decisions"),
    slash_command("tasks", "", "list open tasks"),
    slash_command("tag", "TAG…", "tag this session"),
    slash_command("rename", "NAME", "rename this session"),
    slash_command(
        "fork",
        "[--at ENTRY]",
        "try something else without losing this",
    ),
    slash_command(
        "merge",
        "[--append | --summary TEXT]",
        "merge this fork into its origin",
    ),
    slash_command("rewind", "ENTRY", "rewind to an entry"),
    slash_command("tree", "", "draw the lineage of this session"),
    slash_command(
        "workspace",
        "[FOLDER]",
        "show or change this session's folder",
    ),
    slash_command("agent", "[FILE]", "show or change the agent"),
    slash_command("model", "[MODEL]", "show or change the model"),
    slash_command(
        "memory",
        "[add TEXT | forget ID …]",
        "list or change this project's facts",
    ),
    slash_command("archive", "", "archive this session"),
    slash_command("export", "[-o FILE]", "write this session to a file"),
    slash_command("stats", "", "show counts and tokens"),
    slash_command("doctor", "", "check the store"),
    slash_command("exit", "", "exit; also quit, or Ctrl-D"),
];

/// A parsed input line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum InputLine {
    /// Nothing.
    Empty,
    /// A message to the agent.
    Message(String),
    /// A command and its arguments.
    Command(&'static str, String),
    /// `resume` and what may be a session, or the beginning of a message.
    Resume(SessionSpec),
    /// A command that does not exist, and the nearest that does.
    Unknown(String, Option<&'static str>),
}

impl InputLine {
    pub(crate) fn parse(line: &str) -> Self {
        let line = line.trim();
        if line.is_empty() {
            return Self::Empty;
        }
        match line.to_lowercase().as_str() {
            "exit" | "quit" => return Self::Command("exit", String::new()),
            "help" => return Self::Command("help", String::new()),
            "compact" => return Self::Command("compact", String::new()),
            "resume" => return Self::Command("resume", String::new()),
            _ => {}
        }
        if let Some(("resume", spec)) = line.split_once(' ')
            && !spec.trim().contains(' ')
            && let Ok(spec) = spec.trim().parse()
        {
            return Self::Resume(spec);
        }
        let Some(typed) = line.strip_prefix('/') else {
            return Self::Message(line.to_owned());
        };
        let (name, rest) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
        // A path is part of a message.
        if name.contains('/') || name.is_empty() {
            return Self::Message(line.to_owned());
        }
        let name = match name {
            "quit" | "q" => "exit",
            "?" => "help",
            other => other,
        };
        match SLASH_COMMANDS.iter().find(|word| word.name == name) {
            Some(word) => Self::Command(word.name, rest.trim().to_owned()),
            None => Self::Unknown(name.to_owned(), nearest_command(name)),
        }
    }
}

/// Returns the command with the most similar name.
fn nearest_command(typed: &str) -> Option<&'static str> {
    let near = SLASH_COMMANDS
        .iter()
        .map(|word| (strsim::damerau_levenshtein(typed, word.name), word.name));
    let begins = SLASH_COMMANDS
        .iter()
        .find(|word| word.name.starts_with(typed));
    begins.map(|word| word.name).or_else(|| {
        near.min()
            .filter(|(far, _)| *far <= 2)
            .map(|(_, name)| name)
    })
}

/// Rewrites a hint for the chat, where the session is known: `tl sessions` becomes
/// `/sessions`.
pub(crate) fn to_chat_hint(hint: &str) -> String {
    let mut hint = hint
        .replace("`--model ", "`/model ")
        .replace(" SESSION", "");
    for SlashCommand { name, .. } in SLASH_COMMANDS {
        for end in ["`", " "] {
            hint = hint.replace(&format!("`tl {name}{end}"), &format!("`/{name}{end}"));
        }
    }
    hint
}

/// Splits arguments as a shell would.
pub(crate) fn split_arguments(text: &str) -> Result<Vec<String>, String> {
    shell_words::split(text).map_err(|_| format!("unclosed quote in {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(name: &'static str, rest: &str) -> InputLine {
        InputLine::Command(name, rest.to_owned())
    }

    #[test]
    fn commands_are_distinguished_from_messages() {
        assert_eq!(InputLine::parse("  "), InputLine::Empty);
        assert_eq!(
            InputLine::parse("/pin the port is 8080 "),
            command("pin", "the port is 8080")
        );
        assert_eq!(InputLine::parse("exit"), command("exit", ""));
        assert_eq!(InputLine::parse("Quit"), command("exit", ""));
        assert_eq!(InputLine::parse("/quit"), command("exit", ""));
        assert_eq!(InputLine::parse("compact"), command("compact", ""));
        assert_eq!(
            InputLine::parse("resume 1"),
            InputLine::Resume("1".parse().unwrap())
        );
        for talk in [
            "compact this function",
            "help me",
            "resume the work on auth",
            "/usr/bin/env is missing",
            "exit code 3?",
        ] {
            assert_eq!(
                InputLine::parse(talk),
                InputLine::Message(talk.to_owned()),
                "{talk}"
            );
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
            assert_eq!(to_chat_hint(outside), here);
        }
    }

    #[test]
    fn a_typo_is_reported_with_the_nearest_command() {
        let unknown = |typed: &str, near| InputLine::Unknown(typed.to_owned(), near);
        assert_eq!(
            InputLine::parse("/serach x"),
            unknown("serach", Some("search"))
        );
        assert_eq!(InputLine::parse("/hist"), unknown("hist", Some("history")));
        assert_eq!(InputLine::parse("/frobnicate"), unknown("frobnicate", None));
    }
}
