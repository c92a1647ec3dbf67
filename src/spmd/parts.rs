//! A program of which each device makes its part of the results from parts of the parameters.
//!
//! What a device needs of each value follows from what it needs of the results: of an operation
//! that works on every element alone, the same part of the operands. Nothing is exchanged, so this
//! takes on only what never needs a part that another device has.

use std::collections::HashMap;

use super::SpmdError;
use super::clone::Cloner;
use super::geometry::{axes_of, device_count, local_shape, unreduced_axes};
use super::localize::{Localized, mesh_of};
use super::replicate::{Place, Whole};
use super::spread::spread;
use crate::ifrt::{DType, Shape};
use crate::stablehlo::op::{Binary, DotGeneral, OpKind, Sharding};
use crate::stablehlo::{
    Function, Literal, Module, Op, OpData, Param, ResultInfo, TensorType, Type, Value, transform,
};

/// The axes that cut each dimension of a value, by position in the mesh.
type Axes = Vec<Vec<usize>>;

/// The program of one device, if it can do with parts.
///
/// # Errors
/// When the shardings of the program do not fit its meshes.
pub(super) fn by_parts(module: &Module) -> Result<Option<Localized>, SpmdError> {
    let main = module.function("main").ok_or(SpmdError::NoMain)?;
    let mesh = mesh_of(module, main, None)?;
    if mesh.axes.is_empty()
        || module.num_replicas != 1
        || device_count(&mesh)? != module.num_partitions
    {
        return Ok(None);
    }
    // What cannot be written as one function is nothing for this form.
    let Ok(inlined) = transform::inline(module, "main") else { return Ok(None) };
    let ret = main.blocks[main.entry].ops.last();
    let returned = ret.map(|&ret| main.ops[ret].operands.clone()).unwrap_or_default();
    let whole = |value| {
        let rank = main.tensor(value).map_or(0, |ty| ty.shape.rank());
        Sharding::whole(&mesh.name, rank)
    };
    let parameter_shardings: Vec<Sharding> = (main.params.iter())
        .map(|param| param.sharding.clone().unwrap_or_else(|| whole(param.value)))
        .collect();
    let result_shardings: Vec<Sharding> = (returned.iter().zip(&main.results))
        .map(|(&value, result)| {
            let declared = result.sharding.clone();
            let declared = declared.or_else(|| spread(module, &mesh, main, value));
            declared.unwrap_or_else(|| whole(value))
        })
        .collect();
    let params = main.params.iter().map(|param| param.value);
    let (Some(global_parameters), Some(global_results)) =
        (tensors(main, params), tensors(main, returned.iter().copied()))
    else {
        return Ok(None);
    };
    let axes = |shardings: &[Sharding], types: &[TensorType]| -> Option<Vec<Axes>> {
        let axes = shardings.iter().zip(types).map(|(sharding, ty)| {
            let is_of_mesh = sharding.mesh == mesh.name || sharding.is_whole();
            let fits = is_of_mesh && local_shape(&mesh, sharding, ty, "a value").is_ok();
            let is_summed = unreduced_axes(&mesh, sharding).is_empty();
            (fits && is_summed).then(|| axes_of(&mesh, sharding, "a value").ok()).flatten()
        });
        axes.collect()
    };
    let (Some(given), Some(wanted)) =
        (axes(&parameter_shardings, &global_parameters), axes(&result_shardings, &global_results))
    else {
        return Ok(None);
    };
    let is_same = inlined.params.len() == given.len() && inlined.results.len() == wanted.len();
    if !is_same || wanted.iter().all(is_whole) {
        return Ok(None);
    }
    let whole = Whole::new(mesh, module.num_partitions);
    let Some(needs) = Needs::new(&inlined, &given, &wanted) else { return Ok(None) };
    let main =
        Maker { whole: &whole, needs, made: HashMap::new() }.main(&inlined, &given, &wanted)?;
    Ok(Some(Localized {
        module: Module {
            name: module.name.clone(),
            num_partitions: module.num_partitions,
            num_replicas: 1,
            meshes: Vec::new(),
            functions: vec![main],
        },
        mesh: whole.into_mesh(),
        parameter_shardings,
        result_shardings,
        global_parameters,
        global_results,
        num_partitions: module.num_partitions,
    }))
}

fn tensors(function: &Function, values: impl Iterator<Item = Value>) -> Option<Vec<TensorType>> {
    values.map(|value| function.tensor(value).cloned()).collect()
}

fn is_whole(axes: &Axes) -> bool {
    axes.iter().all(Vec::is_empty)
}

fn whole(function: &Function, value: Value) -> Axes {
    vec![Vec::new(); function.tensor(value).map_or(0, |ty| ty.shape.rank())]
}

/// The parts of each value that a device needs, each once and in the order they were asked for.
struct Needs(HashMap<Value, Vec<Axes>>);

impl Needs {
    /// `None` when a device would need what it does not have, or an operation does more than
    /// compute a value from its operands.
    fn new(function: &Function, given: &[Axes], wanted: &[Axes]) -> Option<Self> {
        let mut needs = Self(HashMap::new());
        let (&ret, ops) = function.blocks[function.entry].ops.split_last()?;
        for (&value, axes) in function.ops[ret].operands.iter().zip(wanted) {
            needs.add(value, axes.clone());
        }
        for &op in ops.iter().rev() {
            let data = &function.ops[op];
            if !is_of_operands(data) {
                return None;
            }
            let parts = data.results.first().and_then(|result| needs.0.get(result)).cloned();
            for part in parts.unwrap_or_default() {
                let operands = of_operands(function, data, &part);
                let operands = operands.unwrap_or_else(|| all_of_operands(function, data));
                for (&operand, axes) in data.operands.iter().zip(operands) {
                    needs.add(operand, axes);
                }
            }
        }
        let has = |(param, given): (&Param, &Axes)| {
            is_whole(given) || needs.of(param.value).iter().all(|need| need == given)
        };
        function.params.iter().zip(given).all(has).then_some(needs)
    }

    fn add(&mut self, value: Value, axes: Axes) {
        let needs = self.0.entry(value).or_default();
        if !needs.contains(&axes) {
            needs.push(axes);
        }
    }

    fn of(&self, value: Value) -> &[Axes] {
        self.0.get(&value).map_or(&[], Vec::as_slice)
    }
}

/// Whether an operation has one result that is a function of its operands, wherever it runs.
fn is_of_operands(data: &OpData) -> bool {
    let depends_on_more = matches!(
        data.kind,
        OpKind::Rng(_) | OpKind::CustomCall { .. } | OpKind::PartitionId | OpKind::ReplicaId
    );
    let is_one = data.regions.is_empty() && data.results.len() == 1;
    is_one && !depends_on_more && !data.kind.is_collective() && !data.kind.has_side_effect()
}

fn all_of_operands(function: &Function, data: &OpData) -> Vec<Axes> {
    data.operands.iter().map(|&operand| whole(function, operand)).collect()
}

/// The parts of the operands from which an operation makes a part of its result; `None` when it
/// must have made all of it.
fn of_operands(function: &Function, data: &OpData, part: &Axes) -> Option<Vec<Axes>> {
    if is_whole(part) {
        return Some(all_of_operands(function, data));
    }
    let operands = data.operands.iter().map(|&operand| function.tensor(operand));
    let operands: Vec<&[usize]> =
        operands.map(|ty| ty.map(|ty| ty.shape.dims())).collect::<Option<_>>()?;
    let first = operands.first().copied();
    let result = function.tensor(*data.results.first()?)?.shape.dims();
    let cut = |dim: usize| part.get(dim).is_some_and(|axes| !axes.is_empty());
    Some(match &data.kind {
        OpKind::Unary(_)
        | OpKind::Binary(_)
        | OpKind::Compare { .. }
        | OpKind::Select
        | OpKind::Clamp
        | OpKind::Convert
        | OpKind::ReducePrecision { .. } => {
            let alike = |dims: &&[usize]| if dims.is_empty() { Vec::new() } else { part.clone() };
            operands.iter().map(alike).collect()
        }
        OpKind::BitcastConvert if first? == result => vec![part.clone()],
        OpKind::Constant(literal) if literal.splat_element().is_some() => Vec::new(),
        OpKind::Iota { .. } => Vec::new(),
        OpKind::BroadcastInDim { dimensions } => {
            let axes = first?.iter().zip(dimensions).map(|(&size, &dim)| {
                let same = result.get(dim) == Some(&size);
                if same { part.get(dim).cloned() } else { Some(Vec::new()) }
            });
            vec![axes.collect::<Option<_>>()?]
        }
        OpKind::Transpose { permutation } => {
            let mut axes = vec![Vec::new(); permutation.len()];
            for (cut, &dim) in part.iter().zip(permutation) {
                axes.get_mut(dim)?.clone_from(cut);
            }
            vec![axes]
        }
        OpKind::Reshape => vec![of_reshape(first?, result, part)?],
        OpKind::Slice { start, limit, strides } => {
            let all = |dim: usize| {
                let (size, limit) = (first?.get(dim), limit.get(dim));
                Some(start.get(dim) == Some(&0) && limit == size && strides.get(dim) == Some(&1))
            };
            let is_kept = (0..part.len()).all(|dim| !cut(dim) || all(dim) == Some(true));
            is_kept.then(|| vec![part.clone()])?
        }
        OpKind::Concatenate { dimension } if !cut(*dimension) => {
            vec![part.clone(); operands.len()]
        }
        OpKind::DotGeneral(dot) => of_dot(dot, &operands, part)?,
        _ => return None,
    })
}

/// The part of what a `reshape` takes, if only dimensions of one element come and go.
fn of_reshape(from: &[usize], to: &[usize], part: &Axes) -> Option<Axes> {
    let longer = |dims: &[usize]| -> Vec<(usize, usize)> {
        dims.iter().copied().enumerate().filter(|(_, size)| *size != 1).collect()
    };
    let (longer_from, longer_to) = (longer(from), longer(to));
    let sizes = |dims: &[(usize, usize)]| dims.iter().map(|(_, size)| *size).collect::<Vec<_>>();
    if sizes(&longer_from) != sizes(&longer_to) {
        return None;
    }
    let mut axes = vec![Vec::new(); from.len()];
    for ((from, _), (to, _)) in longer_from.into_iter().zip(longer_to) {
        axes.get_mut(from)?.clone_from(part.get(to)?);
    }
    Some(axes)
}

/// The parts of both sides of a product: what is contracted is whole.
fn of_dot(dot: &DotGeneral, operands: &[&[usize]], part: &Axes) -> Option<Vec<Axes>> {
    // A result has the batching dimensions, then the other ones of the left side and of the right.
    let mut next = dot.lhs_batching.len();
    let mut sides = Vec::with_capacity(2);
    for (dims, batching, contracting) in [
        (operands.first()?, &dot.lhs_batching, &dot.lhs_contracting),
        (operands.get(1)?, &dot.rhs_batching, &dot.rhs_contracting),
    ] {
        let mut axes = vec![Vec::new(); dims.len()];
        for (place, &dim) in batching.iter().enumerate() {
            axes.get_mut(dim)?.clone_from(part.get(place)?);
        }
        for (dim, axes) in axes.iter_mut().enumerate() {
            if !batching.contains(&dim) && !contracting.contains(&dim) {
                axes.clone_from(part.get(next)?);
                next += 1;
            }
        }
        sides.push(axes);
    }
    Some(sides)
}

/// Writes the program of one device.
struct Maker<'a> {
    whole: &'a Whole,
    needs: Needs,
    made: HashMap<(Value, Axes), Value>,
}

impl Maker<'_> {
    fn main(
        mut self,
        main: &Function,
        given: &[Axes],
        wanted: &[Axes],
    ) -> Result<Function, SpmdError> {
        let empty = SpmdError::NotVerified("@main is empty");
        let (&ret, ops) = main.blocks[main.entry].ops.split_last().ok_or(empty)?;
        let mut cloner = Cloner::new(main);
        let entry = cloner.target.entry;
        let place = |origin| Place { origin, into: entry };
        for (param, axes) in main.params.iter().zip(given) {
            let ty = self.part_type(main, param.value, axes)?;
            let value = cloner.argument(entry, Type::Tensor(ty));
            self.made.insert((param.value, axes.clone()), value);
            let param = Param { value, sharding: None, hlo_sharding: None, ..param.clone() };
            cloner.target.params.push(param);
        }
        for (param, axes) in main.params.iter().zip(given) {
            for need in self.needs.of(param.value).to_vec() {
                if need != *axes {
                    let all = self.part(param.value, axes)?;
                    let part = self.whole.slice_along(&mut cloner, all, &need, place(ret))?;
                    self.made.insert((param.value, need), part);
                }
            }
        }
        for &op in ops {
            let results = main.ops[op].results.iter();
            let needs: Vec<Axes> =
                results.flat_map(|&result| self.needs.of(result)).cloned().collect();
            for need in needs {
                self.op(&mut cloner, main, op, need, place(op))?;
            }
        }
        let mut results = Vec::with_capacity(wanted.len());
        let returned = &main.ops[ret].operands;
        for ((&value, axes), result) in returned.iter().zip(wanted).zip(&main.results) {
            let ty = Type::Tensor(self.part_type(main, value, axes)?);
            let (sharding, hlo_sharding) = (None, None);
            let result = ResultInfo { ty, sharding, hlo_sharding, ..result.clone() };
            cloner.target.results.push(result);
            results.push(self.part(value, axes)?);
        }
        cloner.push(OpKind::Return, results, Vec::new(), ret, entry);
        Ok(cloner.target)
    }

    /// Makes a part of the result of `op`.
    fn op(
        &mut self,
        cloner: &mut Cloner<'_>,
        main: &Function,
        op: Op,
        need: Axes,
        place: Place,
    ) -> Result<(), SpmdError> {
        let data = &main.ops[op];
        let result = *data.results.first().ok_or(SpmdError::NotVerified("a value is nobody's"))?;
        if self.made.contains_key(&(result, need.clone())) {
            return Ok(());
        }
        let Some(operands) = of_operands(main, data, &need) else {
            let all = whole(main, result);
            self.op(cloner, main, op, all.clone(), place)?;
            let all = self.part(result, &all)?;
            let part = self.whole.slice_along(cloner, all, &need, place)?;
            self.made.insert((result, need), part);
            return Ok(());
        };
        let parts = data.operands.iter().zip(&operands);
        let operands: Vec<Value> =
            parts.map(|(&operand, axes)| self.part(operand, axes)).collect::<Result<_, _>>()?;
        let ty = self.part_type(main, result, &need)?;
        let value = match &data.kind {
            OpKind::Constant(literal) if !is_whole(&need) => {
                let literal = literal
                    .splat_element()
                    .and_then(|element| Literal::splat(ty.clone(), element.to_vec()));
                let literal = literal.ok_or(SpmdError::NotVerified("a constant has no element"))?;
                place.push(cloner, OpKind::Constant(literal), operands, Type::Tensor(ty))?
            }
            OpKind::Iota { dimension } => self.iota(cloner, *dimension, ty, &need, place)?,
            OpKind::Slice { start, limit, strides } => {
                let mut limit = limit.clone();
                for ((limit, &size), axes) in limit.iter_mut().zip(ty.shape.dims()).zip(&need) {
                    if !axes.is_empty() {
                        *limit = size;
                    }
                }
                let (start, strides) = (start.clone(), strides.clone());
                let kind = OpKind::Slice { start, limit, strides };
                place.push(cloner, kind, operands, Type::Tensor(ty))?
            }
            kind => place.push(cloner, kind.clone(), operands, Type::Tensor(ty))?,
        };
        self.made.insert((result, need), value);
        Ok(())
    }

    /// Counts from where the part of the device starts.
    fn iota(
        &self,
        cloner: &mut Cloner<'_>,
        dimension: usize,
        ty: TensorType,
        need: &Axes,
        place: Place,
    ) -> Result<Value, SpmdError> {
        let size = ty.shape.dims().get(dimension).copied().unwrap_or(1);
        let kind = OpKind::Iota { dimension };
        let Some(axes) = need.get(dimension).filter(|axes| !axes.is_empty()) else {
            return place.push(cloner, kind, Vec::new(), Type::Tensor(ty));
        };
        // In a type that rounds, the sum of two numbers of it is not always the number itself.
        let exact = if ty.dtype.is_integer() { ty.dtype } else { DType::U32 };
        let counted = Type::Tensor(TensorType::new(exact, ty.shape.clone()));
        let from_zero = place.push(cloner, kind, Vec::new(), counted.clone())?;
        let device = place.device(cloner)?;
        let start = self.whole.start(cloner, device, (axes, size), place)?;
        let scalar = Type::Tensor(TensorType::new(exact, Shape::scalar()));
        let start = convert(cloner, start, (DType::U32, exact), scalar, place)?;
        let kind = OpKind::BroadcastInDim { dimensions: Vec::new() };
        let starts = place.push(cloner, kind, vec![start], counted.clone())?;
        let add = OpKind::Binary(Binary::Add);
        let number = place.push(cloner, add, vec![from_zero, starts], counted)?;
        convert(cloner, number, (exact, ty.dtype), Type::Tensor(ty), place)
    }

    fn part(&self, value: Value, axes: &Axes) -> Result<Value, SpmdError> {
        let made = self.made.get(&(value, axes.clone())).copied();
        made.ok_or(SpmdError::NotVerified("a value is used where it is not defined"))
    }

    fn part_type(
        &self,
        main: &Function,
        value: Value,
        axes: &Axes,
    ) -> Result<TensorType, SpmdError> {
        let no_array = || SpmdError::NoArray {
            what: "a value of @main".to_owned(),
            ty: main.ty(value).clone(),
        };
        let ty = main.tensor(value).ok_or_else(no_array)?;
        self.whole.part_type(ty, axes)
    }
}

/// A value as one of type `ty`, if its elements are not of that type already.
fn convert(
    cloner: &mut Cloner<'_>,
    value: Value,
    (from, to): (DType, DType),
    ty: Type,
    place: Place,
) -> Result<Value, SpmdError> {
    if from == to { Ok(value) } else { place.push(cloner, OpKind::Convert, vec![value], ty) }
}

#[cfg(test)]
mod tests {
    use super::super::partition;
    use super::*;
    use crate::stablehlo::{parse, verify};

    /// Over two by two devices: `%a` is cut by x and y, `%b` by x, `%c` is whole.
    fn partitioned(body: &str, result: &str, spread: &str) -> Module {
        let text = format!(
            "module attributes {{mhlo.num_partitions = 4 : i32}} {{
      sdy.mesh @mesh = <[\"x\"=2, \"y\"=2]>
      func.func @main(
          %a: tensor<8x6xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{\"x\"}}, {{\"y\"}}]>}},
          %b: tensor<8x5xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{\"x\"}}, {{}}]>}},
          %c: tensor<5x6xf32>) -> ({result} {{sdy.sharding = #sdy.sharding<@mesh, {spread}>}}) {{
        {body}
        return %r : {result}
      }}
      func.func private @twice(%a: tensor<8x6xf32>) -> tensor<8x6xf32> {{
        %0 = stablehlo.add %a, %a : tensor<8x6xf32>
        return %0 : tensor<8x6xf32>
      }}
    }}"
        );
        let module = parse(&text).unwrap_or_else(|error| panic!("{body}: {error}"));
        verify(&module).unwrap_or_else(|error| panic!("{body}: {error}"));
        let local = partition(&module).unwrap_or_else(|error| panic!("{body}: {error}")).module;
        verify(&local).unwrap_or_else(|error| panic!("{body}: {error}"));
        local
    }

    const CUT: &str = "[{\"x\"}, {\"y\"}]";

    #[test]
    fn what_devices_can_do_alone_they_do_for_their_parts() {
        let wide = "tensor<8x6xf32>";
        for (body, result, spread, local) in [
            (
                "%0 = stablehlo.sine %a : tensor<8x6xf32>
                 %i = stablehlo.iota dim = 0 : tensor<8x6xf32>
                 %1 = stablehlo.multiply %0, %i : tensor<8x6xf32>
                 %2 = stablehlo.constant dense<2.0> : tensor<8x6xf32>
                 %r = stablehlo.add %1, %2 : tensor<8x6xf32>",
                wide,
                CUT,
                "tensor<4x3xf32>",
            ),
            (
                "%r = stablehlo.dot_general %b, %c, contracting_dims = [1] x [0] : (tensor<8x5xf32>, tensor<5x6xf32>) -> tensor<8x6xf32>",
                wide,
                CUT,
                "tensor<4x3xf32>",
            ),
            ("%r = func.call @twice(%a) : (tensor<8x6xf32>) -> tensor<8x6xf32>", wide, CUT, "tensor<4x3xf32>"),
            (
                "%0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<8x6xf32>) -> tensor<6x8xf32>
                 %r = stablehlo.reshape %0 : (tensor<6x8xf32>) -> tensor<6x1x8xf32>",
                "tensor<6x1x8xf32>",
                "[{\"y\"}, {}, {\"x\"}]",
                "tensor<3x1x4xf32>",
            ),
            (
                "%0 = stablehlo.slice %b [0:8, 2:4] : (tensor<8x5xf32>) -> tensor<8x2xf32>
                 %r = stablehlo.concatenate %0, %b, dim = 1 : (tensor<8x2xf32>, tensor<8x5xf32>) -> tensor<8x7xf32>",
                "tensor<8x7xf32>",
                "[{\"x\"}, {}]",
                "tensor<4x7xf32>",
            ),
            (
                "%0 = stablehlo.slice %c [1:2, 0:6] : (tensor<5x6xf32>) -> tensor<1x6xf32>
                 %1 = stablehlo.reshape %0 : (tensor<1x6xf32>) -> tensor<6xf32>
                 %2 = stablehlo.broadcast_in_dim %1, dims = [1] : (tensor<6xf32>) -> tensor<8x6xf32>
                 %r = stablehlo.subtract %2, %a : tensor<8x6xf32>",
                wide,
                CUT,
                "tensor<4x3xf32>",
            ),
        ] {
            let module = partitioned(body, result, spread);
            let text = module.to_string();
            let main = module.function("main").unwrap();
            assert_eq!(main.results[0].ty.to_string(), local, "{text}");
            assert!(main.ops.values().all(|op| !op.kind.is_collective()), "{text}");
            assert!(!text.contains("tensor<8x"), "{text}");
        }
    }

    #[test]
    fn what_others_have_is_gathered() {
        for (body, result, spread) in [
            // Elements from another place.
            ("%r = stablehlo.reverse %a, dims = [0] : tensor<8x6xf32>", "tensor<8x6xf32>", CUT),
            // Cut in one way and wanted in another.
            ("%r = stablehlo.sine %a : tensor<8x6xf32>", "tensor<8x6xf32>", "[{\"y\"}, {\"x\"}]"),
            // Summed over what is cut.
            (
                "%r = stablehlo.dot_general %b, %a, contracting_dims = [0] x [0] : (tensor<8x5xf32>, tensor<8x6xf32>) -> tensor<5x6xf32>",
                "tensor<5x6xf32>",
                "[{}, {\"y\"}]",
            ),
        ] {
            let module = partitioned(body, result, spread);
            let text = module.to_string();
            assert!(text.contains("stablehlo.all_gather"), "{text}");
        }
    }
}
