//! What cases say often: arrays of numbers that tell every element from every other.

use std::sync::Arc;

use lockstep::ifrt::{
    Array, ArrayCopySemantics, ArrayRef, ArraySpec, Client, Code, DType, DeviceList, HostBuffer,
    HostBufferSemantics, HostBufferShards, Mesh, Result, Shape, Sharding,
    SingleDeviceShardSemantics, Status,
};

pub(crate) const DURING_CALL: HostBufferSemantics = HostBufferSemantics::ImmutableOnlyDuringCall;
pub(crate) const REUSE: ArrayCopySemantics = ArrayCopySemantics::ReuseInput;
pub(crate) const COPY: ArrayCopySemantics = ArrayCopySemantics::AlwaysCopy;
pub(crate) const DONATE: ArrayCopySemantics = ArrayCopySemantics::DonateInput;
pub(crate) const ADDRESSABLE: SingleDeviceShardSemantics =
    SingleDeviceShardSemantics::AddressableShards;

/// A client under test.
pub(crate) struct Fixture {
    pub(crate) client: Arc<dyn Client>,
}

impl Fixture {
    pub(crate) fn new(client: Arc<dyn Client>) -> Self {
        Self { client }
    }

    /// All devices.
    pub(crate) fn devices(&self) -> &DeviceList {
        self.client.devices()
    }

    /// The devices at these places of the client's list.
    pub(crate) fn pick(&self, places: &[usize]) -> DeviceList {
        let devices = places.iter().map(|&place| self.devices().get(place).unwrap().clone());
        DeviceList::new(devices.collect::<Vec<_>>())
    }

    /// All devices, last first.
    pub(crate) fn reversed(&self) -> DeviceList {
        DeviceList::new(self.devices().iter().rev().cloned().collect::<Vec<_>>())
    }

    /// Whether there is but one process.
    pub(crate) fn is_alone(&self) -> bool {
        self.client.process_count() == 1
    }

    /// Dimension 0 cut over all devices, the others whole.
    pub(crate) fn rows(&self, rank: usize) -> Sharding {
        rows_over(self.devices().clone(), rank)
    }

    /// The whole array on every device.
    pub(crate) fn replicated(&self) -> Sharding {
        Sharding::replicated(self.devices().clone()).unwrap()
    }

    /// An array of the numbers from `first` on.
    pub(crate) fn counting(&self, first: u32, dims: &[usize], sharding: &Sharding) -> ArrayRef {
        let shape = shape(dims);
        let numbers: Vec<u32> = (first..).take(shape.num_elements()).collect();
        let buffer = HostBuffer::from_slice(&numbers, DType::U32, shape).unwrap();
        self.client.make_array_from_host_buffer(&buffer, sharding, DURING_CALL).unwrap()
    }
}

/// Checks that an array has these elements, as far as its shards are here.
pub(crate) fn expect_elements(array: &dyn Array, expected: &[u32]) {
    let domains = array.sharding().index_domains(array.shape(), ADDRESSABLE).unwrap();
    let strides = array.shape().strides();
    let shards = shards(array);
    assert_eq!(shards.len(), domains.len());
    for (domain, shard) in domains.iter().zip(shards) {
        let mut wanted = vec![0];
        for ((from, to), stride) in domain.ranges().zip(&strides) {
            wanted = wanted
                .iter()
                .flat_map(|start| (from..to).map(move |index| start + index * stride))
                .collect();
        }
        let wanted: Vec<u32> = wanted.iter().map(|&place| expected[place]).collect();
        assert_eq!(shard, wanted, "{domain} of {array:?}");
    }
}

/// Dimension 0 cut over `devices`.
pub(crate) fn rows_over(devices: DeviceList, rank: usize) -> Sharding {
    let mut dims: Vec<&[&str]> = vec![&[]; rank];
    dims[0] = &["x"];
    let mesh = Mesh::new([("x", devices.len())]).unwrap();
    Sharding::tiled(devices, mesh.tiling(&dims).unwrap()).unwrap()
}

pub(crate) fn shape(dims: &[usize]) -> Shape {
    Shape::new(dims).unwrap()
}

/// The same array under another sharding.
pub(crate) fn under(array: &dyn Array, sharding: &Sharding) -> ArraySpec {
    ArraySpec { sharding: sharding.clone(), ..array.spec().clone() }
}

/// The elements of an array that this process can see all of.
pub(crate) fn elements(array: &dyn Array) -> Result<Vec<u32>> {
    array.copy_to_host_buffer(REUSE)?.wait()?.to_vec()
}

/// The elements of each addressable shard.
pub(crate) fn shards(array: &dyn Array) -> Vec<Vec<u32>> {
    let parts = array.disassemble_into_single_device_arrays(REUSE, ADDRESSABLE).unwrap();
    parts.iter().map(|part| elements(&**part).unwrap()).collect()
}

/// The failure of a call that must be refused as wrong.
pub(crate) fn refused<T>(result: Result<T>) -> Status {
    let Err(status) = result else { panic!("what is wrong was accepted") };
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    status
}

/// An array of what each addressable shard has, by the number of its device in the list.
pub(crate) fn from_shards(
    fixture: &Fixture,
    dims: &[usize],
    sharding: &Sharding,
    contents: impl Fn(usize) -> Vec<u32>,
) -> ArrayRef {
    let spec = ArraySpec { dtype: DType::U32, shape: shape(dims), sharding: sharding.clone() };
    let domains = sharding.index_domains(&spec.shape, ADDRESSABLE).unwrap();
    let contents: Vec<Vec<u32>> =
        sharding.devices().addressable_positions().into_iter().map(contents).collect();
    let buffers = contents.iter().zip(&domains).enumerate().map(|(index, (numbers, domain))| {
        let buffer = HostBuffer::from_slice(numbers, DType::U32, domain.shape().clone());
        (vec![index], buffer.unwrap())
    });
    let shards = HostBufferShards { spec, buffers: buffers.collect() };
    let made = fixture.client.make_arrays_from_host_buffer_shards(&[shards], DURING_CALL);
    made.unwrap().remove(0)
}
