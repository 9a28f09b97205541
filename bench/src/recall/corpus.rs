//! Messages that nobody wrote, with words as frequent as in what people write.
//!
//! The most frequent words are English, so that stop words are met as often as they are;
//! the rest are made of syllables. Rank r has a frequency of 1 / r, and every message is
//! a function of its number.

use throughline_model::{Owner, Role, Seq, Timestamp};
use throughline_recall::Passage;

use crate::figure::float;

/// Messages a session.
const SESSION: u64 = 50;
/// Words a message: about 634 bytes of text.
const LENGTH: usize = 100;
const VOCABULARY: u32 = 60_000;

const FREQUENT: &str = "the to a and of in is it you that for on was with as are this be have \
                        not or we can if from at by but what an so all about will do there when \
                        my which one would how more time up use like just get out your new \
                        people work need first also way make then see now file code test";

/// A source of numbers that is always the same.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number between 0 and 1.
    fn roll(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        float(self.0 >> 12) / float(1 << 52)
    }

    /// A rank, the first the most likely.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank is positive and small"
    )]
    fn rank(&mut self, from: u32, to: u32) -> u32 {
        let (low, high) = (f64::from(from).ln(), f64::from(to).ln());
        (low + self.roll() * (high - low)).exp() as u32
    }
}

/// The words, the most frequent first.
pub(crate) struct Words(Vec<String>);

impl Words {
    pub(crate) fn new() -> Self {
        let made = (0..VOCABULARY).map(word);
        Self(
            FREQUENT
                .split_whitespace()
                .map(str::to_owned)
                .chain(made)
                .collect(),
        )
    }

    fn get(&self, rank: u32) -> &str {
        &self.0[rank as usize % self.0.len()]
    }

    /// The text of a message.
    pub(crate) fn message(&self, number: u64) -> String {
        let mut dice = Dice::new(number + 1);
        let mut text = String::with_capacity(LENGTH * 7);
        for index in 0..LENGTH {
            if index > 0 {
                text.push_str(if index % 12 == 0 { ". " } else { " " });
            }
            text.push_str(self.get(dice.rank(1, VOCABULARY) - 1));
        }
        text
    }

    /// A question: some words of a message, none of them very frequent.
    pub(crate) fn question(&self, number: u64, messages: u64) -> String {
        let mut dice = Dice::new(number + 0x1234_5678);
        let message = self.message(u64::from(dice.rank(1, u32::MAX)) % messages);
        let rare: Vec<&str> = message
            .split([' ', '.'])
            .filter(|word| !word.is_empty() && !FREQUENT.contains(word))
            .collect();
        let step = (rare.len() / 6).max(1);
        let words: Vec<&str> = rare.into_iter().step_by(step).take(6).collect();
        format!("what about the {}", words.join(" "))
    }
}

/// A word of syllables.
fn word(mut number: u32) -> String {
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

/// A message as a passage.
pub(crate) fn passage(words: &Words, owner: &Owner, number: u64) -> anyhow::Result<Passage> {
    let second = i64::try_from(1_700_000_000 + number * 60)?;
    Ok(Passage {
        position: number + 1,
        owner: owner.clone(),
        session: format!("s{}", number / SESSION).parse()?,
        seq: Seq(number % SESSION + 1),
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
