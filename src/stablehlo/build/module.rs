//! What the attributes of modules, meshes, functions, parameters and results mean.

use std::collections::HashMap;

use super::{AttributeError, Built};
use crate::stablehlo::attribute::{Attribute, NamedAttribute};
use crate::stablehlo::op::Sharding;
use crate::stablehlo::print::mesh as mesh_text;
use crate::stablehlo::{Function, Location, Mesh, Module, Param, ResultInfo, Type};

/// Attributes that do not change what is computed or where: notes of the frontend and hints of
/// other compilers.
fn is_harmless(name: &str) -> bool {
    name.starts_with("jax.")
        || matches!(
            name,
            "mhlo.frontend_attributes"
                | "mhlo.layout_mode"
                | "mhlo.is_same_data_across_replicas"
                | "stablehlo.mesh"
                | "no_inline"
        )
}

/// The meshes of a module, each once.
#[derive(Debug, Default)]
pub(in crate::stablehlo) struct Meshes {
    named: Vec<Mesh>,
    in_place: Vec<Mesh>,
    names: HashMap<String, usize>,
}

impl Meshes {
    /// Adds an `sdy.mesh`.
    ///
    /// # Errors
    /// When there is one of the same name, or the name could be that of a mesh written in place.
    pub(in crate::stablehlo) fn define(&mut self, mesh: Mesh) -> Result<(), String> {
        if Mesh::is_in_place(&mesh.name) {
            return Err(format!("a mesh cannot be called {:?}", mesh.name));
        }
        if self.names.insert(mesh.name.clone(), self.named.len()).is_some() {
            return Err(format!("the mesh @{} is defined twice", mesh.name));
        }
        self.named.push(mesh);
        Ok(())
    }

    /// Adds a mesh that is written in place; answers the name that it has in the module.
    pub(in crate::stablehlo) fn add_in_place(&mut self, mesh: Mesh) -> String {
        let name = mesh_text(&mesh);
        if self.names.insert(name.clone(), self.in_place.len()).is_none() {
            self.in_place.push(Mesh { name: name.clone(), ..mesh });
        }
        name
    }

    /// The `sdy.mesh` called `name`, if it has been added.
    pub(in crate::stablehlo) fn named(&self, name: &str) -> Option<&Mesh> {
        self.named.get(*self.names.get(name)?).filter(|mesh| mesh.name == name)
    }

    /// All meshes: those that are defined, then those written in place.
    pub(in crate::stablehlo) fn into_list(mut self) -> Vec<Mesh> {
        self.named.append(&mut self.in_place);
        self.named
    }
}

/// What is said about a function besides its name and body.
pub(in crate::stablehlo) struct Signature {
    /// Whether it may be called from outside.
    pub(in crate::stablehlo) public: bool,
    /// The attributes of each parameter.
    pub(in crate::stablehlo) parameters: Vec<Vec<NamedAttribute>>,
    /// The types and attributes of the results.
    pub(in crate::stablehlo) results: Vec<(Type, Vec<NamedAttribute>)>,
    /// The attributes of the function.
    pub(in crate::stablehlo) attributes: Vec<NamedAttribute>,
}

impl Signature {
    /// The signature that the properties of a `func.func` at `location` give `function`, whose
    /// body has been read.
    pub(in crate::stablehlo) fn from_properties(
        function: &Function,
        mut properties: Vec<NamedAttribute>,
        location: Location,
    ) -> Built<Self> {
        let Some(ty) = take(&mut properties, "function_type") else {
            return Err(lacks("a function", "function_type", location));
        };
        let Attribute::FunctionType(parameters, results) = ty.value.resolved() else {
            return Err(wrong(&ty, "a function type"));
        };
        let arguments = &function.blocks[function.entry].arguments;
        if arguments.iter().map(|&value| function.ty(value)).ne(parameters) {
            return Err(wrong(&ty, "the type of the arguments of the body"));
        }
        let public = match take(&mut properties, "sym_visibility") {
            Some(entry) => !matches!(string(&entry)?.as_str(), "private" | "nested"),
            None => true,
        };
        let parameters = dictionaries(&mut properties, "arg_attrs", parameters.len())?;
        let result_attributes = dictionaries(&mut properties, "res_attrs", results.len())?;
        let results = results.iter().cloned().zip(result_attributes).collect();
        Ok(Self { public, parameters, results, attributes: properties })
    }
}

/// Takes `sym_name`, which must be there.
pub(in crate::stablehlo) fn symbol_name(
    properties: &mut Vec<NamedAttribute>,
    location: Location,
) -> Built<String> {
    match take(properties, "sym_name") {
        Some(entry) => string(&entry),
        None => Err(lacks("a symbol", "sym_name", location)),
    }
}

/// Gives the properties and attributes of a `builtin.module` their meaning.
pub(in crate::stablehlo) fn describe_module(
    module: &mut Module,
    mut attributes: Vec<NamedAttribute>,
) -> Built<()> {
    if let Some(name) = take(&mut attributes, "sym_name") {
        module.name = string(&name)?;
    }
    take(&mut attributes, "sym_visibility");
    for entry in attributes {
        match entry.name.as_str() {
            "mhlo.num_partitions" => module.num_partitions = count(&entry)?,
            "mhlo.num_replicas" => module.num_replicas = count(&entry)?,
            name if is_harmless(name) => {}
            _ => return Err(unknown(&entry, "a module")),
        }
    }
    Ok(())
}

/// The mesh that the properties and attributes of an `sdy.mesh` at `location` describe.
pub(in crate::stablehlo) fn mesh(
    mut properties: Vec<NamedAttribute>,
    location: Location,
) -> Built<Mesh> {
    let name = symbol_name(&mut properties, location)?;
    let Some(entry) = take(&mut properties, "mesh") else {
        return Err(lacks("a mesh", "mesh", location));
    };
    check_mesh_attributes(&properties)?;
    match entry.value.resolved() {
        Attribute::Mesh(mesh) => Ok(Mesh { name, ..(**mesh).clone() }),
        _ => Err(wrong(&entry, "`#sdy.mesh<…>`")),
    }
}

/// Refuses attributes of a mesh that may matter.
pub(in crate::stablehlo) fn check_mesh_attributes(attributes: &[NamedAttribute]) -> Built<()> {
    match attributes.iter().find(|entry| !is_harmless(&entry.name)) {
        Some(entry) => Err(unknown(entry, "a mesh")),
        None => Ok(()),
    }
}

/// Gives the signature of a function, whose body has been read, its meaning.
pub(in crate::stablehlo) fn describe_function(
    function: &mut Function,
    signature: Signature,
) -> Built<()> {
    let Signature { public, parameters, results, attributes } = signature;
    if let Some(entry) = attributes.iter().find(|entry| !is_harmless(&entry.name)) {
        return Err(unknown(entry, "a function"));
    }
    function.public = public;
    let arguments = function.blocks[function.entry].arguments.clone();
    for (value, entries) in arguments.into_iter().zip(parameters) {
        let mut param = Param::plain(value);
        for entry in entries {
            match (entry.name.as_str(), entry.value.resolved()) {
                ("tf.aliasing_output", _) => param.aliases_output = Some(count(&entry)?),
                ("jax.buffer_donor", &Attribute::Bool(donated)) => param.donated = donated,
                ("jax.buffer_donor", _) => return Err(wrong(&entry, "`true` or `false`")),
                ("mhlo.memory_kind", _) => param.memory_kind = Some(string(&entry)?),
                _ => sharding(&entry, &mut param.sharding, &mut param.hlo_sharding)?,
            }
        }
        function.params.push(param);
    }
    for (ty, entries) in results {
        let mut result = ResultInfo::plain(ty);
        for entry in entries {
            if entry.name == "mhlo.memory_kind" {
                result.memory_kind = Some(string(&entry)?);
            } else {
                sharding(&entry, &mut result.sharding, &mut result.hlo_sharding)?;
            }
        }
        function.results.push(result);
    }
    Ok(())
}

/// `sdy.sharding` or `mhlo.sharding`, or something harmless.
fn sharding(
    entry: &NamedAttribute,
    sharding: &mut Option<Sharding>,
    hlo_sharding: &mut Option<String>,
) -> Built<()> {
    match (entry.name.as_str(), entry.value.resolved()) {
        ("sdy.sharding", Attribute::Sharding(value)) => *sharding = Some(value.clone()),
        ("sdy.sharding", _) => return Err(wrong(entry, "`#sdy.sharding<…>`")),
        ("mhlo.sharding", Attribute::String(value)) => *hlo_sharding = Some(value.clone()),
        ("mhlo.sharding", _) => return Err(wrong(entry, "a string")),
        (name, _) if is_harmless(name) => {}
        _ => return Err(unknown(entry, "a parameter or result")),
    }
    Ok(())
}

/// Takes `[{…}, {…}]`, one dictionary per parameter or result; empty ones when absent.
fn dictionaries(
    properties: &mut Vec<NamedAttribute>,
    name: &str,
    count: usize,
) -> Built<Vec<Vec<NamedAttribute>>> {
    let Some(list) = take(properties, name) else { return Ok(vec![Vec::new(); count]) };
    let place = |(name, value): &(String, Attribute)| NamedAttribute {
        name: name.clone(),
        value: value.clone(),
        location: list.location,
    };
    let dictionaries = match list.value.resolved() {
        Attribute::Array(items) => items
            .iter()
            .map(|item| match item.resolved() {
                Attribute::Dictionary(entries) => Some(entries.iter().map(place).collect()),
                _ => None,
            })
            .collect::<Option<Vec<Vec<NamedAttribute>>>>(),
        _ => None,
    };
    match dictionaries {
        // Versioned functions without any such attributes have an empty list.
        Some(dictionaries) if dictionaries.is_empty() => Ok(vec![Vec::new(); count]),
        Some(dictionaries) if dictionaries.len() == count => Ok(dictionaries),
        _ => Err(wrong(&list, &format!("{count} dictionaries"))),
    }
}

fn count(entry: &NamedAttribute) -> Built<usize> {
    match entry.value.resolved() {
        &Attribute::Integer(value, _) => usize::try_from(value).ok(),
        _ => None,
    }
    .ok_or_else(|| wrong(entry, "a count"))
}

fn string(entry: &NamedAttribute) -> Built<String> {
    match entry.value.resolved() {
        Attribute::String(text) => Ok(text.clone()),
        _ => Err(wrong(entry, "a string")),
    }
}

/// Takes the attribute called `name`.
fn take(attributes: &mut Vec<NamedAttribute>, name: &str) -> Option<NamedAttribute> {
    let position = attributes.iter().position(|entry| entry.name == name)?;
    Some(attributes.remove(position))
}

fn lacks(owner: &str, name: &str, location: Location) -> AttributeError {
    let message = format!("{owner} lacks the attribute `{name}`");
    AttributeError { message, location, not_known: false }
}

fn wrong(entry: &NamedAttribute, expected: &str) -> AttributeError {
    let message = format!("`{}` must be {expected}", entry.name);
    AttributeError { message, location: entry.location, not_known: false }
}

fn unknown(entry: &NamedAttribute, owner: &str) -> AttributeError {
    let message = format!("the attribute `{}` of {owner} is not known yet", entry.name);
    AttributeError { message, location: entry.location, not_known: true }
}
