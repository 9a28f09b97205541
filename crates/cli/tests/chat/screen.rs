//! Screens as text: exactly what is displayed, with variable parts masked.

use std::num::NonZeroU16;

pub(crate) const ROWS: NonZeroU16 = NonZeroU16::new(40).unwrap();
pub(crate) const COLUMNS: NonZeroU16 = NonZeroU16::new(80).unwrap();

/// Patterns of variable parts and their masks, of equal width to preserve the layout. `9`
/// is a digit, `x` a lowercase letter or digit, `^` an uppercase and `_` a lowercase
/// letter.
const MASKS: [(&str, &str); 11] = [
    (
        "9999-99-99-99-99-99-999-xxxxxx",
        "YYYY-MM-DD-hh-mm-ss-mmm-random",
    ),
    ("9999-99-99T99:99:99.999Z", "YYYY-MM-DDThh:mm:ss.mmmZ"),
    ("9999-99-99", "YYYY-MM-DD"),
    ("99:99:99", "hh:mm:ss"),
    ("^__ 99, 99:99", "Mon DD, hh:mm"),
    ("^__ 9, 99:99", "Mon D, hh:mm"),
    ("retrying in 9.9 s", "retrying in S.S s"),
    ("127.0.0.1:99999", "127.0.0.1:PORT*"),
    ("127.0.0.1:9999", "127.0.0.1:PORT"),
    ("Time: 9.9s", "Time: S.Ss"),
    (
        "Digest          xxxxxxxxxxxx",
        "Digest          the digest..",
    ),
];

/// A row, and whether it wraps into the next.
pub(crate) type Row = (String, bool);

/// Returns all rows, including those that have scrolled off.
pub(crate) fn rows(parser: &mut vt100::Parser) -> Vec<Row> {
    let screen = parser.screen_mut();
    let mut all = Vec::new();
    let before = screen.scrollback_len();
    for above in (0..=before).rev() {
        screen.set_scrollback(above);
        // Each step shows one more row at the end; the last shows the screen itself.
        let shown = if above == 0 {
            usize::from(ROWS.get())
        } else {
            1
        };
        let texts: Vec<String> = screen.rows(0, COLUMNS.get()).take(shown).collect();
        for (row, text) in (0..).zip(texts) {
            all.push((text, screen.row_wrapped(row)));
        }
    }
    all
}

/// Joins rows into text, with variable parts masked.
pub(crate) fn normalize(rows: &[Row], folder: &str) -> String {
    let mut text = String::new();
    let mut line = String::new();
    for (row, goes_on) in rows {
        line.push_str(row);
        if *goes_on {
            continue;
        }
        let whole = std::mem::take(&mut line);
        for row in wrap_line(&mask(&whole.replace(folder, "/tmp/person"))) {
            text.push_str(row.trim_end());
            text.push('\n');
        }
    }
    let end = text.trim_end().len();
    text.truncate(end);
    text
}

/// Masks the variable parts of a text.
pub(crate) fn mask(text: &str) -> String {
    let mut masked = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let found = MASKS.iter().find(|(mask, _)| matches_mask(rest, mask));
        let (shown, length) = match found {
            Some((mask, shown)) => ((*shown).to_owned(), mask.len()),
            None => (first.to_string(), first.len_utf8()),
        };
        masked.push_str(&shown);
        rest = &rest[length..];
    }
    masked
}

fn matches_mask(text: &str, mask: &str) -> bool {
    let mut chars = text.chars();
    mask.chars().all(|wanted| {
        chars.next().is_some_and(|c| match wanted {
            '9' => c.is_ascii_digit(),
            '^' => c.is_ascii_uppercase(),
            '_' => c.is_ascii_lowercase(),
            'x' => c.is_ascii_lowercase() || c.is_ascii_digit(),
            other => c == other,
        })
    })
}

/// Wraps a line as a terminal does.
fn wrap_line(line: &str) -> Vec<String> {
    use unicode_width::UnicodeWidthChar;
    let mut rows = vec![String::new()];
    let mut used = 0;
    for c in line.chars() {
        let width = c.width().unwrap_or(0);
        if used + width > usize::from(COLUMNS.get()) {
            rows.push(String::new());
            used = 0;
        }
        used += width;
        rows.last_mut().unwrap().push(c);
    }
    rows
}
