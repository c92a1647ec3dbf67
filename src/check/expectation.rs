//! Expectations as they are written: operations of the `check` dialect and custom calls of the
//! same names.

use crate::ifrt::{DType, Result, Shape, Status};
use crate::stablehlo::op::Expectation;
use crate::stablehlo::{Function, Literal, Op, OpKind, TensorType};

/// What StableHLO's interpreter allows between the operands of `check.expect_close`.
const CLOSE_ULPS: u64 = 3;

/// What it allows between those of `check.expect_almost_eq`.
const ALMOST: f64 = 1e-3;

/// Makes expectations of the custom calls of an inlined function that are such. One that has a
/// result tells the program that it was met: if it is not, the program fails.
pub(super) fn recognise(function: &mut Function) -> Result<()> {
    let entry = function.entry;
    let mut position = 0;
    while let Some(&op) = function.blocks[entry].ops.get(position) {
        position += 1;
        let Some(expectation) = called(function, op) else { continue };
        let data = &mut function.ops[op];
        let results = std::mem::take(&mut data.results);
        data.kind = OpKind::Expect(expectation);
        for result in results {
            position += 1;
            let met = Literal::splat(TensorType::new(DType::Bool, Shape::scalar()), [1_u8]);
            let met = met.ok_or_else(|| Status::internal("a boolean is one byte"))?;
            let location = function.ops[op].location;
            function.define(result, OpKind::Constant(met), entry, position - 1, location);
        }
    }
    Ok(())
}

/// The expectation that a custom call is.
fn called(function: &Function, op: Op) -> Option<Expectation> {
    let data = &function.ops[op];
    let (OpKind::CustomCall { call_target_name, .. }, &[_, expected]) =
        (&data.kind, data.operands.as_slice())
    else {
        return None;
    };
    let is_float =
        function.tensor(expected).is_some_and(|ty| ty.dtype.is_float() || ty.dtype.is_complex());
    let almost = |tolerance| Expectation::AlmostEq { tolerance };
    match call_target_name.as_str() {
        "check.eq" if is_float => Some(almost(Expectation::DEFAULT_TOLERANCE)),
        "check.eq" | "check.expect_eq" => Some(Expectation::Eq),
        "check.expect_close" => Some(Expectation::Close { least: 0, most: CLOSE_ULPS }),
        "check.expect_almost_eq" => Some(almost(ALMOST)),
        _ => None,
    }
}
