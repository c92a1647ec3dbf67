//! Tests over the programs of `tests/data/corpus`: what JAX 0.10.2 hands to a plugin, as text.

mod corpus;
