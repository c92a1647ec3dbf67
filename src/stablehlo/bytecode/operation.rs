//! Operations, regions and the numbering of values.

use std::collections::HashSet;

use super::container::{
    Container, LAZY_REGIONS, OPTIONAL_ARGUMENT_LOCATIONS, OpName, PROPERTIES, USE_LISTS,
};
use super::cursor::{Cursor, Read};
use super::error::{BytecodeErrorKind, Section};
use super::pool::{MAX_DEPTH, Pool};
use super::{properties, upgrade};
use crate::stablehlo::attribute::{Attribute, NamedAttribute};
use crate::stablehlo::build::module::{self, Signature, describe_function, describe_module};
use crate::stablehlo::build::replica_groups::look_up;
use crate::stablehlo::build::{self, AttributeError, Attributes, Common, implied_region};
use crate::stablehlo::{Block, Function, Location, Module, OpData, Region, Type, Value};

/// What the encoding of an operation may have, as bits.
mod has {
    pub(super) const ATTRIBUTES: u8 = 0x01;
    pub(super) const RESULTS: u8 = 0x02;
    pub(super) const OPERANDS: u8 = 0x04;
    pub(super) const SUCCESSORS: u8 = 0x08;
    pub(super) const REGIONS: u8 = 0x10;
    pub(super) const USE_LISTS: u8 = 0x20;
    pub(super) const PROPERTIES: u8 = 0x40;
}

/// An operation up to its regions.
struct Head {
    /// Where it is encoded.
    at: usize,
    /// The current name, with the dialect.
    name: String,
    location: Location,
    attributes: Vec<NamedAttribute>,
    result_types: Vec<Type>,
    operands: Vec<u64>,
    regions: u64,
    /// Whether values of the outside cannot be used inside.
    is_isolated: bool,
}

/// The values of one isolated operation, by number.
///
/// Numbers are given in the order of encoding; a region frees its numbers when it ends.
struct Scope {
    values: Vec<Option<Value>>,
    /// Per open region, the next number.
    next: Vec<usize>,
    /// Each value takes a byte of the part it is encoded in, so there are no more than this.
    limit: usize,
}

/// Reads the operations of a file.
pub(super) struct ModuleReader<'a> {
    container: &'a Container<'a>,
    pool: Pool<'a>,
    module: Module,
    functions: HashSet<String>,
    scopes: Vec<Scope>,
    /// How many regions of operations are open.
    depth: usize,
}

impl<'a> ModuleReader<'a> {
    pub(super) fn new(container: &'a Container<'a>, file_bytes: usize) -> Self {
        let module = Module {
            name: String::new(),
            num_partitions: 1,
            num_replicas: 1,
            meshes: Vec::new(),
            functions: Vec::new(),
        };
        Self {
            container,
            pool: Pool::new(container, file_bytes),
            module,
            functions: HashSet::new(),
            scopes: Vec::new(),
            depth: 0,
        }
    }

    /// Reads the module, which is the only operation of the file.
    pub(super) fn read(mut self) -> Read<Module> {
        let mut cursor = self.container.operations;
        let start = cursor.offset();
        if cursor.flagged()? != (1, false) {
            return Err(cursor.malformed(start, "a file must have one operation, the module"));
        }
        let head = self.head(&mut cursor)?;
        if head.name != "builtin.module" {
            return Err(cursor.not_known(head.at, format!("{} outside a module", head.name)));
        }
        let Head { at, attributes, .. } = head;
        let described = describe_module(&mut self.module, attributes);
        placed(&cursor, at, described)?;
        let (mut body, is_part) =
            self.enter_regions(&mut cursor, head.regions, head.is_isolated)?;
        if head.regions != 1 {
            return Err(cursor.malformed(at, "a module has one region"));
        }
        self.enter_region(&mut body)?;
        let (count, has_arguments) = body.flagged()?;
        if has_arguments {
            return Err(body.malformed(body.offset(), "a module has no arguments"));
        }
        for _ in 0..body.checked_count(body.offset(), count)? {
            self.item(&mut body)?;
        }
        if is_part {
            body.finish("the module")?;
        } else {
            cursor = body;
        }
        cursor.finish("the module")?;
        Ok(Module { meshes: self.pool.meshes.into_list(), ..self.module })
    }

    /// A function or a mesh.
    fn item(&mut self, cursor: &mut Cursor<'a>) -> Read<()> {
        let head = self.head(cursor)?;
        match head.name.as_str() {
            "func.func" => self.function(cursor, head),
            "sdy.mesh" => {
                let mesh = module::mesh(head.attributes, head.location);
                let mesh = placed(cursor, head.at, mesh)?;
                if head.regions != 0 {
                    return Err(cursor.malformed(head.at, "a mesh has no regions"));
                }
                let defined = self.pool.meshes.define(mesh);
                defined.map_err(|message| cursor.malformed(head.at, message))
            }
            name => Err(cursor.not_known(head.at, format!("{name} outside a function"))),
        }
    }

    fn function(&mut self, cursor: &mut Cursor<'a>, head: Head) -> Read<()> {
        let Head { at, mut attributes, location, regions, is_isolated, .. } = head;
        let name = placed(cursor, at, module::symbol_name(&mut attributes, location))?;
        if regions != 1 {
            return Err(cursor.malformed(at, "a function has one region"));
        }
        let mut function = Function::empty(name, location);
        let entry = function.entry;
        let (mut body, is_part) = self.enter_regions(cursor, regions, is_isolated)?;
        self.block(&mut body, &mut function, entry)?;
        self.leave_regions(cursor, body, is_part, is_isolated)?;
        let signature = Signature::from_properties(&function, attributes, location);
        let signature = placed(cursor, at, signature)?;
        placed(cursor, at, describe_function(&mut function, signature))?;
        if !self.functions.insert(function.name.clone()) {
            let message = format!("the function @{} is defined twice", function.name);
            return Err(cursor.malformed(at, message));
        }
        self.module.functions.push(function);
        Ok(())
    }

    /// Prepares for the regions of an operation: those of an isolated one have values of their
    /// own and, in newer files, are a section. Answers where they are, and whether that is apart.
    fn enter_regions(
        &mut self,
        cursor: &mut Cursor<'a>,
        regions: u64,
        is_isolated: bool,
    ) -> Read<(Cursor<'a>, bool)> {
        let is_part = regions > 0 && is_isolated && self.container.version >= LAZY_REGIONS;
        let mut body = *cursor;
        if is_part {
            let at = cursor.offset();
            let (section, part) = cursor.section()?;
            if section != Section::Operations {
                return Err(cursor.malformed(at, format!("{section} stand where a region should")));
            }
            body = part;
        }
        if is_isolated || self.scopes.is_empty() {
            let limit = body.remaining();
            self.scopes.push(Scope { values: Vec::new(), next: vec![0], limit });
        }
        Ok((body, is_part))
    }

    /// Comes back from the regions of an operation, which end at `body`.
    fn leave_regions(
        &mut self,
        cursor: &mut Cursor<'a>,
        body: Cursor<'a>,
        is_part: bool,
        is_isolated: bool,
    ) -> Read<()> {
        if is_isolated {
            self.scopes.pop();
        }
        if is_part {
            return body.finish("the regions of an operation");
        }
        *cursor = body;
        Ok(())
    }

    /// The number of blocks, which must be one, and the number of values; room for the values.
    fn enter_region(&mut self, cursor: &mut Cursor<'a>) -> Read<()> {
        let at = cursor.offset();
        match cursor.varint()? {
            1 => {}
            0 => return Err(cursor.not_known(at, "a region without a block")),
            _ => return Err(cursor.not_known(at, "a region of more than one block")),
        }
        let at = cursor.offset();
        let count = cursor.count()?;
        let Some(scope) = self.scopes.last_mut() else { return Ok(()) };
        let base = scope.values.len();
        if base + count > scope.limit {
            return Err(cursor.malformed(at, format!("{count} values are announced")));
        }
        scope.next.push(base);
        scope.values.resize(base + count, None);
        Ok(())
    }

    fn leave_region(&mut self, base: usize) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.next.pop();
            scope.values.truncate(base);
        }
    }

    /// A region: its one block, into `block` of `function`.
    fn block(
        &mut self,
        cursor: &mut Cursor<'a>,
        function: &mut Function,
        block: Block,
    ) -> Read<()> {
        let base = self.scopes.last().map_or(0, |scope| scope.values.len());
        self.enter_region(cursor)?;
        let at = cursor.offset();
        let (count, has_arguments) = cursor.flagged()?;
        let count = cursor.checked_count(at, count)?;
        if has_arguments {
            let types = cursor.list(|cursor| self.argument_type(cursor))?;
            let arguments = types.len();
            let first = self.reserve(cursor, at, arguments)?;
            for (position, ty) in types.into_iter().enumerate() {
                let value = function.push_argument(block, ty);
                self.define(first + position, value);
            }
            if self.container.version >= USE_LISTS && cursor.byte()? != 0 {
                use_lists(cursor, arguments)?;
            }
        }
        for _ in 0..count {
            self.operation(cursor, function, block)?;
        }
        self.leave_region(base);
        Ok(())
    }

    fn argument_type(&mut self, cursor: &mut Cursor<'a>) -> Read<Type> {
        let at = cursor.offset();
        let (index, has_location) = if self.container.version >= OPTIONAL_ARGUMENT_LOCATIONS {
            cursor.flagged()?
        } else {
            (cursor.varint()?, true)
        };
        let index = cursor.checked_index(at, index, self.container.types.len(), "type")?;
        let ty = self.pool.type_at(cursor, index)?;
        if has_location {
            self.pool.location(cursor)?;
        }
        ty.into_value_type().map_err(|what| cursor.not_known(at, what))
    }

    /// The numbers of `count` values that come next; the first of them.
    fn reserve(&mut self, cursor: &Cursor<'a>, at: usize, count: usize) -> Read<usize> {
        let taken = self.scopes.last_mut().and_then(|scope| {
            let first = scope.next.last().copied()?;
            let next = first.checked_add(count).filter(|&next| next <= scope.values.len())?;
            *scope.next.last_mut()? = next;
            Some(first)
        });
        taken.ok_or_else(|| cursor.malformed(at, "a region has more values than it announces"))
    }

    /// Makes `number`, which has been reserved, stand for `value`.
    fn define(&mut self, number: usize, value: Value) {
        if let Some(slot) = self.scopes.last_mut().and_then(|scope| scope.values.get_mut(number)) {
            *slot = Some(value);
        }
    }

    fn values(&self, cursor: &Cursor<'a>, at: usize, numbers: &[u64]) -> Read<Vec<Value>> {
        let values = self.scopes.last().map_or(&[][..], |scope| &scope.values);
        let value = |&number: &u64| {
            let value = usize::try_from(number).ok().and_then(|number| values.get(number).copied());
            value.flatten().ok_or_else(|| {
                cursor.malformed(at, format!("value {number} is not defined before its use"))
            })
        };
        numbers.iter().map(value).collect()
    }

    /// An operation up to its regions.
    fn head(&mut self, cursor: &mut Cursor<'a>) -> Read<Head> {
        let at = cursor.offset();
        let index = cursor.index(self.container.op_names.len(), "operation name")?;
        let op = self.container.op_names.get(index).copied();
        let op = op.ok_or_else(|| cursor.malformed(at, "an operation name is missing"))?;
        let name = upgrade::name(op.dialect, op.name);
        let is_outer = matches!(name.as_str(), "builtin.module" | "func.func" | "sdy.mesh");
        if !is_outer && name != CAST && !build::is_known(&name) {
            return Err(cursor.not_known(at, name));
        }
        let mask = cursor.byte()?;
        if mask & 0x80 != 0 {
            return Err(cursor.malformed(at, "an operation has what no operation can have"));
        }
        let location = self.pool.location(cursor)?;
        let mut attributes = Vec::new();
        if mask & has::ATTRIBUTES != 0 {
            let at = cursor.offset();
            let Attribute::Dictionary(entries) = self.pool.attribute(cursor)? else {
                return Err(cursor.malformed(at, "the attributes are not a dictionary"));
            };
            let entries = entries.into_iter();
            attributes.extend(entries.map(|(name, value)| NamedAttribute {
                name,
                value,
                location,
            }));
        }
        if mask & has::PROPERTIES != 0 {
            self.properties(cursor, at, op, location, &mut attributes)?;
        }
        let upgraded = upgrade::attributes(&name, &mut attributes);
        upgraded.map_err(|message| cursor.malformed(at, message))?;
        let mut head = Head {
            at,
            name,
            location,
            attributes,
            result_types: Vec::new(),
            operands: Vec::new(),
            regions: 0,
            is_isolated: false,
        };
        if mask & has::RESULTS != 0 {
            head.result_types = cursor.list(|cursor| self.pool.value_type(cursor))?;
        }
        if mask & has::OPERANDS != 0 {
            head.operands = cursor.list(Cursor::varint)?;
        }
        if mask & has::SUCCESSORS != 0 {
            return Err(cursor.not_known(at, "an operation with successor blocks"));
        }
        if mask & has::USE_LISTS != 0 {
            use_lists(cursor, head.result_types.len())?;
        }
        if mask & has::REGIONS != 0 {
            (head.regions, head.is_isolated) = cursor.flagged()?;
        }
        Ok(head)
    }

    /// The properties whose index comes next.
    fn properties(
        &mut self,
        cursor: &mut Cursor<'a>,
        at: usize,
        op: OpName<'_>,
        location: Location,
        attributes: &mut Vec<NamedAttribute>,
    ) -> Read<()> {
        let index = cursor.index(self.container.properties.len(), "properties")?;
        let OpName { dialect, name, is_registered } = op;
        let known = properties::of(dialect, name).filter(|_| is_registered);
        let Some(known) = known else {
            return Err(
                cursor.not_known(at, format!("{dialect}.{name}, an operation with properties,"))
            );
        };
        let mut bytes = match self.container.properties.get(index) {
            Some(&bytes) if self.container.version >= PROPERTIES => bytes,
            _ => return Err(cursor.malformed(at, "this version has no properties")),
        };
        for property in known {
            let value = if property.is_optional {
                self.pool.optional_attribute(&mut bytes)?
            } else {
                Some(self.pool.attribute(&mut bytes)?)
            };
            if let Some(value) = value {
                let name = property.name.to_owned();
                attributes.push(NamedAttribute { name, value, location });
            }
        }
        bytes.finish("the properties of an operation")
    }

    /// An operation inside a function, appended to `block`.
    fn operation(
        &mut self,
        cursor: &mut Cursor<'a>,
        function: &mut Function,
        block: Block,
    ) -> Read<()> {
        let head = self.head(cursor)?;
        let Head { at, name, location, mut attributes, result_types, operands, .. } = head;
        let operands = self.values(cursor, at, &operands)?;
        let first = self.reserve(cursor, at, result_types.len())?;
        if name == CAST {
            let types = operands.iter().map(|&value| function.ty(value));
            if !types.eq(&result_types) || head.regions != 0 {
                return Err(cursor.not_known(at, "a cast between different types"));
            }
            for (position, &value) in operands.iter().enumerate() {
                self.define(first + position, value);
            }
            return Ok(());
        }
        let devices = look_up(&mut attributes, &self.pool.meshes);
        self.pool.pay(cursor, devices.saturating_mul(size_of::<i64>()))?;
        let built = Attributes::new(&name, location, attributes).and_then(|mut attributes| {
            let common = attributes.common()?;
            let operand = operands.first().map(|&operand| function.ty(operand));
            Ok((build::kind(&name, attributes.on(operand))?, common))
        });
        let (kind, Common { shardings, accuracy }) = placed(cursor, at, built)?;
        let mut regions: Vec<Region> = Vec::new();
        if head.regions > 0 {
            let (mut body, is_part) = self.enter_regions(cursor, head.regions, head.is_isolated)?;
            for _ in 0..body.checked_count(at, head.regions)? {
                if self.depth == MAX_DEPTH {
                    let message = format!("nested more than {MAX_DEPTH} levels deep");
                    return Err(cursor.malformed(at, message));
                }
                self.depth += 1;
                let (region, inner) = function.push_region();
                self.block(&mut body, function, inner)?;
                regions.push(region);
                self.depth -= 1;
            }
            self.leave_regions(cursor, body, is_part, head.is_isolated)?;
        }
        regions.extend(implied_region(&name, &operands, function, location));
        let results = Vec::new();
        let data = OpData { kind, operands, results, regions, shardings, accuracy, location };
        let op = function.push_op(data, result_types);
        for (position, &value) in function.ops[op].results.iter().enumerate() {
            self.define(first + position, value);
        }
        function.blocks[block].ops.push(op);
        Ok(())
    }
}

/// Between types of VHLO and others that are the same here; around `sdy` operations.
const CAST: &str = "builtin.unrealized_conversion_cast";

/// An answer of `build`, its error shown at `at`.
fn placed<T>(cursor: &Cursor<'_>, at: usize, built: Result<T, AttributeError>) -> Read<T> {
    built.map_err(|AttributeError { message, not_known, .. }| {
        let kind =
            if not_known { BytecodeErrorKind::NotKnown } else { BytecodeErrorKind::Malformed };
        cursor.error(at, kind, message)
    })
}

/// Skips the order of the uses of `values` values, which is kept for compilers that print it.
fn use_lists(cursor: &mut Cursor<'_>, values: usize) -> Read<()> {
    let count = if values == 1 { 1 } else { cursor.count()? };
    for _ in 0..count {
        if values != 1 {
            cursor.varint()?;
        }
        let at = cursor.offset();
        let (indices, _) = cursor.flagged()?;
        for _ in 0..cursor.checked_count(at, indices)? {
            cursor.varint()?;
        }
    }
    Ok(())
}
