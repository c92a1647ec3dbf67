//! Modules, meshes and functions in their custom forms; what their attributes mean.

use std::collections::HashSet;

use super::attributes::Aliases;
use super::cursor::{Cursor, Parsed};
use super::operation::BodyReader;
use crate::stablehlo::attribute::{Attribute, NamedAttribute};
use crate::stablehlo::op::Sharding;
use crate::stablehlo::{Function, Mesh, Module, Param, ResultInfo, Type};

/// Attributes of modules, functions, parameters and results that do not change what is computed
/// or where: notes of the frontend and hints of other compilers.
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

/// What is written about a function besides its body.
pub(super) struct Signature {
    /// Whether it may be called from outside.
    pub(super) public: bool,
    /// The attributes of each parameter.
    pub(super) parameters: Vec<Vec<NamedAttribute>>,
    /// The types and attributes of the results.
    pub(super) results: Vec<(Type, Vec<NamedAttribute>)>,
    /// The attributes of the function.
    pub(super) attributes: Vec<NamedAttribute>,
}

/// Reads one module.
pub(super) struct ModuleReader<'a> {
    pub(super) cursor: Cursor<'a>,
    pub(super) aliases: Aliases<'a>,
    pub(super) module: Module,
    functions: HashSet<String>,
    meshes: HashSet<String>,
}

impl<'a> ModuleReader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let module = Module {
            name: String::new(),
            num_partitions: 1,
            num_replicas: 1,
            meshes: Vec::new(),
            functions: Vec::new(),
        };
        Self {
            cursor: Cursor::new(text),
            aliases: Aliases::new(text.len()),
            module,
            functions: HashSet::new(),
            meshes: HashSet::new(),
        }
    }

    /// Aliases, then `module @name attributes {…} {…}` or its contents alone.
    pub(super) fn read(mut self) -> Parsed<Module> {
        self.alias_definitions()?;
        let is_module = if self.cursor.eat_word("module") {
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
            return Ok(self.module);
        }
        while !self.cursor.at_end() {
            self.item()?;
            self.alias_definitions()?;
        }
        Ok(self.module)
    }

    /// Functions and meshes up to and with the `}` that ends the module.
    pub(super) fn items(&mut self) -> Parsed<()> {
        while !self.cursor.eat("}") {
            self.item()?;
        }
        Ok(())
    }

    fn alias_definitions(&mut self) -> Parsed<()> {
        while self.cursor.peek() == Some(b'#') {
            self.aliases.define(&mut self.cursor)?;
        }
        Ok(())
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
        for entry in attributes {
            match entry.name.as_str() {
                "mhlo.num_partitions" => self.module.num_partitions = self.count(&entry)?,
                "mhlo.num_replicas" => self.module.num_replicas = self.count(&entry)?,
                name if is_harmless(name) => {}
                _ => return self.unknown(&entry, "a module"),
            }
        }
        Ok(())
    }

    fn count(&self, entry: &NamedAttribute) -> Parsed<usize> {
        let count = match entry.value.resolved() {
            &Attribute::Integer(value, _) => usize::try_from(value).ok(),
            _ => None,
        };
        match count {
            Some(count) => Ok(count),
            None => self.wrong(entry, "a count"),
        }
    }

    pub(super) fn wrong<T>(&self, entry: &NamedAttribute, expected: &str) -> Parsed<T> {
        let message = format!("`{}` must be {expected}", entry.name);
        self.cursor.error_in(entry.location, message, false)
    }

    fn unknown<T>(&self, entry: &NamedAttribute, owner: &str) -> Parsed<T> {
        let message = format!("the attribute `{}` of {owner} is not known yet", entry.name);
        self.cursor.error_in(entry.location, message, true)
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
        self.add_mesh(start, mesh, &attributes)
    }

    pub(super) fn add_mesh(
        &mut self,
        start: usize,
        mesh: Mesh,
        attributes: &[NamedAttribute],
    ) -> Parsed<()> {
        if let Some(entry) = attributes.iter().find(|entry| !is_harmless(&entry.name)) {
            return self.unknown(entry, "a mesh");
        }
        if !self.meshes.insert(mesh.name.clone()) {
            let message = format!("the mesh @{} is defined twice", mesh.name);
            return self.cursor.error_at(start, message);
        }
        self.module.meshes.push(mesh);
        Ok(())
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
        let Signature { public, parameters, results, attributes } = signature;
        if let Some(entry) = attributes.iter().find(|entry| !is_harmless(&entry.name)) {
            return self.unknown(entry, "a function");
        }
        function.public = public;
        let arguments = function.blocks[function.entry].arguments.clone();
        for (value, entries) in arguments.into_iter().zip(parameters) {
            let mut param = Param {
                value,
                sharding: None,
                hlo_sharding: None,
                aliases_output: None,
                donated: false,
            };
            for entry in entries {
                match (entry.name.as_str(), entry.value.resolved()) {
                    ("tf.aliasing_output", _) => param.aliases_output = Some(self.count(&entry)?),
                    ("jax.buffer_donor", &Attribute::Bool(donated)) => param.donated = donated,
                    ("jax.buffer_donor", _) => return self.wrong(&entry, "`true` or `false`"),
                    _ => {
                        self.sharding(&entry, &mut param.sharding, &mut param.hlo_sharding)?;
                    }
                }
            }
            function.params.push(param);
        }
        for (ty, entries) in results {
            let mut result = ResultInfo { ty, sharding: None, hlo_sharding: None };
            for entry in entries {
                self.sharding(&entry, &mut result.sharding, &mut result.hlo_sharding)?;
            }
            function.results.push(result);
        }
        if !self.functions.insert(function.name.clone()) {
            let message = format!("the function @{} is defined twice", function.name);
            return self.cursor.error_at(start, message);
        }
        self.module.functions.push(function);
        Ok(())
    }

    /// `sdy.sharding` or `mhlo.sharding`, or something harmless.
    fn sharding(
        &self,
        entry: &NamedAttribute,
        sharding: &mut Option<Sharding>,
        hlo_sharding: &mut Option<String>,
    ) -> Parsed<()> {
        match (entry.name.as_str(), entry.value.resolved()) {
            ("sdy.sharding", Attribute::Sharding(value)) => *sharding = Some(value.clone()),
            ("sdy.sharding", _) => return self.wrong(entry, "`#sdy.sharding<…>`"),
            ("mhlo.sharding", Attribute::String(value)) => *hlo_sharding = Some(value.clone()),
            ("mhlo.sharding", _) => return self.wrong(entry, "a string"),
            (name, _) if is_harmless(name) => {}
            _ => return self.unknown(entry, "a parameter or result"),
        }
        Ok(())
    }
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
