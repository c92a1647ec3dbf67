//! Whole modules in the generic form.

use std::fmt;

use super::attribute::{list, mesh, quoted};
use super::{Constants, Form, FunctionPrinter, named, param_attributes, result_attributes};
use crate::stablehlo::{Function, Module, Type};

impl Module {
    /// The program in the generic form of MLIR: names, operands, properties and types of every
    /// operation, without what a dialect abbreviates.
    pub fn to_generic_text(&self) -> String {
        GenericModule(self).to_string()
    }
}

struct GenericModule<'a>(&'a Module);

impl fmt::Display for GenericModule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Module { name, num_partitions, num_replicas, meshes, functions } = self.0;
        f.write_str("\"builtin.module\"() ")?;
        if !name.is_empty() {
            write!(f, "<{{sym_name = {}}}> ", quoted(name))?;
        }
        f.write_str("({\n")?;
        for each in named(meshes) {
            let (value, name) = (mesh(each), quoted(&each.name));
            let properties = format!("mesh = #sdy.mesh{value}, sym_name = {name}");
            writeln!(f, "  \"sdy.mesh\"() <{{{properties}}}> : () -> ()")?;
        }
        for function in functions {
            print_function(f, function)?;
        }
        writeln!(
            f,
            "}}) {{mhlo.num_partitions = {num_partitions} : i32, \
             mhlo.num_replicas = {num_replicas} : i32}} : () -> ()"
        )
    }
}

/// `"func.func"() <{properties}> ({…}) : () -> ()`.
fn print_function(f: &mut fmt::Formatter<'_>, function: &Function) -> fmt::Result {
    let printer = FunctionPrinter::new(function, Constants::Whole, Form::Generic);
    let mut properties = Vec::new();
    let params: Vec<Vec<String>> = function.params.iter().map(param_attributes).collect();
    properties.extend(dictionaries("arg_attrs", &params));
    let types: Vec<&Type> = function.params.iter().map(|param| function.ty(param.value)).collect();
    let results: Vec<&Type> = function.results.iter().map(|result| &result.ty).collect();
    properties.push(format!("function_type = ({}) -> ({})", list(&types), list(&results)));
    let results = function.results.iter();
    let results: Vec<Vec<String>> = results.map(result_attributes).collect();
    properties.extend(dictionaries("res_attrs", &results));
    properties.push(format!("sym_name = {}", quoted(&function.name)));
    let visibility = if function.public { "public" } else { "private" };
    properties.push(format!("sym_visibility = \"{visibility}\""));
    write!(f, "  \"func.func\"() <{{{}}}> (", properties.join(", "))?;
    printer.block(f, function.entry, 1, "func.return")?;
    f.write_str(") : () -> ()\n")
}

/// `name = [{…}, {}]`, or nothing when all are empty.
fn dictionaries(name: &str, attributes: &[Vec<String>]) -> Option<String> {
    let some = attributes.iter().any(|entries| !entries.is_empty());
    let dictionaries = attributes.iter().map(|entries| format!("{{{}}}", entries.join(", ")));
    some.then(|| format!("{name} = [{}]", dictionaries.collect::<Vec<_>>().join(", ")))
}
