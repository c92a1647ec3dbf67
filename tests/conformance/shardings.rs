//! Arrays under every kind of sharding, and what each kind refuses.

use lockstep::ifrt::{
    ArraySpec, ConcreteEvenSharding, ConcreteSharding, DType, IndexDomain, MemoryKind,
    OpaqueSharding, Sharding, ShardingSpec, Tiling,
};

use crate::fixture::{
    ADDRESSABLE, COPY, Fixture, REUSE, elements, expect_elements, from_shards, refused, shape,
    shards,
};
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    concrete_domains_may_be_any_parts,
    concrete_shapes_are_moved_shard_by_shard,
    even_shards_are_moved_shard_by_shard,
    opaque_shardings_say_nothing,
    listed_tiles_are_tiles,
    memories_are_places_of_their_own,
    gaps_are_refused,
    process_data_makes_an_array,
];

fn on(fixture: &Fixture, spec: ShardingSpec) -> Sharding {
    Sharding::new(spec, fixture.devices().clone(), MemoryKind::DEVICE).unwrap()
}

/// Device `i` has `i + 1` of the rows, from the first on: they overlap.
fn growing(fixture: &Fixture) -> Sharding {
    let n = fixture.devices().len();
    let domain = |i| IndexDomain::new([0, 0], shape(&[i + 1, 2])).unwrap();
    let parts = ConcreteSharding::of_domains(shape(&[n, 2]), (0..n).map(domain).collect());
    on(fixture, ShardingSpec::Concrete(parts.unwrap()))
}

fn concrete_domains_may_be_any_parts(fixture: &Fixture) {
    let n = fixture.devices().len();
    let numbers: Vec<u32> = (0..).take(2 * n).collect();
    let growing = growing(fixture);
    let array = fixture.counting(0, &[n, 2], &growing);
    expect_elements(&*array, &numbers);
    // To tiles and back: every element is found somewhere.
    let cut = fixture.client.resharded(&array, fixture.rows(2)).unwrap();
    expect_elements(&*cut, &numbers);
    let again = fixture.client.resharded(&cut, growing.clone()).unwrap();
    expect_elements(&*again, &numbers);
    let hash =
        fixture.client.hash_arrays(std::slice::from_ref(&array), lockstep::ifrt::HashMode::Logical);
    if n > 1 {
        refused(hash);
    }
    let other = ArraySpec { shape: shape(&[n + 1, 2]), ..array.spec().clone() };
    let status = lockstep::ifrt::Status::aborted("never used");
    let bad = fixture.client.make_error_arrays(&status, &[other]).unwrap().remove(0);
    refused(bad.disassemble_into_single_device_arrays(REUSE, ADDRESSABLE));
}

fn concrete_shapes_are_moved_shard_by_shard(fixture: &Fixture) {
    let n = fixture.devices().len();
    let shapes: Vec<_> = (0..n).map(|i| shape(&[i])).collect();
    let spec = ConcreteSharding::of_shapes(shape(&[n * n]), shapes).unwrap();
    let sharding = on(fixture, ShardingSpec::Concrete(spec));
    let contents = |device: usize| vec![u32::try_from(10 * device).unwrap(); device];
    let parts: Vec<_> = (sharding.devices().addressable_positions().into_iter())
        .map(|place| {
            let one = Sharding::single_device(fixture.pick(&[place])).unwrap();
            from_shards(fixture, &[place], &one, |_| contents(place))
        })
        .collect();
    let spec = ArraySpec { dtype: DType::U32, shape: shape(&[n * n]), sharding };
    let array = fixture
        .client
        .assemble_array_from_single_device_arrays(&spec, &parts, REUSE, ADDRESSABLE)
        .unwrap();
    refused(array.copy_to_host_buffer(REUSE));
    let one = std::slice::from_ref(&array);
    let moved = fixture.client.copy_arrays(one, Some(&fixture.reversed()), None, COPY);
    let moved = moved.unwrap().remove(0);
    // Shard i is now on device n - 1 - i.
    let expected: Vec<Vec<u32>> =
        moved.sharding().devices().addressable_positions().into_iter().map(contents).collect();
    assert_eq!(shards(&*moved), expected);
    refused(fixture.client.resharded(&array, fixture.rows(1)));
}

fn even_shards_are_moved_shard_by_shard(fixture: &Fixture) {
    let n = fixture.devices().len();
    let even = ConcreteEvenSharding::new(n, shape(&[3 * n]), shape(&[3]), false).unwrap();
    let sharding = on(fixture, ShardingSpec::ConcreteEven(even));
    let parts = fixture.counting(0, &[3 * n], &fixture.rows(1));
    let parts = parts.disassemble_into_single_device_arrays(REUSE, ADDRESSABLE).unwrap();
    let spec = ArraySpec { dtype: DType::U32, shape: shape(&[3 * n]), sharding };
    let client = &fixture.client;
    let array =
        client.assemble_array_from_single_device_arrays(&spec, &parts, REUSE, ADDRESSABLE).unwrap();
    let one = std::slice::from_ref(&array);
    let moved = client.copy_arrays(one, Some(&fixture.reversed()), None, COPY).unwrap().remove(0);
    let expected: Vec<Vec<u32>> = (moved.sharding().devices().addressable_positions().into_iter())
        .map(|shard| (u32::try_from(3 * shard).unwrap()..).take(3).collect())
        .collect();
    assert_eq!(shards(&*moved), expected);
    let whole = ConcreteEvenSharding::new(n, shape(&[4]), shape(&[4]), true).unwrap();
    let same = fixture.counting(7, &[4], &on(fixture, ShardingSpec::ConcreteEven(whole)));
    assert_eq!(elements(&*same).unwrap(), [7, 8, 9, 10]);
}

fn opaque_shardings_say_nothing(fixture: &Fixture) {
    let n = fixture.devices().len();
    let opaque = ShardingSpec::Opaque(OpaqueSharding::new(n).unwrap());
    let sharding = on(fixture, opaque);
    let parts = fixture.counting(0, &[n], &fixture.rows(1));
    let parts = parts.disassemble_into_single_device_arrays(REUSE, ADDRESSABLE).unwrap();
    let spec = ArraySpec { dtype: DType::U32, shape: shape(&[n]), sharding };
    let client = &fixture.client;
    let array =
        client.assemble_array_from_single_device_arrays(&spec, &parts, REUSE, ADDRESSABLE).unwrap();
    array.ready().wait().unwrap();
    assert_eq!(array.size_bytes(), None);
    refused(array.disassemble_into_single_device_arrays(REUSE, ADDRESSABLE));
    refused(array.copy_to_host_buffer(REUSE));
    refused(client.resharded(&array, fixture.rows(1)));
    refused(spec.sharding.shard_shape(&spec.shape));
    refused(client.hash_arrays(&[array], lockstep::ifrt::HashMode::Logical));
}

fn listed_tiles_are_tiles(fixture: &Fixture) {
    let n = fixture.devices().len();
    let tiling = Tiling::listed(vec![n], (0..n).map(|shard| (shard * 3 + 1) % n).collect());
    // Three divides no number of devices here.
    let sharding = on(fixture, ShardingSpec::Tiled(tiling.unwrap()));
    let numbers: Vec<u32> = (0..).take(2 * n + 1).collect();
    let array = fixture.counting(0, &[2 * n + 1], &sharding);
    expect_elements(&*array, &numbers);
    let moved = fixture.client.resharded(&array, fixture.rows(1)).unwrap();
    expect_elements(&*moved, &numbers);
}

fn memories_are_places_of_their_own(fixture: &Fixture) {
    let client = &fixture.client;
    for device in fixture.devices() {
        assert_eq!(device.default_memory().unwrap().kind, MemoryKind::DEVICE);
        assert!(device.memories().contains(device.default_memory().unwrap()));
        for memory in device.memories() {
            assert_eq!(memory.devices, [device.id()]);
        }
    }
    let first = fixture.devices().get(0).unwrap();
    let array = fixture.counting(5, &[3], &fixture.replicated());
    let one = std::slice::from_ref(&array);
    for memory in first.memories() {
        let kind = Some(&memory.kind);
        let moved = client.copy_arrays(one, None, kind, COPY).unwrap().remove(0);
        assert_eq!(moved.sharding().memory_kind(), &memory.kind);
        assert_eq!(elements(&*moved).unwrap(), [5, 6, 7]);
        let back = client.copy_arrays(&[moved], None, Some(&MemoryKind::DEVICE), REUSE).unwrap();
        assert_eq!(back[0].spec(), array.spec());
        assert_eq!(elements(&*back[0]).unwrap(), [5, 6, 7]);
    }
    refused(client.copy_arrays(one, None, Some(&MemoryKind::new("vault")), COPY));
}

fn gaps_are_refused(fixture: &Fixture) {
    let n = fixture.devices().len();
    // Nobody has the last element.
    let domain = |_| IndexDomain::new([0], shape(&[n])).unwrap();
    let spec = ConcreteSharding::of_domains(shape(&[n + 1]), (0..n).map(domain).collect());
    let sharding = on(fixture, ShardingSpec::Concrete(spec.unwrap()));
    let numbers: Vec<u32> = (0..).take(n).collect();
    let array = from_shards(fixture, &[n + 1], &sharding, |_| numbers.clone());
    let status = refused(fixture.client.resharded(&array, fixture.replicated()));
    assert!(status.message().contains(&format!("[{n}..{}]", n + 1)), "{status}");
}

fn process_data_makes_an_array(fixture: &Fixture) {
    let client = &fixture.client;
    let n = fixture.devices().len();
    let dims = [2 * n - 1, 3];
    let (global, sharding) = (shape(&dims), fixture.rows(2));
    let own = sharding.process_domain(&global, client.process_index()).unwrap().unwrap();
    let first = u32::try_from(own.origin()[0] * 3).unwrap();
    let numbers: Vec<u32> = (first..).take(own.shape().num_elements()).collect();
    let make = |shape, numbers: &[u32]| {
        let local = lockstep::ifrt::HostBuffer::from_slice(numbers, DType::U32, shape).unwrap();
        client.make_array_from_process_data(&local, &global, &sharding, crate::fixture::DURING_CALL)
    };
    let array = make(own.shape().clone(), &numbers).unwrap();
    expect_elements(&*array, &(0..).take(dims[0] * 3).collect::<Vec<_>>());
    refused(make(shape(&[own.shape().dims()[0], 1]), &numbers[..own.shape().dims()[0]]));
}
