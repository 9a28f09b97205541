//! Reads and writes a project's memory as a section of its AGENTS.md.
//!
//! The section is enclosed by two markers, so that it can be replaced without touching the
//! rest of the file, and read back after people have edited it. Facts are list items; facts
//! that belong to files are below a heading that names the files.
//!
//! Invariant: what is written reads back the same.

use std::fmt::Write as _;

/// Marks the start of the section.
pub const MEMORY_START: &str = "<!-- throughline:memory:start -->";
/// Marks the end of the section.
pub const MEMORY_END: &str = "<!-- throughline:memory:end -->";

/// A fact in the section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryLine {
    /// Its text.
    pub text: String,
    /// The files and folders it belongs to.
    pub files: Vec<String>,
}

/// Why a file has no section to read or replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemorySectionError {
    /// Both markers are missing.
    #[error("the file has no memory section")]
    Missing,
    /// A marker is missing, or they are in the wrong order.
    #[error("the markers of the memory section are incomplete or in the wrong order")]
    BrokenMarkers,
}

/// Renders the section: facts without files first, then file by file, in the given order.
pub fn write_memory(lines: &[MemoryLine]) -> String {
    let mut groups: Vec<(&[String], Vec<&MemoryLine>)> = Vec::new();
    for line in lines {
        match groups.iter_mut().find(|(files, _)| *files == line.files) {
            Some((_, group)) => group.push(line),
            None => groups.push((&line.files, vec![line])),
        }
    }
    groups.sort_by_key(|(files, _)| *files);
    let mut section = format!("{MEMORY_START}\n## Memory\n");
    for (files, group) in groups {
        section.push('\n');
        if !files.is_empty() {
            let names: Vec<_> = files
                .iter()
                .map(|file| format!("`{}`", encode_file_name(file)))
                .collect();
            let _ = writeln!(section, "### {}\n", names.join(", "));
        }
        for line in group {
            for (index, part) in escape_comments(line.text.trim()).split('\n').enumerate() {
                let start = match (index, part) {
                    (0, _) => "- ",
                    (_, "") => "",
                    _ => "  ",
                };
                let _ = writeln!(section, "{start}{}", part.trim_end_matches('\r'));
            }
        }
    }
    section.push_str(MEMORY_END);
    section.push('\n');
    section
}

/// Reads the facts of a document's section.
pub fn read_memory(document: &str) -> Result<Vec<MemoryLine>, MemorySectionError> {
    let (start, end) = find_section(document)?;
    let inner = &document[start + MEMORY_START.len()..end - MEMORY_END.len()];
    let mut lines: Vec<MemoryLine> = Vec::new();
    let mut files: Vec<String> = Vec::new();
    // Whether the last item was a fact, and how many blank lines followed it.
    let mut open = None;
    for line in inner.lines() {
        if let Some(heading) = line.strip_prefix('#') {
            files = match heading.trim_start_matches('#').trim() {
                heading if line.starts_with("###") => parse_file_names(heading),
                _ => Vec::new(),
            };
            open = None;
        } else if let Some(text) = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")) {
            let (text, files) = (text.to_owned(), files.clone());
            lines.push(MemoryLine { text, files });
            open = Some(0);
        } else if line.trim().is_empty() {
            open = open.map(|empty: usize| empty + 1);
        } else if let (Some(empty), Some(part), Some(last)) =
            (open, line.strip_prefix("  "), lines.last_mut())
        {
            last.text.push_str(&"\n".repeat(empty + 1));
            last.text.push_str(part);
            open = Some(0);
        } else {
            // Text that people added beside the facts.
            open = None;
        }
    }
    for line in &mut lines {
        line.text = unescape_comments(line.text.trim());
    }
    lines.retain(|line| !line.text.is_empty());
    Ok(lines)
}

/// Replaces the section of a document, or appends it.
pub fn replace_memory(document: &str, section: &str) -> Result<String, MemorySectionError> {
    match find_section(document) {
        Ok((start, end)) => {
            let rest = &document[end..];
            let section = if rest.is_empty() {
                section
            } else {
                section.trim_end()
            };
            Ok(format!("{}{section}{rest}", &document[..start]))
        }
        Err(MemorySectionError::Missing) if document.trim().is_empty() => Ok(section.to_owned()),
        Err(MemorySectionError::Missing) => {
            Ok(format!("{}\n\n{section}", document.trim_end_matches('\n')))
        }
        Err(error) => Err(error),
    }
}

/// Finds the section, including its markers.
fn find_section(document: &str) -> Result<(usize, usize), MemorySectionError> {
    match (document.find(MEMORY_START), document.find(MEMORY_END)) {
        (None, None) => Err(MemorySectionError::Missing),
        (Some(start), Some(end)) if start < end => Ok((start, end + MEMORY_END.len())),
        _ => Err(MemorySectionError::BrokenMarkers),
    }
}

/// Parses the files that a heading names.
fn parse_file_names(heading: &str) -> Vec<String> {
    if heading.contains('`') {
        let quoted = heading.split('`').skip(1).step_by(2);
        return quoted
            .map(decode_file_name)
            .filter(|name| !name.is_empty())
            .collect();
    }
    let names = heading.split(',').map(str::trim);
    names
        .filter(|name| !name.is_empty())
        .map(ToOwned::to_owned)
        .collect()
}

fn encode_file_name(file: &str) -> String {
    let mut coded = String::new();
    for c in file.chars() {
        if c == '`' || c == '%' || c.is_control() {
            let _ = write!(coded, "%{:02X}", u32::from(c));
        } else {
            coded.push(c);
        }
    }
    coded
}

fn decode_file_name(name: &str) -> String {
    let mut parts = name.split('%');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part
            .get(..2)
            .and_then(|code| u8::from_str_radix(code, 16).ok());
        match code {
            Some(code) => text.extend([&char::from(code).to_string(), &part[2..]]),
            None => text.extend(["%", part]),
        }
    }
    text
}

/// Escapes `<!--` with a backslash, so that a fact cannot contain a marker.
fn escape_comments(text: &str) -> String {
    map_comment_escapes(text, |slashes| format!("{slashes}\\"))
}

fn unescape_comments(text: &str) -> String {
    map_comment_escapes(text, |slashes| {
        slashes.strip_prefix('\\').unwrap_or(slashes).to_owned()
    })
}

/// Changes the backslashes in every `<\\!--`.
fn map_comment_escapes(text: &str, change: impl Fn(&str) -> String) -> String {
    let mut changed = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let after = &rest[at + 1..];
        let slashes = after.len() - after.trim_start_matches('\\').len();
        changed.push_str(&rest[..=at]);
        rest = &after[slashes..];
        if rest.starts_with("!--") {
            changed.push_str(&change(&after[..slashes]));
        } else {
            changed.push_str(&after[..slashes]);
        }
    }
    changed + rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(text: &str, files: &[&str]) -> MemoryLine {
        MemoryLine {
            text: text.into(),
            files: files.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn facts_are_grouped_by_the_files_they_belong_to() {
        let section = write_memory(&[
            line("Tokens expire after an hour.", &["src/auth.rs"]),
            line("The port is 8080.", &[]),
            line("Two lines,\n\nwith a gap.", &[]),
        ]);
        let expected = "<!-- throughline:memory:start -->\n## Memory\n\n- The port is 8080.\n- Two \
                        lines,\n\n  with a gap.\n\n### `src/auth.rs`\n\n- Tokens expire after an \
                        hour.\n<!-- throughline:memory:end -->\n";
        assert_eq!(section, expected);
    }

    #[test]
    fn what_people_write_by_hand_is_understood() {
        let document = "# Agents\n<!-- throughline:memory:start -->\n## Memory\nSome words.\n\n* one\n\
                        ### src/a.rs, docs\n- two\n  more\nnot a fact\n## Other\n- three\n\
                        <!-- throughline:memory:end -->\n- no fact\n";
        let lines = read_memory(document).unwrap();
        let expected = [
            line("one", &[]),
            line("two\nmore", &["src/a.rs", "docs"]),
            line("three", &[]),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn the_rest_of_a_file_is_left_alone() {
        let one = write_memory(&[line("one", &[])]);
        let two = write_memory(&[line("two", &[])]);
        assert_eq!(replace_memory("", &one).unwrap(), one);
        let placed = replace_memory("# Agents\n", &one).unwrap();
        assert_eq!(placed, format!("# Agents\n\n{one}"));
        let placed = placed + "\nAfter.\n";
        let again = replace_memory(&placed, &two).unwrap();
        assert_eq!(again, placed.replace("- one", "- two"));
        assert_eq!(read_memory("# Agents"), Err(MemorySectionError::Missing));
        assert_eq!(
            replace_memory(MEMORY_END, &one),
            Err(MemorySectionError::BrokenMarkers)
        );
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            texts in prop::collection::vec(("[-a-c#<!> `\\\\\n*]{0,20}", "[a-c/%`]{0,5}"), 0..6),
        ) {
            let tidy = |text: &str| -> String {
                let lines = text.trim().lines().map(str::trim_end);
                lines.collect::<Vec<_>>().join("\n")
            };
            let mut lines: Vec<MemoryLine> = texts
                .iter()
                .map(|(text, file)| MemoryLine {
                    text: tidy(text),
                    files: Some(file.clone()).filter(|file| !file.is_empty()).into_iter().collect(),
                })
                .filter(|line| !line.text.is_empty())
                .collect();
            let read = read_memory(&write_memory(&lines)).unwrap();
            lines.sort_by(|a, b| a.files.cmp(&b.files));
            prop_assert_eq!(read, lines);
        }

        #[test]
        fn no_text_brings_the_reader_down(text in any::<String>()) {
            let _ = read_memory(&format!("{MEMORY_START}{text}{MEMORY_END}"));
        }
    }
}
