//! Loops compiled once for every processor and once more for those with AVX2 and FMA.
//!
//! The choice is made when a loop starts. Both versions compute the same bits: nothing is
//! reordered, and a fused multiply-add is one only where the source says so.

use pulp::Arch;

/// Runs `work` with the best instructions there are.
///
/// What is to use them has to be inlined into `work`, `#[inline(always)]` all the way down, and
/// so has `work` itself: `vectorised(#[inline(always)] || …)`.
#[inline(always)]
pub(super) fn vectorised<R>(work: impl FnOnce() -> R) -> R {
    Arch::new().dispatch(work)
}
