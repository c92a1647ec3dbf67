//! Operations: results, generic form, regions; names and their scopes.
//!
//! Both forms of an operation end in a [`Statement`], which `build` turns into an operation.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::attributes::Aliases;
use super::cursor::{Cursor, Parsed};
use super::pretty;
use crate::stablehlo::attribute::{Attribute, NamedAttribute};
use crate::stablehlo::build::replica_groups::look_up;
use crate::stablehlo::build::{self, AttributeError, Attributes, Common, implied_region};
use crate::stablehlo::entity::Entity;
use crate::stablehlo::op::OpKind;
use crate::stablehlo::{Block, Function, Location, Op, OpData, Region, Type, Value};

/// An operation as written, before its attributes are given a meaning.
#[derive(Default)]
pub(super) struct Statement {
    /// The operands.
    pub(super) operands: Vec<Value>,
    /// Attributes and properties.
    pub(super) attributes: Vec<NamedAttribute>,
    /// The regions.
    pub(super) regions: Vec<Region>,
    /// The operand types, where the text gives them.
    pub(super) operand_types: Option<Vec<Type>>,
    /// The result types.
    pub(super) result_types: Vec<Type>,
}

impl Statement {
    /// Adds an attribute that the custom form of an operation implies.
    pub(super) fn set(&mut self, name: &str, value: Attribute) {
        let location = Location::default();
        self.attributes.push(NamedAttribute { name: name.to_owned(), value, location });
    }
}

/// An argument as written: its name, where that stands, and its type.
pub(super) struct NamedType<'a> {
    pub(super) name: &'a str,
    pub(super) start: usize,
    pub(super) ty: Type,
}

/// What a name stands for: one value or a run of results.
#[derive(Clone, Copy)]
struct Pack {
    first: Value,
    count: usize,
}

/// Reads the body of one function.
pub(super) struct BodyReader<'r, 'a> {
    pub(super) cursor: &'r mut Cursor<'a>,
    pub(super) aliases: &'r Aliases<'a>,
    pub(super) function: Function,
    names: HashMap<&'a str, Pack>,
    /// The names that each open region defines.
    scopes: Vec<Vec<&'a str>>,
}

impl<'r, 'a> BodyReader<'r, 'a> {
    /// A reader for the function called `name`, whose entry block is empty so far.
    pub(super) fn new(
        cursor: &'r mut Cursor<'a>,
        aliases: &'r Aliases<'a>,
        name: String,
        location: Location,
    ) -> Self {
        let function = Function::empty(name, location);
        Self { cursor, aliases, function, names: HashMap::new(), scopes: vec![Vec::new()] }
    }

    /// `%name: type loc(…)`, defined as the next argument of `block`.
    pub(super) fn argument(&mut self, block: Block) -> Parsed<Value> {
        let argument = self.named_type()?;
        self.define_argument(block, argument)
    }

    /// `%name: type loc(…)`.
    pub(super) fn named_type(&mut self) -> Parsed<NamedType<'a>> {
        let start = self.cursor.offset();
        let name = self.cursor.sigil_name('%', "an argument such as `%arg0`")?;
        self.cursor.expect(":")?;
        let ty = self.cursor.ty()?;
        self.cursor.skip_trailing_location()?;
        Ok(NamedType { name, start, ty })
    }

    /// Appends an argument to `block` and makes its name stand for it until the open region ends.
    pub(super) fn define_argument(
        &mut self,
        block: Block,
        argument: NamedType<'a>,
    ) -> Parsed<Value> {
        let NamedType { name, start, ty } = argument;
        let value = self.function.push_argument(block, ty);
        self.define(name, Pack { first: value, count: 1 }, start)?;
        Ok(value)
    }

    fn define(&mut self, name: &'a str, pack: Pack, at: usize) -> Parsed<()> {
        match self.names.entry(name) {
            Entry::Occupied(_) => self.cursor.error_at(at, format!("%{name} is defined twice")),
            Entry::Vacant(entry) => {
                entry.insert(pack);
                if let Some(scope) = self.scopes.last_mut() {
                    scope.push(name);
                }
                Ok(())
            }
        }
    }

    /// `%name` or `%name#1`, defined before.
    pub(super) fn operand(&mut self) -> Parsed<Value> {
        let start = self.cursor.offset();
        let name = self.cursor.sigil_name('%', "a value such as `%0`")?;
        let index = if self.cursor.raw().starts_with('#') {
            self.cursor.advance(1);
            Some(self.cursor.number::<usize>("the number of a result")?)
        } else {
            None
        };
        let Some(&Pack { first, count }) = self.names.get(name) else {
            return self.cursor.error_at(start, format!("%{name} is not defined here"));
        };
        match index {
            Some(index) if index < count => Ok(Value::new(first.index() + index)),
            None if count == 1 => Ok(first),
            _ => self.cursor.error_at(start, format!("%{name} stands for {count} values")),
        }
    }

    /// `%a, %b, …`, at least one.
    pub(super) fn operands(&mut self) -> Parsed<Vec<Value>> {
        let mut operands = vec![self.operand()?];
        while self.cursor.eat(",") {
            operands.push(self.operand()?);
        }
        Ok(operands)
    }

    /// `(%a, %b)`, or `()`.
    pub(super) fn operands_in_parentheses(&mut self) -> Parsed<Vec<Value>> {
        self.cursor.expect("(")?;
        let mut operands = Vec::new();
        if self.cursor.eat(")") {
            return Ok(operands);
        }
        loop {
            operands.push(self.operand()?);
            if self.cursor.eat(")") {
                return Ok(operands);
            }
            self.cursor.expect(",")?;
        }
    }

    /// Operations up to and with the `}` that ends `block`.
    pub(super) fn operations(&mut self, block: Block) -> Parsed<()> {
        loop {
            if self.cursor.eat("}") {
                return Ok(());
            }
            if self.cursor.peek() == Some(b'^') {
                let at = self.cursor.offset();
                return self.cursor.not_known(at, "a region of more than one block");
            }
            self.operation(block)?;
        }
    }

    /// `({…}, {…})`, or nothing.
    pub(super) fn optional_regions(&mut self) -> Parsed<Vec<Region>> {
        let mut regions = Vec::new();
        if self.cursor.eat("(") {
            loop {
                regions.push(self.region()?);
                if !self.cursor.eat(",") {
                    break;
                }
            }
            self.cursor.expect(")")?;
        }
        Ok(regions)
    }

    /// `{ ^bb0(%a: T): … }`.
    pub(super) fn region(&mut self) -> Parsed<Region> {
        let (region, block) = self.function.push_region();
        self.scoped(|reader| {
            reader.cursor.expect("{")?;
            reader.block_label(block)?;
            reader.operations(block)
        })?;
        Ok(region)
    }

    /// `^bb0(%a: T, %b: T):` if it comes next.
    pub(super) fn block_label(&mut self, block: Block) -> Parsed<()> {
        if self.cursor.peek() != Some(b'^') {
            return Ok(());
        }
        self.cursor.sigil_name('^', "the label of a block")?;
        if self.cursor.eat("(") && !self.cursor.eat(")") {
            loop {
                self.argument(block)?;
                if self.cursor.eat(")") {
                    break;
                }
                self.cursor.expect(",")?;
            }
        }
        self.cursor.expect(":")
    }

    /// Runs `read` in a scope of its own, one level deeper.
    pub(super) fn scoped<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.cursor.enter()?;
        self.scopes.push(Vec::new());
        let result = read(self)?;
        for name in self.scopes.pop().unwrap_or_default() {
            self.names.remove(name);
        }
        self.cursor.leave();
        Ok(result)
    }

    fn operation(&mut self, block: Block) -> Parsed<()> {
        let results = self.result_names()?;
        let start = self.cursor.offset();
        let generic = self.cursor.peek() == Some(b'"');
        let name = if generic {
            self.cursor.string()?
        } else {
            full_name(self.cursor.word("an operation")?)
        };
        if !build::is_known(&name) {
            return self.cursor.not_known(start, name);
        }
        let statement = if generic { self.generic()? } else { pretty::read(self, &name, start)? };
        self.cursor.skip_trailing_location()?;
        let op = self.finish(&name, start, statement)?;
        self.function.blocks[block].ops.push(op);
        self.name_results(op, &results, start)
    }

    /// `%a, %b:2 =`, or nothing.
    fn result_names(&mut self) -> Parsed<Vec<(&'a str, usize)>> {
        let mut names = Vec::new();
        if self.cursor.peek() != Some(b'%') {
            return Ok(names);
        }
        loop {
            let name = self.cursor.sigil_name('%', "a result such as `%0`")?;
            let count = if self.cursor.eat(":") { self.cursor.number("a count")? } else { 1 };
            names.push((name, count));
            if !self.cursor.eat(",") {
                break;
            }
        }
        self.cursor.expect("=")?;
        Ok(names)
    }

    fn name_results(&mut self, op: Op, names: &[(&'a str, usize)], at: usize) -> Parsed<()> {
        let results = self.function.ops[op].results.clone();
        let named = names.iter().try_fold(0_usize, |sum, &(_, count)| sum.checked_add(count));
        if named != Some(results.len()) && !(names.is_empty() && results.is_empty()) {
            let message = format!("this operation has {} results", results.len());
            return self.cursor.error_at(at, message);
        }
        let mut next = 0;
        for &(name, count) in names {
            let Some(&first) = results.get(next).filter(|_| count > 0) else {
                return self.cursor.error_at(at, format!("%{name} stands for no result"));
            };
            self.define(name, Pack { first, count }, at)?;
            next += count;
        }
        Ok(())
    }

    /// `(%a, %b) <{properties}> ({regions}) {attributes} : (types) -> types`.
    pub(super) fn generic(&mut self) -> Parsed<Statement> {
        let mut statement =
            Statement { operands: self.operands_in_parentheses()?, ..Statement::default() };
        if self.cursor.peek() == Some(b'[') {
            let at = self.cursor.offset();
            return self.cursor.not_known(at, "an operation with successor blocks");
        }
        if self.cursor.eat("<") {
            statement.attributes = self.cursor.dictionary(self.aliases)?;
            self.cursor.expect(">")?;
        }
        statement.regions = self.optional_regions()?;
        statement.attributes.extend(self.cursor.optional_dictionary(self.aliases)?);
        self.cursor.expect(":")?;
        let (operands, results) = self.cursor.function_type()?;
        statement.operand_types = Some(operands);
        statement.result_types = results;
        Ok(statement)
    }

    /// Gives the attributes a meaning and appends the operation and its results.
    fn finish(&mut self, name: &str, start: usize, statement: Statement) -> Parsed<Op> {
        /// About what a device takes that is written out.
        const DEVICE_BYTES: usize = 4;
        let Statement { operands, mut attributes, mut regions, operand_types, result_types } =
            statement;
        let location = self.cursor.location(start);
        if let Some(types) = operand_types {
            self.check_operand_types(&operands, &types, start)?;
        }
        for attribute in &mut attributes {
            if attribute.location == Location::default() {
                attribute.location = location;
            }
        }
        let devices = look_up(&mut attributes, &self.cursor.meshes);
        self.aliases.pay(devices.saturating_mul(DEVICE_BYTES), start, self.cursor)?;
        let built = Attributes::new(name, location, attributes).and_then(|mut attributes| {
            let common = attributes.common()?;
            let operand = operands.first().map(|&operand| self.function.ty(operand));
            Ok((build::kind(name, attributes.on(operand))?, common))
        });
        let (kind, Common { shardings, accuracy }): (OpKind, _) = match built {
            Ok(built) => built,
            Err(AttributeError { message, location, not_known }) => {
                return self.cursor.error_in(location, message, not_known);
            }
        };
        regions.extend(implied_region(name, &operands, &mut self.function, location));
        let results = Vec::new();
        let data = OpData { kind, operands, results, regions, shardings, accuracy, location };
        Ok(self.function.push_op(data, result_types))
    }

    fn check_operand_types(&self, operands: &[Value], types: &[Type], at: usize) -> Parsed<()> {
        if operands.len() != types.len() {
            let message = format!("{} operands have {} types", operands.len(), types.len());
            return self.cursor.error_at(at, message);
        }
        for (position, (&operand, ty)) in operands.iter().zip(types).enumerate() {
            let actual = self.function.ty(operand);
            if actual != ty {
                let message = format!("operand {position} is written as {ty}, but is {actual}");
                return self.cursor.error_at(at, message);
            }
        }
        Ok(())
    }
}

/// The name of an operation with its dialect: inside a function `call` and `return` are `func`'s.
fn full_name(word: &str) -> String {
    match word {
        "call" | "return" => format!("func.{word}"),
        _ => word.to_owned(),
    }
}
