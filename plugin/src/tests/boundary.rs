//! What a caller can do wrong, and what it is told.

use std::ptr::{null_mut, without_provenance_mut};
use std::sync::Mutex;

use super::*;
use crate::layout::row_major;

#[test]
fn no_slot_is_empty_and_what_is_missing_says_its_name() {
    let api = api();
    let table: Vec<usize> = list((&raw const api).cast_mut().cast(), size_of_val(&api) / 8);
    assert_eq!(table.len(), 5 + 138, "five words in front of the functions");
    assert!(table[5..].iter().all(|&slot| slot != 0));
    assert_eq!((api.pjrt_api_version.major_version, api.pjrt_api_version.minor_version), (0, 112));
    assert_eq!(
        call(api.PJRT_Client_DmaMap, &mut new()),
        Err((12, "PJRT_Client_DmaMap is not implemented by Lockstep".to_owned()))
    );
}

#[test]
fn null_and_short_arguments_are_refused() {
    let api = api();
    // SAFETY: the function refuses null.
    let error = unsafe { api.PJRT_Buffer_Destroy.unwrap()(null_mut()) };
    assert_eq!(outcome(error), Err((3, "PJRT_Buffer_Destroy_Args is null".to_owned())));
    let mut args = ffi::PJRT_Buffer_Destroy_Args { struct_size: 8, ..Plain::ZERO };
    let (code, message) = call(api.PJRT_Buffer_Destroy, &mut args).unwrap_err();
    assert_eq!(code, 3);
    assert!(message.contains("struct_size is 8"), "{message}");
    let (code, message) = call(api.PJRT_Buffer_Destroy, &mut new()).unwrap_err();
    assert_eq!((code, message.as_str()), (3, "a buffer is expected, this is null"));
}

#[test]
fn callers_of_other_versions_get_what_they_have_room_for() {
    let client = Client::new(2);
    // An older caller: its structure ends before the number of devices.
    let mut old = ffi::PJRT_Client_Devices_Args {
        struct_size: 32,
        client: client.client,
        num_devices: 77,
        ..Plain::ZERO
    };
    call(api().PJRT_Client_Devices, &mut old).unwrap();
    assert!(!old.devices.is_null());
    assert_eq!(old.num_devices, 77, "behind its end nothing is written");
    // A newer one.
    let mut newer =
        ffi::PJRT_Client_Devices_Args { struct_size: 4096, client: client.client, ..Plain::ZERO };
    call(api().PJRT_Client_Devices, &mut newer).unwrap();
    assert_eq!(newer.num_devices, 2);
    assert_eq!(newer.struct_size, 4096);
}

#[test]
fn what_was_destroyed_is_known_to_be() {
    let client = Client::new(1);
    let buffer = client.buffer(0, &[2], &[1.0, 2.0]);
    let mut destroy = ffi::PJRT_Buffer_Destroy_Args { buffer, ..new() };
    call(api().PJRT_Buffer_Destroy, &mut destroy).unwrap();
    let twice = call(api().PJRT_Buffer_Destroy, &mut destroy);
    assert_eq!(twice, Err((3, "a buffer is used that was destroyed".to_owned())));
    // Its place is used again, under another handle.
    let next = client.buffer(0, &[1], &[3.0]);
    assert_ne!(next, buffer);
    numbers(buffer).unwrap_err();
    assert_eq!(numbers(next).unwrap(), [3.0]);
    // A handle of another kind, and none at all.
    for other in [client.devices[0], without_provenance_mut(0x1234)] {
        let (code, message) = numbers(other).unwrap_err();
        assert_eq!(code, 3);
        assert!(message.contains("a buffer is expected"), "{message}");
    }
}

#[test]
fn deleted_buffers_are_not_read() {
    let client = Client::new(1);
    let buffer = client.buffer(0, &[2], &[1.0, 2.0]);
    let mut delete = ffi::PJRT_Buffer_Delete_Args { buffer, ..new() };
    call(api().PJRT_Buffer_Delete, &mut delete).unwrap();
    call(api().PJRT_Buffer_Delete, &mut delete).unwrap();
    let mut is_deleted = ffi::PJRT_Buffer_IsDeleted_Args { buffer, ..new() };
    call(api().PJRT_Buffer_IsDeleted, &mut is_deleted).unwrap();
    assert_eq!(is_deleted.is_deleted, 1);
    let (code, message) = numbers(buffer).unwrap_err();
    assert_eq!(code, 3);
    assert!(message.contains("is deleted or was donated"), "{message}");
}

#[test]
fn strides_of_any_sign_are_followed_and_host_memory_is_the_callers_again() {
    let client = Client::new(1);
    let mut host = [0.0_f32, 1.0, 2.0, 3.0, 4.0, 5.0];
    let transposed = client.strided(0, &[3, 2], &host, &[4, 12]).unwrap();
    let reversed = client.strided(0, &[3], &host[4..], &[-8]).unwrap();
    let repeated = client.strided(0, &[2, 2], &host[5..], &[0, 0]).unwrap();
    let empty = client.strided(0, &[0, 3], &[], &[]).unwrap();
    host.fill(9.0);
    assert_eq!(numbers(transposed).unwrap(), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    assert_eq!(numbers(reversed).unwrap(), [4.0, 2.0, 0.0]);
    assert_eq!(numbers(repeated).unwrap(), [5.0; 4]);
    assert_eq!(numbers(empty).unwrap(), [0.0; 0]);
    let (code, _) = client.strided(0, &[2, -1], &host, &[]).unwrap_err();
    assert_eq!(code, 3);
    let (code, _) = client.strided(0, &[i64::MAX], &host, &[i64::MAX]).unwrap_err();
    assert_eq!(code, 3);
}

/// jaxlib leaves `struct_size` of a layout as it finds it: the layout is read whatever it says.
#[test]
fn a_layout_is_read_whatever_size_it_says_it_has() {
    let client = Client::new(1);
    let numbers: Vec<f32> = (0..6_u8).map(f32::from).collect();
    let buffer = client.buffer(0, &[2, 3], &numbers);
    for (minor_to_major, expected) in
        [([1_i64, 0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), ([0, 1], [0.0, 3.0, 1.0, 4.0, 2.0, 5.0])]
    {
        for struct_size in [0, 1, 16, 24, 40, 76, 80, usize::MAX] {
            let mut layout =
                ffi::PJRT_Buffer_MemoryLayout { struct_size, ..row_major(&minor_to_major) };
            layout.tiled.struct_size = struct_size;
            let mut found = [f32::NAN; 6];
            let mut args = ffi::PJRT_Buffer_ToHostBuffer_Args {
                src: buffer,
                host_layout: (&raw mut layout).cast(),
                dst: found.as_mut_ptr().cast(),
                dst_size: size_of_val(&found),
                ..new()
            };
            call(api().PJRT_Buffer_ToHostBuffer, &mut args).unwrap();
            await_event(args.event).unwrap();
            assert_eq!(found, expected, "{minor_to_major:?}, struct_size {struct_size}");
        }
    }
}

#[test]
fn contents_shown_in_place_outlive_the_buffer() {
    let client = Client::new(1);
    let buffer = client.buffer(0, &[3], &[1.0, 2.0, 3.0]);
    let mut hold = ffi::PJRT_Buffer_IncreaseExternalReferenceCount_Args { buffer, ..new() };
    call(api().PJRT_Buffer_IncreaseExternalReferenceCount, &mut hold).unwrap();
    let mut shown = ffi::PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args { buffer, ..new() };
    call(api().PJRT_Buffer_OpaqueDeviceMemoryDataPointer, &mut shown).unwrap();
    assert!(shown.device_memory_ptr.addr().is_multiple_of(64));
    let mut delete = ffi::PJRT_Buffer_Delete_Args { buffer, ..new() };
    call(api().PJRT_Buffer_Delete, &mut delete).unwrap();
    assert_eq!(list::<u32>(shown.device_memory_ptr, 3), [1.0_f32, 2.0, 3.0].map(f32::to_bits));
    let mut release = ffi::PJRT_Buffer_DecreaseExternalReferenceCount_Args { buffer, ..new() };
    call(api().PJRT_Buffer_DecreaseExternalReferenceCount, &mut release).unwrap();
    let (code, _) =
        call(api().PJRT_Buffer_DecreaseExternalReferenceCount, &mut release).unwrap_err();
    assert_eq!(code, 9);
}

#[test]
fn events_outlive_their_handles() {
    static CALLED: Mutex<Vec<(u32, String)>> = Mutex::new(Vec::new());
    extern "C" fn called(error: *mut ffi::PJRT_Error, _: *mut c_void) {
        CALLED.lock().unwrap().push(outcome(error).unwrap_err());
    }
    let mut create = new::<ffi::PJRT_Event_Create_Args>();
    call(api().PJRT_Event_Create, &mut create).unwrap();
    let event = create.event;
    let mut is_ready = ffi::PJRT_Event_IsReady_Args { event, ..new() };
    call(api().PJRT_Event_IsReady, &mut is_ready).unwrap();
    assert_eq!(is_ready.is_ready, 0);
    let mut on_ready =
        ffi::PJRT_Event_OnReady_Args { event, callback: called as *mut c_void, ..new() };
    call(api().PJRT_Event_OnReady, &mut on_ready).unwrap();
    assert!(CALLED.lock().unwrap().is_empty());
    let message = "the disk is full";
    let mut set = ffi::PJRT_Event_Set_Args {
        event,
        error_code: ffi::error_code::DATA_LOSS,
        error_message: message.as_ptr().cast_mut().cast(),
        error_message_size: message.len(),
        ..new()
    };
    call(api().PJRT_Event_Set, &mut set).unwrap();
    assert_eq!(*CALLED.lock().unwrap(), [(15, message.to_owned())]);
    assert_eq!(await_event(event), Err((15, message.to_owned())));
}

#[test]
fn options_that_there_are_not_are_named() {
    let name = "num_device";
    let option = ffi::PJRT_NamedValue {
        name: name.as_ptr().cast_mut().cast(),
        name_size: name.len(),
        r#type: ffi::named_value::INT64,
        value: 2,
        ..new()
    };
    let mut create = ffi::PJRT_Client_Create_Args {
        create_options: (&raw const option).cast_mut().cast(),
        num_options: 1,
        ..new()
    };
    assert_eq!(
        call(api().PJRT_Client_Create, &mut create),
        Err((3, "there is no option \"num_device\"; there is num_devices".to_owned()))
    );
}
