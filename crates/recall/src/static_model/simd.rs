//! SIMD dot products of byte vectors.
//!
//! The loops are plain Rust; [`dispatch_simd`] compiles the work it is given for several
//! instruction sets and selects the best one at run time.

/// Work to run under SIMD: a short closure, or a type whose method is always inlined.
pub(crate) use pulp::WithSimd as Work;

/// Runs some work with the widest available instructions.
pub(crate) fn dispatch_simd<W: Work>(work: W) -> W::Output {
    pulp::Arch::new().dispatch(work)
}

/// Widens a vector of signed bytes for multiplication.
pub(crate) fn widen(bytes: &[u8]) -> Vec<i16> {
    bytes.iter().map(|byte| byte.cast_signed().into()).collect()
}

/// Returns the dot product of two vectors of signed bytes, one widened. Fast within
/// [`dispatch_simd`].
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "it must be compiled into the work that is done with it"
)]
#[expect(
    clippy::cast_precision_loss,
    reason = "256 products of bytes are far below 2^24"
)]
pub(crate) fn dot(a: &[u8], b: &[i16]) -> f32 {
    // This shape compiles to multiply-and-add of 16-bit lanes.
    let product: i32 = a
        .iter()
        .zip(b)
        .map(|(a, b)| i32::from(i16::from(a.cast_signed()) * b))
        .sum();
    product as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_product_is_the_same_on_any_lanes() {
        let a: Vec<u8> = (0..=255).collect();
        let b: Vec<u8> = (0..=255).rev().collect();
        let exact: i32 = a
            .iter()
            .zip(&b)
            .map(|(a, b)| i32::from(a.cast_signed()) * i32::from(b.cast_signed()))
            .sum();
        let b = widen(&b);
        assert_eq!(
            format!("{:.0}", dispatch_simd(|| dot(&a, &b))),
            exact.to_string()
        );
        assert_eq!(format!("{:.0}", dot(&a, &b)), exact.to_string());
    }
}
