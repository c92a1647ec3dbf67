//! Running one function: its operations in pieces between those that the backend knows nothing of.
//!
//! A piece is what the backend compiles and runs at once. Values live on between pieces; what is
//! expected of them is compared after the piece that computes them, in the order of the text.

use std::collections::HashMap;
use std::sync::Arc;

use super::compare::difference;
use super::{Failure, Options, expectation};
use crate::backend::cpu::CpuBackend;
use crate::backend::{Backend, Buffer, Executable};
use crate::client::{VirtualDevices, VirtualLaunch};
use crate::ifrt::{Result, Status};
use crate::stablehlo::op::{Expectation, Interpretation};
use crate::stablehlo::transform::{inline, piece};
use crate::stablehlo::{Function, Literal, Location, Module, Op, OpKind, TensorType, Value};

/// Runs `name` of `module`; answers how many expectations were met.
pub(super) fn run(
    module: &Module,
    name: &str,
    options: Options,
    printed: &mut Vec<String>,
) -> Result<usize, Failure> {
    let location = module.function(name).map(|function| function.location).unwrap_or_default();
    let prepared = prepared(module, name).map_err(|status| failed(&status, location))?;
    let mut run = Run {
        module,
        options,
        backend: CpuBackend::new(1),
        function: prepared,
        values: HashMap::new(),
        met: 0,
        printed,
    };
    run.whole()?;
    Ok(run.met)
}

/// A function as one, with its expectations recognised.
fn prepared(module: &Module, name: &str) -> Result<Function> {
    let mut function = inline(module, name)?;
    expectation::recognise(&mut function)?;
    for (block, data) in function.blocks.iter() {
        let mut ops = data.ops.iter().map(|&op| &function.ops[op]);
        let is_ours = |kind: &OpKind| matches!(kind, OpKind::Expect(_) | OpKind::Interpret(_));
        if let Some(op) = ops.find(|op| block != function.entry && is_ours(&op.kind)) {
            return Err(Status::unimplemented(format!(
                "line {}: `{}` inside the region of another operation",
                op.location.line, op.kind
            )));
        }
    }
    Ok(function)
}

struct Run<'m> {
    module: &'m Module,
    options: Options,
    backend: CpuBackend,
    function: Function,
    values: HashMap<Value, (TensorType, Buffer)>,
    met: usize,
    printed: &'m mut Vec<String>,
}

impl Run<'_> {
    fn whole(&mut self) -> Result<(), Failure> {
        let ops = self.function.blocks[self.function.entry].ops.clone();
        let mut next = 0;
        while next < ops.len() {
            let is_parallel = |op: &Op| {
                let kind = &self.function.ops[*op].kind;
                matches!(kind, OpKind::Interpret(Interpretation::RunParallel { .. }))
            };
            let end = ops[next..].iter().position(is_parallel).map_or(ops.len(), |at| next + at);
            self.piece(&ops[next..end], &ops[end..])?;
            if let Some(&op) = ops.get(end) {
                let location = self.function.ops[op].location;
                self.parallel(op).map_err(|status| failed(&status, location))?;
            }
            next = end + 1;
        }
        Ok(())
    }

    /// Runs `ops`, after which come `rest`.
    fn piece(&mut self, ops: &[Op], rest: &[Op]) -> Result<(), Failure> {
        let (observers, computed): (Vec<Op>, Vec<Op>) = ops.iter().copied().partition(|&op| {
            let kind = &self.function.ops[op].kind;
            matches!(kind, OpKind::Expect(_) | OpKind::Interpret(_) | OpKind::Return)
        });
        self.compute(&computed, &observers, rest)
            .map_err(|status| failed(&status, self.function.location))?;
        observers.into_iter().try_for_each(|op| self.observe(op))
    }

    /// Computes what of the results of `ops` others use.
    fn compute(&mut self, ops: &[Op], observers: &[Op], rest: &[Op]) -> Result<()> {
        let later = self.function.used_by(observers.iter().chain(rest).copied());
        let results = ops.iter().flat_map(|&op| &self.function.ops[op].results).copied();
        let results: Vec<Value> = results.filter(|value| later.contains(value)).collect();
        let (module, parameters) = piece(&self.function, ops, &results);
        let arguments =
            parameters.iter().map(|value| self.buffer(*value)).collect::<Result<_>>()?;
        let executable = self.backend.compile(&module)?;
        let types = executable.result_types().to_vec();
        let devices = VirtualDevices::new(1, 1, self.options.timeout)?;
        let launch = VirtualLaunch { module: &module, executable, arguments };
        let buffers = devices.run(vec![launch])?.into_iter().flatten();
        self.values.extend(results.into_iter().zip(types.into_iter().zip(buffers)));
        Ok(())
    }

    fn buffer(&self, value: Value) -> Result<Buffer> {
        self.value(value).map(|(_, buffer)| buffer.clone())
    }

    fn value(&self, value: Value) -> Result<&(TensorType, Buffer)> {
        let found = self.values.get(&value);
        found.ok_or_else(|| Status::internal(format!("{value:?} was not computed")))
    }

    /// Looks at values: compares or shows them.
    fn observe(&mut self, op: Op) -> Result<(), Failure> {
        let data = &self.function.ops[op];
        let location = data.location;
        let mut operands = Vec::with_capacity(data.operands.len());
        for &operand in &data.operands {
            let value = self.value(operand).map_err(|status| failed(&status, location))?;
            operands.push(value.clone());
        }
        match (&data.kind, operands.as_slice()) {
            (OpKind::Return, _) => {}
            (OpKind::Expect(_), [(ty, _), (other, _)]) if ty != other => {
                let message = format!("{}: the value is {ty}, expected is {other}", data.kind);
                return Err(Failure { message, location });
            }
            (OpKind::Expect(expectation), [(ty, found), others @ ..]) => {
                let other = others.first().map(|(_, buffer)| buffer.bytes());
                if let Err(message) = compare(expectation, ty, found.bytes(), other) {
                    let message = format!("{}: {message}", data.kind);
                    return Err(Failure { message, location });
                }
                self.met += 1;
            }
            (OpKind::Interpret(Interpretation::Print), [(ty, found)]) => {
                let literal = Literal::dense(ty.clone(), found.bytes());
                self.printed.extend(literal.map(|literal| literal.to_string()));
            }
            (kind, _) => {
                let status = Status::unimplemented(format!("`{kind}` is not implemented"));
                return Err(failed(&status, location));
            }
        }
        Ok(())
    }

    /// What a function without parameters returns, as bytes.
    fn fed_by(&self, name: &str) -> Result<Vec<Vec<u8>>> {
        let program = Program::new(&self.backend, self.module, name)?;
        let Program { ref module, executable, .. } = program;
        let devices = VirtualDevices::new(1, 1, self.options.timeout)?;
        let launch = VirtualLaunch { module, executable, arguments: Vec::new() };
        let buffers = devices.run(vec![launch])?.into_iter().flatten();
        Ok(buffers.map(|buffer| buffer.bytes().to_vec()).collect())
    }

    /// Runs the programs of an `interpreter.run_parallel` on devices of their own.
    fn parallel(&mut self, op: Op) -> Result<()> {
        let data = &self.function.ops[op];
        let OpKind::Interpret(Interpretation::RunParallel { programs, infeed }) = &data.kind else {
            return Err(Status::internal("not interpreter.run_parallel"));
        };
        let mut operands = data.operands.iter();
        let mut results = data.results.iter();
        let mut compiled = HashMap::new();
        for name in programs.iter().flatten() {
            if !compiled.contains_key(name.as_str()) {
                compiled.insert(name.as_str(), Program::new(&self.backend, self.module, name)?);
            }
        }
        let mut launches = Vec::new();
        let order: Vec<&Program> =
            programs.iter().flatten().filter_map(|name| compiled.get(name.as_str())).collect();
        for program in &order {
            let arguments = operands.by_ref().take(program.executable.parameter_types().len());
            let arguments = arguments.map(|&value| self.buffer(value)).collect::<Result<_>>()?;
            let executable = Arc::clone(&program.executable);
            launches.push(VirtualLaunch { module: &program.module, executable, arguments });
        }
        let partitions = programs.first().map_or(0, Vec::len);
        let devices = VirtualDevices::new(programs.len(), partitions, self.options.timeout)?;
        let infeed =
            infeed.iter().map(|name| self.fed_by(name)).collect::<Result<Vec<Vec<Vec<u8>>>>>()?;
        let devices = devices.fed_with(infeed);
        let buffers = devices.run(launches)?;
        for (program, buffers) in order.into_iter().zip(buffers) {
            let types = program.executable.result_types().iter().cloned();
            let mut values = types.zip(buffers);
            for _ in 0..program.num_results {
                self.values.extend(results.next().copied().zip(values.next()));
            }
            self.met += program.compare(values.collect())?;
        }
        Ok(())
    }
}

/// A program that runs beside others.
struct Program {
    module: Module,
    executable: Arc<dyn Executable>,
    /// How many of its results are the function's own; the others are compared.
    num_results: usize,
    expectations: Vec<(Expectation, Location)>,
}

impl Program {
    fn new(backend: &CpuBackend, module: &Module, name: &str) -> Result<Self> {
        let function = prepared(module, name)?;
        let ops = &function.blocks[function.entry].ops;
        let mut expectations = Vec::new();
        let mut results = Vec::new();
        let mut observed: Vec<Value> = Vec::new();
        let mut computed = Vec::new();
        for &op in ops {
            let data = &function.ops[op];
            match &data.kind {
                OpKind::Expect(expectation) => {
                    expectations.push((expectation.clone(), data.location));
                    observed.extend(&data.operands);
                }
                OpKind::Return => results.clone_from(&data.operands),
                _ => computed.push(op),
            }
        }
        let num_results = results.len();
        results.extend(observed);
        let (module, _) = piece(&function, &computed, &results);
        let executable = backend.compile(&module)?;
        Ok(Self { module, executable, num_results, expectations })
    }

    /// Compares what was observed; answers how many expectations were met.
    fn compare(&self, observed: Vec<(TensorType, Buffer)>) -> Result<usize> {
        let mut observed = observed.into_iter();
        for (expectation, location) in &self.expectations {
            let Some((ty, found)) = observed.next() else { break };
            let other = match expectation {
                Expectation::EqConst(_)
                | Expectation::AlmostEqConst { .. }
                | Expectation::SerializedEq { .. } => None,
                _ => observed.next(),
            };
            let other = other.as_ref().map(|(_, buffer)| buffer.bytes());
            compare(expectation, &ty, found.bytes(), other).map_err(|message| {
                let kind = OpKind::Expect(expectation.clone());
                Status::failed_precondition(format!("line {}: {kind}: {message}", location.line))
            })?;
        }
        Ok(self.expectations.len())
    }
}

fn compare(
    expectation: &Expectation,
    ty: &TensorType,
    found: &[u8],
    other: Option<&[u8]>,
) -> Result<(), String> {
    if let Some(other) = other.filter(|other| other.len() != found.len()) {
        return Err(format!("{} bytes, expected are {}", found.len(), other.len()));
    }
    let difference = match (expectation, other) {
        (Expectation::EqConst(value) | Expectation::AlmostEqConst { value, .. }, _) => {
            difference(expectation, ty, found, &value.to_bytes())
        }
        (Expectation::SerializedEq { probe_id, .. }, _) => {
            return Err(format!("nothing was written for the probe {probe_id:?}"));
        }
        (_, Some(other)) => difference(expectation, ty, found, other),
        (_, None) => return Err("there is nothing to compare with".to_owned()),
    };
    difference.map_or(Ok(()), |difference| Err(difference.to_string()))
}

fn failed(status: &Status, location: Location) -> Failure {
    Failure { message: status.message().to_owned(), location }
}
