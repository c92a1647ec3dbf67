//! Which elements move where when an array goes from one sharding to another.
//!
//! Pure: owns the plan, moves nothing. Every process makes the same plan from what all of them
//! know. Invariants: every element of every destination has one origin; a process is sent an
//! element only if it has none of its own, and once; nobody is sent what it does not need.

use crate::ifrt::{IndexDomain, Shape};

/// What one shard has of an array, and the process that it is on.
#[derive(Clone, Debug)]
pub(super) struct Holding {
    pub(super) process: u32,
    pub(super) domain: IndexDomain,
}

/// A rectangle of a source shard that another process is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Transfer {
    /// The shard, by its number.
    pub(super) source: usize,
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) domain: IndexDomain,
}

/// A rectangle of a destination shard, and where its process finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) origin: Origin,
    pub(super) domain: IndexDomain,
}

/// Where a process finds a rectangle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// In a source shard of its own, by its number.
    Shard(usize),
    /// In what it is sent, by its place among all transfers.
    Transfer(usize),
}

/// How all destinations of an array are made of its sources.
#[derive(Debug)]
pub(super) struct Route {
    /// In an order that is the same on all processes.
    pub(super) transfers: Vec<Transfer>,
    /// For each destination, what it is put together of.
    pub(super) parts: Vec<Vec<Part>>,
}

impl Route {
    /// The route from `sources` to `destinations`, which prefers near processes by `distance`
    /// between the one that sends and the one that receives, and spreads the work over equals.
    ///
    /// # Errors
    /// A rectangle that a destination needs and no source has.
    pub(super) fn new(
        sources: &[Holding],
        destinations: &[Holding],
        distance: impl Fn(u32, u32) -> u32,
    ) -> Result<Self, IndexDomain> {
        let mut transfers: Vec<Transfer> = Vec::new();
        let mut parts = Vec::with_capacity(destinations.len());
        for Holding { process, domain } in destinations {
            let mut needed = Needed::new(domain);
            let is_local = |holding: &Holding| holding.process == *process;
            for (number, source) in sources.iter().enumerate().filter(|(_, s)| is_local(s)) {
                needed.take(&source.domain, |_| Origin::Shard(number));
            }
            for (number, transfer) in transfers.iter().enumerate().filter(|(_, t)| t.to == *process)
            {
                needed.take(&transfer.domain, |_| Origin::Transfer(number));
            }
            let mut remote: Vec<_> =
                sources.iter().enumerate().filter(|(_, source)| !is_local(source)).collect();
            let far = |(_, source): &(usize, &Holding)| distance(source.process, *process);
            remote.sort_by_key(far);
            // Of equally near ones each process begins with another.
            for equals in remote.chunk_by_mut(|a, b| far(a) == far(b)) {
                equals.rotate_left(*process as usize % equals.len());
            }
            for (number, source) in remote {
                needed.take(&source.domain, |domain| {
                    let (from, to) = (source.process, *process);
                    transfers.push(Transfer { source: number, from, to, domain: domain.clone() });
                    Origin::Transfer(transfers.len() - 1)
                });
            }
            parts.push(needed.finish()?);
        }
        Ok(Self { transfers, parts })
    }
}

impl Route {
    /// The route by which each source becomes the destination of the same number as it is.
    pub(super) fn shard_by_shard(sources: &[Holding], destinations: &[Holding]) -> Self {
        let mut transfers = Vec::new();
        let mut parts = Vec::with_capacity(destinations.len());
        for (number, (source, destination)) in sources.iter().zip(destinations).enumerate() {
            let domain = source.domain.clone();
            let origin = if source.process == destination.process {
                Origin::Shard(number)
            } else {
                let (from, to) = (source.process, destination.process);
                transfers.push(Transfer { source: number, from, to, domain: domain.clone() });
                Origin::Transfer(transfers.len() - 1)
            };
            let is_empty = domain.shape().num_elements() == 0;
            parts.push(if is_empty { Vec::new() } else { vec![Part { origin, domain }] });
        }
        Self { transfers, parts }
    }
}

/// A destination of which some rectangles have an origin and others need one still.
struct Needed {
    open: Vec<IndexDomain>,
    parts: Vec<Part>,
}

impl Needed {
    fn new(domain: &IndexDomain) -> Self {
        let is_empty = domain.shape().num_elements() == 0;
        Self { open: if is_empty { Vec::new() } else { vec![domain.clone()] }, parts: Vec::new() }
    }

    /// Takes from `held` what is needed of it; `origin` says where that is found.
    fn take(&mut self, held: &IndexDomain, mut origin: impl FnMut(&IndexDomain) -> Origin) {
        let mut open = Vec::with_capacity(self.open.len());
        for needed in self.open.drain(..) {
            match needed.intersection(held) {
                None => open.push(needed),
                Some(domain) => {
                    open.extend(without(&needed, &domain));
                    self.parts.push(Part { origin: origin(&domain), domain });
                }
            }
        }
        self.open = open;
    }

    fn finish(mut self) -> Result<Vec<Part>, IndexDomain> {
        match self.open.pop() {
            None => Ok(self.parts),
            Some(missing) => Err(missing),
        }
    }
}

/// What is left of `whole` without `hole`, which lies within it, as rectangles.
fn without(whole: &IndexDomain, hole: &IndexDomain) -> Vec<IndexDomain> {
    let mut rest = Vec::new();
    // Narrowed dimension by dimension to the hole; what is cut off on either side is left.
    let mut ranges: Vec<(usize, usize)> = whole.ranges().collect();
    for (d, (from, to)) in hole.ranges().enumerate() {
        let (start, end) = ranges[d];
        for side in [(start, from), (to, end)] {
            if side.0 < side.1 {
                ranges[d] = side;
                rest.extend(rectangle(&ranges));
            }
        }
        ranges[d] = (from, to);
    }
    rest
}

fn rectangle(ranges: &[(usize, usize)]) -> Option<IndexDomain> {
    let extent: Vec<usize> = ranges.iter().map(|(from, to)| to - from).collect();
    let origin: Vec<usize> = ranges.iter().map(|(from, _)| *from).collect();
    // It lies within a rectangle that exists.
    IndexDomain::new(origin, Shape::new(extent).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ifrt::{Mesh, Tiling};
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn holdings(tiling: &Tiling, shape: &Shape, per_process: u32) -> Vec<Holding> {
        let holding = |number: u32| Holding {
            process: number / per_process,
            domain: tiling.index_domain(shape, number as usize).unwrap(),
        };
        (0..u32::try_from(tiling.num_shards()).unwrap()).map(holding).collect()
    }

    /// The indices of a rectangle of rank 2.
    fn elements(domain: &IndexDomain) -> impl Iterator<Item = (usize, usize)> {
        let ranges: Vec<_> = domain.ranges().collect();
        (ranges[0].0..ranges[0].1)
            .flat_map(move |i| (ranges[1].0..ranges[1].1).map(move |j| (i, j)))
    }

    fn nearest(from: u32, to: u32) -> u32 {
        u32::from(from / 2 != to / 2)
    }

    #[test]
    fn a_cut_leaves_its_sides() {
        let domain = |origin: [usize; 2], dims: [usize; 2]| {
            IndexDomain::new(origin, Shape::new(dims).unwrap()).unwrap()
        };
        let whole = domain([0, 0], [4, 5]);
        assert!(without(&whole, &whole).is_empty());
        let rest = without(&whole, &domain([1, 2], [2, 2]));
        let left: Vec<String> = rest.iter().map(ToString::to_string).collect();
        assert_eq!(left, ["[0..1, 0..5]", "[3..4, 0..5]", "[1..3, 0..2]", "[1..3, 4..5]"]);
    }

    #[test]
    fn what_nobody_has_is_named() {
        let shape = Shape::new([4]).unwrap();
        let tiling = Mesh::new([("x", 2)]).unwrap().tiling(&[&["x"]]).unwrap();
        let sources = holdings(&tiling, &shape, 1);
        let whole = [Holding { process: 0, domain: IndexDomain::whole(shape) }];
        let missing = Route::new(&sources[..1], &whole, nearest).unwrap_err();
        assert_eq!(missing.to_string(), "[2..4]");
    }

    #[test]
    fn replicas_share_the_work_and_neighbours_come_first() {
        let shape = Shape::new([8]).unwrap();
        let whole = |process| Holding { process, domain: IndexDomain::whole(shape.clone()) };
        // Processes 0 and 2 have it; 1 and 3 are neighbours of one each.
        let route = Route::new(&[whole(0), whole(2)], &[whole(1), whole(3)], nearest).unwrap();
        let pairs: Vec<_> = route.transfers.iter().map(|t| (t.from, t.to)).collect();
        assert_eq!(pairs, [(0, 1), (2, 3)]);
        let route = Route::new(&[whole(0), whole(1)], &[whole(2), whole(3)], |_, _| 0).unwrap();
        let pairs: Vec<_> = route.transfers.iter().map(|t| (t.from, t.to)).collect();
        assert_eq!(pairs, [(0, 2), (1, 3)]);
    }

    fn tilings() -> impl Strategy<Value = Tiling> {
        let axes = prop::sample::subsequence(vec!["a", "b", "c"], 0..=3).prop_shuffle();
        (axes, 0_usize..=3).prop_map(|(axes, cut)| {
            let (rows, columns) = axes.split_at(cut.min(axes.len()));
            let mesh = Mesh::new([("a", 2), ("b", 2), ("c", 2)]).unwrap();
            mesh.tiling(&[rows, columns]).unwrap()
        })
    }

    proptest! {
        /// Every destination is covered once, and no process is sent more than it lacks.
        #[test]
        fn nothing_is_missing_and_nothing_is_sent_twice(
            from in tilings(), to in tilings(), rows in 0_usize..11, columns in 0_usize..11,
            per_process in prop::sample::select(vec![1_u32, 2, 4, 8]),
        ) {
            let shape = Shape::new([rows, columns]).unwrap();
            let sources = holdings(&from, &shape, per_process);
            let destinations = holdings(&to, &shape, per_process);
            let route = Route::new(&sources, &destinations, nearest).unwrap();
            for (holding, parts) in destinations.iter().zip(&route.parts) {
                let mut seen = HashSet::new();
                for part in parts {
                    let (found, process) = match part.origin {
                        Origin::Shard(number) => (&sources[number].domain, sources[number].process),
                        Origin::Transfer(number) => {
                            (&route.transfers[number].domain, route.transfers[number].to)
                        }
                    };
                    prop_assert_eq!(process, holding.process);
                    prop_assert_eq!(part.domain.intersection(found), Some(part.domain.clone()));
                    for element in elements(&part.domain) {
                        prop_assert!(seen.insert(element));
                    }
                }
                prop_assert_eq!(seen, elements(&holding.domain).collect::<HashSet<_>>());
            }
            for process in 0..8 / per_process {
                let of = |all: &[Holding]| -> HashSet<_> {
                    let own = all.iter().filter(|holding| holding.process == process);
                    own.flat_map(|holding| elements(&holding.domain)).collect()
                };
                let lacking = &of(&destinations) - &of(&sources);
                let sent: usize = (route.transfers.iter())
                    .filter(|transfer| transfer.to == process)
                    .map(|transfer| transfer.domain.shape().num_elements())
                    .sum();
                prop_assert_eq!(sent, lacking.len());
            }
            for transfer in &route.transfers {
                let source = &sources[transfer.source];
                prop_assert_eq!(source.process, transfer.from);
                prop_assert!(transfer.from != transfer.to);
                prop_assert_eq!(
                    transfer.domain.intersection(&source.domain), Some(transfer.domain.clone())
                );
            }
        }
    }
}
