//! Operations that are older than the specification, in terms of those that are in it.

use super::builder::Builder;
use super::shape::without;
use crate::ifrt::{DType, Result, Status};
use crate::stablehlo::op::{DotGeneral, Gather, OpKind};
use crate::stablehlo::{TensorType, Value};

/// What one of these operations becomes.
pub(super) fn expand(
    builder: &mut Builder<'_>,
    kind: &OpKind,
    operands: &[Value],
) -> Result<Vec<Value>> {
    let result = match (kind, operands) {
        (OpKind::Broadcast { sizes }, &[a]) => {
            let dims = builder.dims(a)?;
            let dimensions: Vec<usize> = (sizes.len()..sizes.len() + dims.len()).collect();
            builder.broadcast(a, &dimensions, &[sizes.as_slice(), &dims].concat())
        }
        (OpKind::Dot(precision), &[a, b]) => {
            let (lhs, rhs) = (builder.dims(a)?, builder.dims(b)?);
            let last = lhs.len().saturating_sub(1);
            let dot = DotGeneral {
                lhs_batching: Vec::new(),
                rhs_batching: Vec::new(),
                lhs_contracting: vec![last],
                rhs_contracting: vec![0],
                precision: precision.clone(),
                algorithm: None,
            };
            let dims = [without(&lhs, &[last]), without(&rhs, &[0])].concat();
            let dtype = builder.dtype(a)?;
            builder.op(OpKind::DotGeneral(dot), &[a, b], dtype, &dims)
        }
        (OpKind::Einsum { config }, &[a, b]) => einsum(builder, config, a, b),
        (OpKind::UnaryEinsum { config }, &[a]) => {
            // A second operand without dimensions, which is one, changes nothing.
            let ty = TensorType::new(builder.dtype(a)?, super::shape(Vec::new())?);
            let one = one(ty.dtype)?;
            let one = builder.splat(ty, one)?;
            let (input, output) = split(config, "->")?;
            einsum(builder, &format!("{input},->{output}"), a, one)
        }
        (OpKind::TorchIndexSelect { dimension, batch_dims }, &[a, index]) => {
            torch_index_select(builder, *dimension, *batch_dims, a, index)
        }
        (kind, _) => Err(Status::unimplemented(format!("`{kind}` of {} operands", operands.len()))),
    };
    Ok(vec![result?])
}

/// The number one.
fn one(dtype: DType) -> Result<Vec<u8>> {
    let float = |dtype| crate::stablehlo::number::float_bytes(1.0, dtype);
    let bytes = match dtype {
        DType::C64 => float(DType::F32).map(|re| [re, vec![0; 4]].concat()),
        DType::C128 => float(DType::F64).map(|re| [re, vec![0; 8]].concat()),
        dtype if dtype.is_float() => float(dtype),
        dtype => Some(1_u64.to_le_bytes()[..dtype.size_bytes()].to_vec()),
    };
    bytes.ok_or_else(|| Status::unimplemented(format!("a one of type {dtype}")))
}

fn split<'t>(text: &'t str, by: &str) -> Result<(&'t str, &'t str)> {
    let parts = text.split_once(by);
    parts.ok_or_else(|| Status::unimplemented(format!("the configuration {text:?}")))
}

/// `ab,bc->ac`: letters of both operands and the result are batching, of both only contracted, of
/// one and the result free, of one only summed by a product with ones.
fn einsum(builder: &mut Builder<'_>, config: &str, a: Value, b: Value) -> Result<Value> {
    let (inputs, output) = split(config, "->")?;
    let (left, right) = split(inputs, ",")?;
    let is_plain = |text: &str| {
        let mut letters: Vec<u8> = text.bytes().collect();
        letters.sort_unstable();
        letters.windows(2).all(|pair| pair[0] != pair[1])
            && letters.iter().all(u8::is_ascii_alphabetic)
    };
    if ![left, right, output].iter().all(|text| is_plain(text)) {
        return Err(Status::unimplemented(format!("the configuration {config:?}")));
    }
    let (a, left) = summed(builder, a, left, &[right, output].concat())?;
    let (b, right) = summed(builder, b, right, &[&left, output].concat())?;
    let position = |text: &str, letter: char| text.find(letter);
    let shared = |keep: bool| {
        left.chars()
            .filter(|&c| right.contains(c) && output.contains(c) == keep)
            .collect::<String>()
    };
    let (batch, contracted) = (shared(true), shared(false));
    let places = |letters: &str, text: &str| -> Vec<usize> {
        letters.chars().filter_map(|c| position(text, c)).collect()
    };
    let dot = DotGeneral {
        lhs_batching: places(&batch, &left),
        rhs_batching: places(&batch, &right),
        lhs_contracting: places(&contracted, &left),
        rhs_contracting: places(&contracted, &right),
        precision: Vec::new(),
        algorithm: None,
    };
    let free = |text: &str| -> String {
        text.chars().filter(|c| !batch.contains(*c) && !contracted.contains(*c)).collect()
    };
    let order = format!("{batch}{}{}", free(&left), free(&right));
    let (lhs, rhs) = (builder.ty(a)?, builder.dims(b)?);
    let size = |letter: char| {
        let lhs = position(&left, letter).and_then(|at| lhs.shape.dims().get(at));
        lhs.or_else(|| position(&right, letter).and_then(|at| rhs.get(at))).copied()
    };
    let dims: Option<Vec<usize>> = order.chars().map(size).collect();
    let dims = dims.ok_or_else(|| Status::invalid_argument(format!("{config:?} does not fit")))?;
    let product = builder.op(OpKind::DotGeneral(dot), &[a, b], lhs.dtype, &dims)?;
    builder.transpose(product, places(output, &order))
}

/// `a` without the dimensions whose letters nobody else has, summed; and its letters then.
fn summed(
    builder: &mut Builder<'_>,
    a: Value,
    letters: &str,
    others: &str,
) -> Result<(Value, String)> {
    let alone: Vec<usize> =
        letters.chars().enumerate().filter(|(_, c)| !others.contains(*c)).map(|(i, _)| i).collect();
    if alone.is_empty() {
        return Ok((a, letters.to_owned()));
    }
    let ty = builder.ty(a)?;
    let sizes: Option<Vec<usize>> =
        alone.iter().map(|&dim| ty.shape.dims().get(dim).copied()).collect();
    let sizes = sizes.ok_or_else(|| Status::invalid_argument("more letters than dimensions"))?;
    let ones = TensorType::new(ty.dtype, super::shape(sizes)?);
    let ones = builder.splat(ones, one(ty.dtype)?)?;
    let dot = DotGeneral {
        lhs_batching: Vec::new(),
        rhs_batching: Vec::new(),
        lhs_contracting: alone.clone(),
        rhs_contracting: (0..alone.len()).collect(),
        precision: Vec::new(),
        algorithm: None,
    };
    let dims = without(ty.shape.dims(), &alone);
    let sum = builder.op(OpKind::DotGeneral(dot), &[a, ones], ty.dtype, &dims)?;
    Ok((sum, letters.chars().filter(|c| others.contains(*c)).collect()))
}

/// Slices of one element of `dimension`, chosen by an index: a gather.
fn torch_index_select(
    builder: &mut Builder<'_>,
    dimension: usize,
    batch: usize,
    a: Value,
    index: Value,
) -> Result<Value> {
    let (ty, indices) = (builder.ty(a)?, builder.dims(index)?);
    let dims = ty.shape.dims();
    if dimension >= dims.len() || batch > dimension || batch > indices.len() {
        return Err(Status::invalid_argument("dimensions that do not fit"));
    }
    let mut slice_sizes = dims.to_vec();
    slice_sizes[..batch].fill(1);
    slice_sizes[dimension] = 1;
    let chosen = indices.len() - batch;
    let rank = dims.len() - 1 + chosen;
    let gather = Gather {
        offset_dims: (batch..dimension).chain(dimension + chosen..rank).collect(),
        collapsed_slice_dims: vec![dimension],
        operand_batching_dims: (0..batch).collect(),
        start_indices_batching_dims: (0..batch).collect(),
        start_index_map: vec![dimension],
        index_vector_dim: indices.len(),
        slice_sizes,
        indices_are_sorted: false,
    };
    let result = [&dims[..dimension], &indices[batch..], &dims[dimension + 1..]].concat();
    builder.op(OpKind::Gather(gather), &[a, index], ty.dtype, &result)
}
