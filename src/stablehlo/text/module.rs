//! Modules, meshes and functions in their custom forms.

use std::collections::HashSet;

use super::attributes::Aliases;
use super::cursor::{Cursor, Parsed};
use super::operation::BodyReader;
use super::resources::Resources;
use crate::stablehlo::attribute::NamedAttribute;
use crate::stablehlo::build::AttributeError;
use crate::stablehlo::build::module::{
    Signature, check_mesh_attributes, describe_function, describe_module,
};
use crate::stablehlo::{Function, Mesh, Module, Type};

/// Reads one module.
pub(super) struct ModuleReader<'a> {
    pub(super) cursor: Cursor<'a>,
    pub(super) aliases: Aliases<'a>,
    pub(super) module: Module,
    functions: HashSet<String>,
}

impl<'a> ModuleReader<'a> {
    /// A reader of the module that is all of what `cursor` is at.
    pub(super) fn new(mut cursor: Cursor<'a>) -> Parsed<Self> {
        let resources = resources(&mut cursor)?;
        let module = Module {
            name: String::new(),
            num_partitions: 1,
            num_replicas: 1,
            meshes: Vec::new(),
            functions: Vec::new(),
        };
        let aliases = Aliases::new(cursor.raw().len(), resources);
        Ok(Self { cursor, aliases, module, functions: HashSet::new() })
    }

    /// Aliases, then `module @name attributes {…} {…}` or its contents alone.
    pub(super) fn read(mut self) -> Parsed<Module> {
        self.alias_definitions()?;
        let is_module = if self.cursor.eat_word("module") || self.cursor.eat_word("builtin.module")
        {
            self.header()?;
            self.cursor.expect("{")?;
            self.items()?;
            true
        } else {
            self.generic_module()?
        };
        if is_module {
            self.cursor.skip_trailing_location()?;
            self.alias_definitions()?;
            if !self.cursor.at_end() {
                return self.cursor.unexpected("the end of the text after the module");
            }
        }
        while !self.cursor.at_end() {
            self.item()?;
            self.alias_definitions()?;
        }
        Ok(Module { meshes: self.cursor.meshes.into_list(), ..self.module })
    }

    /// Functions and meshes up to and with the `}` that ends the module.
    pub(super) fn items(&mut self) -> Parsed<()> {
        while !self.cursor.eat("}") {
            self.item()?;
        }
        Ok(())
    }

    fn alias_definitions(&mut self) -> Parsed<()> {
        loop {
            match self.cursor.peek() {
                Some(b'#') => self.aliases.define(&mut self.cursor)?,
                Some(b'!') => self.cursor.define_type()?,
                _ => return Ok(()),
            }
        }
    }

    fn header(&mut self) -> Parsed<()> {
        if self.cursor.peek() == Some(b'@') {
            self.module.name = self.cursor.symbol()?;
        }
        if !self.cursor.eat_word("attributes") {
            return Ok(());
        }
        let attributes = self.cursor.dictionary(&self.aliases)?;
        self.module_attributes(attributes)
    }

    pub(super) fn module_attributes(&mut self, attributes: Vec<NamedAttribute>) -> Parsed<()> {
        let described = describe_module(&mut self.module, attributes);
        self.placed(described)
    }

    /// An answer of `build`, its error shown in the text.
    pub(super) fn placed<T>(&self, built: Result<T, AttributeError>) -> Parsed<T> {
        built.or_else(|AttributeError { message, location, not_known }| {
            self.cursor.error_in(location, message, not_known)
        })
    }

    /// A function or a mesh.
    fn item(&mut self) -> Parsed<()> {
        let start = self.cursor.offset();
        if self.cursor.peek() == Some(b'"') {
            return self.generic_item();
        }
        match self.cursor.word("`func.func` or `sdy.mesh`")? {
            "func.func" => self.function(start),
            "sdy.mesh" => self.mesh(start),
            word => self.cursor.not_known(start, format!("{word} outside a function")),
        }
    }

    /// `@name = <["x"=2]> {attributes}`.
    fn mesh(&mut self, start: usize) -> Parsed<()> {
        let name = self.cursor.symbol()?;
        self.cursor.expect("=")?;
        let mesh = self.cursor.mesh(name)?;
        let attributes = self.cursor.optional_dictionary(&self.aliases)?;
        self.cursor.skip_trailing_location()?;
        self.placed(check_mesh_attributes(&attributes))?;
        self.add_mesh(start, mesh)
    }

    pub(super) fn add_mesh(&mut self, start: usize, mesh: Mesh) -> Parsed<()> {
        let defined = self.cursor.meshes.define(mesh);
        defined.or_else(|message| self.cursor.error_at(start, message))
    }

    /// `public @name(parameters) -> results attributes {…} {body}`.
    fn function(&mut self, start: usize) -> Parsed<()> {
        let public = match self.cursor.peek_word() {
            "private" | "nested" => self.cursor.word("`private`").map(|_| false)?,
            "public" => self.cursor.word("`public`").map(|_| true)?,
            _ => true,
        };
        let name = self.cursor.symbol()?;
        let location = self.cursor.location(start);
        let mut body = BodyReader::new(&mut self.cursor, &self.aliases, name, location);
        let parameters = parameters(&mut body)?;
        let results = if body.cursor.eat("->") { results(&mut body)? } else { Vec::new() };
        let mut attributes = Vec::new();
        if body.cursor.eat_word("attributes") {
            attributes = body.cursor.dictionary(body.aliases)?;
        }
        if body.cursor.peek() != Some(b'{') {
            return body.cursor.not_known(start, "a function without a body");
        }
        body.cursor.expect("{")?;
        let entry = body.function.entry;
        body.scoped(|body| body.operations(entry))?;
        body.cursor.skip_trailing_location()?;
        let function = body.function;
        self.add_function(start, function, Signature { public, parameters, results, attributes })
    }

    /// Gives the attributes of a function a meaning and adds it to the module.
    pub(super) fn add_function(
        &mut self,
        start: usize,
        mut function: Function,
        signature: Signature,
    ) -> Parsed<()> {
        self.placed(describe_function(&mut function, signature))?;
        if !self.functions.insert(function.name.clone()) {
            let message = format!("the function @{} is defined twice", function.name);
            return self.cursor.error_at(start, message);
        }
        self.module.functions.push(function);
        Ok(())
    }
}

/// The resources, which come last but are used before; takes them off the end of the text.
fn resources<'a>(cursor: &mut Cursor<'a>) -> Parsed<Resources<'a>> {
    const OPEN: &str = "{-#";
    let start = cursor.offset();
    let text = cursor.raw().trim_ascii_end();
    let Some(at) = text.ends_with("#-}").then(|| text.rfind(OPEN)).flatten() else {
        return Ok(Resources::default());
    };
    let (at, end) = (start + at, start + text.len());
    let mut section = cursor.part(at, end);
    let resources = Resources::read(&mut section)?;
    if !section.at_end() {
        return section.unexpected("the end of the text after the resources");
    }
    *cursor = cursor.part(start, at);
    Ok(resources)
}

/// `(%arg0: type {attributes}, …)`; the attributes of each.
fn parameters(body: &mut BodyReader<'_, '_>) -> Parsed<Vec<Vec<NamedAttribute>>> {
    let mut attributes = Vec::new();
    let entry = body.function.entry;
    body.cursor.expect("(")?;
    if body.cursor.eat(")") {
        return Ok(attributes);
    }
    loop {
        body.argument(entry)?;
        attributes.push(body.cursor.optional_dictionary(body.aliases)?);
        body.cursor.skip_trailing_location()?;
        if body.cursor.eat(")") {
            return Ok(attributes);
        }
        body.cursor.expect(",")?;
    }
}

/// `type` or `(type {attributes}, …)`.
fn results(body: &mut BodyReader<'_, '_>) -> Parsed<Vec<(Type, Vec<NamedAttribute>)>> {
    let aliases = body.aliases;
    if !body.cursor.eat("(") {
        return Ok(vec![(body.cursor.ty()?, Vec::new())]);
    }
    body.cursor.list(")", |cursor| {
        let ty = cursor.ty()?;
        Ok((ty, cursor.optional_dictionary(aliases)?))
    })
}
