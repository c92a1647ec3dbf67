//! From programs to simpler ones that mean the same, for whoever runs them.
//!
//! Modules given to these have passed the verifier.

mod inline;
mod piece;
mod simplify;
mod specialise;

pub(crate) use inline::inline;
pub(crate) use piece::piece;
pub(crate) use simplify::simplify;
