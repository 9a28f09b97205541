//! Words of a text, and the stemmed terms that texts are compared by.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// A word of a text, without surrounding punctuation.
#[derive(Clone, Debug)]
pub(super) struct Word<'a> {
    /// As written.
    pub(super) raw: &'a str,
    /// Byte offset in the text.
    pub(super) start: usize,
    /// In lower case, with straight apostrophes.
    pub(super) lower: Cow<'a, str>,
    /// Whether punctuation that ends a phrase follows.
    pub(super) ends_phrase: bool,
    /// Whether it was marked as code.
    pub(super) is_code: bool,
}

/// Splits a text into words.
pub(super) fn split_words(text: &str) -> Vec<Word<'_>> {
    let base = text.as_ptr() as usize;
    text.split(|c: char| c.is_whitespace() || c == '—')
        .filter_map(|token| {
            let raw = token
                .trim_start_matches(|c| "([{<\"'“‘*~`_".contains(c))
                .trim_end_matches(|c| ")]}>\"'”’*~`_.,;:!?…".contains(c));
            if !raw.contains(char::is_alphanumeric) {
                return None;
            }
            Some(Word {
                raw,
                start: raw.as_ptr() as usize - base,
                lower: to_lower(raw),
                ends_phrase: token.ends_with([',', ';', ':', ')', '.', '?', '!']),
                is_code: token.contains('`') || token.contains("()"),
            })
        })
        .collect()
}

fn to_lower(raw: &str) -> Cow<'_, str> {
    if raw.bytes().all(|b| b.is_ascii() && !b.is_ascii_uppercase()) {
        Cow::Borrowed(raw)
    } else {
        Cow::Owned(raw.to_lowercase().replace('’', "'"))
    }
}

/// The number of a stemmed word.
pub(super) type Term = u32;

/// How often a term occurs, and whose messages it occurs in.
#[derive(Clone, Copy, Default)]
struct TermCount {
    user: u32,
    other: u32,
    /// Number of messages with the term, and the last of them.
    messages: u32,
    last: usize,
}

/// The terms of a conversation, with their counts.
#[derive(Default)]
pub(super) struct Lexicon {
    ids: HashMap<String, Term>,
    counts: Vec<TermCount>,
    max_weight: f64,
}

impl Lexicon {
    /// Returns the term of a word; `None` for stop words.
    pub(super) fn intern(&mut self, lower: &str) -> Option<Term> {
        if is_stop_word(lower) {
            return None;
        }
        let stem = stem(lower);
        if let Some(&id) = self.ids.get(stem.as_ref()) {
            return Some(id);
        }
        let id = Term::try_from(self.counts.len()).ok()?;
        self.ids.insert(stem.into_owned(), id);
        self.counts.push(TermCount::default());
        Some(id)
    }

    /// Counts one occurrence of terms that appear together.
    pub(super) fn count(&mut self, terms: &[Term], by_user: bool, message: usize) {
        for &term in terms {
            if let Some(count) = self.counts.get_mut(term as usize) {
                if count.messages == 0 || count.last != message {
                    count.messages += 1;
                    count.last = message;
                }
                if by_user {
                    count.user += 1;
                } else {
                    count.other += 1;
                }
            }
        }
        for &term in terms {
            self.max_weight = self.max_weight.max(self.weight(term));
        }
    }

    /// Returns how central a term is to the conversation.
    fn weight(&self, term: Term) -> f64 {
        let count = self.counts.get(term as usize).copied().unwrap_or_default();
        let both = if count.user > 0 && count.other > 0 {
            1.4
        } else {
            1.0
        };
        f64::from(count.user + count.other).ln_1p() * both
    }

    /// Returns how central a text is, from 0 to 1.
    pub(super) fn centrality(&self, terms: &[Term]) -> f64 {
        if terms.is_empty() || self.max_weight <= 0.0 {
            return 0.0;
        }
        let sum: f64 = terms.iter().map(|&term| self.weight(term)).sum();
        let count = f64::from(u32::try_from(terms.len()).unwrap_or(u32::MAX));
        sum / count / self.max_weight
    }

    /// Returns the share of terms that the user used too, or that recur, from 0 to 1.
    pub(super) fn grounded_share(&self, terms: &[Term]) -> f64 {
        let is_grounded = |term: &&Term| {
            let count = self.counts.get(**term as usize);
            count.is_some_and(|count| count.user > 0 || count.messages > 2)
        };
        crate::summary_files::ratio(terms.iter().filter(is_grounded).count(), terms.len())
    }

    /// Returns the rarity of a term; rare terms distinguish texts better.
    pub(super) fn rarity(&self, term: Term) -> f64 {
        let count = self.counts.get(term as usize).copied().unwrap_or_default();
        1.0 / (2.0 + f64::from(count.user + count.other)).ln()
    }

    /// Returns the summed rarity of terms.
    pub(super) fn total_rarity(&self, terms: &[Term]) -> f64 {
        terms.iter().map(|&term| self.rarity(term)).sum()
    }
}

/// Intersects two sorted sets of terms.
pub(super) fn intersect_terms(a: &[Term], b: &[Term]) -> Vec<Term> {
    let (mut i, mut j) = (0, 0);
    let mut both = Vec::new();
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        match x.cmp(y) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => {
                both.push(*x);
                i += 1;
                j += 1;
            }
        }
    }
    both
}

/// Removes common English endings, so that "caching" and "cached" become one term.
fn stem(lower: &str) -> Cow<'_, str> {
    if lower.len() < 4 || !lower.bytes().all(|b| b.is_ascii_lowercase() || b == b'\'') {
        return Cow::Borrowed(lower);
    }
    let word = lower.strip_suffix("'s").unwrap_or(lower);
    if let Some(root) = word.strip_suffix("ies").filter(|root| root.len() > 2) {
        return Cow::Owned(format!("{root}y"));
    }
    let root = ["ing", "ed", "es", "s"]
        .iter()
        .find_map(|ending| {
            word.strip_suffix(ending)
                .filter(|root| root.len() >= 3 && !(ending == &"s" && root.ends_with('s')))
        })
        .unwrap_or(word);
    let bytes = root.as_bytes();
    let doubled = root.len() < word.len()
        && root.len() > 3
        && bytes[root.len() - 1] == bytes[root.len() - 2]
        && !b"slz".contains(&bytes[root.len() - 1]);
    let root = if doubled {
        &root[..root.len() - 1]
    } else {
        root
    };
    Cow::Borrowed(
        root.strip_suffix('e')
            .filter(|r| r.len() > 2)
            .unwrap_or(root),
    )
}

/// Whether a word carries no meaning of its own.
pub(super) fn is_stop_word(lower: &str) -> bool {
    static STOPS: LazyLock<HashSet<&'static str>> =
        LazyLock::new(|| STOP_WORDS.split_whitespace().collect());
    STOPS.contains(lower)
}

const STOP_WORDS: &str = "\
a about above actually add added adding after again all almost already also although always am an \
and another any anything are aren't around as ask at away back be because been before being below \
best better between both but by can can't cannot check come complete completed could couldn't \
create created did didn't different do does doesn't doing don't done down during each either else \
enough even ever every everything exactly few finally find fine finish finished first fix fixed \
follow following for from full further get gets getting give go goes going good got great had has \
hasn't have haven't having he he'd he'll he's hello help her here here's hers hey hi him his how \
however i i'd i'll i'm i've if implement implemented in instead into is isn't it it'll it's its \
itself just keep kind know last later least less let let's like little long look looking looks lot \
made make makes making many may maybe me mean might mine more most much must my myself need needed \
needs never new next nice no nor not nothing now of off ok okay on once one only onto or other our \
ours out over own part per perhaps please plus possible pretty probably put quite rather ready really \
right said same say says see seem seems set shall she should shouldn't show since so some \
something soon sorry still stuff such sure take takes tell than thank thanks that that'll that's \
the their them then there there's these they they'll they're they've thing things think this \
those though through thus to together too try trying two under until up update updated us use used \
uses using very want wants was wasn't way we we'd we'll we're we've well were weren't what what's \
when where whether which while who whole whom whose why will with within without won't would \
wouldn't write wrote written yeah yes yet you you'd you'll you're you've your yours";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_are_one_term() {
        let mut lexicon = Lexicon::default();
        for (a, b) in [
            ("caching", "cached"),
            ("retries", "retry"),
            ("planned", "planning"),
            ("webhook's", "webhooks"),
        ] {
            assert_eq!(lexicon.intern(a), lexicon.intern(b), "{a} {b}");
        }
        assert_ne!(lexicon.intern("v1.2"), lexicon.intern("v1.3"));
        assert_eq!(lexicon.intern("the"), None);
    }

    #[test]
    fn punctuation_is_not_part_of_a_word() {
        let found = split_words("Use (`src/main.rs`), “Postgres”… don’t—now!");
        let raw: Vec<_> = found.iter().map(|word| word.raw).collect();
        assert_eq!(raw, ["Use", "src/main.rs", "Postgres", "don’t", "now"]);
        assert_eq!(found[3].lower, "don't");
        assert!(found[1].is_code && found[1].ends_phrase);
    }
}
