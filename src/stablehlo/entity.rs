//! Dense maps keyed by small typed indices, so that no part of a program is named by a bare
//! `usize`.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A typed index into a [`PrimaryMap`].
pub trait Entity: Copy + Eq {
    /// The entity with this index.
    fn new(index: usize) -> Self;
    /// The index of this entity.
    fn index(self) -> usize;
}

/// Declares newtype indices, each printed with a prefix of its own.
macro_rules! entity {
    ($($(#[$attribute:meta])* $name:ident($prefix:literal);)*) => {
        $(
            $(#[$attribute])*
            #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
            pub struct $name(u32);

            impl $crate::stablehlo::entity::Entity for $name {
                fn new(index: usize) -> Self {
                    // Programs are bounded far below this by the size of their source.
                    Self(u32::try_from(index).unwrap_or(u32::MAX))
                }
                fn index(self) -> usize {
                    self.0 as usize
                }
            }

            impl std::fmt::Debug for $name {
                fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    write!(f, concat!($prefix, "{}"), self.0)
                }
            }
        )*
    };
}

pub(crate) use entity;

/// A vector that hands out its own indices.
#[derive(Clone, Debug, PartialEq)]
pub struct PrimaryMap<K, V> {
    items: Vec<V>,
    key: PhantomData<K>,
}

impl<K, V> Default for PrimaryMap<K, V> {
    fn default() -> Self {
        Self { items: Vec::new(), key: PhantomData }
    }
}

impl<K: Entity, V> PrimaryMap<K, V> {
    /// An empty map.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends `value` and returns its index.
    pub fn push(&mut self, value: V) -> K {
        self.items.push(value);
        K::new(self.items.len() - 1)
    }

    /// The number of entities.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The value of `key`, if it is one of this map's.
    pub fn get(&self, key: K) -> Option<&V> {
        self.items.get(key.index())
    }

    /// All keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = K> + use<K, V> {
        (0..self.items.len()).map(K::new)
    }

    /// All keys and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.items.iter().enumerate().map(|(index, value)| (K::new(index), value))
    }

    /// All values, in order.
    pub fn values(&self) -> std::slice::Iter<'_, V> {
        self.items.iter()
    }
}

impl<K: Entity, V> Index<K> for PrimaryMap<K, V> {
    type Output = V;
    fn index(&self, key: K) -> &V {
        &self.items[key.index()]
    }
}

impl<K: Entity, V> IndexMut<K> for PrimaryMap<K, V> {
    fn index_mut(&mut self, key: K) -> &mut V {
        &mut self.items[key.index()]
    }
}
