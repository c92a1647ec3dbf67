//! A global program whose work is done in one `sdy.manual_computation`, as a local program.

use super::SpmdError;
use super::clone::Cloner;
use super::geometry::{axes_of, device_count, local_shape, unreduced_axes};
use super::inline::inline;
use crate::stablehlo::op::{ManualComputation, OpKind, Sharding};
use crate::stablehlo::{
    Function, Mesh, Module, Op, OpData, Param, ResultInfo, TensorType, Type, Value, ValueDef,
};

/// The program of one device, and how its parameters and results make up global arrays.
#[derive(Clone, Debug, PartialEq)]
pub struct Localized {
    /// The program in local shapes; it has no shardings and no meshes.
    pub module: Module,
    /// The arrangement of the devices; without axes when nothing is spread.
    pub mesh: Mesh,
    /// How each parameter of `main` is spread, by axes of [`Localized::mesh`].
    pub parameter_shardings: Vec<Sharding>,
    /// How each result of `main` is spread, by axes of [`Localized::mesh`].
    pub result_shardings: Vec<Sharding>,
    /// The types of the parameters as global arrays.
    pub global_parameters: Vec<TensorType>,
    /// The types of the results as global arrays.
    pub global_results: Vec<TensorType>,
    /// How many devices run the program, each under its own `partition_id`.
    pub num_partitions: usize,
}

/// Turns a verified global module into the program of one device.
///
/// The body of `main` may be one `sdy.manual_computation` over every mesh axis of more than one
/// device, besides constants; it may be in a function that `main` calls. A program on one device,
/// or one that spreads nothing, stays as it is. Functions that the body calls are local already
/// and stay, too.
///
/// # Errors
/// When the program leaves anything to a partitioner, or its shardings do not fit its shapes.
pub fn localize(module: &Module) -> Result<Localized, SpmdError> {
    let module = &*module.decompose_composites();
    let inlined = inline(module)?;
    let module = inlined.as_ref().unwrap_or(module);
    let main = module.function("main").ok_or(SpmdError::NoMain)?;
    if module.num_replicas != 1 {
        return Err(SpmdError::Replicas { num_replicas: module.num_replicas });
    }
    let ops = || main.blocks[main.entry].ops.iter().map(|&op| (op, &main.ops[op]));
    let manual = ops().find_map(|(op, data)| match &data.kind {
        OpKind::ManualComputation(manual) => Some((op, data, manual)),
        _ => None,
    });
    let mesh = mesh_of(module, main, manual.map(|(_, _, manual)| manual))?;
    let devices = device_count(&mesh)?;
    if devices != module.num_partitions && !mesh.axes.is_empty() {
        return Err(SpmdError::Partitions {
            mesh: mesh.name,
            devices,
            num_partitions: module.num_partitions,
        });
    }
    let localizer = Localizer { module, main, mesh };
    match manual {
        Some((op, data, manual)) => localizer.manual(op, data, manual),
        None => localizer.unspread(),
    }
}

/// The mesh that the program is about: that of the manual computation, of a parameter or of a
/// result; one without axes if there is none.
pub(super) fn mesh_of(
    module: &Module,
    main: &Function,
    manual: Option<&ManualComputation>,
) -> Result<Mesh, SpmdError> {
    let manual = manual.into_iter().flat_map(|m| m.in_shardings.iter().chain(&m.out_shardings));
    let params = main.params.iter().filter_map(|param| param.sharding.as_ref());
    let results = main.results.iter().filter_map(|result| result.sharding.as_ref());
    let mut shardings = manual.chain(params).chain(results);
    let Some(first) = shardings.next() else {
        return Ok(Mesh { name: String::new(), axes: Vec::new(), device_ids: None });
    };
    // What is not spread is over a mesh without axes, in programs that have others, too.
    let has_axes = |sharding: &&Sharding| {
        module.mesh(&sharding.mesh).is_some_and(|mesh| !mesh.axes.is_empty())
    };
    let sharding = Some(first).filter(has_axes).or_else(|| shardings.find(has_axes));
    let sharding = sharding.unwrap_or(first);
    module.mesh(&sharding.mesh).cloned().ok_or_else(|| SpmdError::UnknownMesh {
        what: "the program".to_owned(),
        mesh: sharding.mesh.clone(),
    })
}

struct Localizer<'a> {
    module: &'a Module,
    main: &'a Function,
    mesh: Mesh,
}

impl Localizer<'_> {
    /// The local program of one whose work is `manual`.
    fn manual(
        &self,
        op: Op,
        data: &OpData,
        manual: &ManualComputation,
    ) -> Result<Localized, SpmdError> {
        self.check_axes(data, manual)?;
        let main = self.main;
        let body = data.regions.first().map(|&region| main.regions[region].block);
        let body = body.ok_or(SpmdError::NotVerified("a manual computation has no body"))?;
        if manual.in_shardings.len() != data.operands.len()
            || manual.out_shardings.len() != data.results.len()
            || main.blocks[body].arguments.len() != data.operands.len()
        {
            let what = "a manual computation has not one sharding and one argument per value";
            return Err(SpmdError::NotVerified(what));
        }
        let parameter_shardings = self.parameter_shardings(data, manual)?;
        let mut cloner = Cloner::new(main);
        self.parameters(&mut cloner, &parameter_shardings)?;
        self.constants(&mut cloner, op)?;
        for (i, (&operand, sharding)) in data.operands.iter().zip(&manual.in_shardings).enumerate()
        {
            let what = format!("operand {i} of {} at {}", data.kind, data.location);
            let argument = main.blocks[body].arguments[i];
            self.check_local(operand, sharding, argument, &what)?;
            let operand = cloner.mapped(operand)?;
            cloner.map(argument, operand);
        }
        let (last, ops) = main.blocks[body]
            .ops
            .split_last()
            .ok_or(SpmdError::NotVerified("a manual computation has an empty body"))?;
        let entry = cloner.target.entry;
        for &op in ops {
            cloner.op(op, entry)?;
        }
        let returned = &main.ops[*last].operands;
        if returned.len() != data.results.len() {
            return Err(SpmdError::NotVerified("a manual computation returns too few values"));
        }
        for (i, (&result, sharding)) in data.results.iter().zip(&manual.out_shardings).enumerate() {
            let what = format!("result {i} of {} at {}", data.kind, data.location);
            self.check_local(result, sharding, returned[i], &what)?;
            let local = cloner.mapped(returned[i])?;
            cloner.map(result, local);
        }
        let result_shardings =
            self.results(&mut cloner, &parameter_shardings, &manual.out_shardings)?;
        self.finish(cloner.target, parameter_shardings, result_shardings)
    }

    /// Every axis of more than one device must be handled by the body.
    fn check_axes(&self, data: &OpData, manual: &ManualComputation) -> Result<(), SpmdError> {
        let automatic = self.mesh.axes.iter().find(|(name, size)| {
            *size > 1 && !manual.manual_axes.iter().any(|manual| manual == name)
        });
        match automatic {
            None => Ok(()),
            Some((axis, _)) => Err(SpmdError::NeedsPartitioner {
                what: format!("{} leaves the axis \"{axis}\" automatic", data.kind),
                location: data.location,
            }),
        }
    }

    /// How each parameter is spread: as the manual computation takes it, or as it is declared.
    fn parameter_shardings(
        &self,
        data: &OpData,
        manual: &ManualComputation,
    ) -> Result<Vec<Sharding>, SpmdError> {
        let params = self.main.params.iter();
        let mut shardings: Vec<Option<Sharding>> = params.map(|p| p.sharding.clone()).collect();
        for (i, (operand, sharding)) in data.operands.iter().zip(&manual.in_shardings).enumerate() {
            let Some(position) = self.main.params.iter().position(|p| p.value == *operand) else {
                continue;
            };
            let what = format!("parameter {position}");
            match &shardings[position] {
                None => shardings[position] = Some(sharding.clone()),
                Some(declared) if self.same(declared, sharding, &what)? => {}
                Some(_) => {
                    return Err(SpmdError::NeedsPartitioner {
                        what: format!(
                            "{what} is spread in another way than operand {i} of {}",
                            data.kind
                        ),
                        location: data.location,
                    });
                }
            }
        }
        let params = self.main.params.iter().zip(shardings);
        params
            .map(|(param, sharding)| match sharding {
                Some(sharding) => Ok(sharding),
                None => self.replicated(param.value),
            })
            .collect()
    }

    /// Whether two shardings cut every dimension, and into summands, alike.
    fn same(&self, a: &Sharding, b: &Sharding, what: &str) -> Result<bool, SpmdError> {
        let unreduced = |sharding| unreduced_axes(&self.mesh, sharding);
        Ok(self.axes(a, what)? == self.axes(b, what)? && unreduced(a) == unreduced(b))
    }

    fn axes(&self, sharding: &Sharding, what: &str) -> Result<Vec<Vec<usize>>, SpmdError> {
        if sharding.mesh != self.mesh.name && !sharding.is_whole() {
            return Err(SpmdError::OtherMesh {
                what: what.to_owned(),
                expected: self.mesh.name.clone(),
                found: sharding.mesh.clone(),
            });
        }
        axes_of(&self.mesh, sharding, what)
    }

    /// The sharding of an array that every device holds whole.
    fn replicated(&self, value: Value) -> Result<Sharding, SpmdError> {
        let rank = self.tensor(value, "a parameter")?.shape.rank();
        Ok(Sharding::whole(&self.mesh.name, rank))
    }

    fn tensor(&self, value: Value, what: &str) -> Result<&TensorType, SpmdError> {
        self.main.tensor(value).ok_or_else(|| SpmdError::NoArray {
            what: what.to_owned(),
            ty: self.main.ty(value).clone(),
        })
    }

    /// Appends the parameters in local shapes.
    fn parameters(&self, cloner: &mut Cloner<'_>, shardings: &[Sharding]) -> Result<(), SpmdError> {
        for (i, (param, sharding)) in self.main.params.iter().zip(shardings).enumerate() {
            let what = format!("parameter {i}");
            let ty = self.tensor(param.value, &what)?;
            self.axes(sharding, &what)?;
            let shape = local_shape(&self.mesh, sharding, ty, &what)?;
            let ty = Type::Tensor(TensorType::new(ty.dtype, shape));
            let value = cloner.argument(cloner.target.entry, ty);
            cloner.map(param.value, value);
            let param = Param { value, sharding: None, hlo_sharding: None, ..param.clone() };
            cloner.target.params.push(param);
        }
        Ok(())
    }

    /// Copies the constants of `main`, and refuses what else is there besides `manual`.
    fn constants(&self, cloner: &mut Cloner<'_>, manual: Op) -> Result<(), SpmdError> {
        let entry = cloner.target.entry;
        for &op in &self.main.blocks[self.main.entry].ops {
            let data = &self.main.ops[op];
            match data.kind {
                OpKind::Constant(_) => cloner.op(op, entry)?,
                OpKind::Return => {}
                _ if op == manual => {}
                _ => return Err(global(data)),
            }
        }
        Ok(())
    }

    /// The local shape of a global value must be that of the value inside the body.
    fn check_local(
        &self,
        value: Value,
        sharding: &Sharding,
        inside: Value,
        what: &str,
    ) -> Result<(), SpmdError> {
        let ty = self.tensor(value, what)?;
        self.axes(sharding, what)?;
        let expected = local_shape(&self.mesh, sharding, ty, what)?;
        match self.main.tensor(inside) {
            Some(found) if found.shape == expected && found.dtype == ty.dtype => Ok(()),
            _ => Err(SpmdError::LocalShape {
                what: what.to_owned(),
                expected,
                found: self.main.ty(inside).clone(),
            }),
        }
    }

    /// Appends the return, and says how each result is spread; `made` are the shardings of the
    /// results of the manual computation.
    fn results(
        &self,
        cloner: &mut Cloner<'_>,
        parameters: &[Sharding],
        made: &[Sharding],
    ) -> Result<Vec<Sharding>, SpmdError> {
        let main = self.main;
        let ops = &main.blocks[main.entry].ops;
        let ret = *ops.last().ok_or(SpmdError::NotVerified("@main is empty"))?;
        let returned = &main.ops[ret].operands;
        let mut shardings = Vec::with_capacity(returned.len());
        for (i, &value) in returned.iter().enumerate() {
            let what = format!("result {i} of @main");
            let sharding = match main.values[value].def {
                ValueDef::Argument(_, position) => parameters.get(position).cloned(),
                ValueDef::Result(op, position) => match &main.ops[op].kind {
                    OpKind::ManualComputation(_) => made.get(position).cloned(),
                    _ => Some(self.replicated(value)?),
                },
            };
            let sharding = sharding.ok_or(SpmdError::NotVerified("a result has no sharding"))?;
            let declared = main.results.get(i).and_then(|result| result.sharding.as_ref());
            if let Some(declared) = declared
                && !self.same(declared, &sharding, &what)?
            {
                return Err(SpmdError::NeedsPartitioner {
                    what: format!("{what} is asked for spread in another way than it is made"),
                    location: main.ops[ret].location,
                });
            }
            shardings.push(sharding);
        }
        let values = returned.iter().map(|&value| cloner.mapped(value));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        for (&value, result) in values.iter().zip(&main.results) {
            let ty = cloner.target.ty(value).clone();
            let (sharding, hlo_sharding) = (None, None);
            let result = ResultInfo { ty, sharding, hlo_sharding, ..result.clone() };
            cloner.target.results.push(result);
        }
        let entry = cloner.target.entry;
        cloner.push(OpKind::Return, values, Vec::new(), ret, entry);
        Ok(shardings)
    }

    /// A program for one device, or one that computes everything on every device.
    fn unspread(&self) -> Result<Localized, SpmdError> {
        let main = self.main;
        if self.module.num_partitions != 1 {
            self.check_unspread()?;
        }
        let declared = main.params.iter().map(|param| match &param.sharding {
            Some(sharding) => Ok(sharding.clone()),
            None => self.replicated(param.value),
        });
        let parameters = declared.collect::<Result<Vec<_>, _>>()?;
        let mut cloner = Cloner::new(main);
        self.parameters(&mut cloner, &parameters)?;
        let entry = cloner.target.entry;
        let ops = main.blocks[main.entry].ops.as_slice();
        let (_, ops) = ops.split_last().ok_or(SpmdError::NotVerified("@main is empty"))?;
        for &op in ops {
            cloner.op(op, entry)?;
        }
        let results = self.results(&mut cloner, &parameters, &[])?;
        self.finish(cloner.target, parameters, results)
    }

    /// Nothing may be spread, and no operation may tell devices apart.
    fn check_unspread(&self) -> Result<(), SpmdError> {
        let refuse = |what: String, location| Err(SpmdError::NeedsPartitioner { what, location });
        for (i, param) in self.main.params.iter().enumerate() {
            let what = format!("parameter {i} of @main");
            self.check_whole(param.sharding.as_ref(), &what)?;
        }
        for (i, result) in self.main.results.iter().enumerate() {
            let what = format!("result {i} of @main");
            self.check_whole(result.sharding.as_ref(), &what)?;
        }
        for data in self.module.functions.iter().flat_map(Function::placed) {
            for sharding in &data.shardings {
                if self.is_spread(sharding, &data.kind.to_string())? {
                    return refuse(format!("{} spreads its result", data.kind), data.location);
                }
            }
            match &data.kind {
                OpKind::ShardingConstraint(sharding) => {
                    let what = data.kind.to_string();
                    if self.is_spread(sharding, &what)? {
                        return refuse(format!("{what} spreads a value"), data.location);
                    }
                }
                OpKind::PartitionId => return Err(global(data)),
                kind if kind.is_collective() => return Err(global(data)),
                _ => {}
            }
        }
        Ok(())
    }

    fn check_whole(&self, sharding: Option<&Sharding>, what: &str) -> Result<(), SpmdError> {
        let Some(sharding) = sharding else { return Ok(()) };
        if !self.is_spread(sharding, what)? {
            return Ok(());
        }
        Err(SpmdError::NeedsPartitioner {
            what: format!("{what} is spread, but not the work on it"),
            location: self.main.location,
        })
    }

    fn is_spread(&self, sharding: &Sharding, what: &str) -> Result<bool, SpmdError> {
        let is_cut = self.axes(sharding, what)?.iter().any(|axes| !axes.is_empty());
        Ok(is_cut || !unreduced_axes(&self.mesh, sharding).is_empty())
    }

    /// Puts the module together: the new `main` in its place, the other functions as they are.
    fn finish(
        &self,
        main: Function,
        parameter_shardings: Vec<Sharding>,
        result_shardings: Vec<Sharding>,
    ) -> Result<Localized, SpmdError> {
        let mut main = Some(main);
        let mut functions = Vec::with_capacity(self.module.functions.len());
        for function in &self.module.functions {
            if std::ptr::eq(function, self.main) {
                functions.extend(main.take());
            } else {
                functions.push(Cloner::function(function, None)?);
            }
        }
        let tensors = |values: Vec<Value>| -> Result<Vec<TensorType>, SpmdError> {
            values.into_iter().map(|value| self.tensor(value, "@main").cloned()).collect()
        };
        let ret = self.main.blocks[self.main.entry].ops.last();
        let returned = ret.map(|&ret| self.main.ops[ret].operands.clone()).unwrap_or_default();
        Ok(Localized {
            module: Module {
                name: self.module.name.clone(),
                num_partitions: self.module.num_partitions,
                num_replicas: 1,
                meshes: Vec::new(),
                functions,
            },
            global_parameters: tensors(self.main.params.iter().map(|p| p.value).collect())?,
            global_results: tensors(returned)?,
            mesh: self.mesh.clone(),
            parameter_shardings,
            result_shardings,
            num_partitions: self.module.num_partitions,
        })
    }
}

/// The error that an operation works on global values.
fn global(data: &OpData) -> SpmdError {
    SpmdError::NeedsPartitioner {
        what: format!("{} works on global values", data.kind),
        location: data.location,
    }
}
