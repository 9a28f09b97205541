//! Reads input lines: with a line editor on a terminal, plainly from anything else.
//!
//! Alt-Enter, a trailing backslash and an open code fence continue on the next line.

use std::borrow::Cow;
use std::io::{self, BufRead, IsTerminal};
use std::path::PathBuf;

use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{
    Cmd, CompletionType, Config, Context, Editor, EventHandler, KeyCode, KeyEvent, Modifiers,
};

use super::slash_commands::SLASH_COMMANDS;

/// An input event.
#[derive(Debug)]
pub(crate) enum InputEvent {
    /// A line, or several.
    Line(String),
    /// Ctrl-C at the prompt.
    Interrupt,
    /// Ctrl-D, or the end of the input.
    End,
}

/// The source of input lines.
pub(crate) enum Input {
    Terminal(Box<Terminal>),
    Pipe,
}

pub(crate) struct Terminal {
    editor: Editor<Helper, FileHistory>,
    history: Option<PathBuf>,
}

impl Input {
    /// Opens the terminal if there is one; lines are saved in the file `history`.
    pub(crate) fn open(history: Option<PathBuf>) -> rustyline::Result<Self> {
        if !io::stdin().is_terminal() {
            return Ok(Self::Pipe);
        }
        let config = Config::builder()
            .max_history_size(5_000)?
            .history_ignore_dups(true)?
            .history_ignore_space(true)
            .completion_type(CompletionType::List)
            .auto_add_history(false)
            .build();
        let mut editor = Editor::with_config(config)?;
        editor.set_helper(Some(Helper::default()));
        editor.bind_sequence(
            KeyEvent(KeyCode::Enter, Modifiers::ALT),
            EventHandler::Simple(Cmd::Newline),
        );
        if let Some(history) = &history {
            // The file does not exist at first.
            let _ = editor.load_history(history);
        }
        let terminal = Terminal { editor, history };
        Ok(Self::Terminal(Box::new(terminal)))
    }

    /// Waits for a line. Blocks the thread.
    pub(crate) fn read(&mut self, prompt: &str, known: CompletionNames) -> io::Result<InputEvent> {
        match self {
            Self::Pipe => {
                let mut line = String::new();
                match io::stdin().lock().read_line(&mut line)? {
                    0 => Ok(InputEvent::End),
                    _ => Ok(InputEvent::Line(line)),
                }
            }
            Self::Terminal(terminal) => terminal.read(prompt, known),
        }
    }

    /// Asks a question; returns `None` without a terminal.
    pub(crate) fn ask(&mut self, question: &str) -> io::Result<Option<String>> {
        match self {
            Self::Pipe => Ok(None),
            Self::Terminal(terminal) => match terminal.editor.readline(question) {
                Ok(answer) => Ok(Some(answer.trim().to_lowercase())),
                Err(ReadlineError::Interrupted | ReadlineError::Eof) => Ok(None),
                Err(error) => Err(io::Error::other(error)),
            },
        }
    }
}

impl Terminal {
    fn read(&mut self, prompt: &str, known: CompletionNames) -> io::Result<InputEvent> {
        if let Some(helper) = self.editor.helper_mut() {
            helper.names = known;
        }
        match self.editor.readline(prompt) {
            Ok(line) => {
                let line = line.replace("\\\n", "\n");
                if !line.trim().is_empty() && self.editor.add_history_entry(&line).is_ok() {
                    self.save_history();
                }
                Ok(InputEvent::Line(line))
            }
            Err(ReadlineError::Interrupted) => Ok(InputEvent::Interrupt),
            Err(ReadlineError::Eof) => Ok(InputEvent::End),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn save_history(&mut self) {
        if let Some(history) = &self.history {
            // A history that cannot be written must not stop the chat.
            let _ = self.editor.append_history(history);
        }
    }
}

/// Names that can be completed.
#[derive(Clone, Debug, Default)]
pub(crate) struct CompletionNames {
    /// Sessions, by name or id.
    pub(crate) sessions: Vec<String>,
    /// Tags in use.
    pub(crate) tags: Vec<String>,
}

#[derive(Default)]
struct Helper {
    names: CompletionNames,
}

impl rustyline::Helper for Helper {}

impl Completer for Helper {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        Ok(complete_line(&self.names, &line[..at]))
    }
}

fn complete_line(known: &CompletionNames, line: &str) -> (usize, Vec<Pair>) {
    let begun = line.rsplit(' ').next().unwrap_or_default();
    let from = line.len() - begun.len();
    let candidates: Vec<&str> = match line.split_once(' ') {
        None if line.starts_with('/') => {
            let words = SLASH_COMMANDS
                .iter()
                .filter(|word| word.name.starts_with(&line[1..]));
            let pairs = words.map(|word| Pair {
                display: format!("/{:<10} {}", word.name, word.help),
                replacement: format!("/{} ", word.name),
            });
            return (0, pairs.collect());
        }
        Some(("/resume" | "resume" | "/merge", _)) => {
            known.sessions.iter().map(String::as_str).collect()
        }
        Some(("/tag", _)) => known.tags.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    };
    let fitting = candidates
        .into_iter()
        .filter(|name| name.starts_with(begun));
    let pairs = fitting.map(|name| Pair {
        display: name.to_owned(),
        replacement: name.to_owned(),
    });
    (from, pairs.collect())
}

impl Hinter for Helper {
    type Hint = String;

    /// Hints the arguments of a command once its name is typed.
    fn hint(&self, line: &str, at: usize, _: &Context<'_>) -> Option<String> {
        let name = line.strip_prefix('/')?;
        if at < line.len() {
            return None;
        }
        let name = name.strip_suffix(' ').unwrap_or(name);
        let word = SLASH_COMMANDS.iter().find(|word| word.name == name)?;
        let space = if line.ends_with(' ') { "" } else { " " };
        (!word.usage.is_empty()).then(|| format!("{space}{}", word.usage))
    }
}

impl Highlighter for Helper {
    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        format!("\x1b[2m{hint}\x1b[0m").into()
    }
}

impl Validator for Helper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if needs_more_input(context.input()) {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Valid(None)
        })
    }
}

/// Returns whether the input continues: a trailing backslash or an open code fence.
fn needs_more_input(text: &str) -> bool {
    let fences = text
        .lines()
        .filter(|line| line.trim_start().starts_with("```"));
    text.ends_with('\\') || fences.count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_on_after_a_backslash_and_in_code() {
        assert!(needs_more_input("first\\"));
        assert!(needs_more_input("look:\n```rust\nfn main() {}"));
        assert!(!needs_more_input("look:\n```\nx\n```"));
        assert!(!needs_more_input("hello"));
    }

    #[test]
    fn commands_names_and_tags_are_completed() {
        let known = CompletionNames {
            sessions: vec!["auth".into(), "billing".into()],
            tags: vec!["urgent".into()],
        };
        let offered = |line: &str| {
            let (from, pairs) = complete_line(&known, line);
            let replacements = pairs.into_iter().map(|pair| pair.replacement);
            (from, replacements.collect::<Vec<_>>())
        };
        assert_eq!(offered("/arc"), (0, vec!["/archive ".to_owned()]));
        assert_eq!(offered("/resume a"), (8, vec!["auth".to_owned()]));
        assert_eq!(offered("/tag ur"), (5, vec!["urgent".to_owned()]));
        assert_eq!(offered("hello a"), (6, vec![]));
    }
}
