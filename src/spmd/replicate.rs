//! A global program as one that every device computes whole.
//!
//! Parameters that are spread are gathered first, results that are to be spread are cut at the end
//! (of summands, the first is all and the others are nothing), and the body of a manual computation runs on the parts that are its device's. Shardings inside
//! of the program ask for nothing: they say how to be fast. What is needed is right; the
//! partitioner, which this stands in for, will make it fast.

use super::SpmdError;
use super::clone::Cloner;
use super::geometry::{axes_of, device_count, local_shape, position_of, unreduced_axes};
use super::localize::{Localized, mesh_of};
use super::spread::spread;
use crate::ifrt::{DType, Shape};
use crate::stablehlo::op::{Binary, Collective, ManualComputation, OpKind, Sharding};
use crate::stablehlo::{
    Block, BlockData, Function, Literal, Mesh, Module, Op, OpData, Param, RegionData, ResultInfo,
    TensorType, Type, Value,
};

/// Turns a verified global module into a program that every device runs, each on everything.
///
/// # Errors
/// When an operation outside of manual computations tells devices apart, or shardings do not fit
/// their shapes.
pub(super) fn replicate(module: &Module) -> Result<Localized, SpmdError> {
    let module = &*module.decompose_composites();
    let main = module.function("main").ok_or(SpmdError::NoMain)?;
    if module.num_replicas != 1 {
        return Err(SpmdError::Replicas { num_replicas: module.num_replicas });
    }
    let mut all = module.functions.iter().flat_map(Function::placed);
    let manual = all.find_map(|data| match &data.kind {
        OpKind::ManualComputation(manual) => Some(manual),
        _ => None,
    });
    let whole = Whole::new(mesh_of(module, main, manual)?, module.num_partitions);
    let devices = device_count(&whole.mesh)?;
    if devices != module.num_partitions && !whole.mesh.axes.is_empty() {
        let mesh = whole.mesh.name;
        let num_partitions = module.num_partitions;
        return Err(SpmdError::Partitions { mesh, devices, num_partitions });
    }
    require_alike(main)?;
    let ret = main.blocks[main.entry].ops.last();
    let returned = ret.map(|&ret| main.ops[ret].operands.clone()).unwrap_or_default();
    let results = returned.iter().zip(&main.results);
    let result_shardings = results
        .map(|(&value, result)| match &result.sharding {
            Some(declared) => Ok(declared.clone()),
            None => match spread(module, &whole.mesh, main, value) {
                Some(found) => Ok(found),
                None => whole.declared(main, value, None),
            },
        })
        .collect::<Result<Vec<_>, _>>()?;
    let mut functions = Vec::with_capacity(module.functions.len());
    for function in &module.functions {
        functions.push(match std::ptr::eq(function, main) {
            true => whole.main(main, &result_shardings)?,
            false => Cloner::function(function, Some(&whole))?,
        });
    }
    let tensors = |values: Vec<Value>| -> Result<Vec<TensorType>, SpmdError> {
        values.into_iter().map(|value| tensor(main, value).cloned()).collect()
    };
    let params = main.params.iter();
    let parameter_shardings = params
        .map(|param| whole.declared(main, param.value, param.sharding.as_ref()))
        .collect::<Result<_, _>>()?;
    Ok(Localized {
        module: Module {
            name: module.name.clone(),
            num_partitions: module.num_partitions,
            num_replicas: 1,
            meshes: Vec::new(),
            functions,
        },
        parameter_shardings,
        result_shardings,
        global_parameters: tensors(main.params.iter().map(|param| param.value).collect())?,
        global_results: tensors(returned)?,
        mesh: whole.mesh,
        num_partitions: module.num_partitions,
    })
}

/// Every device computes the same, so nothing in `main` may tell it which one it is, except in the
/// body of a manual computation.
fn require_alike(main: &Function) -> Result<(), SpmdError> {
    let refuse = |what: String, location| Err(SpmdError::NeedsPartitioner { what, location });
    let mut blocks = vec![main.entry];
    while let Some(block) = blocks.pop() {
        for &op in &main.blocks[block].ops {
            let data = &main.ops[op];
            match &data.kind {
                OpKind::ManualComputation(_) => continue,
                kind if kind.is_collective() || *kind == OpKind::PartitionId => {
                    return refuse(format!("{kind} works on global values"), data.location);
                }
                _ => {}
            }
            blocks.extend(data.regions.iter().map(|&region| main.regions[region].block));
        }
    }
    Ok(())
}

/// Where the devices are, each of which computes everything.
pub(super) struct Whole {
    mesh: Mesh,
    partitions: usize,
}

impl Whole {
    /// One device of `mesh` for each of so many partitions.
    pub(super) fn new(mesh: Mesh, partitions: usize) -> Self {
        Self { mesh, partitions }
    }

    pub(super) fn into_mesh(self) -> Mesh {
        self.mesh
    }

    /// How a parameter or result is spread: as it is declared, or not at all.
    fn declared(
        &self,
        main: &Function,
        value: Value,
        sharding: Option<&Sharding>,
    ) -> Result<Sharding, SpmdError> {
        let rank = tensor(main, value)?.shape.rank();
        Ok(sharding.cloned().unwrap_or_else(|| Sharding::whole(&self.mesh.name, rank)))
    }

    /// `main`, between gathering its parameters and cutting its results.
    fn main(&self, main: &Function, spread: &[Sharding]) -> Result<Function, SpmdError> {
        let mut cloner = Cloner::of_whole(main, self);
        let entry = cloner.target.entry;
        let ops = &main.blocks[main.entry].ops;
        let (&ret, ops) = ops.split_last().ok_or(SpmdError::NotVerified("@main is empty"))?;
        let mut arguments = Vec::with_capacity(main.params.len());
        for (i, param) in main.params.iter().enumerate() {
            let sharding = self.declared(main, param.value, param.sharding.as_ref())?;
            let what = format!("parameter {i} of @main");
            let ty = tensor(main, param.value)?;
            self.check_mesh(&sharding, &what)?;
            let local = local_shape(&self.mesh, &sharding, ty, &what)?;
            let ty = Type::Tensor(TensorType::new(ty.dtype, local));
            let value = cloner.argument(entry, ty);
            let param = Param { value, sharding: None, hlo_sharding: None, ..param.clone() };
            cloner.target.params.push(param);
            arguments.push((value, sharding));
        }
        for (param, (argument, sharding)) in main.params.iter().zip(arguments) {
            let place = Place { origin: ret, into: entry };
            let value = self.gather(&mut cloner, argument, &sharding, &self.all_axes(), place)?;
            cloner.map(param.value, value);
        }
        for &op in ops {
            cloner.op(op, entry)?;
        }
        let returned = &main.ops[ret].operands;
        let mut results = Vec::with_capacity(returned.len());
        for ((&value, result), sharding) in returned.iter().zip(&main.results).zip(spread) {
            let place = Place { origin: ret, into: entry };
            let value = cloner.mapped(value)?;
            let value = self.cut(&mut cloner, value, sharding, &self.all_axes(), place)?;
            let ty = cloner.target.ty(value).clone();
            let (sharding, hlo_sharding) = (None, None);
            let result = ResultInfo { ty, sharding, hlo_sharding, ..result.clone() };
            cloner.target.results.push(result);
            results.push(value);
        }
        cloner.push(OpKind::Return, results, Vec::new(), ret, entry);
        Ok(cloner.target)
    }

    /// The body of a manual computation, between cutting its operands and gathering its results.
    pub(super) fn manual(
        &self,
        cloner: &mut Cloner<'_>,
        (op, data): (Op, &OpData),
        manual: &ManualComputation,
        into: Block,
    ) -> Result<(), SpmdError> {
        let source = cloner.source;
        let unverified = SpmdError::NotVerified("a manual computation does not fit its body");
        let body = data.regions.first().map(|&region| source.regions[region].block);
        let body = &source.blocks[body.ok_or(unverified.clone())?];
        let (&ret, ops) = body.ops.split_last().ok_or(unverified.clone())?;
        let returned = &source.ops[ret].operands;
        if body.arguments.len() != data.operands.len()
            || manual.in_shardings.len() != data.operands.len()
            || manual.out_shardings.len() != data.results.len()
            || returned.len() != data.results.len()
        {
            return Err(unverified);
        }
        let place = Place { origin: op, into };
        for ((&operand, &argument), sharding) in
            data.operands.iter().zip(&body.arguments).zip(&manual.in_shardings)
        {
            let value = cloner.mapped(operand)?;
            let part = self.cut(cloner, value, sharding, &manual.manual_axes, place)?;
            cloner.map(argument, part);
        }
        for &op in ops {
            cloner.op(op, into)?;
        }
        for ((&result, &value), sharding) in
            data.results.iter().zip(returned).zip(&manual.out_shardings)
        {
            let part = cloner.mapped(value)?;
            let value = self.gather(cloner, part, sharding, &manual.manual_axes, place)?;
            cloner.map(result, value);
        }
        Ok(())
    }

    fn all_axes(&self) -> Vec<String> {
        self.mesh.axes.iter().map(|(name, _)| name.clone()).collect()
    }

    fn check_mesh(&self, sharding: &Sharding, what: &str) -> Result<(), SpmdError> {
        if sharding.mesh == self.mesh.name || sharding.is_whole() {
            return Ok(());
        }
        Err(SpmdError::OtherMesh {
            what: what.to_owned(),
            expected: self.mesh.name.clone(),
            found: sharding.mesh.clone(),
        })
    }

    /// Of the axes that cut each dimension those among `names`, by position in the mesh.
    fn axes(&self, sharding: &Sharding, names: &[String]) -> Result<Vec<Vec<usize>>, SpmdError> {
        self.check_mesh(sharding, "a value")?;
        let mut dims = axes_of(&self.mesh, sharding, "a value")?;
        for axes in &mut dims {
            axes.retain(|&axis| names.contains(&self.mesh.axes[axis].0));
        }
        Ok(dims)
    }

    /// Which part along `axes` a partition has.
    fn part(&self, partition: usize, axes: &[usize]) -> Result<usize, SpmdError> {
        let position = position_of(&self.mesh, partition);
        let position = position.ok_or(SpmdError::NotVerified("a mesh has too few devices"))?;
        Ok(axes.iter().fold(0, |part, &axis| part * self.mesh.axes[axis].1 + position[axis]))
    }

    /// The axes among `names` along which devices have summands, by position in the mesh.
    fn unreduced(&self, sharding: &Sharding, names: &[String]) -> Vec<usize> {
        let mut axes = unreduced_axes(&self.mesh, sharding);
        axes.retain(|&axis| names.contains(&self.mesh.axes[axis].0));
        axes
    }

    /// Puts the parts of all devices together, dimension by dimension, and adds up summands.
    fn gather(
        &self,
        cloner: &mut Cloner<'_>,
        mut value: Value,
        sharding: &Sharding,
        names: &[String],
        place: Place,
    ) -> Result<Value, SpmdError> {
        for (dimension, axes) in self.axes(sharding, names)?.iter().enumerate() {
            if axes.is_empty() {
                continue;
            }
            let collective = self.among(axes)?;
            let ty = tensor(&cloner.target, value)?;
            let mut dims = ty.shape.dims().to_vec();
            dims[dimension] *= collective.replica_groups.first().map_or(1, Vec::len);
            let ty = Type::Tensor(TensorType::new(ty.dtype, shape(dims)?));
            let kind = OpKind::AllGather { dimension, collective };
            value = place.push(cloner, kind, vec![value], ty)?;
        }
        match self.unreduced(sharding, names) {
            axes if axes.is_empty() => Ok(value),
            axes => self.sum(cloner, value, &axes, place),
        }
    }

    /// The sum of the values of devices along `axes`.
    fn sum(
        &self,
        cloner: &mut Cloner<'_>,
        value: Value,
        axes: &[usize],
        place: Place,
    ) -> Result<Value, SpmdError> {
        let ty = tensor(&cloner.target, value)?.clone();
        let scalar = Type::Tensor(TensorType::new(ty.dtype, Shape::scalar()));
        let kind = OpKind::AllReduce(self.among(axes)?);
        let sum = cloner.push(kind, vec![value], vec![Type::Tensor(ty)], place.origin, place.into);
        let block = cloner.target.blocks.push(BlockData::default());
        let region = cloner.target.regions.push(RegionData { block });
        cloner.target.ops[sum].regions.push(region);
        let operands =
            vec![cloner.argument(block, scalar.clone()), cloner.argument(block, scalar.clone())];
        let body = Place { into: block, ..place };
        let added = body.push(cloner, OpKind::Binary(Binary::Add), operands, scalar)?;
        cloner.push(OpKind::Return, vec![added], Vec::new(), place.origin, block);
        let result = cloner.target.ops[sum].results.first().copied();
        result.ok_or(SpmdError::NotVerified("an operation has no result"))
    }

    /// A collective among the partitions that differ in `axes` alone, in the order of their parts.
    fn among(&self, axes: &[usize]) -> Result<Collective, SpmdError> {
        let others: Vec<usize> =
            (0..self.mesh.axes.len()).filter(|axis| !axes.contains(axis)).collect();
        let mut members = Vec::with_capacity(self.partitions);
        for partition in 0..self.partitions {
            let id = i64::try_from(partition).unwrap_or(i64::MAX);
            members.push((self.part(partition, &others)?, self.part(partition, axes)?, id));
        }
        members.sort_unstable();
        let groups = members.chunk_by(|a, b| a.0 == b.0);
        let replica_groups =
            groups.map(|group| group.iter().map(|member| member.2).collect()).collect();
        Ok(Collective { replica_groups, channel_id: 1, use_global_device_ids: true })
    }

    /// The part of a value that is its device's, or its summand.
    fn cut(
        &self,
        cloner: &mut Cloner<'_>,
        value: Value,
        sharding: &Sharding,
        names: &[String],
        place: Place,
    ) -> Result<Value, SpmdError> {
        let part = self.slice(cloner, value, sharding, names, place)?;
        match self.unreduced(sharding, names) {
            axes if axes.is_empty() => Ok(part),
            axes => self.summand(cloner, part, &axes, place),
        }
    }

    /// The first device along `axes` has the whole sum, the others zeros.
    fn summand(
        &self,
        cloner: &mut Cloner<'_>,
        value: Value,
        axes: &[usize],
        place: Place,
    ) -> Result<Value, SpmdError> {
        let ty = tensor(&cloner.target, value)?.clone();
        let firsts = (0..self.partitions).map(|device| Ok(u8::from(self.part(device, axes)? == 0)));
        let firsts = firsts.collect::<Result<Vec<u8>, SpmdError>>()?;
        let device = place.device(cloner)?;
        let is_first = self.of_device(cloner, device, (DType::Bool, firsts), place)?;
        let zero = vec![0; ty.dtype.size_bytes()];
        let zeros = Literal::splat(ty.clone(), zero)
            .ok_or(SpmdError::NotVerified("an element has another length than it has"))?;
        let ty = Type::Tensor(ty);
        let zeros = place.push(cloner, OpKind::Constant(zeros), vec![], ty.clone())?;
        place.push(cloner, OpKind::Select, vec![is_first, value, zeros], ty)
    }

    /// Of scalars of a type, one for each device, the one that is `device`'s.
    fn of_device(
        &self,
        cloner: &mut Cloner<'_>,
        device: Value,
        (dtype, bytes): (DType, Vec<u8>),
        place: Place,
    ) -> Result<Value, SpmdError> {
        let tensor = |dtype, shape| Type::Tensor(TensorType::new(dtype, shape));
        let table = Literal::dense(TensorType::new(dtype, shape(vec![self.partitions])?), bytes)
            .ok_or(SpmdError::NotVerified("a table has another length than it has"))?;
        let ty = Type::Tensor(table.ty().clone());
        let table = place.push(cloner, OpKind::Constant(table), vec![], ty)?;
        let kind = OpKind::DynamicSlice { sizes: vec![1] };
        let own = tensor(dtype, shape(vec![1])?);
        let own = place.push(cloner, kind, vec![table, device], own)?;
        place.push(cloner, OpKind::Reshape, vec![own], tensor(dtype, Shape::scalar()))
    }

    /// The part of a value that its device has of each dimension.
    fn slice(
        &self,
        cloner: &mut Cloner<'_>,
        value: Value,
        sharding: &Sharding,
        names: &[String],
        place: Place,
    ) -> Result<Value, SpmdError> {
        self.slice_along(cloner, value, &self.axes(sharding, names)?, place)
    }

    /// The part of a value that its device has, with the axes that cut each dimension.
    pub(super) fn slice_along(
        &self,
        cloner: &mut Cloner<'_>,
        value: Value,
        axes: &[Vec<usize>],
        place: Place,
    ) -> Result<Value, SpmdError> {
        if axes.iter().all(Vec::is_empty) {
            return Ok(value);
        }
        let ty = self.part_type(tensor(&cloner.target, value)?, axes)?;
        let sizes = ty.shape.dims().to_vec();
        let device = place.device(cloner)?;
        let mut operands = vec![value];
        for (&size, axes) in sizes.iter().zip(axes) {
            operands.push(self.start(cloner, device, (axes, size), place)?);
        }
        place.push(cloner, OpKind::DynamicSlice { sizes }, operands, Type::Tensor(ty))
    }

    /// The type of a part of a value of type `ty`, with the axes that cut each dimension.
    pub(super) fn part_type(
        &self,
        ty: &TensorType,
        axes: &[Vec<usize>],
    ) -> Result<TensorType, SpmdError> {
        let mut sizes = ty.shape.dims().to_vec();
        if sizes.len() != axes.len() {
            let (ty, found) = (ty.clone(), axes.len());
            return Err(SpmdError::Rank { what: "a value".to_owned(), ty, found });
        }
        for (dim, (size, axes)) in sizes.iter_mut().zip(axes).enumerate() {
            let parts: usize = axes.iter().map(|&axis| self.mesh.axes[axis].1).product();
            if !size.is_multiple_of(parts) {
                let what = "a value".to_owned();
                return Err(SpmdError::NotDivisible { what, dim, size: *size, parts });
            }
            *size /= parts;
        }
        Ok(TensorType::new(ty.dtype, shape(sizes)?))
    }

    /// Where the part of `device` starts in a dimension, of parts of one size along axes.
    pub(super) fn start(
        &self,
        cloner: &mut Cloner<'_>,
        device: Value,
        (axes, size): (&[usize], usize),
        place: Place,
    ) -> Result<Value, SpmdError> {
        let starts = (0..self.partitions).map(|partition| {
            let start = self.part(partition, axes)? * size;
            u32::try_from(start).map_err(|_| SpmdError::NotVerified("a shape is too large"))
        });
        let starts = starts.collect::<Result<Vec<u32>, _>>()?;
        let starts = starts.into_iter().flat_map(u32::to_le_bytes).collect();
        self.of_device(cloner, device, (DType::U32, starts), place)
    }
}

/// Where new operations go, and which one they are for.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) origin: Op,
    pub(super) into: Block,
}

impl Place {
    /// Appends the number of the device.
    pub(super) fn device(self, cloner: &mut Cloner<'_>) -> Result<Value, SpmdError> {
        let ty = Type::Tensor(TensorType::new(DType::U32, Shape::scalar()));
        self.push(cloner, OpKind::PartitionId, vec![], ty)
    }

    /// Appends an operation of one result.
    pub(super) fn push(
        self,
        cloner: &mut Cloner<'_>,
        kind: OpKind,
        operands: Vec<Value>,
        ty: Type,
    ) -> Result<Value, SpmdError> {
        let op = cloner.push(kind, operands, vec![ty], self.origin, self.into);
        let result = cloner.target.ops[op].results.first().copied();
        result.ok_or(SpmdError::NotVerified("an operation has no result"))
    }
}

fn shape(dims: Vec<usize>) -> Result<Shape, SpmdError> {
    Shape::new(dims).map_err(|_| SpmdError::NotVerified("a shape is too large"))
}

fn tensor(function: &Function, value: Value) -> Result<&TensorType, SpmdError> {
    function.tensor(value).ok_or_else(|| SpmdError::NoArray {
        what: "a parameter, a result or an operand of a manual computation".to_owned(),
        ty: function.ty(value).clone(),
    })
}
