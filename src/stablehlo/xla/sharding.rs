//! `HloSharding`: how an array is spread over devices, as the string of `mhlo.sharding` and as the
//! message `OpSharding`.

use std::fmt;
use std::str::FromStr;

use prost::Message as _;

use super::messages::{Kind, OpSharding};
use super::{FormatError, decode};

/// More devices than these are refused: a range names any number of them in a few bytes.
const MAX_DEVICES: usize = 1 << 20;

/// How an array is spread over devices; displays as `{devices=[2,2]<=[4]}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HloSharding {
    /// Every device has all of it.
    Replicated,
    /// One device has all of it.
    Maximal(i64),
    /// Every device has what the program says.
    Manual,
    /// It is not said.
    Unknown,
    /// Every device has a summand of all of it.
    Unreduced,
    /// Every device has a tile.
    Tiled(HloTiling),
    /// One for each element of a tuple, none of them a tuple.
    Tuple(Vec<Self>),
}

/// Tiles and their devices. Each device has one, and the numbers of both are the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HloTiling {
    dims: Vec<usize>,
    devices: TileDevices,
    subgroups: Vec<Subgroup>,
}

/// The device of each tile, row-major.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TileDevices {
    /// One by one.
    Listed(Vec<i64>),
    /// 0, 1, 2, … as an array of this shape, transposed.
    Range {
        /// The shape.
        reshape: Vec<usize>,
        /// The order of its dimensions.
        transpose: Vec<usize>,
    },
}

/// What the tiles along a dimension behind those of the array are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subgroup {
    /// They are the same.
    Replicated,
    /// They are what the program says.
    Manual,
    /// They are summands.
    Unreduced,
}

fn malformed(reason: impl Into<String>) -> FormatError {
    FormatError::Malformed { what: "a sharding", reason: reason.into() }
}

impl HloTiling {
    /// Tiles of these numbers per dimension: those of the array, then one for each subgroup.
    ///
    /// # Errors
    /// When devices and tiles do not match one to one, or are too many.
    pub fn new(
        dims: Vec<usize>,
        devices: TileDevices,
        subgroups: Vec<Subgroup>,
    ) -> Result<Self, FormatError> {
        if dims.is_empty() {
            return Err(malformed("tiles have no dimensions"));
        }
        let count = product(&dims)?;
        match &devices {
            TileDevices::Listed(ids) => {
                if ids.len() != count {
                    return Err(malformed(format!("{} devices have {count} tiles", ids.len())));
                }
                let mut sorted = ids.clone();
                sorted.sort_unstable();
                if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
                    return Err(malformed(format!("device {} has two tiles", pair[0])));
                }
            }
            TileDevices::Range { reshape, transpose } => {
                if product(reshape)? != count {
                    return Err(malformed(format!("{reshape:?} devices have {count} tiles")));
                }
                let mut sorted = transpose.clone();
                sorted.sort_unstable();
                if !sorted.into_iter().eq(0..reshape.len()) {
                    let reason = format!("{transpose:?} is no order of {reshape:?}");
                    return Err(malformed(reason));
                }
            }
        }
        if subgroups.len() > dims.len() {
            return Err(malformed(format!("{} subgroups of {dims:?}", subgroups.len())));
        }
        Ok(Self { dims, devices, subgroups })
    }

    /// How many tiles each dimension of the array is cut into.
    pub fn tile_counts(&self) -> &[usize] {
        &self.dims[..self.dims.len() - self.subgroups.len()]
    }

    /// What the dimensions behind those of the array are for, and their sizes.
    pub fn subgroups(&self) -> impl Iterator<Item = (Subgroup, usize)> {
        let sizes = &self.dims[self.tile_counts().len()..];
        self.subgroups.iter().copied().zip(sizes.iter().copied())
    }

    /// The device of each tile, row-major.
    pub fn devices(&self) -> Vec<i64> {
        match &self.devices {
            TileDevices::Listed(ids) => ids.clone(),
            TileDevices::Range { reshape, transpose } => transposed(reshape, transpose),
        }
    }
}

/// The number of elements of this shape.
fn product(dims: &[usize]) -> Result<usize, FormatError> {
    let product = dims.iter().try_fold(1_usize, |product, &size| product.checked_mul(size));
    match product {
        Some(count) if (1..=MAX_DEVICES).contains(&count) => Ok(count),
        _ => Err(malformed(format!("{dims:?} must be from 1 to {MAX_DEVICES} devices"))),
    }
}

/// 0, 1, 2, … of shape `reshape`, read in the order of its dimensions that `transpose` says.
fn transposed(reshape: &[usize], transpose: &[usize]) -> Vec<i64> {
    let mut strides = vec![1_i64; reshape.len()];
    for dim in (1..reshape.len()).rev() {
        // The product is bounded by the number of devices.
        strides[dim - 1] = strides[dim] * i64::try_from(reshape[dim]).unwrap_or(i64::MAX);
    }
    let mut ids = vec![0];
    for &dim in transpose {
        let (size, stride) = (reshape[dim], strides[dim]);
        let next = ids.iter().flat_map(|&id| (0..size).map(move |i| (id, i)));
        ids = next.map(|(id, i)| id + stride * i64::try_from(i).unwrap_or(i64::MAX)).collect();
    }
    ids
}

impl HloSharding {
    /// Reads an `OpSharding`.
    ///
    /// # Errors
    /// When `bytes` are no such message, its parts do not fit, or it is not known yet.
    pub fn from_proto(bytes: &[u8]) -> Result<Self, FormatError> {
        Self::from_message(decode(bytes, "OpSharding")?)
    }

    fn from_message(proto: OpSharding) -> Result<Self, FormatError> {
        if proto.is_shard_group {
            return Err(FormatError::NotKnown { what: "a group of shardings".to_owned() });
        }
        let Ok(kind) = Kind::try_from(proto.kind) else {
            return Err(FormatError::NotKnown {
                what: format!("a sharding of kind {}", proto.kind),
            });
        };
        Ok(match kind {
            Kind::Replicated => Self::Replicated,
            Kind::Manual => Self::Manual,
            Kind::Unknown => Self::Unknown,
            Kind::Unreduced => Self::Unreduced,
            Kind::Maximal => match proto.tile_assignment_devices.as_slice() {
                &[device] => Self::Maximal(device),
                devices => return Err(malformed(format!("{devices:?} is not one device"))),
            },
            Kind::Tuple => {
                let elements = proto.tuple_shardings.into_iter().map(Self::from_message);
                let elements = elements.collect::<Result<Vec<_>, _>>()?;
                if elements.iter().any(|element| matches!(element, Self::Tuple(_))) {
                    return Err(malformed("a tuple is in a tuple"));
                }
                Self::Tuple(elements)
            }
            Kind::Other => Self::Tiled(tiling(&proto)?),
        })
    }

    /// The message.
    pub fn to_proto(&self) -> Vec<u8> {
        self.to_message().encode_to_vec()
    }

    fn to_message(&self) -> OpSharding {
        let of = |kind: Kind| OpSharding { kind: kind.into(), ..OpSharding::default() };
        match self {
            Self::Replicated => of(Kind::Replicated),
            Self::Manual => of(Kind::Manual),
            Self::Unknown => of(Kind::Unknown),
            Self::Unreduced => of(Kind::Unreduced),
            Self::Maximal(device) => {
                OpSharding { tile_assignment_devices: vec![*device], ..of(Kind::Maximal) }
            }
            Self::Tuple(elements) => OpSharding {
                tuple_shardings: elements.iter().map(Self::to_message).collect(),
                ..of(Kind::Tuple)
            },
            Self::Tiled(HloTiling { dims, devices, subgroups }) => {
                let wide = |sizes: &[usize]| {
                    sizes.iter().map(|&size| i64::try_from(size).unwrap_or(i64::MAX)).collect()
                };
                let mut proto =
                    OpSharding { tile_assignment_dimensions: wide(dims), ..of(Kind::Other) };
                match devices {
                    TileDevices::Listed(ids) => proto.tile_assignment_devices.clone_from(ids),
                    TileDevices::Range { reshape, transpose } => {
                        proto.iota_reshape_dims = wide(reshape);
                        let order = transpose.iter().map(|&dim| i32::try_from(dim));
                        proto.iota_transpose_perm = order.flatten().collect();
                    }
                }
                if subgroups == &[Subgroup::Replicated] {
                    proto.replicate_on_last_tile_dim = true;
                } else {
                    let kinds = subgroups.iter().map(|subgroup| match subgroup {
                        Subgroup::Replicated => Kind::Replicated.into(),
                        Subgroup::Manual => Kind::Manual.into(),
                        Subgroup::Unreduced => Kind::Unreduced.into(),
                    });
                    proto.last_tile_dims = kinds.collect();
                }
                proto
            }
        }
    }
}

/// The tiles of a message of kind `Other`.
fn tiling(proto: &OpSharding) -> Result<HloTiling, FormatError> {
    let sizes = |numbers: &[i64]| {
        let sizes = numbers.iter().map(|&size| usize::try_from(size));
        sizes.collect::<Result<Vec<_>, _>>().map_err(|_| malformed(format!("{numbers:?} tiles")))
    };
    let mut subgroups = Vec::new();
    for &kind in &proto.last_tile_dims {
        subgroups.push(match Kind::try_from(kind) {
            Ok(Kind::Replicated) => Subgroup::Replicated,
            Ok(Kind::Manual) => Subgroup::Manual,
            Ok(Kind::Unreduced) => Subgroup::Unreduced,
            _ => return Err(FormatError::NotKnown { what: format!("a subgroup of kind {kind}") }),
        });
    }
    if proto.replicate_on_last_tile_dim {
        if !subgroups.is_empty() {
            return Err(malformed("the last dimension of tiles is described twice"));
        }
        subgroups.push(Subgroup::Replicated);
    }
    let devices = if proto.iota_reshape_dims.is_empty() {
        TileDevices::Listed(proto.tile_assignment_devices.clone())
    } else {
        let transpose = proto.iota_transpose_perm.iter().map(|&dim| i64::from(dim));
        TileDevices::Range {
            reshape: sizes(&proto.iota_reshape_dims)?,
            transpose: sizes(&transpose.collect::<Vec<_>>())?,
        }
    };
    HloTiling::new(sizes(&proto.tile_assignment_dimensions)?, devices, subgroups)
}

impl fmt::Display for HloSharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replicated => f.write_str("{replicated}"),
            Self::Manual => f.write_str("{manual}"),
            Self::Unknown => f.write_str("{unknown}"),
            Self::Unreduced => f.write_str("{unreduced}"),
            Self::Maximal(device) => write!(f, "{{maximal device={device}}}"),
            Self::Tuple(elements) => {
                let elements: Vec<String> = elements.iter().map(Self::to_string).collect();
                write!(f, "{{{}}}", elements.join(", "))
            }
            Self::Tiled(tiling) => write!(f, "{{{tiling}}}"),
        }
    }
}

impl fmt::Display for HloTiling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn list<T: fmt::Display>(items: &[T]) -> String {
            items.iter().map(T::to_string).collect::<Vec<_>>().join(",")
        }
        write!(f, "devices=[{}]", list(&self.dims))?;
        match &self.devices {
            TileDevices::Listed(ids) => f.write_str(&list(ids))?,
            TileDevices::Range { reshape, transpose } => {
                write!(f, "<=[{}]", list(reshape))?;
                if !transpose.is_sorted() {
                    write!(f, "T({})", list(transpose))?;
                }
            }
        }
        match self.subgroups.as_slice() {
            [] => Ok(()),
            [Subgroup::Replicated] => f.write_str(" last_tile_dim_replicate"),
            subgroups => {
                let names = subgroups.iter().map(|subgroup| match subgroup {
                    Subgroup::Replicated => "replicated",
                    Subgroup::Manual => "manual",
                    Subgroup::Unreduced => "unreduced",
                });
                let names: Vec<&str> = names.collect();
                write!(f, " last_tile_dims={{{}}}", names.join(", "))
            }
        }
    }
}

impl FromStr for HloSharding {
    type Err = FormatError;

    /// Reads `{devices=[2,2]<=[4]}` and the like.
    fn from_str(text: &str) -> Result<Self, FormatError> {
        let mut rest = Rest(text.trim());
        rest.expect("{")?;
        let sharding = if rest.0.starts_with('{') {
            let mut elements = Vec::new();
            loop {
                rest.expect("{")?;
                elements.push(rest.one()?);
                if !rest.eat(",") {
                    break;
                }
            }
            rest.expect("}")?;
            Self::Tuple(elements)
        } else if rest.eat("}") {
            Self::Tuple(Vec::new())
        } else {
            rest.one()?
        };
        match rest.0 {
            "" => Ok(sharding),
            other => Err(malformed(format!("`{}` follows it", start(other)))),
        }
    }
}

/// What is left of a string.
struct Rest<'a>(&'a str);

impl Rest<'_> {
    fn eat(&mut self, token: &str) -> bool {
        self.0 = self.0.trim_start();
        match self.0.strip_prefix(token) {
            Some(rest) => {
                self.0 = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) -> Result<(), FormatError> {
        if self.eat(token) {
            return Ok(());
        }
        Err(malformed(format!("expected `{token}`, found `{}`", start(self.0))))
    }

    fn number<T: FromStr>(&mut self) -> Result<T, FormatError> {
        let end = self.0.find(|c: char| c != '-' && !c.is_ascii_digit()).unwrap_or(self.0.len());
        let (digits, rest) = self.0.split_at(end);
        self.0 = rest.trim_start();
        digits.parse().map_err(|_| malformed(format!("`{digits}` is no number")))
    }

    /// `1,2,3`, then `close`.
    fn numbers<T: FromStr>(&mut self, close: &str) -> Result<Vec<T>, FormatError> {
        let mut numbers = vec![self.number()?];
        while self.eat(",") {
            numbers.push(self.number()?);
        }
        self.expect(close)?;
        Ok(numbers)
    }

    /// A sharding that is not a tuple, after its `{`.
    fn one(&mut self) -> Result<HloSharding, FormatError> {
        let sharding = if self.eat("replicated") {
            HloSharding::Replicated
        } else if self.eat("manual") {
            HloSharding::Manual
        } else if self.eat("unknown") {
            HloSharding::Unknown
        } else if self.eat("unreduced") {
            HloSharding::Unreduced
        } else if self.eat("maximal") {
            self.expect("device=")?;
            HloSharding::Maximal(self.number()?)
        } else if self.eat("devices=") {
            HloSharding::Tiled(self.tiling()?)
        } else {
            let what = format!("the sharding `{}`", start(self.0));
            return Err(FormatError::NotKnown { what });
        };
        self.expect("}")?;
        Ok(sharding)
    }

    /// `[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate`.
    fn tiling(&mut self) -> Result<HloTiling, FormatError> {
        self.expect("[")?;
        let dims = self.numbers("]")?;
        let devices = if self.eat("<=") {
            self.expect("[")?;
            let reshape: Vec<usize> = self.numbers("]")?;
            let transpose = if self.eat("T") {
                self.expect("(")?;
                self.numbers(")")?
            } else {
                (0..reshape.len()).collect()
            };
            TileDevices::Range { reshape, transpose }
        } else {
            TileDevices::Listed(self.numbers("")?)
        };
        let mut subgroups = Vec::new();
        if self.eat("last_tile_dim_replicate") {
            subgroups.push(Subgroup::Replicated);
        } else if self.eat("last_tile_dims={") {
            loop {
                subgroups.push(if self.eat("replicated") {
                    Subgroup::Replicated
                } else if self.eat("manual") {
                    Subgroup::Manual
                } else if self.eat("unreduced") {
                    Subgroup::Unreduced
                } else {
                    let what = format!("the subgroup `{}`", start(self.0));
                    return Err(FormatError::NotKnown { what });
                });
                if !self.eat(",") {
                    break;
                }
            }
            self.expect("}")?;
        }
        HloTiling::new(dims, devices, subgroups)
    }
}

/// The first characters of what a message shows.
fn start(text: &str) -> String {
    text.chars().take(20).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Strings and messages as jaxlib 0.10.2 writes them.
    const KNOWN: &[(&str, &[u8])] = &[
        ("{replicated}", &[]),
        ("{manual}", &[0x08, 0x04]),
        ("{unknown}", &[0x08, 0x05]),
        ("{unreduced}", &[0x08, 0x06]),
        ("{devices=[2,2]0,2,1,3}", &[8, 3, 0x1A, 2, 2, 2, 0x22, 4, 0, 2, 1, 3]),
        ("{devices=[2,2]<=[4]}", &[8, 3, 0x1A, 2, 2, 2, 0x4A, 1, 4, 0x52, 1, 0]),
        ("{devices=[4,2]<=[2,4]T(1,0)}", &[8, 3, 0x1A, 2, 4, 2, 0x4A, 2, 2, 4, 0x52, 2, 1, 0]),
        (
            "{devices=[2,1,2]<=[4] last_tile_dim_replicate}",
            &[8, 3, 0x1A, 3, 2, 1, 2, 0x30, 1, 0x4A, 1, 4, 0x52, 1, 0],
        ),
        (
            "{devices=[2,2,2]<=[8] last_tile_dims={manual, replicated}}",
            &[8, 3, 0x1A, 3, 2, 2, 2, 0x42, 2, 4, 0, 0x4A, 1, 8, 0x52, 1, 0],
        ),
        (
            "{devices=[2,2,2]<=[2,2,2]T(0,2,1) last_tile_dims={unreduced, replicated}}",
            &[8, 3, 26, 3, 2, 2, 2, 66, 2, 6, 0, 74, 3, 2, 2, 2, 82, 3, 0, 2, 1],
        ),
        (
            "{{replicated}, {devices=[2]<=[2]}}",
            &[8, 2, 0x2A, 0, 0x2A, 11, 8, 3, 0x1A, 1, 2, 0x4A, 1, 2, 0x52, 1, 0],
        ),
    ];

    #[test]
    fn strings_and_messages_are_those_of_jaxlib() {
        for (text, bytes) in KNOWN {
            let sharding: HloSharding = text.parse().unwrap();
            assert_eq!(sharding.to_string(), *text);
            assert_eq!(sharding.to_proto(), *bytes, "{text}");
            assert_eq!(HloSharding::from_proto(bytes).unwrap(), sharding, "{text}");
        }
        // jaxlib gives a maximal sharding a dimension as well; it says nothing.
        let maximal = HloSharding::from_proto(&[0x08, 0x01, 0x22, 0x01, 0x03]).unwrap();
        assert_eq!(maximal.to_string(), "{maximal device=3}");
        assert_eq!(maximal.to_string().parse(), Ok(maximal));
    }

    #[test]
    fn ranges_are_transposed() {
        let devices = |text: &str| match text.parse() {
            Ok(HloSharding::Tiled(tiling)) => tiling.devices(),
            other => panic!("{other:?}"),
        };
        assert_eq!(devices("{devices=[4,2]<=[2,4]T(1,0)}"), [0, 4, 1, 5, 2, 6, 3, 7]);
        assert_eq!(
            devices("{devices=[3,2,2]<=[2,3,2]T(1,2,0)}"),
            [0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11]
        );
        assert_eq!(devices("{devices=[2,2]3,1,0,2}"), [3, 1, 0, 2]);
        let text = "{devices=[2,3,2,1]<=[12] last_tile_dims={manual, replicated}}";
        let HloSharding::Tiled(tiling) = text.parse().unwrap() else { panic!() };
        assert_eq!(tiling.tile_counts(), [2, 3]);
        let subgroups: Vec<_> = tiling.subgroups().collect();
        assert_eq!(subgroups, [(Subgroup::Manual, 2), (Subgroup::Replicated, 1)]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (text, expected) in [
            ("{devices=[2,2]0,1,2}", "3 devices have 4 tiles"),
            ("{devices=[2]1,1}", "device 1 has two tiles"),
            ("{devices=[2,2]<=[5]}", "[5] devices have 4 tiles"),
            ("{devices=[4]<=[2,2]T(0,0)}", "[0, 0] is no order of [2, 2]"),
            ("{devices=[99999999]<=[99999999]}", "must be from 1 to"),
            ("{devices=[9999999999,9999999999]<=[4]}", "must be from 1 to"),
            ("{devices=[0]<=[0]}", "must be from 1 to"),
            ("{devices=[2]<=[2] last_tile_dims={manual, manual}}", "2 subgroups of [2]"),
            ("{devices=[2]<=[2]", "expected `}`, found ``"),
            ("{devices=[-2]<=[2]}", "`-2` is no number"),
            ("{replicated} x", "`x` follows it"),
            ("{{replicated}, replicated}", "expected `{`"),
            ("replicated", "expected `{`, found `replicated`"),
            ("{spread}", "the sharding `spread}` is not known yet"),
        ] {
            let error = text.parse::<HloSharding>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        for (bytes, expected) in [
            (&[8, 1][..], "[] is not one device"),
            (&[8, 3, 0x22, 1, 0], "tiles have no dimensions"),
            (&[8, 9], "a sharding of kind 9 is not known yet"),
            (&[8, 2, 0x2A, 2, 8, 2], "a tuple is in a tuple"),
            (&[0x58, 1], "a group of shardings is not known yet"),
            (&[8, 3, 0x1A, 2], "this is no OpSharding"),
            (&[8, 3, 0x1A, 1, 2, 0x30, 1, 0x42, 1, 0, 0x4A, 1, 2, 0x52, 1, 0], "described twice"),
        ] {
            let error = HloSharding::from_proto(bytes).unwrap_err().to_string();
            assert!(error.contains(expected), "{bytes:?}: {error}");
        }
    }

    #[test]
    fn shardings_of_the_corpus_are_read() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = root.join("tests/data/corpus/lockstep_gspmd");
        let mut count = 0;
        for case in std::fs::read_dir(root).unwrap() {
            let path = case.unwrap().path().join("program.stablehlo.mlir");
            let text = std::fs::read_to_string(path).unwrap();
            for part in text.split("mhlo.sharding = \"").skip(1) {
                let text = part.split('"').next().unwrap();
                let sharding: HloSharding = text.parse().unwrap();
                assert_eq!(sharding.to_string(), text);
                assert_eq!(HloSharding::from_proto(&sharding.to_proto()), Ok(sharding));
                count += 1;
            }
        }
        assert!(count > 40, "{count}");
    }
}
