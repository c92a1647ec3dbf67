//! What reductions give at the edges of their types: rounding, overflow, NaN, wrapping.

use std::time::Duration;

use half::{bf16, f16};
use lockstep_collectives::{Call, Communicator, ElementType, Group, Reduction};

use crate::calls::first;
use crate::jobs::{Job, quic, shm, sim};
use crate::reference::{float, fold, is_nan, nan, operand};

/// No test of values waits for it.
const AMPLE: Duration = Duration::from_secs(60);

const FLOATS: [ElementType; 11] = [
    ElementType::F16,
    ElementType::BF16,
    ElementType::F32,
    ElementType::F64,
    ElementType::F8E3M4,
    ElementType::F8E4M3,
    ElementType::F8E4M3FN,
    ElementType::F8E4M3B11FNUZ,
    ElementType::F8E4M3FNUZ,
    ElementType::F8E5M2,
    ElementType::F8E5M2FNUZ,
];

/// What all three reducing collectives give for the same operands, which is the same.
fn reduced(
    communicator: &Communicator,
    group: &Group,
    element: ElementType,
    reduction: Reduction,
    input: &[u8],
) -> Vec<u8> {
    let call = Call::on(group);
    let mut output = vec![0xa5; input.len()];
    communicator.all_reduce(&call, element, reduction, input, &mut output).unwrap();
    // The root's alone shows what it has.
    let mut at_root = input.to_vec();
    communicator.reduce_in_place(&call, element, reduction, 0, &mut at_root).unwrap();
    assert!(group.position() != 0 || at_root == output, "reduce({reduction}, {element})");
    // Each member's piece is all of its operand.
    let repeated = input.repeat(group.members().len());
    let mut piece = vec![0xa5; input.len()];
    communicator.reduce_scatter(&call, element, reduction, &repeated, &mut piece).unwrap();
    assert!(piece == output, "reduce_scatter({reduction}, {element})");
    output
}

/// In bf16 the sum of 256 and 1 is 256: only a wider sum gets beyond.
#[test]
fn bf16_ones_of_512_members_sum_to_512() {
    shm(&[128; 4]).run(AMPLE, &|communicator| {
        let group = first(&communicator, 512);
        let ones = bf16::ONE.to_ne_bytes().repeat(65);
        let mut sums = vec![0; ones.len()];
        let (element, call) = (ElementType::BF16, Call::on(&group));
        communicator.all_reduce(&call, element, Reduction::Sum, &ones, &mut sums).unwrap();
        assert!(sums == bf16::from_f32(512.0).to_ne_bytes().repeat(65));
    });
}

/// Two numbers near the greatest, of either sign: each sum is the true one rounded once, and
/// infinite only where that is.
fn sums_near_the_greatest_number_are_rounded_once(job: &dyn Job) {
    const COUNT: usize = 5000;
    job.run(AMPLE, &|communicator| {
        let group = first(&communicator, 2);
        let numbers = |member: u32| {
            operand(ElementType::U32, member, COUNT)
                .chunks_exact(4)
                .map(|bits| {
                    let bits = u32::from_ne_bytes(bits.try_into().unwrap());
                    // From 0 to the greatest, dense at the top.
                    let part = f64::from(bits % 1024) / 1024.0;
                    let sign = if bits & 1 << 20 == 0 { 1.0 } else { -1.0 };
                    sign * (1.0 - part * part * part)
                })
                .collect::<Vec<_>>()
        };
        let [ours, theirs] = [0, 1].map(numbers);
        let f16s = |numbers: &[f64]| -> Vec<f16> {
            let greatest = f64::from(f16::MAX);
            numbers.iter().map(|number| f16::from_f64(number * greatest)).collect()
        };
        let (a, b) = (f16s(&ours), f16s(&theirs));
        let own = if group.position() == 0 { &a } else { &b };
        let input: Vec<u8> = own.iter().flat_map(|x| x.to_ne_bytes()).collect();
        let sums = reduced(&communicator, &group, ElementType::F16, Reduction::Sum, &input);
        let expected: Vec<f16> =
            a.iter().zip(&b).map(|(a, b)| f16::from_f64(a.to_f64() + b.to_f64())).collect();
        assert!(sums == expected.iter().flat_map(|x| x.to_ne_bytes()).collect::<Vec<_>>());
        let infinite = expected.iter().filter(|sum| sum.is_infinite()).count();
        assert!((COUNT / 10..COUNT).contains(&infinite), "{infinite}");

        let bf16s = |numbers: &[f64]| -> Vec<bf16> {
            let greatest = f64::from(bf16::MAX);
            numbers.iter().map(|number| bf16::from_f64(number * greatest)).collect()
        };
        let (a, b) = (bf16s(&ours), bf16s(&theirs));
        let own = if group.position() == 0 { &a } else { &b };
        let input: Vec<u8> = own.iter().flat_map(|x| x.to_ne_bytes()).collect();
        let sums = reduced(&communicator, &group, ElementType::BF16, Reduction::Sum, &input);
        let expected = a.iter().zip(&b).map(|(a, b)| bf16::from_f64(a.to_f64() + b.to_f64()));
        assert!(sums == expected.flat_map(bf16::to_ne_bytes).collect::<Vec<_>>());
    });
}

#[test]
fn sums_near_the_greatest_number_are_rounded_once_quic() {
    sums_near_the_greatest_number_are_rounded_once(&quic(&[1; 2]));
}

#[test]
fn sums_near_the_greatest_number_are_rounded_once_shm() {
    sums_near_the_greatest_number_are_rounded_once(&shm(&[1; 2]));
}

/// A sum that leaves the type on its way and comes back is what it comes back to.
#[test]
fn what_overflows_on_the_way_does_not_in_the_end() {
    let greatest = [
        (ElementType::F16, 65504.0),
        (ElementType::F8E3M4, 15.5),
        (ElementType::F8E4M3, 240.0),
        (ElementType::F8E4M3FN, 448.0),
        (ElementType::F8E4M3B11FNUZ, 30.0),
        (ElementType::F8E4M3FNUZ, 240.0),
        (ElementType::F8E5M2, 57344.0),
        (ElementType::F8E5M2FNUZ, 57344.0),
    ];
    shm(&[1; 4]).run(AMPLE, &|communicator| {
        let group = first(&communicator, 4);
        for (element, greatest) in greatest {
            let sign = if group.position() < 2 { 1.0 } else { -1.0 };
            let input = float(element, sign * greatest).repeat(67);
            let sums = reduced(&communicator, &group, element, Reduction::Sum, &input);
            assert!(sums == float(element, 0.0).repeat(67), "{element}: {:?}", &sums[..2]);
        }
    });
}

/// A NaN of any member, at any place of any size, is there in every minimum and maximum; the
/// other places are exact.
fn a_nan_of_any_member_is_in_every_minimum_and_maximum(job: &dyn Job, places: usize) {
    let cases = FLOATS.into_iter().flat_map(|element| {
        let counts = (1..=65).chain([700]);
        let reductions = [Reduction::Min, Reduction::Max];
        counts.flat_map(move |count| reductions.map(|reduction| (element, count, reduction)))
    });
    let cases: Vec<_> = cases
        .map(|(element, count, reduction)| {
            let operands = [0, 1, 2, 3].map(|member| operand(element, member, count));
            let exact = fold(element, reduction, &operands);
            (element, count, reduction, operands, exact)
        })
        .collect();
    job.run(AMPLE, &|communicator| {
        let group = first(&communicator, 4);
        let me = group.position();
        for (element, count, reduction, operands, exact) in &cases {
            let size = element.size_bytes();
            for round in 0..places.min(*count) {
                let (place, culprit) = ((round + count / 2) % count, (round + count) % 4);
                let range = place * size..(place + 1) * size;
                let mut input = operands[me].clone();
                if me == culprit {
                    input[range.clone()].copy_from_slice(&nan(*element, round % 2 == 1));
                }
                let mut output = vec![0xa5; input.len()];
                let call = Call::on(&group);
                communicator.all_reduce(&call, *element, *reduction, &input, &mut output).unwrap();
                let told = format!("{reduction} of {element}, {place} of {count}");
                assert!(is_nan(*element, &output[range.clone()]), "{told}");
                output[range.clone()].copy_from_slice(&exact[range]);
                assert!(output == *exact, "{told}");
            }
        }
    });
}

#[test]
fn a_nan_of_any_member_is_in_every_minimum_and_maximum_sim() {
    a_nan_of_any_member_is_in_every_minimum_and_maximum(&sim(&[1; 4]), 1);
}

#[test]
fn a_nan_of_any_member_is_in_every_minimum_and_maximum_shm() {
    a_nan_of_any_member_is_in_every_minimum_and_maximum(&shm(&[1; 4]), 1);
}

#[test]
#[ignore = "stress: every place of every size"]
fn a_nan_at_any_place_is_in_every_minimum_and_maximum() {
    a_nan_of_any_member_is_in_every_minimum_and_maximum(&shm(&[1; 4]), usize::MAX);
}

/// The first half beyond the greatest number, of two members: integers wrap, whatever the count.
fn integers_wrap_at_every_count(job: &dyn Job) {
    job.run(AMPLE, &|communicator| {
        let group = first(&communicator, 2);
        macro_rules! wraps {
            ($($element:ident: $type:ty),*) => {$(
                for count in 1..=65 {
                    let of = |member: $type| (0..count).map(move |index: u8| {
                        (<$type>::MAX / 2 + 1).wrapping_add((index as $type).wrapping_mul(3)) ^ member
                    });
                    let own = if group.position() == 0 { of(0) } else { of(1) };
                    let input: Vec<u8> = own.flat_map(<$type>::to_ne_bytes).collect();
                    let element = ElementType::$element;
                    for (reduction, step) in [
                        (Reduction::Sum, <$type>::wrapping_add as fn($type, $type) -> $type),
                        (Reduction::Product, <$type>::wrapping_mul),
                    ] {
                        let expected = of(0).zip(of(1)).map(|(a, b)| step(a, b));
                        let expected: Vec<u8> = expected.flat_map(<$type>::to_ne_bytes).collect();
                        let found = reduced(&communicator, &group, element, reduction, &input);
                        assert!(found == expected, "{reduction} of {count} {element}");
                    }
                }
            )*};
        }
        #[expect(clippy::cast_possible_wrap, reason = "small numbers")]
        {
            wraps!(I8: i8, I16: i16, I32: i32, I64: i64, U8: u8, U16: u16, U32: u32, U64: u64);
        }
    });
}

#[test]
fn integers_wrap_at_every_count_sim() {
    integers_wrap_at_every_count(&sim(&[1; 2]));
}

#[test]
fn integers_wrap_at_every_count_shm() {
    integers_wrap_at_every_count(&shm(&[1; 2]));
}

/// The sum of booleans is whether one is true; what is stored is 0 or 1.
#[test]
fn a_sum_of_booleans_is_0_or_1() {
    shm(&[1; 3]).run(AMPLE, &|communicator| {
        let group = first(&communicator, 3);
        for count in (1..=65).chain([5000]) {
            // The bits of the place say who has true there.
            let input: Vec<u8> = (0..count)
                .map(|place| place >> group.position() & 1)
                .map(|bit: usize| bit.to_ne_bytes()[0])
                .collect();
            let sums = reduced(&communicator, &group, ElementType::Bool, Reduction::Sum, &input);
            let expected: Vec<u8> = (0..count).map(|place| u8::from(place % 8 != 0)).collect();
            assert!(sums == expected, "{count} elements: {sums:?}");
        }
    });
}

/// The mean of 1 and 2 is 1.5 in every float type, that of 1 to 4 is 2.5, and of three 2.
#[test]
fn means_keep_their_fractions() {
    shm(&[1; 4]).run(AMPLE, &|communicator| {
        for (members, expected) in [(2, 1.5), (3, 2.0), (4, 2.5)] {
            if communicator.member().0 >= members {
                continue;
            }
            let group = first(&communicator, members);
            for element in FLOATS {
                for count in [1, 65] {
                    let own = f32::from(u8::try_from(group.position() + 1).unwrap());
                    let input = float(element, own).repeat(count);
                    let means = reduced(&communicator, &group, element, Reduction::Mean, &input);
                    assert!(means == float(element, expected).repeat(count), "{element}");
                }
            }
        }
    });
}
