//! Arrays: made from host memory, read, taken apart, put together, deleted, poisoned.

use std::sync::Arc;

use lockstep::ifrt::{
    ArrayRef, ArraySpec, Code, DType, HostBuffer, HostBufferSemantics, HostBufferShards, HostBytes,
    Mesh, Sharding, SingleDeviceShardSemantics, Status,
};

use crate::fixture::{
    ADDRESSABLE, COPY, DONATE, DURING_CALL, Fixture, REUSE, elements, expect_elements, from_shards,
    refused, shape, shards,
};
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    every_element_type_survives,
    every_length_is_cut_without_padding,
    shards_of_matrices,
    strides_of_any_sign,
    every_semantics_lets_go_of_the_bytes,
    shards_come_from_buffers_of_their_own,
    one_buffer_serves_many_shards,
    buffers_must_match_their_shards,
    taken_apart_and_put_together,
    assembling_checks_every_shard,
    donated_arrays_are_deleted,
    fully_replicated_shards,
    partly_remote_arrays_say_what_they_lack,
    deletion_is_idempotent,
    poison_spreads,
    empty_arrays_and_scalars,
];

/// Bytes that differ from place to place, for types without numbers of their own.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|place| u8::try_from(place * 7 % 251).unwrap()).collect()
}

fn every_element_type_survives(fixture: &Fixture) {
    for dtype in DType::ALL {
        let shape = shape(&[5, 3]);
        let bytes = pattern(15 * dtype.size_bytes());
        let buffer = HostBuffer::dense(HostBytes::Borrowed(&bytes), dtype, shape).unwrap();
        let replicated = fixture.replicated();
        let array = fixture.client.make_array_from_host_buffer(&buffer, &replicated, DURING_CALL);
        let read = array.unwrap().copy_to_host_buffer(COPY).unwrap().wait().unwrap();
        assert_eq!(read.as_dense().unwrap(), bytes, "{dtype}");
        assert_eq!(read.dtype(), dtype);
    }
}

fn every_length_is_cut_without_padding(fixture: &Fixture) {
    let n = fixture.devices().len();
    for length in [0, 1, n - 1, n, n + 1, 3 * n - 1, 3 * n] {
        let array = fixture.counting(100, &[length], &fixture.rows(1));
        array.ready().wait().unwrap();
        let numbers: Vec<u32> = (100..).take(length).collect();
        expect_elements(&*array, &numbers);
        let padded = array.sharding().shard_shape(array.shape()).unwrap();
        assert_eq!(padded.dims(), [length.div_ceil(n)]);
        if fixture.is_alone() {
            assert_eq!(elements(&*array).unwrap(), numbers);
        }
    }
}

fn shards_of_matrices(fixture: &Fixture) {
    let mesh = Mesh::new([("x", 2), ("y", 4)]).unwrap();
    for dims in [[&["x"][..], &["y"]], [&["y"], &["x"]], [&[], &["y", "x"]], [&["y"], &[]]] {
        let tiling = mesh.tiling(&dims).unwrap();
        let sharding = Sharding::tiled(fixture.devices().clone(), tiling).unwrap();
        let array = fixture.counting(0, &[6, 7], &sharding);
        expect_elements(&*array, &(0..42).collect::<Vec<_>>());
    }
}

fn strides_of_any_sign(fixture: &Fixture) {
    let numbers: Vec<u32> = (0..24).collect();
    let bytes: &[u8] = bytemuck::cast_slice(&numbers);
    type Strided<'a> = (&'a [usize], usize, &'a [i64], Vec<u32>);
    let cases: [Strided<'_>; 5] = [
        (&[2, 3], 0, &[12, 4], (0..6).collect()),
        (&[3, 2], 0, &[4, 12], vec![0, 3, 1, 4, 2, 5]),
        (&[4], 23 * 4, &[-8], vec![23, 21, 19, 17]),
        (&[2, 3], 4, &[0, 4], vec![1, 2, 3, 1, 2, 3]),
        (&[2, 2], 8, &[32, -4], vec![2, 1, 10, 9]),
    ];
    for (dims, offset, strides, expected) in cases {
        let bytes = HostBytes::Borrowed(bytes);
        let buffer =
            HostBuffer::strided(bytes, DType::U32, shape(dims), offset, strides.to_vec()).unwrap();
        for sharding in [fixture.replicated(), fixture.rows(dims.len())] {
            let array = fixture.client.make_array_from_host_buffer(&buffer, &sharding, DURING_CALL);
            expect_elements(&*array.unwrap(), &expected);
        }
    }
}

/// Longer than anything takes unless it hangs.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// Bytes that say when nobody refers to them any more.
struct Lent(Vec<u8>, std::sync::mpsc::Sender<()>);

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let _ = self.1.send(());
    }
}

fn every_semantics_lets_go_of_the_bytes(fixture: &Fixture) {
    for semantics in [
        HostBufferSemantics::ImmutableOnlyDuringCall,
        HostBufferSemantics::ImmutableUntilTransferCompletes,
        HostBufferSemantics::ImmutableZeroCopy,
        HostBufferSemantics::MutableZeroCopy,
    ] {
        let (sender, freed) = std::sync::mpsc::channel();
        let lent = HostBytes::Shared(Arc::new(Lent(vec![7, 0, 0, 0, 9, 0, 0, 0], sender)));
        let buffer = HostBuffer::dense(lent, DType::U32, shape(&[2])).unwrap();
        let array = fixture
            .client
            .make_array_from_host_buffer(&buffer, &fixture.replicated(), semantics)
            .unwrap();
        drop(buffer);
        assert_eq!(elements(&*array).unwrap(), [7, 9]);
        let at_once = freed.try_recv();
        if semantics == HostBufferSemantics::ImmutableOnlyDuringCall {
            at_once.unwrap();
        }
        array.delete().wait().unwrap();
        drop(array);
        if at_once.is_err() {
            freed.recv_timeout(PATIENCE).unwrap_or_else(|error| {
                panic!("{semantics:?}: the bytes are still referred to: {error}")
            });
        }
        assert!(freed.try_recv().is_err(), "once");
    }
}

fn shards_come_from_buffers_of_their_own(fixture: &Fixture) {
    let n = fixture.devices().len();
    // The last shard is one element shorter than the others.
    let length = 3 * n - 1;
    let array = from_shards(fixture, &[length], &fixture.rows(1), |device| {
        let first = u32::try_from(device * 3).unwrap();
        (first..first + if device == n - 1 { 2 } else { 3 }).collect()
    });
    expect_elements(&*array, &(0..).take(length).collect::<Vec<_>>());
}

fn one_buffer_serves_many_shards(fixture: &Fixture) {
    let sharding = fixture.replicated();
    let spec = ArraySpec { dtype: DType::U32, shape: shape(&[2]), sharding };
    let indices = (0..fixture.client.addressable_devices().len()).collect();
    let buffer = HostBuffer::from_slice(&[3_u32, 4], DType::U32, shape(&[2])).unwrap();
    let shards = HostBufferShards { spec, buffers: vec![(indices, buffer)] };
    let made = fixture.client.make_arrays_from_host_buffer_shards(&[shards], DURING_CALL);
    assert_eq!(elements(&*made.unwrap()[0]).unwrap(), [3, 4]);
}

fn buffers_must_match_their_shards(fixture: &Fixture) {
    let n = fixture.devices().len();
    let spec = ArraySpec { dtype: DType::U32, shape: shape(&[2 * n]), sharding: fixture.rows(1) };
    let own = fixture.client.addressable_devices().len();
    let two = [1_u32, 2];
    let make = |indices: &[usize], dtype, dims: &[usize]| {
        let buffer = HostBuffer::from_slice(&two, dtype, shape(dims)).unwrap();
        let buffers = vec![(indices.to_vec(), buffer)];
        let shards = HostBufferShards { spec: spec.clone(), buffers };
        fixture.client.make_arrays_from_host_buffer_shards(&[shards], DURING_CALL)
    };
    let all: Vec<usize> = (0..own).collect();
    assert!(make(&all, DType::U32, &[2]).is_ok());
    refused(make(&all, DType::S32, &[2]));
    refused(make(&all, DType::U32, &[2, 1]));
    refused(make(&all[1..], DType::U32, &[2]));
    refused(make(&[&all[..], &[0]].concat(), DType::U32, &[2]));
    refused(make(&[&all[..], &[own]].concat(), DType::U32, &[2]));
}

fn taken_apart_and_put_together(fixture: &Fixture) {
    let n = fixture.devices().len();
    let array = fixture.counting(5, &[2 * n + 1], &fixture.rows(1));
    let parts = array.disassemble_into_single_device_arrays(REUSE, ADDRESSABLE).unwrap();
    for (part, device) in parts.iter().zip(fixture.client.addressable_devices()) {
        assert_eq!(part.sharding().devices().iter().collect::<Vec<_>>(), [device]);
    }
    let again = fixture
        .client
        .assemble_array_from_single_device_arrays(array.spec(), &parts, REUSE, ADDRESSABLE)
        .unwrap();
    assert_eq!(again.spec(), array.spec());
    expect_elements(&*again, &(5..).take(2 * n + 1).collect::<Vec<_>>());
    let all = SingleDeviceShardSemantics::AllShards;
    let every = array.disassemble_into_single_device_arrays(REUSE, all);
    if fixture.is_alone() {
        assert_eq!(every.unwrap().len(), n);
    } else {
        refused(every);
        let spec = array.spec();
        refused(fixture.client.assemble_array_from_single_device_arrays(spec, &parts, REUSE, all));
    }
}

fn assembling_checks_every_shard(fixture: &Fixture) {
    let n = fixture.devices().len();
    let array = fixture.counting(5, &[2 * n], &fixture.rows(1));
    let parts = array.disassemble_into_single_device_arrays(REUSE, ADDRESSABLE).unwrap();
    let assemble = |spec: &ArraySpec, parts: &[ArrayRef]| {
        let client = &fixture.client;
        client.assemble_array_from_single_device_arrays(spec, parts, REUSE, ADDRESSABLE)
    };
    refused(assemble(array.spec(), &parts[1..]));
    refused(assemble(&ArraySpec { dtype: DType::S32, ..array.spec().clone() }, &parts));
    refused(assemble(&ArraySpec { shape: shape(&[2 * n + n]), ..array.spec().clone() }, &parts));
    if parts.len() > 1 {
        let swapped: Vec<ArrayRef> = parts.iter().rev().cloned().collect();
        refused(assemble(array.spec(), &swapped));
    }
    parts[0].delete().wait().unwrap();
    refused(assemble(array.spec(), &parts));
}

fn donated_arrays_are_deleted(fixture: &Fixture) {
    let array = fixture.counting(1, &[4], &fixture.replicated());
    let parts = array.disassemble_into_single_device_arrays(DONATE, ADDRESSABLE).unwrap();
    assert!(array.is_deleted());
    refused(array.disassemble_into_single_device_arrays(DONATE, ADDRESSABLE));
    refused(array.copy_to_host_buffer(REUSE));
    let again = fixture
        .client
        .assemble_array_from_single_device_arrays(array.spec(), &parts, DONATE, ADDRESSABLE)
        .unwrap();
    assert!(parts.iter().all(|part| part.is_deleted()));
    assert_eq!(elements(&*again).unwrap(), [1, 2, 3, 4]);
}

fn fully_replicated_shards(fixture: &Fixture) {
    let array = fixture.counting(7, &[3], &fixture.replicated());
    let shard = array.fully_replicated_shard(REUSE).unwrap();
    assert_eq!(shard.sharding().devices().len(), 1);
    assert!(shard.sharding().devices().is_fully_addressable());
    assert_eq!(elements(&*shard).unwrap(), [7, 8, 9]);
    if fixture.devices().len() > 1 {
        refused(fixture.counting(7, &[3], &fixture.rows(1)).fully_replicated_shard(REUSE));
    }
}

fn partly_remote_arrays_say_what_they_lack(fixture: &Fixture) {
    let array = fixture.counting(0, &[fixture.devices().len()], &fixture.rows(1));
    let own = array.sharding().devices().addressable_positions();
    match array.copy_to_host_buffer(REUSE) {
        Ok(whole) => {
            assert!(fixture.is_alone());
            assert_eq!(whole.wait().unwrap().shape(), array.shape());
        }
        Err(status) => {
            assert!(!fixture.is_alone());
            assert_eq!(status.code(), Code::InvalidArgument);
            assert!(status.message().contains(&format!("{own:?}")), "{status}");
        }
    }
}

fn deletion_is_idempotent(fixture: &Fixture) {
    let array = fixture.counting(1, &[2], &fixture.rows(1));
    assert!(!array.is_deleted());
    array.delete().wait().unwrap();
    array.delete().wait().unwrap();
    assert!(array.is_deleted());
    refused(array.ready().wait());
    refused(array.disassemble_into_single_device_arrays(REUSE, ADDRESSABLE));
}

fn poison_spreads(fixture: &Fixture) {
    let good = fixture.counting(0, &[2 * fixture.devices().len()], &fixture.rows(1));
    let status = Status::data_loss("the disk is gone");
    let bad = fixture.client.make_error_arrays(&status, &[good.spec().clone()]).unwrap().remove(0);
    assert_eq!(bad.spec(), good.spec());
    let cause = |result: lockstep::ifrt::Result<()>| {
        let status = result.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::DataLoss, "the disk is gone"));
    };
    cause(bad.ready().wait());
    for part in bad.disassemble_into_single_device_arrays(REUSE, ADDRESSABLE).unwrap() {
        cause(part.ready().wait());
        cause(part.copy_to_host_buffer(REUSE).unwrap().wait().map(|_| ()));
    }
    assert_eq!(shards(&*good).len(), good.sharding().devices().addressable().len());
}

fn empty_arrays_and_scalars(fixture: &Fixture) {
    for dims in [&[0_usize, 3][..], &[], &[1, 1, 1], &[4, 0]] {
        let array = fixture.counting(9, dims, &fixture.replicated());
        let expected: Vec<u32> = (9..).take(array.shape().num_elements()).collect();
        assert_eq!(elements(&*array).unwrap(), expected);
    }
}
