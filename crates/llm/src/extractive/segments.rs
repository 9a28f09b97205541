//! Splits a message into prose, list items, headings, and code or output.

use super::sentences::{MAX_ITEM_LEN, split_clauses, split_sentences};

/// The marker of a list item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListMarker {
    /// `-`, `*`, `1.`
    Bullet,
    /// `[ ]`
    Unchecked,
    /// `[x]`
    Checked,
}

/// What a heading implies for the items under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Decisions,
    Tasks,
    Pending,
    InProgress,
    Done,
    Blockers,
    Facts,
}

/// A segment of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Segment {
    /// A sentence or list item.
    Statement {
        text: String,
        marker: Option<ListMarker>,
        section: Option<Section>,
    },
    /// A heading.
    Heading(String),
    /// A line of code or of a program's output.
    Output(String),
}

/// Splits a message into segments. `cut` means that its end was truncated.
pub(super) fn split_segments(text: &str, cut: bool) -> Vec<Segment> {
    let mut reader = SegmentParser::default();
    for line in text.lines() {
        reader.push_line(line);
    }
    reader.flush();
    if cut && !text.trim_end().ends_with(['.', '!', '?', '`', '。']) {
        reader.segments.pop();
    }
    reader.segments
}

#[derive(Default)]
struct SegmentParser {
    segments: Vec<Segment>,
    paragraph: String,
    marker: Option<ListMarker>,
    fence: Option<&'static str>,
    section: Option<Section>,
    /// Whether the section was opened by a line with a colon, and ends with its list.
    section_ends_with_list: bool,
}

impl SegmentParser {
    fn push_line(&mut self, line: &str) {
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
                self.push_output(line);
                return;
            }
            (None, None) => {}
        }
        while let Some(quoted) = line.strip_prefix('>') {
            line = quoted.trim_start();
        }
        if line.is_empty() || line.bytes().all(|b| b"-=*_|: ".contains(&b)) {
            self.flush();
        } else if let Some(title) = parse_heading(line) {
            self.flush();
            self.section = section_for_title(title);
            self.section_ends_with_list = false;
            self.segments.push(Segment::Heading(strip_emphasis(title)));
        } else if let Some((mark, item)) = parse_list_item(line) {
            self.flush();
            self.marker = Some(mark);
            self.paragraph.push_str(item);
        } else if let Some(row) = line.strip_prefix('|') {
            self.flush();
            self.marker = Some(ListMarker::Bullet);
            self.paragraph.push_str(row.trim_end_matches('|').trim());
            self.flush();
        } else if looks_like_code(line) {
            self.flush();
            self.push_output(line);
        } else {
            if self.marker.is_some() && !indented {
                self.flush();
            }
            if !self.paragraph.is_empty() {
                self.paragraph.push(' ');
            }
            self.paragraph.push_str(line);
        }
    }

    fn push_output(&mut self, line: &str) {
        if !line.is_empty() && line.len() <= MAX_ITEM_LEN {
            self.segments.push(Segment::Output(line.to_owned()));
        }
    }

    fn flush(&mut self) {
        let text = strip_emphasis(&std::mem::take(&mut self.paragraph));
        let mark = self.marker.take();
        if text.is_empty() {
            return;
        }
        if mark.is_none() && self.section_ends_with_list {
            self.section = None;
        }
        if mark.is_none() && text.ends_with(':') {
            // A line that introduces a list serves as its heading.
            let sentences = split_sentences(&text);
            let last = sentences.last().copied().unwrap_or(&text);
            if let Some(named) = section_for_title(last) {
                self.section = Some(named);
                self.section_ends_with_list = true;
            }
            for sentence in sentences.iter().take(sentences.len().saturating_sub(1)) {
                self.push_statement(sentence, None);
            }
            return;
        }
        // A short list item is one statement; a long one is split like prose.
        if mark.is_some() && text.len() <= MAX_ITEM_LEN {
            self.push_statement(&text, mark);
            return;
        }
        for sentence in split_sentences(&text) {
            for clause in split_clauses(sentence) {
                self.push_statement(clause, mark);
            }
        }
    }

    fn push_statement(&mut self, text: &str, mark: Option<ListMarker>) {
        self.segments.push(Segment::Statement {
            text: text.to_owned(),
            marker: mark,
            section: self.section,
        });
    }
}

/// Removes emphasis markers and collapses white space.
fn strip_emphasis(text: &str) -> String {
    let text = text.replace("**", "");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn parse_heading(line: &str) -> Option<&str> {
    let title = line.trim_start_matches('#');
    let hashes = line.len() - title.len();
    if (1..=6).contains(&hashes) && title.starts_with(' ') {
        return Some(title.trim());
    }
    let bold = line.strip_prefix("**")?.strip_suffix("**")?;
    (!bold.contains("**") && bold.len() < 80).then_some(bold)
}

fn parse_list_item(line: &str) -> Option<(ListMarker, &str)> {
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
        ("[ ]", ListMarker::Unchecked),
        ("[x]", ListMarker::Checked),
        ("[X]", ListMarker::Checked),
        ("✅", ListMarker::Checked),
        ("☑", ListMarker::Checked),
        ("☐", ListMarker::Unchecked),
    ] {
        if let Some(text) = item.unwrap_or(line).strip_prefix(box_) {
            return Some((mark, text.trim_start()));
        }
    }
    Some((ListMarker::Bullet, item?))
}

/// Returns the section that a title announces.
fn section_for_title(title: &str) -> Option<Section> {
    const TITLES: &[(&str, Section)] = &[
        ("decision", Section::Decisions),
        ("decided", Section::Decisions),
        ("agreed", Section::Decisions),
        ("next", Section::Pending),
        ("remain", Section::Pending),
        ("pending", Section::Pending),
        ("later", Section::Pending),
        ("follow-up", Section::Pending),
        ("still open", Section::Pending),
        ("todo", Section::Tasks),
        ("to do", Section::Tasks),
        ("to-do", Section::Tasks),
        ("task", Section::Tasks),
        ("action item", Section::Tasks),
        ("in progress", Section::InProgress),
        ("working on", Section::InProgress),
        ("under way", Section::InProgress),
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

/// Whether a line outside a code fence is code or output rather than prose.
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

/// Whether a line of output reports a failure.
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
