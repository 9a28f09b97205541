//! Splits prose into sentences, and long sentences into clauses.

/// Maximum length of an item in a summary.
pub(super) const MAX_ITEM_LEN: usize = 280;

/// Abbreviations whose full stop does not end a sentence.
const ABBREVIATIONS: &[&str] = &[
    "e.g", "i.e", "etc", "vs", "mr", "mrs", "ms", "dr", "prof", "approx", "ca", "cf", "inc", "ltd",
    "corp", "est", "dept", "z.b", "bzw", "usw",
];

/// Abbreviations whose full stop does not end a sentence before a number.
const NUMBER_ABBREVIATIONS: &[&str] = &[
    "no", "nr", "p", "pp", "fig", "vol", "sec", "ch", "art", "st", "min", "max",
];

/// Splits prose into sentences. Only the white space between them is dropped.
pub(super) fn split_sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut ticks = 0_usize;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c == '`' {
            ticks += 1;
        }
        let wide = matches!(c, '。' | '！' | '？');
        if !(wide || matches!(c, '.' | '!' | '?' | '…')) {
            continue;
        }
        // Several end marks and closing quotes belong to the sentence.
        let mut end = at + c.len_utf8();
        let mut lone = true;
        while let Some(&(next, after)) = chars.peek() {
            if !".!?…)]\"'”’*`".contains(after) {
                break;
            }
            if after == '`' {
                ticks += 1;
            }
            lone &= !".!?…".contains(after);
            end = next + after.len_utf8();
            chars.next();
        }
        let spaced = text[end..].chars().next().is_none_or(char::is_whitespace);
        let code = ticks % 2 == 1;
        let number = text[end..]
            .trim_start()
            .starts_with(|c: char| c.is_ascii_digit());
        if !(wide || spaced)
            || code
            || (c == '.' && lone && is_abbreviation(&text[start..at], number))
        {
            continue;
        }
        push_sentence(&mut found, &text[start..end]);
        start = end;
    }
    push_sentence(&mut found, &text[start..]);
    found
}

fn push_sentence<'a>(found: &mut Vec<&'a str>, sentence: &'a str) {
    let sentence = sentence.trim();
    if sentence.contains(char::is_alphanumeric) {
        found.push(sentence);
    }
}

fn is_abbreviation(before: &str, number_follows: bool) -> bool {
    let word = before.rsplit(char::is_whitespace).next().unwrap_or(before);
    let word = word.trim_start_matches(['(', '[', '"', '\'']);
    // An initial, or a list number.
    let mut chars = word.chars();
    let single = matches!((chars.next(), chars.next()), (Some(c), None) if c.is_uppercase());
    let numbered = word.len() == before.trim_start().len()
        && !word.is_empty()
        && word.len() <= 2
        && word.bytes().all(|b| b.is_ascii_digit());
    single
        || numbered
        || number_follows
            && NUMBER_ABBREVIATIONS
                .iter()
                .any(|short| short.eq_ignore_ascii_case(word))
        || ABBREVIATIONS
            .iter()
            .any(|short| short.eq_ignore_ascii_case(word))
}

/// Splits a long sentence into clauses. Clauses that are still too long or too short are
/// dropped, since half a clause is worse than none.
pub(super) fn split_clauses(sentence: &str) -> Vec<&str> {
    const JOINTS: &[&str] = &[
        "; ",
        " — ",
        " – ",
        " - ",
        ", but ",
        ", and ",
        ", so ",
        ", which ",
        ", while ",
        ", because ",
        ": ",
        " (",
        ") ",
    ];
    if sentence.len() <= MAX_ITEM_LEN {
        return vec![sentence];
    }
    let mut parts = vec![sentence];
    for joint in JOINTS {
        parts = parts
            .into_iter()
            .flat_map(|part| {
                if part.len() <= MAX_ITEM_LEN {
                    vec![part]
                } else {
                    part.split(joint).collect()
                }
            })
            .collect();
    }
    parts
        .into_iter()
        .map(str::trim)
        .filter(|part| (20..=MAX_ITEM_LEN).contains(&part.len()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_where_a_reader_would_end_them() {
        assert_eq!(
            split_sentences(
                "We use v1.2.3 (e.g. on prod). Ask J. Smith! Really?? See src/a.rs. done"
            ),
            [
                "We use v1.2.3 (e.g. on prod).",
                "Ask J. Smith!",
                "Really??",
                "See src/a.rs.",
                "done"
            ]
        );
        assert_eq!(
            split_sentences("`a. b` is code. Yes."),
            ["`a. b` is code.", "Yes."]
        );
        assert_eq!(
            split_sentences("これは本。あれは？"),
            ["これは本。", "あれは？"]
        );
        assert_eq!(
            split_sentences("He said \"stop.\" Then left"),
            ["He said \"stop.\"", "Then left"]
        );
        assert!(split_sentences("... !!").is_empty());
    }

    #[test]
    fn a_long_sentence_falls_into_whole_clauses() {
        let long = format!("We keep Postgres 16 for storage; {}", "word ".repeat(80));
        assert_eq!(split_clauses(&long), ["We keep Postgres 16 for storage"]);
        assert_eq!(split_clauses("Short."), ["Short."]);
    }
}
