//! Modules, meshes and functions in the generic form.

use super::cursor::Parsed;
use super::module::{ModuleReader, Signature};
use super::operation::BodyReader;
use crate::stablehlo::attribute::{Attribute, NamedAttribute};
use crate::stablehlo::{Mesh, Type};

impl ModuleReader<'_> {
    /// `"builtin.module"() <{properties}> ({…}) {attributes} : () -> ()` if it comes next.
    pub(super) fn generic_module(&mut self) -> Parsed<bool> {
        if !self.cursor.eat("\"builtin.module\"") {
            return Ok(false);
        }
        let mut properties = self.properties()?;
        self.cursor.expect("(")?;
        self.cursor.expect("{")?;
        if self.cursor.peek() == Some(b'^') {
            self.cursor.sigil_name('^', "the label of a block")?;
            self.cursor.expect(":")?;
        }
        self.items()?;
        self.cursor.expect(")")?;
        properties.extend(self.attributes_and_type()?);
        if let Some(name) = take(&mut properties, "sym_name") {
            self.module.name = self.string(&name)?;
        }
        take(&mut properties, "sym_visibility");
        self.module_attributes(properties)?;
        Ok(true)
    }

    /// A function or a mesh.
    pub(super) fn generic_item(&mut self) -> Parsed<()> {
        let start = self.cursor.offset();
        let name = self.cursor.string()?;
        match name.as_str() {
            "func.func" => self.generic_function(start),
            "sdy.mesh" => {
                let mut properties = self.properties()?;
                properties.extend(self.attributes_and_type()?);
                let name = self.symbol_name(start, &mut properties)?;
                let Some(entry) = take(&mut properties, "mesh") else {
                    return self.cursor.error_at(start, "a mesh lacks the attribute `mesh`");
                };
                let Attribute::Mesh(mesh) = entry.value.resolved() else {
                    return self.wrong(&entry, "`#sdy.mesh<…>`");
                };
                self.add_mesh(start, Mesh { name, ..(**mesh).clone() }, &properties)
            }
            _ => self.cursor.not_known(start, format!("{name} outside a function")),
        }
    }

    /// `() <{properties}> ({body}) {attributes} : () -> ()`.
    fn generic_function(&mut self, start: usize) -> Parsed<()> {
        let mut properties = self.properties()?;
        let name = self.symbol_name(start, &mut properties)?;
        let location = self.cursor.location(start);
        let mut body = BodyReader::new(&mut self.cursor, &self.aliases, name, location);
        body.cursor.expect("(")?;
        let entry = body.function.entry;
        body.scoped(|body| {
            body.cursor.expect("{")?;
            body.block_label(entry)?;
            body.operations(entry)
        })?;
        let function = body.function;
        self.cursor.expect(")")?;
        properties.extend(self.attributes_and_type()?);
        let Some(ty) = take(&mut properties, "function_type") else {
            return self.cursor.error_at(start, "a function lacks the attribute `function_type`");
        };
        let Attribute::FunctionType(parameters, results) = ty.value.resolved() else {
            return self.wrong(&ty, "a function type");
        };
        let arguments = &function.blocks[entry].arguments;
        if arguments.iter().map(|&value| function.ty(value)).ne(parameters) {
            return self.wrong(&ty, "the type of the arguments of the body");
        }
        let public = match take(&mut properties, "sym_visibility") {
            Some(entry) => self.string(&entry)? == "public",
            None => true,
        };
        let parameters = self.dictionaries(&mut properties, "arg_attrs", parameters.len())?;
        let result_attributes = self.dictionaries(&mut properties, "res_attrs", results.len())?;
        let results: Vec<(Type, Vec<NamedAttribute>)> =
            results.iter().cloned().zip(result_attributes).collect();
        let attributes = properties;
        self.add_function(start, function, Signature { public, parameters, results, attributes })
    }

    /// `() <{properties}>`.
    fn properties(&mut self) -> Parsed<Vec<NamedAttribute>> {
        self.cursor.expect("(")?;
        self.cursor.expect(")")?;
        if !self.cursor.eat("<") {
            return Ok(Vec::new());
        }
        let properties = self.cursor.dictionary(&self.aliases)?;
        self.cursor.expect(">")?;
        Ok(properties)
    }

    /// `{attributes} : () -> ()`.
    fn attributes_and_type(&mut self) -> Parsed<Vec<NamedAttribute>> {
        let attributes = self.cursor.optional_dictionary(&self.aliases)?;
        self.cursor.expect(":")?;
        self.cursor.function_type()?;
        self.cursor.skip_trailing_location()?;
        Ok(attributes)
    }

    fn symbol_name(&self, start: usize, properties: &mut Vec<NamedAttribute>) -> Parsed<String> {
        match take(properties, "sym_name") {
            Some(entry) => self.string(&entry),
            None => self.cursor.error_at(start, "the attribute `sym_name` is missing"),
        }
    }

    fn string(&self, entry: &NamedAttribute) -> Parsed<String> {
        match entry.value.resolved() {
            Attribute::String(text) => Ok(text.clone()),
            _ => self.wrong(entry, "a string"),
        }
    }

    /// `[{…}, {…}]`, one dictionary per parameter or result; empty ones when absent.
    fn dictionaries(
        &self,
        properties: &mut Vec<NamedAttribute>,
        name: &str,
        count: usize,
    ) -> Parsed<Vec<Vec<NamedAttribute>>> {
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
            Some(dictionaries) if dictionaries.len() == count => Ok(dictionaries),
            _ => self.wrong(&list, &format!("{count} dictionaries")),
        }
    }
}

/// Takes the attribute called `name`.
fn take(attributes: &mut Vec<NamedAttribute>, name: &str) -> Option<NamedAttribute> {
    let position = attributes.iter().position(|entry| entry.name == name)?;
    Some(attributes.remove(position))
}
