//! Modules, meshes and functions in the generic form.

use super::cursor::Parsed;
use super::module::ModuleReader;
use super::operation::BodyReader;
use crate::stablehlo::attribute::NamedAttribute;
use crate::stablehlo::build::module::{self, Signature};

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
                let mesh = self.placed(module::mesh(properties, self.cursor.location(start)))?;
                self.add_mesh(start, mesh)
            }
            _ => self.cursor.not_known(start, format!("{name} outside a function")),
        }
    }

    /// `() <{properties}> ({body}) {attributes} : () -> ()`.
    fn generic_function(&mut self, start: usize) -> Parsed<()> {
        let mut properties = self.properties()?;
        let location = self.cursor.location(start);
        let name = self.placed(module::symbol_name(&mut properties, location))?;
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
        let signature = Signature::from_properties(&function, properties, location);
        let signature = self.placed(signature)?;
        self.add_function(start, function, signature)
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
}
