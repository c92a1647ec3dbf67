//! How the dimensions of an array are cut along the axes of a device mesh.

use std::fmt;
use std::hash::{Hash, Hasher};

use super::{IndexDomain, Result, Shape, Status};

/// A logical grid of devices with named axes, outermost first.
///
/// Shard number `i` sits at the coordinates of `i` in row-major order: the last axis is fastest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mesh {
    axes: Vec<(String, usize)>,
}

/// An axis of a [`Mesh`], or a part of one: the axis of size `n` seen as
/// `[pre_size, size, n / (pre_size * size)]`, of which the middle is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeshAxis {
    /// The name of the axis.
    pub name: String,
    /// `(pre_size, size)` of a sub-axis; `None` means the whole axis.
    pub sub_axis: Option<(usize, usize)>,
}

/// Which tile of an array each shard is, for tiles of equal size per dimension.
///
/// Two tilings are equal exactly when they give every shard the same tile. Axes that cut no
/// dimension replicate.
#[derive(Clone, Debug)]
pub struct Tiling {
    num_shards: usize,
    num_tiles: Vec<usize>,
    tiles: Tiles,
}

/// The tile of each shard.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Tiles {
    /// Axis names are gone and mergeable axes are merged: equal ones are written alike.
    Digits(Vec<Vec<Digit>>),
    /// One by one, by row-major number.
    Listed(Vec<usize>),
}

/// The part `number / stride % size` of a shard's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Digit {
    stride: usize,
    size: usize,
}

impl Mesh {
    /// A mesh with these axes, outermost first.
    ///
    /// # Errors
    /// `InvalidArgument` when a name repeats, a size is 0 or the number of devices overflows.
    pub fn new<N: Into<String>>(axes: impl IntoIterator<Item = (N, usize)>) -> Result<Self> {
        let axes: Vec<(String, usize)> =
            axes.into_iter().map(|(name, size)| (name.into(), size)).collect();
        for (i, (name, size)) in axes.iter().enumerate() {
            if *size == 0 {
                return Err(Status::invalid_argument(format!("mesh axis {name:?} has size 0")));
            }
            if axes.iter().take(i).any(|(other, _)| other == name) {
                return Err(Status::invalid_argument(format!("mesh axis {name:?} occurs twice")));
            }
        }
        let mesh = Self { axes };
        match mesh.axes.iter().try_fold(1_usize, |product, (_, size)| product.checked_mul(*size)) {
            Some(_) => Ok(mesh),
            None => Err(Status::invalid_argument(format!(
                "{mesh} has more devices than can be counted"
            ))),
        }
    }

    /// The number of devices.
    pub fn num_devices(&self) -> usize {
        self.axes.iter().map(|(_, size)| size).product()
    }

    /// The axes and their sizes, outermost first.
    pub fn axes(&self) -> &[(String, usize)] {
        &self.axes
    }

    /// The tiling that cuts dimension `d` along the axes `dims[d]`, outermost first.
    ///
    /// # Errors
    /// `InvalidArgument` when an axis does not exist or is used twice.
    pub fn tiling(&self, dims: &[&[&str]]) -> Result<Tiling> {
        let whole = |name: &&str| MeshAxis { name: (*name).to_owned(), sub_axis: None };
        let dims: Vec<Vec<MeshAxis>> =
            dims.iter().map(|axes| axes.iter().map(whole).collect()).collect();
        self.tiling_along(&dims)
    }

    /// [`Mesh::tiling`] with sub-axes.
    ///
    /// # Errors
    /// `InvalidArgument` when an axis does not exist, is not divided by its sub-axis, or is used
    /// twice, be it in part.
    pub fn tiling_along(&self, dims: &[Vec<MeshAxis>]) -> Result<Tiling> {
        let digits = dims
            .iter()
            .map(|axes| axes.iter().map(|axis| self.digit(axis)).collect::<Result<Vec<_>>>())
            .collect::<Result<Vec<_>>>()?;

        let mut used: Vec<Digit> = digits.iter().flatten().copied().collect();
        used.retain(|digit| digit.size > 1);
        used.sort_unstable();
        let overlap = used.windows(2).any(|pair| match pair {
            [minor, major] => major.stride % (minor.stride * minor.size) != 0,
            _ => false,
        });
        if overlap {
            return Err(Status::invalid_argument(format!(
                "a tiling uses an axis of {self} twice: {dims:?}"
            )));
        }
        let dims: Vec<Vec<Digit>> = digits.into_iter().map(merged).collect();
        let count = |digits: &Vec<Digit>| digits.iter().map(|digit| digit.size).product();
        Ok(Tiling {
            num_shards: self.num_devices(),
            num_tiles: dims.iter().map(count).collect(),
            tiles: Tiles::Digits(dims),
        })
    }

    fn digit(&self, axis: &MeshAxis) -> Result<Digit> {
        let mut stride = 1;
        for (name, size) in self.axes.iter().rev() {
            if *name != axis.name {
                stride *= size;
                continue;
            }
            let (pre, part) = axis.sub_axis.unwrap_or((1, *size));
            return match pre.checked_mul(part).filter(|&cut| cut > 0 && size % cut == 0) {
                Some(cut) => Ok(Digit { stride: stride * (size / cut), size: part }),
                None => Err(Status::invalid_argument(format!(
                    "axis {name:?} of size {size} has no sub-axis ({pre}){part}"
                ))),
            };
        }
        Err(Status::invalid_argument(format!("{self} has no axis {:?}", axis.name)))
    }
}

/// The same coordinates with as few digits as possible.
fn merged(digits: Vec<Digit>) -> Vec<Digit> {
    let mut merged: Vec<Digit> = Vec::with_capacity(digits.len());
    for minor in digits.into_iter().filter(|digit| digit.size > 1) {
        match merged.last_mut() {
            Some(major) if major.stride == minor.stride * minor.size => {
                *major = Digit { stride: minor.stride, size: major.size * minor.size };
            }
            _ => merged.push(minor),
        }
    }
    merged
}

impl Tiling {
    /// The tiling into `num_tiles` per dimension that gives shard `i` the tile `tile_of_shard[i]`,
    /// in row-major order.
    ///
    /// # Errors
    /// `InvalidArgument` when there are no shards, a tile does not exist, or the tiles do not all
    /// have equally many shards.
    pub fn listed(num_tiles: Vec<usize>, tile_of_shard: Vec<usize>) -> Result<Self> {
        let refused = |why: &str| {
            let message = format!("tiles {num_tiles:?} for shards {tile_of_shard:?}: {why}");
            Err(Status::invalid_argument(message))
        };
        let count =
            num_tiles.iter().try_fold(1_usize, |product, &tiles| product.checked_mul(tiles));
        let num_shards = tile_of_shard.len();
        let Some(count) = count.filter(|&count| count > 0 && num_shards >= count) else {
            return refused("there must be as many shards as tiles, or a multiple");
        };
        let mut shards_of_tile = vec![0; count];
        for &tile in &tile_of_shard {
            match shards_of_tile.get_mut(tile) {
                Some(shards) => *shards += 1,
                None => return refused("a tile does not exist"),
            }
        }
        if shards_of_tile.iter().any(|&shards| shards * count != num_shards) {
            return refused("tiles do not have equally many shards");
        }
        Ok(Self { num_shards, num_tiles, tiles: Tiles::Listed(tile_of_shard) })
    }

    /// The tiling of IFRT's `ShardingParam`: `num_tiles` per dimension over a mesh whose axes, with
    /// these sizes, are filled by devices with axis 0 fastest; `permutation` orders the axes from
    /// the one that cuts the last dimensions to the one that cuts the first.
    ///
    /// # Errors
    /// `InvalidArgument` when `permutation` is no order of the axes, or the tiles do not divide
    /// the mesh.
    pub fn of_mesh_parameters(
        num_tiles: Vec<usize>,
        permutation: &[usize],
        axis_sizes: &[usize],
    ) -> Result<Self> {
        let mut sorted = permutation.to_vec();
        sorted.sort_unstable();
        let num_shards = axis_sizes.iter().try_fold(1_usize, |product, &n| product.checked_mul(n));
        let count =
            num_tiles.iter().try_fold(1_usize, |product, &tiles| product.checked_mul(tiles));
        let even =
            num_shards.zip(count).filter(|(shards, tiles)| shards.checked_rem(*tiles) == Some(0));
        let is_order = sorted.into_iter().eq(0..axis_sizes.len());
        let (true, Some((num_shards, count))) = (is_order, even.filter(|(shards, _)| *shards > 0))
        else {
            return Err(Status::invalid_argument(format!(
                "tiles {num_tiles:?} do not fit axes {axis_sizes:?} in the order {permutation:?}"
            )));
        };
        let replicas = num_shards / count;
        let mut tile_of_shard = vec![0; num_shards];
        for place in 0..num_shards {
            // The coordinates of `place` among all tiles and their replicas, fastest first.
            let (mut rest, mut shard) = (place, 0);
            for &axis in permutation {
                let stride: usize = axis_sizes[..axis].iter().product();
                shard += rest % axis_sizes[axis] * stride;
                rest /= axis_sizes[axis];
            }
            tile_of_shard[shard] = place / replicas;
        }
        Self::listed(num_tiles, tile_of_shard)
    }

    /// The tile of a shard, by row-major number; `None` when there is no such shard.
    pub fn tile_of(&self, shard: usize) -> Option<usize> {
        let indices = self.tile_indices(shard)?;
        let number = indices.iter().zip(&self.num_tiles);
        Some(number.fold(0, |number, (index, tiles)| number * tiles + index))
    }

    /// The place of a shard's tile, per dimension.
    fn tile_indices(&self, shard: usize) -> Option<Vec<usize>> {
        if shard >= self.num_shards {
            return None;
        }
        match &self.tiles {
            Tiles::Digits(dims) => {
                let index = |digits: &Vec<Digit>| {
                    let digit = |index, digit: &Digit| {
                        index * digit.size + shard / digit.stride % digit.size
                    };
                    digits.iter().fold(0, digit)
                };
                Some(dims.iter().map(index).collect())
            }
            Tiles::Listed(tile_of_shard) => {
                let mut rest = *tile_of_shard.get(shard)?;
                let mut indices = vec![0; self.num_tiles.len()];
                for (index, tiles) in indices.iter_mut().zip(&self.num_tiles).rev() {
                    *index = rest % tiles;
                    rest /= tiles;
                }
                Some(indices)
            }
        }
    }

    /// The number of shards, replicas included.
    pub fn num_shards(&self) -> usize {
        self.num_shards
    }

    /// The rank of the arrays it cuts.
    pub fn rank(&self) -> usize {
        self.num_tiles.len()
    }

    /// Into how many tiles each dimension is cut.
    pub fn num_tiles(&self) -> &[usize] {
        &self.num_tiles
    }

    /// Whether no dimension is cut.
    pub fn is_fully_replicated(&self) -> bool {
        self.num_tiles.iter().all(|&tiles| tiles == 1)
    }

    /// The shape of a tile, padding included: each dimension divided by its tiles, rounded up.
    ///
    /// # Errors
    /// `InvalidArgument` when `shape` has another rank.
    pub fn padded_tile_shape(&self, shape: &Shape) -> Result<Shape> {
        self.check_rank(shape)?;
        let dims: Vec<usize> = shape
            .dims()
            .iter()
            .zip(&self.num_tiles)
            .map(|(dim, tiles)| dim.div_ceil(*tiles))
            .collect();
        Shape::new(dims).map_err(|error| Status::invalid_argument(error.to_string()))
    }

    /// The elements that shard `shard` truly has: smaller than the padded tile, or empty, at the
    /// far end of a dimension that its tiles do not divide.
    ///
    /// # Errors
    /// `InvalidArgument` when `shape` has another rank, or there is no such shard.
    pub fn index_domain(&self, shape: &Shape, shard: usize) -> Result<IndexDomain> {
        let tile = self.padded_tile_shape(shape)?;
        let indices = self.tile_indices(shard).ok_or_else(|| {
            let num_shards = self.num_shards;
            Status::invalid_argument(format!("there is no shard {shard} among {num_shards}"))
        })?;
        let mut origin = Vec::with_capacity(shape.rank());
        let mut extent = Vec::with_capacity(shape.rank());
        for ((index, &dim), &tile) in indices.iter().zip(shape.dims()).zip(tile.dims()) {
            let from = index.saturating_mul(tile).min(dim);
            origin.push(from);
            extent.push(tile.min(dim - from));
        }
        Shape::new(extent)
            .ok()
            .and_then(|extent| IndexDomain::new(origin, extent))
            .ok_or_else(|| Status::invalid_argument(format!("{shape} is too large to be cut")))
    }

    fn check_rank(&self, shape: &Shape) -> Result<()> {
        if shape.rank() == self.rank() {
            return Ok(());
        }
        Err(Status::invalid_argument(format!(
            "the shape {shape} has rank {}, the sharding {self} is for rank {}",
            shape.rank(),
            self.rank()
        )))
    }
}

impl PartialEq for Tiling {
    fn eq(&self, other: &Self) -> bool {
        let same_counts = self.num_shards == other.num_shards && self.num_tiles == other.num_tiles;
        same_counts
            && match (&self.tiles, &other.tiles) {
                (Tiles::Digits(a), Tiles::Digits(b)) => a == b,
                _ => (0..self.num_shards).all(|shard| self.tile_of(shard) == other.tile_of(shard)),
            }
    }
}

impl Eq for Tiling {}

impl Hash for Tiling {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Of what both forms have in common.
        (self.num_shards, &self.num_tiles).hash(state);
    }
}

impl fmt::Display for Mesh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("mesh <[")?;
        for (i, (name, size)) in self.axes.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{name:?}={size}")?;
        }
        f.write_str("]>")
    }
}

impl fmt::Display for Tiling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tiles {:?} over {} shards", self.num_tiles(), self.num_shards)?;
        match &self.tiles {
            Tiles::Digits(dims) if dims.iter().all(|digits| digits.len() <= 1) => Ok(()),
            Tiles::Digits(_) => f.write_str(" (axes out of order)"),
            Tiles::Listed(tile_of_shard) => write!(f, " in the order {tile_of_shard:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shape(dims: &[usize]) -> Shape {
        Shape::new(dims).unwrap()
    }

    #[test]
    fn shards_follow_the_mesh_row_major() {
        let mesh = Mesh::new([("x", 2), ("y", 3)]).unwrap();
        let tiling = mesh.tiling(&[&["x"], &["y"]]).unwrap();
        let at = |shard| tiling.index_domain(&shape(&[4, 6]), shard).unwrap().to_string();
        assert_eq!([at(0), at(1), at(3)], ["[0..2, 0..2]", "[0..2, 2..4]", "[2..4, 0..2]"]);

        let swapped = mesh.tiling(&[&["y"], &[]]).unwrap();
        let at = |shard| swapped.index_domain(&shape(&[6, 1]), shard).unwrap().origin()[0];
        assert_eq!([at(0), at(1), at(2), at(3), at(4), at(5)], [0, 2, 4, 0, 2, 4]);
    }

    #[test]
    fn padded_shape_and_true_domains_differ_when_uneven() {
        let tiling = Mesh::new([("x", 4)]).unwrap().tiling(&[&["x"]]).unwrap();
        let shape = shape(&[5]);
        assert_eq!(tiling.padded_tile_shape(&shape).unwrap().dims(), [2]);
        let domains: Vec<_> =
            (0..4).map(|i| tiling.index_domain(&shape, i).unwrap().to_string()).collect();
        assert_eq!(domains, ["[0..2]", "[2..4]", "[4..5]", "[5..5]"]);
    }

    #[test]
    fn equality_is_about_tiles_not_names() {
        let mesh = Mesh::new([("x", 2), ("one", 1), ("y", 3)]).unwrap();
        let flat = Mesh::new([("all", 6)]).unwrap();
        let both = mesh.tiling(&[&["x", "one", "y"], &[]]).unwrap();
        assert_eq!(both, flat.tiling(&[&["all"], &[]]).unwrap());
        assert_ne!(both, mesh.tiling(&[&["y", "x"], &[]]).unwrap());
        let half = MeshAxis { name: "all".into(), sub_axis: Some((1, 2)) };
        assert_eq!(
            flat.tiling_along(&[vec![half], vec![]]).unwrap(),
            mesh.tiling(&[&["x"], &[]]).unwrap()
        );
    }

    #[test]
    fn refuses_what_is_not_a_tiling() {
        assert!(Mesh::new([("x", 2), ("x", 2)]).is_err());
        assert!(Mesh::new([("x", 0)]).is_err());
        assert!(Mesh::new([("x", usize::MAX), ("y", 2)]).is_err());
        let mesh = Mesh::new([("x", 4), ("y", 6)]).unwrap();
        assert!(mesh.tiling(&[&["z"]]).is_err());
        assert!(mesh.tiling(&[&["x"], &["x"]]).is_err());
        let part = |pre, size| MeshAxis { name: "y".into(), sub_axis: Some((pre, size)) };
        assert!(mesh.tiling_along(&[vec![part(1, 4)]]).is_err(), "4 does not divide 6");
        assert!(mesh.tiling_along(&[vec![part(0, 2)]]).is_err());
        assert!(mesh.tiling_along(&[vec![part(1, 2)], vec![part(1, 3)]]).is_err(), "they overlap");
        assert!(mesh.tiling_along(&[vec![part(1, 2)], vec![part(2, 3)]]).is_ok());
        let wrong_rank = mesh.tiling(&[&["x"]]).unwrap().padded_tile_shape(&shape(&[1, 1]));
        assert!(wrong_rank.is_err());
    }

    #[test]
    fn a_list_of_tiles_is_the_mesh_that_makes_it() {
        let mesh = Mesh::new([("x", 2), ("y", 3)]).unwrap();
        for dims in [[&["x"][..], &["y"]], [&["y"], &["x"]], [&["y"], &[]], [&[], &[]]] {
            let tiling = mesh.tiling(&dims).unwrap();
            let tiles = (0..6).map(|shard| tiling.tile_of(shard).unwrap()).collect();
            let listed = Tiling::listed(tiling.num_tiles().to_vec(), tiles).unwrap();
            assert_eq!(listed, tiling);
            let at = |tiling: &Tiling| tiling.index_domain(&shape(&[4, 9]), 4).unwrap();
            assert_eq!(at(&listed), at(&tiling));
        }
        let odd = Tiling::listed(vec![3], vec![2, 0, 1]).unwrap();
        assert_eq!(odd.index_domain(&shape(&[6]), 0).unwrap().to_string(), "[4..6]");
        assert_ne!(odd, Tiling::listed(vec![3], vec![2, 1, 0]).unwrap());
        assert_eq!(odd.to_string(), "tiles [3] over 3 shards in the order [2, 0, 1]");
        for (tiles, shards) in [(vec![2], vec![0, 2]), (vec![2], vec![0, 0]), (vec![0], vec![])] {
            Tiling::listed(tiles, shards).unwrap_err();
        }
    }

    #[test]
    fn mesh_parameters_count_axes_from_the_fastest() {
        // Devices fill the axes as [[0, 1], [2, 3], [4, 5]], axis 0 within the rows.
        let tile = |num_tiles: &[usize], permutation: &[usize]| -> Vec<usize> {
            let tiling =
                Tiling::of_mesh_parameters(num_tiles.to_vec(), permutation, &[2, 3]).unwrap();
            (0..6).map(|shard| tiling.tile_of(shard).unwrap()).collect()
        };
        assert_eq!(tile(&[3, 2], &[0, 1]), [0, 1, 2, 3, 4, 5]);
        assert_eq!(tile(&[2, 3], &[1, 0]), [0, 3, 1, 4, 2, 5]);
        assert_eq!(tile(&[3], &[0, 1]), [0, 0, 1, 1, 2, 2]);
        assert_eq!(tile(&[2], &[1, 0]), [0, 1, 0, 1, 0, 1]);
        for (num_tiles, permutation) in [(vec![4], [0, 1]), (vec![0], [0, 1]), (vec![2], [0, 0])] {
            Tiling::of_mesh_parameters(num_tiles, &permutation, &[2, 3]).unwrap_err();
        }
    }

    proptest! {
        /// Distinct tiles cover every element once, each as often as there are replicas.
        #[test]
        fn domains_cover_the_array(
            x in 1_usize..4, y in 1_usize..4, rows in 0_usize..9, columns in 0_usize..9,
            layout in 0_usize..5,
        ) {
            let mesh = Mesh::new([("x", x), ("y", y)]).unwrap();
            let dims: &[&[&str]] = match layout {
                0 => &[&["x"], &["y"]],
                1 => &[&["y"], &["x"]],
                2 => &[&["x", "y"], &[]],
                3 => &[&[], &["y", "x"]],
                _ => &[&["x"], &[]],
            };
            let replicas = if layout == 4 { y } else { 1 };
            let tiling = mesh.tiling(dims).unwrap();
            let shape = shape(&[rows, columns]);
            let padded = tiling.padded_tile_shape(&shape).unwrap();
            let mut seen = vec![0; rows * columns];
            for shard in 0..tiling.num_shards() {
                let domain = tiling.index_domain(&shape, shard).unwrap();
                prop_assert!(domain.is_within(&shape));
                for (extent, tile) in domain.shape().dims().iter().zip(padded.dims()) {
                    prop_assert!(extent <= tile);
                }
                for row in 0..domain.shape().dims()[0] {
                    for column in 0..domain.shape().dims()[1] {
                        seen[(domain.origin()[0] + row) * columns + domain.origin()[1] + column] += 1;
                    }
                }
            }
            prop_assert!(seen.iter().all(|&count| count == replicas));
        }
    }
}
