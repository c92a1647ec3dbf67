//! Clients: their devices, and what identifies them.

use lockstep::ifrt::{Code, DeviceId, Future};

use crate::fixture::{Fixture, shape};
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    devices_are_the_same_list_everywhere,
    addressable_devices_are_this_processes,
    devices_are_found_by_id,
    device_lists_are_values,
    ready_waits_for_all_values,
    platforms_are_named,
];

fn devices_are_the_same_list_everywhere(fixture: &Fixture) {
    let devices = fixture.devices();
    let ids: Vec<DeviceId> = devices.ids().collect();
    let mut distinct = ids.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), ids.len(), "{devices}");
    // Each process says what it sees; all of them hear it all.
    let fingerprint = devices.fingerprint();
    let halves =
        [fingerprint >> 32, fingerprint & 0xffff_ffff].map(|half| u32::try_from(half).unwrap());
    let array = fixture.counting(0, &[devices.len() * 2], &fixture.rows(1));
    let parts = crate::fixture::shards(&*array).len();
    assert_eq!(parts, fixture.client.addressable_devices().len());
    let own = crate::fixture::from_shards(fixture, &[devices.len() * 2], &fixture.rows(1), |_| {
        halves.to_vec()
    });
    let all: Vec<u32> = fixture.client.gather(&own).unwrap().wait().unwrap().to_vec().unwrap();
    assert_eq!(all, halves.repeat(devices.len()));
}

fn addressable_devices_are_this_processes(fixture: &Fixture) {
    let client = &fixture.client;
    let own: Vec<DeviceId> = (client.devices().iter())
        .filter(|device| device.process_index() == client.process_index())
        .map(lockstep::ifrt::Device::id)
        .collect();
    assert_eq!(client.addressable_devices().ids().collect::<Vec<_>>(), own);
    for device in client.devices() {
        assert_eq!(device.is_addressable(), own.contains(&device.id()));
        assert!(device.process_index() < client.process_count());
    }
    assert_eq!(client.devices().is_fully_addressable(), client.process_count() == 1);
}

fn devices_are_found_by_id(fixture: &Fixture) {
    for device in fixture.devices() {
        assert_eq!(fixture.client.lookup_device(device.id()).unwrap(), *device);
    }
    let missing = fixture.client.lookup_device(DeviceId(u32::MAX)).unwrap_err();
    assert_eq!(missing.code(), Code::NotFound);
}

fn device_lists_are_values(fixture: &Fixture) {
    let ids: Vec<DeviceId> = fixture.devices().ids().collect();
    assert_eq!(fixture.client.make_device_list(&ids).unwrap(), *fixture.devices());
    let twice: Vec<DeviceId> = ids.iter().chain(&ids).copied().collect();
    let twice = fixture.client.make_device_list(&twice).unwrap();
    assert_eq!(twice.len(), 2 * ids.len());
    assert_ne!(twice.fingerprint(), fixture.devices().fingerprint());
    assert!(fixture.client.make_device_list(&[DeviceId(u32::MAX)]).is_err());
}

fn ready_waits_for_all_values(fixture: &Fixture) {
    let good = fixture.counting(1, &[4], &fixture.replicated());
    let spec = good.spec().clone();
    let status = lockstep::ifrt::Status::aborted("on purpose");
    let bad = fixture.client.make_error_arrays(&status, &[spec]).unwrap().remove(0);
    let ready: Future<()> = fixture.client.ready(&[&*good, &*good]);
    ready.wait().unwrap();
    let failed = fixture.client.ready(&[&*good, &*bad, &*good]).wait().unwrap_err();
    assert_eq!((failed.code(), failed.message()), (Code::Aborted, "on purpose"));
    fixture.client.ready(&[]).wait().unwrap();
    fixture.client.delete_values(&[&*good, &*bad]).wait().unwrap();
    assert!(good.is_deleted() && bad.is_deleted());
    assert_eq!(good.shape(), &shape(&[4]), "what it was is still known");
}

fn platforms_are_named(fixture: &Fixture) {
    let client = &fixture.client;
    assert!(!client.runtime_type().is_empty());
    assert!(!client.platform_name().is_empty());
    assert!(!client.platform_version().is_empty());
    for device in client.devices() {
        assert!(!device.kind().is_empty());
    }
}
