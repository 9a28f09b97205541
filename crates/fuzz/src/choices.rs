//! The random choices of a mutation, drawn from the fuzzing driver.

/// A source of choices. Returns `None` once the driver has no more.
pub struct Choices<'a> {
    draw: &'a mut dyn FnMut(usize) -> Option<usize>,
}

impl<'a> Choices<'a> {
    /// Creates a source from a function that returns a number below its argument.
    pub fn new(draw: &'a mut dyn FnMut(usize) -> Option<usize>) -> Self {
        Self { draw }
    }

    /// Returns a number below `limit`, or 0 if that is 0.
    pub fn below(&mut self, limit: usize) -> Option<usize> {
        if limit <= 1 {
            return Some(0);
        }
        (self.draw)(limit)
    }

    /// Returns true once in so many times.
    pub fn one_in(&mut self, times: usize) -> Option<bool> {
        Some(self.below(times)? == 0)
    }

    /// Picks one item; `None` if there are none.
    pub fn pick<'s, T>(&mut self, of: &'s [T]) -> Option<&'s T> {
        of.get(self.below(of.len())?)
    }

    /// Picks a range of at most `most` within a length.
    pub fn range(&mut self, length: usize, most: usize) -> Option<std::ops::Range<usize>> {
        let start = self.below(length + 1)?;
        let end = start + self.below(most.min(length - start) + 1)?;
        Some(start..end)
    }

    /// Returns random bytes, seeded by one choice.
    pub fn random_bytes(&mut self, count: usize) -> Option<Vec<u8>> {
        let mut random = SplitMix64::new(self.below(u32::MAX as usize)? as u64);
        Some((0..count).map(|_| random.next_byte()).collect())
    }
}

/// The splitmix64 random number generator: the same seed gives the same numbers on every
/// machine.
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn next_byte(&mut self) -> u8 {
        (self.next_u64() >> 56) as u8
    }

    /// Returns a number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        let product = u128::from(self.next_u64()) * limit as u128;
        usize::try_from(product >> 64).unwrap_or_default()
    }
}
