//! The structure of a message: prose, list items, headings, and what is not prose.

use super::sentences::{LONGEST, clauses, sentences};

/// What a list item is marked as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// `-`, `*`, `1.`
    Bullet,
    /// `[ ]`
    Unticked,
    /// `[x]`
    Ticked,
}

/// What a heading says of the items under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Decisions,
    Tasks,
    Next,
    Progress,
    Done,
    Blockers,
    Facts,
}

/// A piece of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A sentence or list item.
    Said {
        text: String,
        mark: Option<Mark>,
        section: Option<Section>,
    },
    /// A heading.
    Heading(String),
    /// A line of code or of a program's output.
    Output(String),
}

/// Takes a message apart. `cut` says that its end was cut off.
pub(super) fn pieces(text: &str, cut: bool) -> Vec<Piece> {
    let mut reader = Reader::default();
    for line in text.lines() {
        reader.line(line);
    }
    reader.flush();
    if cut && !text.trim_end().ends_with(['.', '!', '?', '`', '。']) {
        reader.found.pop();
    }
    reader.found
}

#[derive(Default)]
struct Reader {
    found: Vec<Piece>,
    open: String,
    mark: Option<Mark>,
    fence: Option<&'static str>,
    section: Option<Section>,
    /// The section was opened by a line with a colon, and ends with its list.
    brief: bool,
}

impl Reader {
    fn line(&mut self, line: &str) {
        let indented = line.starts_with("  ") || line.starts_with('\t');
        let mut line = line.trim();
        let fence = ["```", "~~~"].into_iter().find(|f| line.starts_with(f));
        match (self.fence, fence) {
            (None, Some(_)) => {
                self.flush();
                self.fence = fence;
                return;
            }
            (Some(open), Some(close)) if open == close => {
                self.fence = None;
                return;
            }
            (Some(_), _) => {
                self.output(line);
                return;
            }
            (None, None) => {}
        }
        while let Some(quoted) = line.strip_prefix('>') {
            line = quoted.trim_start();
        }
        if line.is_empty() || line.bytes().all(|b| b"-=*_|: ".contains(&b)) {
            self.flush();
        } else if let Some(title) = heading(line) {
            self.flush();
            self.section = section(title);
            self.brief = false;
            self.found.push(Piece::Heading(clean(title)));
        } else if let Some((mark, item)) = list_item(line) {
            self.flush();
            self.mark = Some(mark);
            self.open.push_str(item);
        } else if let Some(row) = line.strip_prefix('|') {
            self.flush();
            self.mark = Some(Mark::Bullet);
            self.open.push_str(row.trim_end_matches('|').trim());
            self.flush();
        } else if looks_like_code(line) {
            self.flush();
            self.output(line);
        } else {
            if self.mark.is_some() && !indented {
                self.flush();
            }
            if !self.open.is_empty() {
                self.open.push(' ');
            }
            self.open.push_str(line);
        }
    }

    fn output(&mut self, line: &str) {
        if !line.is_empty() && line.len() <= LONGEST {
            self.found.push(Piece::Output(line.to_owned()));
        }
    }

    fn flush(&mut self) {
        let text = clean(&std::mem::take(&mut self.open));
        let mark = self.mark.take();
        if text.is_empty() {
            return;
        }
        if mark.is_none() && self.brief {
            self.section = None;
        }
        if mark.is_none() && text.ends_with(':') {
            // What introduces a list is a heading for it.
            let said = sentences(&text);
            let last = said.last().copied().unwrap_or(&text);
            if let Some(named) = section(last) {
                self.section = Some(named);
                self.brief = true;
            }
            for sentence in said.iter().take(said.len().saturating_sub(1)) {
                self.say(sentence, None);
            }
            return;
        }
        // A short item is one thing; a long one is prose in disguise.
        if mark.is_some() && text.len() <= LONGEST {
            self.say(&text, mark);
            return;
        }
        for sentence in sentences(&text) {
            for clause in clauses(sentence) {
                self.say(clause, mark);
            }
        }
    }

    fn say(&mut self, text: &str, mark: Option<Mark>) {
        self.found.push(Piece::Said {
            text: text.to_owned(),
            mark,
            section: self.section,
        });
    }
}

/// Without emphasis marks and with single spaces.
fn clean(text: &str) -> String {
    let text = text.replace("**", "");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn heading(line: &str) -> Option<&str> {
    let title = line.trim_start_matches('#');
    let hashes = line.len() - title.len();
    if (1..=6).contains(&hashes) && title.starts_with(' ') {
        return Some(title.trim());
    }
    let bold = line.strip_prefix("**")?.strip_suffix("**")?;
    (!bold.contains("**") && bold.len() < 80).then_some(bold)
}

fn list_item(line: &str) -> Option<(Mark, &str)> {
    let rest = ["- ", "* ", "+ ", "• "]
        .iter()
        .find_map(|bullet| line.strip_prefix(bullet))
        .or_else(|| {
            let digits = line.bytes().take_while(u8::is_ascii_digit).count();
            if !(1..=3).contains(&digits) {
                return None;
            }
            let rest = &line[digits..];
            rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") "))
        });
    let item = rest.map(str::trim_start);
    for (box_, mark) in [
        ("[ ]", Mark::Unticked),
        ("[x]", Mark::Ticked),
        ("[X]", Mark::Ticked),
        ("✅", Mark::Ticked),
        ("☑", Mark::Ticked),
        ("☐", Mark::Unticked),
    ] {
        if let Some(text) = item.unwrap_or(line).strip_prefix(box_) {
            return Some((mark, text.trim_start()));
        }
    }
    Some((Mark::Bullet, item?))
}

/// What a title announces.
fn section(title: &str) -> Option<Section> {
    const TITLES: &[(&str, Section)] = &[
        ("decision", Section::Decisions),
        ("decided", Section::Decisions),
        ("agreed", Section::Decisions),
        ("next", Section::Next),
        ("remain", Section::Next),
        ("pending", Section::Next),
        ("later", Section::Next),
        ("follow-up", Section::Next),
        ("still open", Section::Next),
        ("todo", Section::Tasks),
        ("to do", Section::Tasks),
        ("to-do", Section::Tasks),
        ("task", Section::Tasks),
        ("action item", Section::Tasks),
        ("in progress", Section::Progress),
        ("working on", Section::Progress),
        ("under way", Section::Progress),
        ("blocke", Section::Blockers),
        ("waiting", Section::Blockers),
        ("done", Section::Done),
        ("completed", Section::Done),
        ("finished", Section::Done),
        ("changes made", Section::Done),
        ("what changed", Section::Done),
        ("what i did", Section::Done),
        ("shipped", Section::Done),
        ("fact", Section::Facts),
        ("environment", Section::Facts),
        ("configuration", Section::Facts),
        ("details", Section::Facts),
        ("constraints", Section::Facts),
    ];
    let title = title.to_lowercase();
    if title.len() > 60 {
        return None;
    }
    TITLES
        .iter()
        .find(|(word, _)| title.contains(word))
        .map(|&(_, section)| section)
}

/// Whether a line outside a fence is code or output rather than prose.
fn looks_like_code(line: &str) -> bool {
    if line.starts_with("$ ")
        || line.starts_with("at ") && line.contains('(')
        || line.starts_with("diff --")
        || line.starts_with("@@")
        || line.starts_with("+++")
        || line.starts_with("---")
        || line.ends_with(['{', '}', ';'])
        || line.contains(" => ")
        || line.contains("error[")
    {
        return true;
    }
    let symbols = line
        .bytes()
        .filter(|b| b"{}();=<>[]|\\".contains(b))
        .count();
    symbols * 6 > line.len()
}

/// Whether a line of output tells of a failure.
pub(super) fn is_failure(line: &str) -> bool {
    const SIGNS: &[&str] = &[
        "error",
        "panicked",
        "exception",
        "fatal",
        "failed",
        "denied",
        "refused",
        "timed out",
    ];
    const NOT: &[&str] = &[
        "0 errors", "0 failed", "no error", "error_", "_error", "// ", "errors.", "error)", "(\"",
        "('", "except ", "catch", "log.",
    ];
    if line.len() < 12 {
        return false;
    }
    let lower = line.to_ascii_lowercase();
    SIGNS.iter().any(|sign| lower.contains(sign)) && !NOT.iter().any(|not| lower.contains(not))
}
