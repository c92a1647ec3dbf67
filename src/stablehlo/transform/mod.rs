//! From programs to simpler ones that mean the same, for whoever runs them.
//!
//! Modules given to these have passed the verifier.

mod fold;
mod inline;
mod piece;
mod share;
mod simplify;
mod specialise;

pub(crate) use fold::fold;
pub(crate) use inline::inline;
pub(crate) use piece::piece;
pub(crate) use share::share;
pub(crate) use simplify::{Evaluate, simplify};

use super::{OpData, OpKind};

/// Whether an operation does nothing but compute, the same from the same operands.
fn is_pure(data: &OpData) -> bool {
    let is_function = !matches!(data.kind, OpKind::Rng(_) | OpKind::CustomCall { .. });
    is_function && data.regions.is_empty() && !data.kind.has_side_effect()
}
