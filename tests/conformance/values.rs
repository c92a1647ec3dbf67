//! What is made of arrays without moving them: remapped, bitcast, tuples, bundles, hashes.

use std::sync::Arc;

use lockstep::ifrt::{
    ArrayRef, ArraySpec, Bundle, BundleCopy, Code, DType, HashMode, HostBuffer, Interval,
    RemapMapping, RemapPlan, Status, Tuple, UserContext, Value, ValueRef,
};

use crate::fixture::{
    COPY, DONATE, DURING_CALL, Fixture, REUSE, elements, expect_elements, refused, rows_over,
    shape, shards,
};
use crate::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    remapping_takes_an_array_apart,
    remapping_puts_arrays_together,
    remapping_checks_its_arrays,
    bitcasts_see_the_same_bytes,
    bitcasts_keep_the_place_and_the_size,
    tuples_hold_values,
    bundles_are_cut_and_joined,
    bundles_move_together,
    hashes_are_about_contents,
    hashes_tell_places_apart,
    values_know_their_size_and_context,
];

fn every(count: usize, start: usize, step: usize) -> Vec<Interval> {
    if count == 0 {
        return Vec::new();
    }
    vec![Interval { start, end: start + (count - 1) * step + 1, step }]
}

/// Arrays of one device each, as a remap plan takes the addressable shards of `array` apart.
fn apart(array: &ArrayRef) -> (RemapPlan, usize) {
    let sharding = array.sharding();
    let addressable = lockstep::ifrt::SingleDeviceShardSemantics::AddressableShards;
    let parts = sharding.disassemble(array.shape(), addressable).unwrap();
    let count = parts.len();
    let outputs = parts.into_iter().map(|(shape, sharding)| ArraySpec {
        dtype: array.dtype(),
        shape,
        sharding,
    });
    let mapping =
        |output| RemapMapping { input: 0, output, from: every(1, output, 1), to: every(1, 0, 1) };
    let mappings: Vec<_> = (0..count).map(mapping).collect();
    (RemapPlan::new(vec![array.spec().clone()], outputs.collect(), &mappings).unwrap(), count)
}

fn remapping_takes_an_array_apart(fixture: &Fixture) {
    let n = fixture.devices().len();
    let array = fixture.counting(3, &[2 * n + 1], &fixture.rows(1));
    let (plan, count) = apart(&array);
    let parts = fixture.client.remap_arrays(&plan, std::slice::from_ref(&array), REUSE).unwrap();
    assert_eq!(parts.len(), count);
    let contents: Vec<Vec<u32>> = parts.iter().map(|part| elements(&**part).unwrap()).collect();
    assert_eq!(contents, shards(&*array));
    refused(fixture.client.remap_arrays(&plan, std::slice::from_ref(&array), COPY));
    fixture.client.remap_arrays(&plan, std::slice::from_ref(&array), DONATE).unwrap();
    assert!(array.is_deleted());
    refused(fixture.client.remap_arrays(&plan, &[array], REUSE));
}

fn remapping_puts_arrays_together(fixture: &Fixture) {
    // The even and the odd devices' arrays become one over all, if each process has as many.
    let own = fixture.client.addressable_devices().len();
    if own % 2 == 1 {
        return;
    }
    let n = fixture.devices().len();
    let half = |odd: usize| fixture.pick(&(0..n).filter(|i| i % 2 == odd).collect::<Vec<_>>());
    let inputs = [0, 1].map(|odd| {
        fixture.counting(100 * u32::try_from(odd).unwrap(), &[n], &rows_over(half(odd), 1))
    });
    let output = ArraySpec { dtype: DType::U32, shape: shape(&[2 * n]), sharding: fixture.rows(1) };
    let mapping = |input| RemapMapping {
        input,
        output: 0,
        from: every(own / 2, 0, 1),
        to: every(own / 2, input, 2),
    };
    let specs = inputs.iter().map(|input| input.spec().clone()).collect();
    let plan = RemapPlan::new(specs, vec![output], &[mapping(0), mapping(1)]).unwrap();
    refused(fixture.client.remap_arrays(&plan, &inputs, REUSE));
    let joined = fixture.client.remap_arrays(&plan, &inputs, DONATE).unwrap().remove(0);
    let expected: Vec<u32> =
        (0..).step_by(2).take(n / 2).flat_map(|i: u32| [i, i + 1, 100 + i, 101 + i]).collect();
    expect_elements(&*joined, &expected);
}

fn remapping_checks_its_arrays(fixture: &Fixture) {
    let array = fixture.counting(0, &[8], &fixture.rows(1));
    let (plan, _) = apart(&array);
    let other = fixture.counting(0, &[9], &fixture.rows(1));
    refused(fixture.client.remap_arrays(&plan, &[other], REUSE));
    refused(fixture.client.remap_arrays(&plan, &[], REUSE));
    refused(fixture.client.remap_arrays(&plan, &[array.clone(), array.clone()], REUSE));
    let status = Status::data_loss("gone");
    let specs = [array.spec().clone()];
    let bad = fixture.client.make_error_arrays(&status, &specs).unwrap();
    for part in fixture.client.remap_arrays(&plan, &bad, REUSE).unwrap() {
        assert_eq!(part.ready().wait().unwrap_err().code(), Code::DataLoss);
    }
}

fn bitcasts_see_the_same_bytes(fixture: &Fixture) {
    let n = fixture.devices().len();
    let array = fixture.counting(0x3f80_0000, &[n, 2], &fixture.rows(2));
    let bytes = ArraySpec { dtype: DType::U8, shape: shape(&[n, 8]), sharding: fixture.rows(2) };
    let one = std::slice::from_ref(&array);
    let seen = fixture.client.bitcast_arrays(one, &[bytes], REUSE).unwrap().remove(0);
    assert_eq!(seen.shape(), &shape(&[n, 8]));
    let floats = ArraySpec { dtype: DType::F32, ..array.spec().clone() };
    let floats = fixture.client.bitcast_arrays(&[seen], &[floats], DONATE).unwrap().remove(0);
    let first = floats.sharding().devices().addressable_positions()[0];
    let addressable = lockstep::ifrt::SingleDeviceShardSemantics::AddressableShards;
    let parts = floats.disassemble_into_single_device_arrays(REUSE, addressable).unwrap();
    let read = parts[0].copy_to_host_buffer(REUSE).unwrap().wait().unwrap();
    let bits = |index: usize| 0x3f80_0000 + u32::try_from(2 * first + index).unwrap();
    assert_eq!(read.to_vec::<f32>().unwrap(), [0, 1].map(|index| f32::from_bits(bits(index))));
}

fn bitcasts_keep_the_place_and_the_size(fixture: &Fixture) {
    let n = fixture.devices().len();
    let array = fixture.counting(0, &[2 * n], &fixture.rows(1));
    let spec = array.spec().clone();
    let one = std::slice::from_ref(&array);
    let bitcast = |spec, copy| fixture.client.bitcast_arrays(one, &[spec], copy);
    refused(bitcast(spec.clone(), COPY));
    refused(bitcast(ArraySpec { dtype: DType::U16, ..spec.clone() }, REUSE));
    refused(bitcast(ArraySpec { shape: shape(&[3 * n]), ..spec.clone() }, REUSE));
    let bools = ArraySpec { dtype: DType::Bool, shape: shape(&[8 * n]), ..spec.clone() };
    refused(bitcast(bools, REUSE));
    if n > 1 {
        let sharding = rows_over(fixture.reversed(), 1);
        refused(bitcast(ArraySpec { sharding, ..spec }, REUSE));
    }
    assert!(!array.is_deleted());
}

fn tuples_hold_values(fixture: &Fixture) {
    let arrays = [1, 2].map(|first| fixture.counting(first, &[3], &fixture.replicated()));
    let [one, two]: [ValueRef; 2] = arrays.clone().map(|array| -> ValueRef { array });
    let inner: ValueRef = Arc::new(Tuple::new(vec![two]));
    let tuple = Tuple::new(vec![one, inner]);
    assert_eq!(tuple.arity(), 2);
    assert_eq!(tuple.unpack().unwrap().len(), 2);
    tuple.ready().wait().unwrap();
    assert_eq!(tuple.size_bytes(), Some(24 * fixture.devices().len()));
    assert!(!tuple.is_deleted());
    arrays[1].delete().wait().unwrap();
    assert!(tuple.is_deleted(), "an element is");
    refused(tuple.unpack());
    refused(tuple.ready().wait());
    tuple.delete().wait().unwrap();
    assert!(arrays[0].is_deleted());
    let empty = Tuple::new(Vec::new());
    empty.ready().wait().unwrap();
    assert!(!empty.is_deleted());
}

fn numbered(fixture: &Fixture, count: u32) -> Bundle {
    let sharding = fixture.replicated();
    Bundle::new((0..count).map(|first| fixture.counting(first, &[2], &sharding)).collect())
}

fn firsts(bundle: &Bundle) -> Vec<u32> {
    bundle.arrays().iter().map(|array| elements(&**array).unwrap()[0]).collect()
}

fn bundles_are_cut_and_joined(fixture: &Fixture) {
    let bundle = numbered(fixture, 5);
    let slices = bundle.slice(&[2, 0, 3]).unwrap();
    assert_eq!(slices.iter().map(firsts).collect::<Vec<_>>(), [vec![0, 1], vec![], vec![2, 3, 4]]);
    assert_eq!(firsts(&Bundle::concat([&slices[2], &slices[0]])), [2, 3, 4, 0, 1]);
    refused(bundle.slice(&[2, 2]));
    refused(bundle.slice(&[usize::MAX, 6]));
    assert_eq!(bundle.specs().len(), 5);
    bundle.ready().wait().unwrap();
    bundle.delete().wait().unwrap();
    assert!(bundle.arrays().iter().all(|array| array.is_deleted()));
}

fn bundles_move_together(fixture: &Fixture) {
    let bundle = numbered(fixture, 4);
    let reversed = BundleCopy { devices: Some(fixture.reversed()), memory_kind: None };
    let client = &*fixture.client;
    let copies = [reversed, BundleCopy::default()];
    let copied = bundle.copy_arrays(client, &[1, 3], &copies, COPY).unwrap();
    assert_eq!(firsts(&copied), [0, 1, 2, 3]);
    assert_eq!(*copied.arrays()[0].sharding().devices(), fixture.reversed());
    assert_eq!(copied.arrays()[1].sharding().devices(), fixture.devices());
    refused(bundle.copy_arrays(client, &[4], &copies, COPY));
    let specs = bundle.specs();
    let moved = bundle.reshard_arrays(client, &specs, DONATE).unwrap();
    assert_eq!(firsts(&moved), [0, 1, 2, 3]);
    assert!(bundle.arrays().iter().all(|array| array.is_deleted()));
}

fn hash(fixture: &Fixture, array: &ArrayRef, mode: HashMode) -> u64 {
    fixture.client.hash_arrays(std::slice::from_ref(array), mode).unwrap().wait().unwrap()[0]
}

fn hashes_are_about_contents(fixture: &Fixture) {
    let n = fixture.devices().len();
    let cut = fixture.counting(0, &[2 * n + 1, 3], &fixture.rows(2));
    let whole = fixture.counting(0, &[2 * n + 1, 3], &fixture.replicated());
    let logical = hash(fixture, &cut, HashMode::Logical);
    assert_eq!(logical, hash(fixture, &whole, HashMode::Logical), "however it is spread");
    assert_eq!(logical, hash(fixture, &cut, HashMode::Logical), "again");
    let other = fixture.counting(1, &[2 * n + 1, 3], &fixture.rows(2));
    assert_ne!(logical, hash(fixture, &other, HashMode::Logical));
    // All processes got the same: that, they tell each other.
    let words = [logical >> 32, logical & 0xffff_ffff].map(|word| u32::try_from(word).unwrap());
    let told = crate::fixture::from_shards(fixture, &[n, 2], &fixture.rows(2), |_| words.to_vec());
    let told: Vec<u32> = fixture.client.gather(&told).unwrap().wait().unwrap().to_vec().unwrap();
    assert_eq!(told, words.repeat(n));
    let both = fixture.client.hash_arrays(&[cut.clone(), other], HashMode::Logical).unwrap();
    let both = both.wait().unwrap();
    assert_eq!((both[0], both[0] == both[1]), (logical, false));
    let specs = [cut.spec().clone()];
    let bad = fixture.client.make_error_arrays(&Status::data_loss("gone"), &specs).unwrap();
    let failed = fixture.client.hash_arrays(&bad, HashMode::Logical).unwrap().wait();
    assert_eq!(failed.unwrap_err().code(), Code::DataLoss);
    let first = lockstep::ifrt::Sharding::single_device(fixture.pick(&[0])).unwrap();
    let owns = first.devices().is_fully_addressable();
    let there = fixture.counting(0, &[4], &first);
    let hashes = fixture.client.hash_arrays(&[there], HashMode::Logical);
    if owns {
        hashes.unwrap().wait().unwrap();
    } else {
        refused(hashes);
    }
    assert!(fixture.client.hash_arrays(&[], HashMode::Logical).unwrap().wait().unwrap().is_empty());
}

fn hashes_tell_places_apart(fixture: &Fixture) {
    let make = |numbers: &[u32]| {
        let buffer = HostBuffer::from_slice(numbers, DType::U32, shape(&[numbers.len()])).unwrap();
        fixture
            .client
            .make_array_from_host_buffer(&buffer, &fixture.replicated(), DURING_CALL)
            .unwrap()
    };
    for mode in [HashMode::Logical, HashMode::Physical] {
        let hashes = [&[1, 2, 3][..], &[2, 1, 3], &[1, 2], &[0, 0], &[0]]
            .map(|numbers| hash(fixture, &make(numbers), mode));
        for (i, hash) in hashes.iter().enumerate() {
            assert!(!hashes[..i].contains(hash), "{mode:?}: {hashes:x?}");
        }
    }
}

fn values_know_their_size_and_context(fixture: &Fixture) {
    let n = fixture.devices().len();
    let array = fixture.counting(0, &[2 * n + 1], &fixture.rows(1));
    assert_eq!(array.size_bytes(), Some(4 * (2 * n + 1)));
    assert_eq!(array.user_context(), None);
    let context = UserContext::new("line 7");
    let inside = {
        let _scope = context.enter();
        fixture.counting(0, &[1], &fixture.replicated())
    };
    assert_eq!(inside.user_context().unwrap().description(), "line 7");
    assert_eq!(inside.user_context(), Some(&context));
}
