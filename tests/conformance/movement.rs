//! Arrays that move between devices, shardings and processes.

use lockstep::ifrt::{
    ArrayRef, ArraySpec, Code, DType, HostBuffer, HostBytes, Mesh, Sharding, Status,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::fixture::{
    ADDRESSABLE, COPY, DONATE, DURING_CALL, Fixture, REUSE, elements, expect_elements, from_shards,
    refused, rows_over, shape, under,
};
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    copies_go_to_other_devices,
    copies_of_different_lists_are_refused,
    copies_keep_or_give_up_their_source,
    any_two_shardings,
    arrays_leave_and_enter_processes,
    many_arrays_at_once,
    resharding_checks_what_it_is_given,
    poison_follows_arrays_that_move,
    one_process_fetches,
    all_processes_gather,
];

fn counted(length: usize) -> Vec<u32> {
    (0..).take(length).collect()
}

fn copies_go_to_other_devices(fixture: &Fixture) {
    let n = fixture.devices().len();
    for length in [n, 2 * n + 1, 1] {
        let array = fixture.counting(0, &[length], &fixture.rows(1));
        let moved = fixture.client.copy_arrays(
            std::slice::from_ref(&array),
            Some(&fixture.reversed()),
            None,
            COPY,
        );
        let moved = moved.unwrap().remove(0);
        assert_eq!(*moved.sharding().devices(), fixture.reversed());
        assert!(moved.sharding().has_same_partitioning(array.sharding()));
        expect_elements(&*moved, &counted(length));
        expect_elements(&*array, &counted(length));
    }
}

fn copies_of_different_lists_are_refused(fixture: &Fixture) {
    if fixture.devices().len() < 2 {
        return;
    }
    let one = fixture.counting(0, &[4], &fixture.rows(1));
    let other = fixture.counting(0, &[4], &rows_over(fixture.reversed(), 1));
    refused(fixture.client.copy_arrays(&[one.clone(), other], None, None, REUSE));
    let fewer = fixture.pick(&[0]);
    refused(fixture.client.copy_arrays(&[one], Some(&fewer), None, REUSE));
    assert!(fixture.client.copy_arrays(&[], None, None, REUSE).unwrap().is_empty());
}

fn copies_keep_or_give_up_their_source(fixture: &Fixture) {
    for copy in [COPY, REUSE, DONATE] {
        let array = fixture.counting(3, &[5], &fixture.replicated());
        let one = std::slice::from_ref(&array);
        let copied = fixture.client.copy_arrays(one, None, None, copy).unwrap().remove(0);
        assert_eq!(array.is_deleted(), copy == DONATE);
        if copy != DONATE {
            array.delete().wait().unwrap();
        }
        assert_eq!(elements(&*copied).unwrap(), [3, 4, 5, 6, 7]);
        // One array cannot be given away twice.
        let twice =
            fixture.client.copy_arrays(&[copied.clone(), copied.clone()], None, None, DONATE);
        refused(twice);
        assert!(!copied.is_deleted(), "nothing is donated by a call that fails");
    }
}

/// A sharding of a matrix over a mesh of 2 x 2 x 2 devices.
fn cuts() -> impl Strategy<Value = (Vec<&'static str>, usize, bool)> {
    let axes = prop::sample::subsequence(vec!["a", "b", "c"], 0..=3).prop_shuffle();
    (axes, 0_usize..=3, any::<bool>())
}

fn any_two_shardings(fixture: &Fixture) {
    let sharding = |(axes, cut, reversed): &(Vec<&'static str>, usize, bool)| {
        let mesh = Mesh::new([("a", 2), ("b", 2), ("c", 2)]).unwrap();
        let (rows, columns) = axes.split_at((*cut).min(axes.len()));
        let devices = if *reversed { fixture.reversed() } else { fixture.devices().clone() };
        Sharding::tiled(devices, mesh.tiling(&[rows, columns]).unwrap()).unwrap()
    };
    // The same cases in every process.
    let config =
        Config { cases: 120, failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let strategy =
        (cuts(), cuts(), 0_usize..12, 0_usize..12, prop::sample::select(&DType::ALL[..]));
    let tested = runner.run(&strategy, |(from, to, rows, columns, dtype)| {
        let len = rows * columns * dtype.size_bytes();
        let bytes: Vec<u8> = (0..len).map(|i| u8::try_from(i % 253).unwrap()).collect();
        let shape = shape(&[rows, columns]);
        let buffer = HostBuffer::dense(HostBytes::Borrowed(&bytes), dtype, shape).unwrap();
        let make = |sharding: &Sharding| {
            fixture.client.make_array_from_host_buffer(&buffer, sharding, DURING_CALL).unwrap()
        };
        let (source, wanted) = (make(&sharding(&from)), make(&sharding(&to)));
        let moved = fixture.client.reshard_arrays(&[source], &[wanted.spec().clone()], DONATE);
        let moved = moved.unwrap().remove(0);
        prop_assert_eq!(moved.spec(), wanted.spec());
        let contents = |array: &ArrayRef| -> Vec<Vec<u8>> {
            let parts = array.disassemble_into_single_device_arrays(REUSE, ADDRESSABLE).unwrap();
            let bytes = parts.iter().map(|part| {
                let part = part.copy_to_host_buffer(REUSE).unwrap().wait().unwrap();
                part.as_dense().unwrap().to_vec()
            });
            bytes.collect()
        };
        prop_assert_eq!(contents(&moved), contents(&wanted));
        Ok(())
    });
    tested.unwrap();
}

fn arrays_leave_and_enter_processes(fixture: &Fixture) {
    let n = fixture.devices().len();
    let (first, last) = (fixture.pick(&[0]), fixture.pick(&[n - 1]));
    // From all devices to one of the last process, to one of the first, and back to all.
    let array = fixture.counting(0, &[2 * n + 1, 3], &fixture.rows(2));
    let expected = counted((2 * n + 1) * 3);
    let mut at = array;
    for sharding in [
        Sharding::single_device(last).unwrap(),
        Sharding::single_device(first).unwrap(),
        fixture.replicated(),
        rows_over(fixture.reversed(), 2),
    ] {
        at = fixture.client.resharded(&at, sharding).unwrap();
        at.ready().wait().unwrap();
        expect_elements(&*at, &expected);
    }
}

fn many_arrays_at_once(fixture: &Fixture) {
    let n = fixture.devices().len();
    let lengths: Vec<usize> = (0..20).map(|number| number * n / 3).collect();
    let arrays: Vec<ArrayRef> =
        lengths.iter().map(|&length| fixture.counting(0, &[length], &fixture.rows(1))).collect();
    let specs: Vec<ArraySpec> =
        arrays.iter().map(|array| under(&**array, &fixture.replicated())).collect();
    let moved = fixture.client.reshard_arrays(&arrays, &specs, COPY).unwrap();
    for (array, length) in moved.iter().zip(lengths) {
        assert_eq!(elements(&**array).unwrap(), counted(length));
    }
}

fn resharding_checks_what_it_is_given(fixture: &Fixture) {
    let array = fixture.counting(0, &[6], &fixture.replicated());
    let spec = array.spec().clone();
    let one = std::slice::from_ref(&array);
    let reshard = |spec: ArraySpec, copy| fixture.client.reshard_arrays(one, &[spec], copy);
    refused(reshard(ArraySpec { dtype: DType::F32, ..spec.clone() }, COPY));
    refused(reshard(ArraySpec { shape: shape(&[3, 2]), ..spec.clone() }, COPY));
    refused(reshard(ArraySpec { sharding: fixture.rows(2), ..spec.clone() }, COPY));
    refused(reshard(spec.clone(), REUSE));
    refused(fixture.client.reshard_arrays(one, &[], COPY));
    assert!(!array.is_deleted());
    array.delete().wait().unwrap();
    refused(reshard(spec, COPY));
}

fn poison_follows_arrays_that_move(fixture: &Fixture) {
    let n = fixture.devices().len();
    // The shard of the last device is poisoned; all of them need it.
    let array = fixture.counting(0, &[2 * n], &fixture.rows(1));
    let mut parts = array.disassemble_into_single_device_arrays(REUSE, ADDRESSABLE).unwrap();
    if fixture.devices().get(n - 1).unwrap().is_addressable() {
        let bad = parts.pop().unwrap();
        let status = Status::data_loss("the disk is gone");
        let specs = [bad.spec().clone()];
        parts.extend(fixture.client.make_error_arrays(&status, &specs).unwrap());
    }
    let client = &fixture.client;
    let array = client
        .assemble_array_from_single_device_arrays(array.spec(), &parts, REUSE, ADDRESSABLE)
        .unwrap();
    for _ in 0..2 {
        let moved = client.resharded(&array, fixture.replicated()).unwrap();
        let status = moved.ready().wait().unwrap_err();
        assert!(status.message().contains("the disk is gone"), "{status}");
        if parts.iter().any(|part| part.ready().wait().is_err()) {
            assert_eq!(status.code(), Code::DataLoss);
        }
    }
    // What moves afterwards is well.
    let good = fixture.counting(4, &[2 * n], &fixture.rows(1));
    let moved = client.resharded(&good, fixture.replicated()).unwrap();
    assert_eq!(elements(&*moved).unwrap(), (4..).take(2 * n).collect::<Vec<u32>>());
}

fn one_process_fetches(fixture: &Fixture) {
    let client = &fixture.client;
    let n = fixture.devices().len();
    for process in 0..client.process_count() {
        let array = fixture.counting(process, &[n, 2], &fixture.rows(2));
        let fetched = client.fetch_to(&array, process).unwrap();
        assert_eq!(fetched.is_some(), process == client.process_index());
        if let Some(fetched) = fetched {
            let numbers: Vec<u32> = fetched.wait().unwrap().to_vec().unwrap();
            assert_eq!(numbers, (process..).take(2 * n).collect::<Vec<_>>());
        }
    }
    let array = fixture.counting(0, &[n], &fixture.rows(1));
    refused(client.fetch_to(&array, client.process_count()));
}

fn all_processes_gather(fixture: &Fixture) {
    let n = fixture.devices().len();
    let array = from_shards(fixture, &[n, 2], &fixture.rows(2), |device| {
        let number = u32::try_from(device).unwrap();
        vec![number, 10 * number]
    });
    let all: Vec<u32> = fixture.client.gather(&array).unwrap().wait().unwrap().to_vec().unwrap();
    let expected: Vec<u32> = (0..).take(n).flat_map(|number: u32| [number, 10 * number]).collect();
    assert_eq!(all, expected);
}
