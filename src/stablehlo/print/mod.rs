//! The printer: text that the reader reads back to an equal module, and that MLIR accepts.
//!
//! Operations with a short custom form are printed in it, the others in the generic form. Values
//! are named by their order in the text, so equal modules print alike whatever the names in their
//! sources were. Locations are not printed. The generic form alone, which every MLIR parser reads
//! without knowing the operations, is [`Module::to_generic_text`].

mod attribute;
mod fingerprint;
mod generic;
mod literal;
mod op;
mod properties;
mod sharding;

use std::fmt;

pub(super) use attribute::mesh;
use attribute::{quoted, sharding, symbol};
pub(super) use literal::decimal;
pub(crate) use literal::element;
use op::OpPrinter;

use super::entity::Entity as _;
use super::op::Sharding;
use super::{Block, Function, Mesh, Module, Param, Region, ResultInfo, Type, Value};

pub use fingerprint::Fingerprint;

/// How constants are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Constants {
    /// With all their elements.
    Whole,
    /// Long ones by their hash, for lines that people and messages hold.
    Hashed,
}

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ModulePrinter { module: self, constants: Constants::Whole }.fmt(f)
    }
}

struct ModulePrinter<'a> {
    module: &'a Module,
    constants: Constants,
}

impl fmt::Display for ModulePrinter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Module { name, num_partitions, num_replicas, meshes, functions } = self.module;
        f.write_str("module")?;
        if !name.is_empty() {
            write!(f, " {}", symbol(name))?;
        }
        writeln!(
            f,
            " attributes {{mhlo.num_partitions = {num_partitions} : i32, \
             mhlo.num_replicas = {num_replicas} : i32}} {{"
        )?;
        for each in named(meshes) {
            writeln!(f, "  sdy.mesh {} = {}", symbol(&each.name), mesh(each))?;
        }
        for function in functions {
            FunctionPrinter::new(function, self.constants, Form::Custom).print(f)?;
        }
        f.write_str("}\n")
    }
}

/// Which form operations are printed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The custom form, where it is short.
    Custom,
    /// The generic form.
    Generic,
}

/// Prints one function.
struct FunctionPrinter<'a> {
    function: &'a Function,
    names: Vec<Name>,
    constants: Constants,
    form: Form,
}

/// What a value is called in the text.
#[derive(Clone, Copy, Default)]
enum Name {
    /// Nothing defines the value; the verifier refuses such a function.
    #[default]
    Undefined,
    /// The nth block argument.
    Argument(u32),
    /// The only result of the nth operation that has results.
    Result(u32),
    /// One of the results of the nth operation that has results.
    ResultOf(u32, usize),
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undefined => f.write_str("%undefined"),
            Self::Argument(n) => write!(f, "%arg{n}"),
            Self::Result(n) => write!(f, "%{n}"),
            Self::ResultOf(n, i) => write!(f, "%{n}#{i}"),
        }
    }
}

impl<'a> FunctionPrinter<'a> {
    fn new(function: &'a Function, constants: Constants, form: Form) -> Self {
        let names = vec![Name::default(); function.values.len()];
        let mut printer = Self { function, names, constants, form };
        let mut next = (0, 0);
        printer.name_block(function.entry, &mut next);
        printer
    }

    /// Names what `block` and the regions in it define, in the order of the text.
    fn name_block(&mut self, block: Block, next: &mut (u32, u32)) {
        let function = self.function;
        for &argument in &function.blocks[block].arguments {
            self.set(argument, Name::Argument(next.0));
            next.0 += 1;
        }
        for &op in &function.blocks[block].ops {
            let data = &function.ops[op];
            match data.results.as_slice() {
                [] => {}
                [result] => self.set(*result, Name::Result(next.1)),
                results => {
                    for (i, &result) in results.iter().enumerate() {
                        self.set(result, Name::ResultOf(next.1, i));
                    }
                }
            }
            next.1 += u32::from(!data.results.is_empty());
            for &region in &data.regions {
                self.name_block(function.regions[region].block, next);
            }
        }
    }

    fn set(&mut self, value: Value, name: Name) {
        if let Some(slot) = self.names.get_mut(value.index()) {
            *slot = name;
        }
    }

    fn name(&self, value: Value) -> Name {
        self.names.get(value.index()).copied().unwrap_or_default()
    }

    fn print(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let function = self.function;
        let visibility = if function.public { "public" } else { "private" };
        write!(f, "  func.func {visibility} {}(", symbol(&function.name))?;
        separated(f, &function.params, |f, param| {
            let ty = function.ty(param.value);
            write!(f, "{}: {ty}", self.name(param.value))?;
            braces(f, &param_attributes(param))
        })?;
        f.write_str(")")?;
        match function.results.as_slice() {
            [] => {}
            [result] if result_attributes(result).is_empty() => write!(f, " -> {}", result.ty)?,
            results => {
                f.write_str(" -> (")?;
                separated(f, results, |f, result| {
                    write!(f, "{}", result.ty)?;
                    braces(f, &result_attributes(result))
                })?;
                f.write_str(")")?;
            }
        }
        f.write_str(" {\n")?;
        self.ops(f, function.entry, 2, "return")?;
        f.write_str("  }\n")
    }

    fn ops(
        &self,
        f: &mut fmt::Formatter<'_>,
        block: Block,
        indent: usize,
        return_name: &'static str,
    ) -> fmt::Result {
        for &op in &self.function.blocks[block].ops {
            let op = &self.function.ops[op];
            write!(f, "{:width$}", "", width = 2 * indent)?;
            OpPrinter { printer: self, op, indent, return_name }.print(f)?;
            f.write_str("\n")?;
        }
        Ok(())
    }

    /// `{`, the arguments and operations, and the closing brace.
    fn region(
        &self,
        f: &mut fmt::Formatter<'_>,
        region: Region,
        indent: usize,
        return_name: &'static str,
    ) -> fmt::Result {
        self.block(f, self.function.regions[region].block, indent, return_name)
    }

    fn block(
        &self,
        f: &mut fmt::Formatter<'_>,
        block: Block,
        indent: usize,
        return_name: &'static str,
    ) -> fmt::Result {
        let arguments = &self.function.blocks[block].arguments;
        f.write_str("{\n")?;
        if !arguments.is_empty() {
            write!(f, "{:width$}^bb0(", "", width = 2 * indent)?;
            separated(f, arguments, |f, &argument| {
                write!(f, "{}: {}", self.name(argument), self.function.ty(argument))
            })?;
            f.write_str("):\n")?;
        }
        self.ops(f, block, indent + 1, return_name)?;
        write!(f, "{:width$}}}", "", width = 2 * indent)
    }
}

/// The meshes that are not written in place.
fn named(meshes: &[Mesh]) -> impl Iterator<Item = &Mesh> {
    meshes.iter().filter(|mesh| !Mesh::is_in_place(&mesh.name))
}

/// What is said about a parameter besides its type.
fn param_attributes(param: &Param) -> Vec<String> {
    let Param { sharding, hlo_sharding, memory_kind, .. } = param;
    let mut attributes = places(sharding.as_ref(), hlo_sharding.as_ref(), memory_kind.as_ref());
    if let Some(result) = param.aliases_output {
        attributes.push(format!("tf.aliasing_output = {result} : i32"));
    }
    if param.donated {
        attributes.push("jax.buffer_donor = true".to_owned());
    }
    attributes
}

/// What is said about a result besides its type.
fn result_attributes(result: &ResultInfo) -> Vec<String> {
    let ResultInfo { sharding, hlo_sharding, memory_kind, .. } = result;
    places(sharding.as_ref(), hlo_sharding.as_ref(), memory_kind.as_ref())
}

/// `sdy.sharding`, `mhlo.sharding` and `mhlo.memory_kind`, where given.
fn places(
    sdy: Option<&Sharding>,
    hlo: Option<&String>,
    memory_kind: Option<&String>,
) -> Vec<String> {
    let sdy = sdy.map(|value| format!("sdy.sharding = #sdy.sharding{}", sharding(value)));
    let hlo = hlo.map(|value| format!("mhlo.sharding = {}", quoted(value)));
    let memory_kind = memory_kind.map(|kind| format!("mhlo.memory_kind = {}", quoted(kind)));
    sdy.into_iter().chain(hlo).chain(memory_kind).collect()
}

/// ` {a, b}`, or nothing when there are none.
fn braces(f: &mut fmt::Formatter<'_>, attributes: &[String]) -> fmt::Result {
    if attributes.is_empty() { Ok(()) } else { write!(f, " {{{}}}", attributes.join(", ")) }
}

/// `a, b, c`.
fn separated<T>(
    f: &mut fmt::Formatter<'_>,
    items: impl IntoIterator<Item = T>,
    mut print: impl FnMut(&mut fmt::Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        print(f, item)?;
    }
    Ok(())
}

/// `type` when there is one, `(types)` otherwise.
fn type_list(f: &mut fmt::Formatter<'_>, types: &[&Type]) -> fmt::Result {
    if let [ty] = types {
        return write!(f, "{ty}");
    }
    f.write_str("(")?;
    separated(f, types, |f, ty| write!(f, "{ty}"))?;
    f.write_str(")")
}
