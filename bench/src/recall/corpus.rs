//! Generates messages whose word frequencies resemble natural text.
//!
//! The most frequent words are English, so that stop words occur at a natural rate; the others
//! are made of syllables. The word of rank r has a frequency of 1 / r (Zipf), and every message
//! is a function of its number.

use throughline_model::{Owner, Role, Seq, Timestamp};
use throughline_recall::Passage;

use crate::units::to_f64;

/// Messages per session.
const MESSAGES_PER_SESSION: u64 = 50;
/// Words per message: about 634 bytes of text.
const WORDS_PER_MESSAGE: usize = 100;
const VOCABULARY_SIZE: u32 = 60_000;

const FREQUENT_WORDS: &str = "the to a and of in is it you that for on was with as are this be have \
                        not or we can if from at by but what an so all about will do there when \
                        my which one would how more time up use like just get out your new \
                        people work need first also way make then see now file code test";

/// A deterministic random generator.
pub(crate) struct SeededRng(u64);

impl SeededRng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number between 0 and 1.
    fn next_f64(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        to_f64(self.0 >> 12) / to_f64(1 << 52)
    }

    /// Returns a rank from `from` up to `to`; the lower, the more likely.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank is positive and small"
    )]
    fn next_rank(&mut self, from: u32, to: u32) -> u32 {
        let (low, high) = (f64::from(from).ln(), f64::from(to).ln());
        (low + self.next_f64() * (high - low)).exp() as u32
    }
}

/// The words, most frequent first.
pub(crate) struct Vocabulary(Vec<String>);

impl Vocabulary {
    pub(crate) fn new() -> Self {
        let made = (0..VOCABULARY_SIZE).map(make_word);
        Self(
            FREQUENT_WORDS
                .split_whitespace()
                .map(str::to_owned)
                .chain(made)
                .collect(),
        )
    }

    fn get(&self, rank: u32) -> &str {
        &self.0[rank as usize % self.0.len()]
    }

    /// Returns the text of a message.
    pub(crate) fn message(&self, number: u64) -> String {
        let mut dice = SeededRng::new(number + 1);
        let mut text = String::with_capacity(WORDS_PER_MESSAGE * 7);
        for index in 0..WORDS_PER_MESSAGE {
            if index > 0 {
                text.push_str(if index % 12 == 0 { ". " } else { " " });
            }
            text.push_str(self.get(dice.next_rank(1, VOCABULARY_SIZE) - 1));
        }
        text
    }

    /// Returns a query: some words of a message, none of them very frequent.
    pub(crate) fn query(&self, number: u64, messages: u64) -> String {
        let mut dice = SeededRng::new(number + 0x1234_5678);
        let message = self.message(u64::from(dice.next_rank(1, u32::MAX)) % messages);
        let rare: Vec<&str> = message
            .split([' ', '.'])
            .filter(|word| !word.is_empty() && !FREQUENT_WORDS.contains(word))
            .collect();
        let step = (rare.len() / 6).max(1);
        let words: Vec<&str> = rare.into_iter().step_by(step).take(6).collect();
        format!("what about the {}", words.join(" "))
    }
}

/// Makes a word of syllables.
fn make_word(mut number: u32) -> String {
    const FIRST: [&str; 18] = [
        "b", "c", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "v", "w", "st", "tr",
    ];
    const SECOND: [&str; 7] = ["a", "e", "i", "o", "u", "ai", "ou"];
    let mut word = String::new();
    number += 18 * 7;
    while number > 0 {
        word.push_str(FIRST[number as usize % 18]);
        number /= 18;
        word.push_str(SECOND[number as usize % 7]);
        number /= 7;
    }
    word
}

/// Makes a passage of a message.
pub(crate) fn make_passage(
    words: &Vocabulary,
    owner: &Owner,
    number: u64,
) -> anyhow::Result<Passage> {
    let second = i64::try_from(1_700_000_000 + number * 60)?;
    Ok(Passage {
        position: number + 1,
        owner: owner.clone(),
        session: format!("s{}", number / MESSAGES_PER_SESSION).parse()?,
        seq: Seq(number % MESSAGES_PER_SESSION + 1),
        role: if number.is_multiple_of(2) {
            Role::User
        } else {
            Role::Assistant
        },
        author: None,
        at: Timestamp::from_second(second)?,
        text: words.message(number),
        files: Vec::new(),
        external_id: None,
        origin: None,
    })
}
