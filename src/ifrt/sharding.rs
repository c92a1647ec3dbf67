//! How an array is spread over devices: a partitioning, an ordered device list, a memory kind.

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};

use super::{
    ConcreteEvenSharding, ConcreteSharding, DeviceList, IndexDomain, MemoryKind, OpaqueSharding,
    Result, Shape, Status, Tiling, UnreducedSharding,
};

/// Which shards of an array a call is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SingleDeviceShardSemantics {
    /// Those on addressable devices, in device list order.
    AddressableShards,
    /// All of them. Refused where a runtime cannot name a remote device's shard.
    AllShards,
}

/// A partitioning that is not bound to devices: what part of an array shard `i` has.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ShardingSpec {
    /// One shard: the whole array.
    SingleDevice,
    /// Every shard is the whole array.
    Replicated {
        /// How many shards there are.
        num_shards: usize,
    },
    /// Dimensions cut into equal tiles, by position in a mesh.
    Tiled(Tiling),
    /// Tiles of which shards are summands.
    Unreduced(UnreducedSharding),
    /// Parts given one by one, for arrays of one shape.
    Concrete(ConcreteSharding),
    /// Parts of one shape, for arrays of one shape.
    ConcreteEven(ConcreteEvenSharding),
    /// Not known.
    Opaque(OpaqueSharding),
}

impl ShardingSpec {
    /// The number of shards.
    pub fn num_shards(&self) -> usize {
        match self {
            Self::SingleDevice => 1,
            Self::Replicated { num_shards } => *num_shards,
            Self::Tiled(tiling) => tiling.num_shards(),
            Self::Unreduced(unreduced) => unreduced.num_shards(),
            Self::Concrete(concrete) => concrete.num_shards(),
            Self::ConcreteEven(even) => even.num_shards(),
            Self::Opaque(opaque) => opaque.num_shards(),
        }
    }

    /// Whether every shard is known to be the whole array.
    pub fn is_fully_replicated(&self) -> bool {
        match self {
            Self::SingleDevice | Self::Replicated { .. } => true,
            Self::Tiled(tiling) => tiling.is_fully_replicated(),
            Self::ConcreteEven(even) => even.is_fully_replicated(),
            Self::Unreduced(_) | Self::Concrete(_) | Self::Opaque(_) => false,
        }
    }

    /// The shape that every shard of an array of `shape` is compiled for, padding included.
    ///
    /// This is not what a shard holds when tiles do not divide a dimension: see
    /// [`ShardingSpec::index_domains`].
    ///
    /// # Errors
    /// `InvalidArgument` when the shape is not one that the spec is for, or shards have no common
    /// or no known shape.
    pub fn shard_shape(&self, shape: &Shape) -> Result<Shape> {
        match self {
            Self::SingleDevice | Self::Replicated { .. } => Ok(shape.clone()),
            Self::Tiled(tiling) => tiling.padded_tile_shape(shape),
            Self::Unreduced(unreduced) => unreduced.shard_shape(shape),
            Self::Concrete(concrete) => concrete.shard_shape(shape),
            Self::ConcreteEven(even) => even.shard_shape(shape),
            Self::Opaque(opaque) => Err(opaque.unknown()),
        }
    }

    /// The true shape of each shard, by its number: that of its index domain, if this is known.
    ///
    /// # Errors
    /// `InvalidArgument` when the shape is not one that the spec is for, or it is not known.
    pub fn shard_shapes(&self, shape: &Shape) -> Result<Vec<Shape>> {
        match self {
            Self::Concrete(concrete) => concrete.shard_shapes(shape),
            Self::ConcreteEven(_) | Self::Unreduced(_) => {
                Ok(vec![self.shard_shape(shape)?; self.num_shards()])
            }
            _ => {
                let domains = self.index_domains(shape)?;
                Ok(domains.iter().map(|domain| domain.shape().clone()).collect())
            }
        }
    }

    /// The elements that each shard truly has, by shard number. Equal domains are replicas.
    ///
    /// # Errors
    /// `InvalidArgument` when the shape is not one that the spec is for, or it is not known.
    pub fn index_domains(&self, shape: &Shape) -> Result<Vec<IndexDomain>> {
        match self {
            Self::SingleDevice | Self::Replicated { .. } => {
                Ok(vec![IndexDomain::whole(shape.clone()); self.num_shards()])
            }
            Self::Tiled(tiling) => {
                (0..self.num_shards()).map(|shard| tiling.index_domain(shape, shard)).collect()
            }
            Self::Unreduced(unreduced) => unreduced.index_domains(),
            Self::Concrete(concrete) => concrete.index_domains(shape),
            Self::ConcreteEven(even) => even.index_domains(shape),
            Self::Opaque(opaque) => Err(opaque.unknown()),
        }
    }

    /// This partitioning on `devices`; see [`Sharding::new`].
    ///
    /// # Errors
    /// `InvalidArgument` when the number of devices is not the number of shards.
    pub fn to_sharding(&self, devices: DeviceList, memory_kind: MemoryKind) -> Result<Sharding> {
        Sharding::new(self.clone(), devices, memory_kind)
    }
}

/// Equal when shard `i` of one is shard `i` of the other for every array that both are for, as far
/// as it is known: what is given for one shape is equal to its like only.
impl PartialEq for ShardingSpec {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Tiled(a), Self::Tiled(b)) if a == b => true,
            (Self::Unreduced(a), Self::Unreduced(b)) => a == b,
            (Self::Concrete(a), Self::Concrete(b)) => a == b,
            (Self::ConcreteEven(a), Self::ConcreteEven(b)) => a == b,
            (Self::Opaque(a), Self::Opaque(b)) => a == b,
            (Self::ConcreteEven(_), _) | (_, Self::ConcreteEven(_)) => false,
            _ => {
                self.is_fully_replicated()
                    && other.is_fully_replicated()
                    && self.num_shards() == other.num_shards()
            }
        }
    }
}

impl Eq for ShardingSpec {}

impl Hash for ShardingSpec {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Tiled(tiling) if !tiling.is_fully_replicated() => tiling.hash(state),
            _ => self.num_shards().hash(state),
        }
    }
}

impl fmt::Display for ShardingSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tiled(tiling) if !tiling.is_fully_replicated() => tiling.fmt(f),
            Self::Unreduced(unreduced) => unreduced.fmt(f),
            Self::Concrete(concrete) => concrete.fmt(f),
            Self::ConcreteEven(even) => even.fmt(f),
            Self::Opaque(opaque) => opaque.fmt(f),
            _ if self.num_shards() == 1 => f.write_str("single device"),
            _ => write!(f, "replicated over {} shards", self.num_shards()),
        }
    }
}

/// How an array is spread over devices. Shard `i` is on device `i` of the list.
///
/// Equal when partitioning, devices with their order, and memory kind are.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Sharding {
    spec: ShardingSpec,
    devices: DeviceList,
    memory_kind: MemoryKind,
}

impl Sharding {
    /// The sharding of `spec` over `devices`.
    ///
    /// # Errors
    /// `InvalidArgument` when the number of devices is not the number of shards.
    pub fn new(spec: ShardingSpec, devices: DeviceList, memory_kind: MemoryKind) -> Result<Self> {
        if spec.num_shards() == devices.len() {
            return Ok(Self { spec, devices, memory_kind });
        }
        Err(Status::invalid_argument(format!(
            "the sharding ({spec}) has {} shards, the device list {devices} has {} devices",
            spec.num_shards(),
            devices.len()
        )))
    }

    /// The whole array on the only device of `devices`, in its default memory.
    ///
    /// # Errors
    /// `InvalidArgument` when there is not exactly one device.
    pub fn single_device(devices: DeviceList) -> Result<Self> {
        Self::new(ShardingSpec::SingleDevice, devices, MemoryKind::DEVICE)
    }

    /// The whole array on each of `devices`, in their default memory.
    ///
    /// # Errors
    /// `InvalidArgument` when there is no device.
    pub fn replicated(devices: DeviceList) -> Result<Self> {
        if devices.is_empty() {
            return Err(Status::invalid_argument("an array cannot be replicated over no device"));
        }
        let spec = ShardingSpec::Replicated { num_shards: devices.len() };
        Self::new(spec, devices, MemoryKind::DEVICE)
    }

    /// Dimensions cut by `tiling`, in the devices' default memory.
    ///
    /// # Errors
    /// `InvalidArgument` when the number of devices is not that of the tiling's shards.
    pub fn tiled(devices: DeviceList, tiling: Tiling) -> Result<Self> {
        Self::new(ShardingSpec::Tiled(tiling), devices, MemoryKind::DEVICE)
    }

    /// The partitioning.
    pub fn spec(&self) -> &ShardingSpec {
        &self.spec
    }

    /// The devices.
    pub fn devices(&self) -> &DeviceList {
        &self.devices
    }

    /// The kind of memory the shards live in.
    pub fn memory_kind(&self) -> &MemoryKind {
        &self.memory_kind
    }

    /// Whether every shard is the whole array.
    pub fn is_fully_replicated(&self) -> bool {
        self.spec.is_fully_replicated()
    }

    /// Whether arrays are cut the same way, devices and memory apart.
    pub fn has_same_partitioning(&self, other: &Self) -> bool {
        self.spec == other.spec
    }

    /// See [`ShardingSpec::shard_shape`]: padding included.
    ///
    /// # Errors
    /// `InvalidArgument` when the rank differs from the one the sharding is for.
    pub fn shard_shape(&self, shape: &Shape) -> Result<Shape> {
        self.spec.shard_shape(shape)
    }

    /// The true shape of each shard, in device order.
    ///
    /// # Errors
    /// As [`ShardingSpec::shard_shapes`].
    pub fn shard_shapes(
        &self,
        shape: &Shape,
        semantics: SingleDeviceShardSemantics,
    ) -> Result<Vec<Shape>> {
        Ok(self.selected(self.spec.shard_shapes(shape)?, semantics))
    }

    /// Of one value per shard those that `semantics` says.
    fn selected<T>(&self, mut values: Vec<T>, semantics: SingleDeviceShardSemantics) -> Vec<T> {
        if semantics == SingleDeviceShardSemantics::AddressableShards {
            let mut devices = self.devices.iter();
            values.retain(|_| devices.next().is_some_and(super::Device::is_addressable));
        }
        values
    }

    /// The part of an array that a process holds: the smallest rectangle around its shards, which
    /// fill it. `None` when it has none, or only empty ones.
    ///
    /// # Errors
    /// As [`ShardingSpec::index_domains`]; `InvalidArgument` when its shards leave gaps, so that no
    /// one local array holds what they do.
    pub fn process_domain(&self, shape: &Shape, process_index: u32) -> Result<Option<IndexDomain>> {
        let domains = self.spec.index_domains(shape)?;
        let own: BTreeSet<Vec<(usize, usize)>> = (self.devices.iter().zip(&domains))
            .filter(|(device, domain)| {
                device.process_index() == process_index && domain.shape().num_elements() > 0
            })
            .map(|(_, domain)| domain.ranges().collect())
            .collect();
        let Some(first) = own.first() else { return Ok(None) };
        let around = |mut around: Vec<(usize, usize)>, domain: &Vec<(usize, usize)>| {
            for ((from, to), (other_from, other_to)) in around.iter_mut().zip(domain) {
                (*from, *to) = ((*from).min(*other_from), (*to).max(*other_to));
            }
            around
        };
        let around = own.iter().fold(first.clone(), around);
        let origin: Vec<usize> = around.iter().map(|(from, _)| *from).collect();
        let extent: Vec<usize> = around.iter().map(|(from, to)| to - from).collect();
        let extent =
            Shape::new(extent).map_err(|error| Status::invalid_argument(error.to_string()))?;
        // Tiles are the same or apart.
        let volume = |domain: &Vec<(usize, usize)>| -> usize {
            domain.iter().map(|(from, to)| to - from).product()
        };
        if own.iter().map(volume).sum::<usize>() != extent.num_elements() {
            return Err(Status::invalid_argument(format!(
                "the shards of process {process_index} under {self} do not make one rectangle of                  an array of shape {shape}"
            )));
        }
        Ok(IndexDomain::new(origin, extent))
    }

    /// The elements that each shard truly has, in device order.
    ///
    /// # Errors
    /// `InvalidArgument` when the rank differs from the one the sharding is for.
    pub fn index_domains(
        &self,
        shape: &Shape,
        semantics: SingleDeviceShardSemantics,
    ) -> Result<Vec<IndexDomain>> {
        Ok(self.selected(self.spec.index_domains(shape)?, semantics))
    }

    /// The true shape of each shard and a sharding that holds it alone, in device order.
    ///
    /// # Errors
    /// `InvalidArgument` when the rank differs from the one the sharding is for.
    pub fn disassemble(
        &self,
        shape: &Shape,
        semantics: SingleDeviceShardSemantics,
    ) -> Result<Vec<(Shape, Self)>> {
        let shapes = self.shard_shapes(shape, semantics)?;
        let devices = match semantics {
            SingleDeviceShardSemantics::AddressableShards => self.devices.addressable(),
            SingleDeviceShardSemantics::AllShards => self.devices.clone(),
        };
        let single = |device: &super::Device| Self {
            spec: ShardingSpec::SingleDevice,
            devices: DeviceList::new([device.clone()]),
            memory_kind: self.memory_kind.clone(),
        };
        Ok(shapes
            .into_iter()
            .zip(&devices)
            .map(|(shape, device)| (shape, single(device)))
            .collect())
    }

    /// The same partitioning on other devices or in another memory; `None` keeps what is.
    ///
    /// # Errors
    /// `InvalidArgument` when the number of devices changes.
    pub fn with_device_assignment(
        &self,
        devices: Option<DeviceList>,
        memory_kind: Option<MemoryKind>,
    ) -> Result<Self> {
        Self::new(
            self.spec.clone(),
            devices.unwrap_or_else(|| self.devices.clone()),
            memory_kind.unwrap_or_else(|| self.memory_kind.clone()),
        )
    }
}

impl fmt::Display for Sharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.spec, self.devices)?;
        if self.memory_kind != MemoryKind::DEVICE {
            write!(f, " in {} memory", self.memory_kind)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Sharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Mesh;
    use super::super::device_list::tests::devices;
    use super::*;

    fn shape(dims: &[usize]) -> Shape {
        Shape::new(dims).unwrap()
    }

    fn tiled(axis: &str, num_devices: usize) -> ShardingSpec {
        let mesh = Mesh::new([(axis, num_devices)]).unwrap();
        ShardingSpec::Tiled(mesh.tiling(&[&[axis]]).unwrap())
    }

    #[test]
    fn equality_covers_partitioning_devices_and_memory() {
        let list = devices(4, 2, 0);
        let sharding = tiled("x", 4).to_sharding(list.clone(), MemoryKind::DEVICE).unwrap();
        let renamed = tiled("data", 4).to_sharding(list.clone(), MemoryKind::DEVICE).unwrap();
        assert_eq!(sharding, renamed);

        let reversed = DeviceList::new(list.iter().rev().cloned().collect::<Vec<_>>());
        let elsewhere = sharding.with_device_assignment(Some(reversed), None).unwrap();
        let pinned = sharding.with_device_assignment(None, Some(MemoryKind::PINNED_HOST)).unwrap();
        for other in [elsewhere, pinned] {
            assert_ne!(sharding, other);
            assert!(sharding.has_same_partitioning(&other));
        }
        let replicated = Sharding::replicated(list).unwrap();
        assert!(!sharding.has_same_partitioning(&replicated));
    }

    #[test]
    fn what_is_the_whole_array_everywhere_is_one_partitioning() {
        let mesh = Mesh::new([("x", 2)]).unwrap();
        let uncut = ShardingSpec::Tiled(mesh.tiling(&[&[], &[]]).unwrap());
        assert_eq!(uncut, ShardingSpec::Replicated { num_shards: 2 });
        assert_ne!(uncut, ShardingSpec::Replicated { num_shards: 3 });
        assert_eq!(ShardingSpec::SingleDevice, ShardingSpec::Replicated { num_shards: 1 });
        assert_eq!(uncut.to_string(), "replicated over 2 shards");
    }

    #[test]
    fn domains_of_addressable_shards_are_the_right_ones() {
        let sharding = Sharding::new(tiled("x", 4), devices(4, 2, 1), MemoryKind::DEVICE).unwrap();
        let shape = shape(&[7]);
        let domains = |semantics| -> Vec<String> {
            let domains = sharding.index_domains(&shape, semantics).unwrap();
            domains.iter().map(ToString::to_string).collect()
        };
        assert_eq!(
            domains(SingleDeviceShardSemantics::AllShards),
            ["[0..2]", "[2..4]", "[4..6]", "[6..7]"]
        );
        assert_eq!(domains(SingleDeviceShardSemantics::AddressableShards), ["[4..6]", "[6..7]"]);
        assert_eq!(sharding.shard_shape(&shape).unwrap().dims(), [2]);

        let parts =
            sharding.disassemble(&shape, SingleDeviceShardSemantics::AddressableShards).unwrap();
        assert_eq!(parts[1].0.dims(), [1], "the true shape, not the padded one");
        assert_eq!(parts[1].1.devices().ids().next(), Some(super::super::DeviceId(3)));
    }

    #[test]
    fn a_process_holds_a_rectangle_or_no_local_array_does() {
        let on = |dims: &[&[&str]]| {
            let mesh = Mesh::new([("x", 2), ("y", 2)]).unwrap();
            let tiling = ShardingSpec::Tiled(mesh.tiling(dims).unwrap());
            Sharding::new(tiling, devices(4, 2, 0), MemoryKind::DEVICE).unwrap()
        };
        let shape = shape(&[5, 3]);
        let domain = |sharding: &Sharding, process| {
            sharding.process_domain(&shape, process).map(|domain| domain.map(|d| d.to_string()))
        };
        let rows = on(&[&["x", "y"], &[]]);
        assert_eq!(domain(&rows, 0).unwrap().unwrap(), "[0..4, 0..3]");
        assert_eq!(domain(&rows, 1).unwrap().unwrap(), "[4..5, 0..3]");
        assert_eq!(domain(&rows, 2).unwrap(), None);
        let grid = on(&[&["x"], &["y"]]);
        assert_eq!(domain(&grid, 1).unwrap().unwrap(), "[3..5, 0..3]");
        let scattered = on(&[&["y", "x"], &[]]);
        let error = domain(&scattered, 0).unwrap_err();
        assert!(error.message().contains("do not make one rectangle"), "{error}");
    }

    #[test]
    fn counts_must_match() {
        let error = Sharding::new(tiled("x", 4), devices(3, 3, 0), MemoryKind::DEVICE).unwrap_err();
        assert_eq!(
            error.message(),
            "the sharding (tiles [4] over 4 shards) has 4 shards, the device list devices [0, 1, 2] has 3 devices"
        );
        assert!(Sharding::single_device(devices(2, 2, 0)).is_err());
        assert!(Sharding::replicated(devices(0, 1, 0)).is_err());
    }
}
