//! Operations on single elements kept in registers of 64 bits, for loops whose every value is a
//! scalar.
//!
//! A register holds the bytes of an element, zeros above. The functions are those of the loops
//! over tiles, so that the bits are the same.

use bytemuck::{Pod, bytes_of, pod_read_unaligned};

use super::convert::Convert;
use super::element::{Bitwise, Bool, Element, Float, Integer};
use super::element::{with_element, with_float, with_integer, with_width};
use super::math::Math;
use crate::ifrt::DType;
use crate::stablehlo::OpKind;
use crate::stablehlo::op::{Binary, CompareType, Direction, Unary};

/// How many registers there are; a power of two.
pub(crate) const MAX_REGISTERS: usize = 64;

/// The number of a register, below [`MAX_REGISTERS`].
pub(crate) type Register = u8;

/// What the registers hold.
pub(crate) type Registers = [u64; MAX_REGISTERS];

/// Computes the last of four registers from the others.
pub(crate) type ScalarKernel = fn(&mut Registers, [Register; 4]);

/// The position of a register: the remainder says that it is in bounds.
#[inline(always)]
pub(crate) fn at(register: Register) -> usize {
    usize::from(register) % MAX_REGISTERS
}

/// Applies a function to registers, where they lie.
#[inline(always)]
fn apply(
    registers: &mut Registers,
    [a, b, c, to]: [Register; 4],
    function: impl Fn(u64, u64, u64) -> u64,
) {
    registers[at(to)] = function(registers[at(a)], registers[at(b)], registers[at(c)]);
}

/// A function of three values as one of registers.
macro_rules! on_registers {
    ($function:expr) => {
        |registers, operands| apply(registers, operands, $function)
    };
}

/// How many bytes a register holds.
pub(crate) const MAX_WIDTH: usize = size_of::<u64>();

/// The element in a register.
#[inline(always)]
fn get<T: Pod>(register: u64) -> T {
    pod_read_unaligned(&register.to_ne_bytes()[..size_of::<T>()])
}

/// A register with an element.
#[inline(always)]
fn put<T: Pod>(element: T) -> u64 {
    load(bytes_of(&element))
}

/// A register with the bytes of an element, at most [`MAX_WIDTH`].
pub(crate) fn load(element: &[u8]) -> u64 {
    let mut bytes = [0; MAX_WIDTH];
    bytes[..element.len()].copy_from_slice(element);
    u64::from_ne_bytes(bytes)
}

/// Writes the element in a register.
pub(crate) fn store(register: u64, element: &mut [u8]) {
    let len = element.len();
    element.copy_from_slice(&register.to_ne_bytes()[..len]);
}

/// The function of an operation on elements of type `from` that makes one of type `to`, if there
/// is one.
pub(crate) fn scalar(kind: &OpKind, from: DType, to: DType) -> Option<ScalarKernel> {
    match kind {
        OpKind::Binary(op) => binary(*op, from),
        OpKind::Unary(op) => unary(*op, from),
        OpKind::Compare { direction, compare_type } => compare(*direction, *compare_type, from),
        OpKind::Convert => with_element!(from, T => convert_from::<T>(to), _ => None),
        OpKind::Select if to.size_bytes() <= MAX_WIDTH => {
            with_width!(to.size_bytes(), T => Some(on_registers!(|predicate, on_true, on_false| {
                put::<T>(get(if predicate == 0 { on_false } else { on_true }))
            })))
        }
        OpKind::Clamp => with_element!(
            from,
            T => Some(on_registers!(|low, x, high| {
                put(Element::minimum(Element::maximum(get::<T>(x), get(low)), get(high)))
            })),
            _ => None
        ),
        _ => None,
    }
}

fn binary(op: Binary, dtype: DType) -> Option<ScalarKernel> {
    match op {
        Binary::And | Binary::Or | Binary::Xor if dtype == DType::Bool => bitwise::<Bool>(op),
        Binary::And | Binary::Or | Binary::Xor => {
            with_integer!(dtype, T => bitwise::<T>(op), _ => None)
        }
        Binary::ShiftLeft | Binary::ShiftRightArithmetic | Binary::ShiftRightLogical => {
            with_integer!(dtype, T => shift::<T>(op), _ => None)
        }
        _ => with_element!(dtype, T => arithmetic::<T>(op), _ => None),
    }
}

fn arithmetic<T: Element>(op: Binary) -> Option<ScalarKernel> {
    Some(match op {
        Binary::Add => on_registers!(|a, b, _| put(get::<T>(a).add(get(b)))),
        Binary::Divide => on_registers!(|a, b, _| put(get::<T>(a).divide(get(b)))),
        Binary::Maximum => on_registers!(|a, b, _| put(get::<T>(a).maximum(get(b)))),
        Binary::Minimum => on_registers!(|a, b, _| put(get::<T>(a).minimum(get(b)))),
        Binary::Multiply => on_registers!(|a, b, _| put(get::<T>(a).multiply(get(b)))),
        Binary::Power => on_registers!(|a, b, _| put(get::<T>(a).power(get(b)))),
        Binary::Remainder => on_registers!(|a, b, _| put(get::<T>(a).remainder(get(b)))),
        Binary::Subtract => on_registers!(|a, b, _| put(get::<T>(a).subtract(get(b)))),
        _ => return None,
    })
}

/// The function of two operations in a row on elements of one type, if there is one: the second of
/// `first(a, b)` and a third element, or of that and `first(a, b)` if `is_right`. Each rounds.
pub(crate) fn in_a_row(
    first: Binary,
    second: Binary,
    is_right: bool,
    dtype: DType,
) -> Option<ScalarKernel> {
    with_element!(dtype, T => match first {
        Binary::Add => after::<T, Sum>(second, is_right),
        Binary::Multiply => after::<T, Product>(second, is_right),
        Binary::Subtract => after::<T, Difference>(second, is_right),
        _ => None,
    }, _ => None)
}

fn after<T: Element, First: Of<T>>(second: Binary, is_right: bool) -> Option<ScalarKernel> {
    match second {
        Binary::Add => Some(both::<T, First, Sum>(is_right)),
        Binary::Multiply => Some(both::<T, First, Product>(is_right)),
        Binary::Subtract => Some(both::<T, First, Difference>(is_right)),
        _ => None,
    }
}

fn both<T: Element, First: Of<T>, Second: Of<T>>(is_right: bool) -> ScalarKernel {
    if is_right {
        on_registers!(|a, b, c| put(Second::of(get(c), First::of(get(a), get(b)))))
    } else {
        on_registers!(|a, b, c| put(Second::of(First::of(get(a), get(b)), get(c))))
    }
}

/// A function of two elements, as a type.
trait Of<T> {
    fn of(a: T, b: T) -> T;
}

struct Sum;
struct Product;
struct Difference;

impl<T: Element> Of<T> for Sum {
    #[inline(always)]
    fn of(a: T, b: T) -> T {
        a.add(b)
    }
}

impl<T: Element> Of<T> for Product {
    #[inline(always)]
    fn of(a: T, b: T) -> T {
        a.multiply(b)
    }
}

impl<T: Element> Of<T> for Difference {
    #[inline(always)]
    fn of(a: T, b: T) -> T {
        a.subtract(b)
    }
}

fn bitwise<T: Bitwise>(op: Binary) -> Option<ScalarKernel> {
    Some(match op {
        Binary::And => on_registers!(|a, b, _| put(get::<T>(a).and(get(b)))),
        Binary::Or => on_registers!(|a, b, _| put(get::<T>(a).or(get(b)))),
        Binary::Xor => on_registers!(|a, b, _| put(get::<T>(a).xor(get(b)))),
        _ => return None,
    })
}

fn shift<T: Integer>(op: Binary) -> Option<ScalarKernel> {
    Some(match op {
        Binary::ShiftLeft => on_registers!(|a, b, _| put(get::<T>(a).shift_left(get(b)))),
        Binary::ShiftRightArithmetic => {
            on_registers!(|a, b, _| put(get::<T>(a).shift_right_arithmetic(get(b))))
        }
        Binary::ShiftRightLogical => {
            on_registers!(|a, b, _| put(get::<T>(a).shift_right_logical(get(b))))
        }
        _ => return None,
    })
}

fn unary(op: Unary, dtype: DType) -> Option<ScalarKernel> {
    match op {
        Unary::Abs | Unary::Negate | Unary::Sign => {
            with_element!(dtype, T => arithmetic_unary::<T>(op), _ => None)
        }
        Unary::Not if dtype == DType::Bool => Some(not::<Bool>()),
        Unary::Not => with_integer!(dtype, T => Some(not::<T>()), _ => None),
        _ => with_float!(dtype, T => float::<T>(op), _ => None),
    }
}

fn arithmetic_unary<T: Element>(op: Unary) -> Option<ScalarKernel> {
    Some(match op {
        Unary::Abs => on_registers!(|a, _, _| put(get::<T>(a).abs())),
        Unary::Negate => on_registers!(|a, _, _| put(get::<T>(a).negate())),
        Unary::Sign => on_registers!(|a, _, _| put(get::<T>(a).sign())),
        _ => return None,
    })
}

fn not<T: Bitwise>() -> ScalarKernel {
    on_registers!(|a, _, _| put(get::<T>(a).not()))
}

fn float<T: Float<Compute: Math>>(op: Unary) -> Option<ScalarKernel> {
    macro_rules! by {
        ($function:ident) => {
            on_registers!(|a, _, _| put(T::rounded(Math::$function(get::<T>(a).compute()))))
        };
    }
    Some(match op {
        Unary::Ceil => by!(ceil),
        Unary::Exponential => by!(exponential),
        Unary::Floor => by!(floor),
        Unary::Log => by!(log),
        Unary::Logistic => by!(logistic),
        Unary::RoundNearestAfz => by!(round_half_away),
        Unary::RoundNearestEven => by!(round_half_even),
        Unary::Rsqrt => by!(rsqrt),
        Unary::Sqrt => by!(sqrt),
        Unary::Tanh => by!(tanh),
        _ => return None,
    })
}

fn compare(
    direction: Direction,
    compare_type: Option<CompareType>,
    dtype: DType,
) -> Option<ScalarKernel> {
    if compare_type == Some(CompareType::TotalOrder) && dtype.is_float() {
        return None;
    }
    with_element!(dtype, T => Some(ordinary::<T>(direction)), _ => None)
}

fn ordinary<T: Element>(direction: Direction) -> ScalarKernel {
    match direction {
        Direction::Eq => on_registers!(|a, b, _| u64::from(get::<T>(a) == get(b))),
        Direction::Ne => on_registers!(|a, b, _| u64::from(get::<T>(a) != get(b))),
        Direction::Ge => on_registers!(|a, b, _| u64::from(get::<T>(a) >= get(b))),
        Direction::Gt => on_registers!(|a, b, _| u64::from(get::<T>(a) > get(b))),
        Direction::Le => on_registers!(|a, b, _| u64::from(get::<T>(a) <= get(b))),
        Direction::Lt => on_registers!(|a, b, _| u64::from(get::<T>(a) < get(b))),
    }
}

/// Conversions to the types that counters and their sums have.
fn convert_from<T>(to: DType) -> Option<ScalarKernel>
where
    T: Pod + Convert<Bool> + Convert<i32> + Convert<i64> + Convert<u32> + Convert<u64>,
    T: Convert<f32> + Convert<f64>,
{
    Some(match to {
        DType::Bool => on_registers!(|a, _, _| put::<Bool>(get::<T>(a).convert())),
        DType::S32 => on_registers!(|a, _, _| put::<i32>(get::<T>(a).convert())),
        DType::S64 => on_registers!(|a, _, _| put::<i64>(get::<T>(a).convert())),
        DType::U32 => on_registers!(|a, _, _| put::<u32>(get::<T>(a).convert())),
        DType::U64 => on_registers!(|a, _, _| put::<u64>(get::<T>(a).convert())),
        DType::F32 => on_registers!(|a, _, _| put::<f32>(get::<T>(a).convert())),
        DType::F64 => on_registers!(|a, _, _| put::<f64>(get::<T>(a).convert())),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cpu::kernels::{convert, elementwise};

    /// Elements of a type with the extremes of every kind.
    fn elements(dtype: DType) -> Vec<u64> {
        match dtype {
            DType::F32 => [0.0, -0.0, 1.5, -2.5, 1e30, f32::NAN, f32::INFINITY].map(put).to_vec(),
            DType::F64 => [0.0, -0.0, 1.5, -2.5, 1e300, f64::NAN].map(put).to_vec(),
            DType::BF16 => [0.0, 1.5, -2.5].map(|x| put(half::bf16::from_f32(x))).to_vec(),
            DType::S32 => [0, 1, -1, 31, 32, i32::MIN, i32::MAX].map(put).to_vec(),
            DType::U8 => [0_u8, 1, 7, 8, 255].map(put).to_vec(),
            DType::S64 => [0, 1, -1, i64::MIN, i64::MAX].map(put).to_vec(),
            _ => [0_u8, 1].map(put).to_vec(),
        }
    }

    const TYPES: [DType; 7] =
        [DType::F32, DType::F64, DType::BF16, DType::S32, DType::U8, DType::S64, DType::Bool];

    fn call(kernel: ScalarKernel, a: u64, b: u64, c: u64) -> u64 {
        let mut registers = [0; MAX_REGISTERS];
        registers[..3].copy_from_slice(&[a, b, c]);
        kernel(&mut registers, [0, 1, 2, 63]);
        registers[63]
    }

    fn bytes(register: u64, width: usize) -> Vec<u8> {
        let mut element = vec![0; width];
        store(register, &mut element);
        element
    }

    /// One element through a loop over tiles; operands and result are aligned.
    fn through(run: impl FnOnce(&mut [u8]), width: usize) -> u64 {
        let mut out = [0_u64];
        run(&mut bytemuck::cast_slice_mut(&mut out)[..width]);
        load(&bytemuck::cast_slice(&out)[..width])
    }

    #[test]
    fn registers_hold_what_loops_over_tiles_compute() {
        let binaries = [
            Binary::Add,
            Binary::And,
            Binary::Divide,
            Binary::Maximum,
            Binary::Minimum,
            Binary::Multiply,
            Binary::Or,
            Binary::Power,
            Binary::Remainder,
            Binary::ShiftLeft,
            Binary::ShiftRightArithmetic,
            Binary::ShiftRightLogical,
            Binary::Subtract,
            Binary::Xor,
        ];
        let unaries = [
            Unary::Abs,
            Unary::Ceil,
            Unary::Exponential,
            Unary::Floor,
            Unary::Log,
            Unary::Logistic,
            Unary::Negate,
            Unary::Not,
            Unary::RoundNearestAfz,
            Unary::RoundNearestEven,
            Unary::Rsqrt,
            Unary::Sign,
            Unary::Sqrt,
            Unary::Tanh,
        ];
        for dtype in TYPES {
            let width = dtype.size_bytes();
            for a in elements(dtype) {
                let a_bytes = [a];
                let a_bytes = &bytemuck::cast_slice(&a_bytes)[..width];
                for op in unaries {
                    let tile = elementwise::unary(op, dtype);
                    let scalar = scalar(&OpKind::Unary(op), dtype, dtype);
                    assert_eq!(tile.is_some(), scalar.is_some(), "{op:?} {dtype}");
                    if let (Some(tile), Some(scalar)) = (tile, scalar) {
                        let expected = through(|out| tile(a_bytes, out), width);
                        assert_eq!(call(scalar, a, 0, 0), expected, "{op:?} {dtype} {a_bytes:?}");
                    }
                }
                for b in elements(dtype) {
                    let b_bytes = [b];
                    let b_bytes = &bytemuck::cast_slice(&b_bytes)[..width];
                    for op in binaries {
                        let tile = elementwise::binary(op, dtype);
                        let scalar = scalar(&OpKind::Binary(op), dtype, dtype);
                        assert_eq!(tile.is_some(), scalar.is_some(), "{op:?} {dtype}");
                        if let (Some(tile), Some(scalar)) = (tile, scalar) {
                            let expected = through(|out| tile(a_bytes, b_bytes, out), width);
                            let found = call(scalar, a, b, 0);
                            assert_eq!(found, expected, "{op:?} {dtype} {a_bytes:?} {b_bytes:?}");
                        }
                    }
                }
                for to in TYPES {
                    let Some(scalar) = scalar(&OpKind::Convert, dtype, to) else {
                        continue;
                    };
                    let tile = convert::convert(dtype, to).unwrap();
                    let expected = through(|out| tile(a_bytes, out), to.size_bytes());
                    assert_eq!(call(scalar, a, 0, 0), expected, "{dtype} to {to} of {a_bytes:?}");
                }
            }
        }
    }

    #[test]
    fn two_in_a_row_are_one_after_the_other() {
        let operations = [Binary::Add, Binary::Multiply, Binary::Subtract];
        for dtype in TYPES {
            for (first, second) in
                operations.into_iter().flat_map(|first| operations.map(|second| (first, second)))
            {
                let alone = |op| scalar(&OpKind::Binary(op), dtype, dtype);
                let (Some(one), Some(two)) = (alone(first), alone(second)) else { continue };
                let left = in_a_row(first, second, false, dtype).unwrap();
                let right = in_a_row(first, second, true, dtype).unwrap();
                for a in elements(dtype) {
                    for b in elements(dtype) {
                        for c in elements(dtype) {
                            let between = call(one, a, b, 0);
                            let expected = [call(two, between, c, 0), call(two, c, between, 0)];
                            let found = [call(left, a, b, c), call(right, a, b, c)];
                            assert_eq!(found, expected, "{first:?} {second:?} {dtype}");
                        }
                    }
                }
            }
        }
        assert!(in_a_row(Binary::Divide, Binary::Add, false, DType::F32).is_none());
        // 1 - (2 * 3), not (2 * 3) - 1.
        let right = in_a_row(Binary::Multiply, Binary::Subtract, true, DType::S32).unwrap();
        assert_eq!(call(right, put(2), put(3), put(1)), put(-5));
    }

    #[test]
    fn comparisons_and_choices_are_those_of_one_element() {
        let less = OpKind::Compare { direction: Direction::Lt, compare_type: None };
        let less = scalar(&less, DType::S32, DType::Bool).unwrap();
        assert_eq!([call(less, put(-1), put(1), 0), call(less, put(1), put(-1), 0)], [1, 0]);
        let select = scalar(&OpKind::Select, DType::F32, DType::F32).unwrap();
        assert_eq!([call(select, 1, 7, 8), call(select, 0, 7, 8)], [7, 8]);
        let clamp = scalar(&OpKind::Clamp, DType::F32, DType::F32).unwrap();
        assert_eq!(call(clamp, put(1.0_f32), put(5.0_f32), put(3.0_f32)), put(3.0_f32));
        assert_eq!(bytes(put(-2_i32), 4), (-2_i32).to_ne_bytes());
    }
}
