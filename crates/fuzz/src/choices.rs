//! The choices a mutation makes, drawn from whatever drives the fuzzing.

/// A source of choices. None once the driver has no more to give.
pub struct Choices<'a> {
    draw: &'a mut dyn FnMut(usize) -> Option<usize>,
}

impl<'a> Choices<'a> {
    /// Choices drawn with a function that answers with a number below its argument.
    pub fn new(draw: &'a mut dyn FnMut(usize) -> Option<usize>) -> Self {
        Self { draw }
    }

    /// A number below `limit`, or 0 where that is 0.
    pub fn below(&mut self, limit: usize) -> Option<usize> {
        if limit <= 1 {
            return Some(0);
        }
        (self.draw)(limit)
    }

    /// True once in so many times.
    pub fn one_in(&mut self, times: usize) -> Option<bool> {
        Some(self.below(times)? == 0)
    }

    /// One of several; none where there are none.
    pub fn pick<'s, T>(&mut self, of: &'s [T]) -> Option<&'s T> {
        of.get(self.below(of.len())?)
    }

    /// A part of something so long, of at most `most`.
    pub fn range(&mut self, length: usize, most: usize) -> Option<std::ops::Range<usize>> {
        let start = self.below(length + 1)?;
        let end = start + self.below(most.min(length - start) + 1)?;
        Some(start..end)
    }

    /// Random bytes, from one choice.
    pub fn noise(&mut self, count: usize) -> Option<Vec<u8>> {
        let mut state = self.below(u32::MAX as usize)? as u64;
        let byte = |_| {
            // splitmix64.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = state;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (mixed >> 56) as u8
        };
        Some((0..count).map(byte).collect())
    }
}
