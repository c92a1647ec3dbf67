//! Arrays: made, cut, read, assembled, deleted.

use super::*;

#[test]
fn devices_are_dense_and_named() {
    let client = idle(3);
    assert_eq!(client.devices().ids().collect::<Vec<_>>(), [0, 1, 2].map(DeviceId));
    assert_eq!(client.addressable_devices(), client.devices());
    assert_eq!((client.process_index(), client.process_count()), (0, 1));
    assert_eq!(client.platform_name(), "fake");
    assert_eq!(client.lookup_device(DeviceId(3)).unwrap_err().code(), Code::NotFound);
    let list = client.make_device_list(&[DeviceId(2), DeviceId(0)]).unwrap();
    assert_eq!(list.to_string(), "devices [2, 0]");
}

#[test]
fn the_backend_has_the_devices_of_the_topology() {
    let backend = FakeBackend { devices: 2, run: Arc::new(|_, arguments, _| Ok(arguments)) };
    let error = Client::new(World::solo(3), Arc::new(backend)).unwrap_err();
    assert_eq!(error.message(), "the topology gives rank 0 3 devices, the backend has 2");
}

#[test]
fn tiled_arrays_are_cut_and_put_together_uneven_ones_too() {
    let client = idle(4);
    let sharding = tiled(client.devices());
    for length in [0_u32, 1, 3, 4, 5, 8, 9] {
        let values: Vec<u32> = (100..100 + length).collect();
        let array = array(&client, &values, &sharding);
        array.ready().wait().unwrap();
        assert_eq!(elements(&*array).unwrap(), values);
        let tile = length.div_ceil(4) as usize;
        let expected: Vec<Vec<u32>> =
            (0..4).map(|i| values.iter().copied().skip(i * tile).take(tile).collect()).collect();
        assert_eq!(shards(&*array), expected, "no padding in shards");
    }
}

#[test]
fn matrices_are_cut_along_both_dimensions() {
    let client = idle(4);
    let mesh = Mesh::new([("x", 2), ("y", 2)]).unwrap();
    let tiling = mesh.tiling(&[&["y"], &["x"]]).unwrap();
    let sharding = Sharding::tiled(client.devices().clone(), tiling).unwrap();
    let values: Vec<u32> = (0..8).collect();
    let buffer = HostBuffer::from_slice(&values, DType::U32, shape(&[2, 4])).unwrap();
    let array = client.make_array_from_host_buffer(&buffer, &sharding, DURING_CALL).unwrap();
    assert_eq!(shards(&*array), [[0, 1], [4, 5], [2, 3], [6, 7]]);
    assert_eq!(elements(&*array).unwrap(), values);
}

#[test]
fn replicated_arrays_have_the_same_shard_everywhere() {
    let client = idle(3);
    let array = array(&client, &[7, 8], &replicated(&client));
    assert_eq!(shards(&*array), [[7, 8]; 3]);
    let shard = array.fully_replicated_shard(ArrayCopySemantics::ReuseInput).unwrap();
    assert_eq!(shard.sharding().devices().len(), 1);
    assert_eq!(elements(&*shard).unwrap(), [7, 8]);
}

#[test]
fn reading_shares_memory_unless_a_copy_is_asked_for() {
    let client = idle(1);
    let array = array(&client, &[1, 2], &replicated(&client));
    let address = |copy| {
        let buffer = array.copy_to_host_buffer(copy).unwrap().wait().unwrap();
        (buffer.bytes().as_slice().as_ptr() as usize, buffer)
    };
    let (first, _held) = address(ArrayCopySemantics::ReuseInput);
    let (second, _held) = address(ArrayCopySemantics::ReuseInput);
    let (copied, _held) = address(ArrayCopySemantics::AlwaysCopy);
    assert_eq!(first, second);
    assert_ne!(first, copied);
}

#[test]
fn arrays_from_shards_need_each_shard_once_in_its_true_shape() {
    let client = idle(4);
    let spec =
        ArraySpec { dtype: DType::U32, shape: shape(&[7]), sharding: tiled(client.devices()) };
    let make = |buffers: &[(&[usize], &[u32])]| -> Result<ArrayRef> {
        let buffers = buffers
            .iter()
            .map(|(indices, elements)| {
                let buffer =
                    HostBuffer::from_slice(elements, DType::U32, shape(&[elements.len()])).unwrap();
                (indices.to_vec(), buffer)
            })
            .collect();
        let shards = HostBufferShards { spec: spec.clone(), buffers };
        let mut arrays = client.make_arrays_from_host_buffer_shards(&[shards], DURING_CALL)?;
        Ok(arrays.remove(0))
    };
    let array = make(&[(&[1, 0], &[5, 6]), (&[3], &[9]), (&[2], &[7, 8])]).unwrap();
    assert_eq!(elements(&*array).unwrap(), [5, 6, 5, 6, 7, 8, 9]);

    let message = |buffers: &[(&[usize], &[u32])]| {
        let error = make(buffers).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        error.message().to_owned()
    };
    assert_eq!(
        message(&[(&[0, 1], &[1, 2])]),
        "no buffer is given for the addressable shards [2, 3] of 4"
    );
    assert_eq!(
        message(&[(&[0, 1, 2, 3], &[1, 2])]),
        "addressable shard 3 is ui32 [1] ([6..7] of the array), its buffer is ui32 [2]"
    );
    assert!(message(&[(&[0, 0], &[1, 2])]).contains("given twice"));
    assert!(message(&[(&[4], &[1, 2])]).contains("no addressable shard 4"));
}

#[test]
fn arrays_are_taken_apart_and_assembled() {
    let client = idle(2);
    let original = array(&client, &[1, 2, 3], &tiled(client.devices()));
    let parts = original
        .disassemble_into_single_device_arrays(
            ArrayCopySemantics::DonateInput,
            SingleDeviceShardSemantics::AllShards,
        )
        .unwrap();
    assert!(original.is_deleted());
    let assemble = |parts: &[ArrayRef]| {
        client.assemble_array_from_single_device_arrays(
            original.spec(),
            parts,
            ArrayCopySemantics::ReuseInput,
            SingleDeviceShardSemantics::AddressableShards,
        )
    };
    assert_eq!(elements(&*assemble(&parts).unwrap()).unwrap(), [1, 2, 3]);
    let swapped: Vec<ArrayRef> = parts.iter().rev().cloned().collect();
    assert_eq!(assemble(&swapped).unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(assemble(&parts[..1]).unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn deleted_arrays_say_so() {
    let client = idle(1);
    let array = array(&client, &[1], &replicated(&client));
    array.delete().wait().unwrap();
    array.delete().wait().unwrap();
    assert!(array.is_deleted());
    let error = elements(&*array).unwrap_err();
    assert_eq!(
        error.message(),
        "array of ui32 [1], single device on devices [0] is deleted or was donated"
    );
}

#[test]
fn devices_and_memories_of_others_are_refused() {
    let (client, other) = (idle(2), idle(2));
    let buffer = HostBuffer::from_slice(&[1_u32], DType::U32, shape(&[1])).unwrap();
    let foreign =
        client.make_array_from_host_buffer(&buffer, &replicated(&other), DURING_CALL).unwrap_err();
    assert!(foreign.message().contains("is not a device of this client"), "{foreign}");
    let pinned =
        replicated(&client).with_device_assignment(None, Some(MemoryKind::PINNED_HOST)).unwrap();
    let error = client.make_array_from_host_buffer(&buffer, &pinned, DURING_CALL).unwrap_err();
    assert_eq!(error.message(), "devices of this client have device memory, not pinned_host");
}
