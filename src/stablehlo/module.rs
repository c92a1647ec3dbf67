//! A program in memory: functions of operations over values, all named by typed indices.

use std::fmt;

use super::entity::{PrimaryMap, entity};
use super::op::{Accuracy, OpKind, Sharding};
use super::quantized::QuantizedTensorType;
use crate::ifrt::{DType, Shape};

entity! {
    /// A value: a block argument or a result of an operation.
    Value("v");
    /// An operation.
    Op("op");
    /// A straight line of operations with arguments.
    Block("block");
    /// A nested body of an operation.
    Region("region");
}

/// A ranked tensor type with static dimensions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// The element type.
    pub dtype: DType,
    /// The dimensions.
    pub shape: Shape,
}

/// A ranked tensor type of which not all dimensions are static.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DynamicTensorType {
    /// The element type.
    pub dtype: DType,
    /// The dimensions; `None` for `?`.
    pub dims: Box<[Option<usize>]>,
    /// The greatest size of each dynamic dimension (`#stablehlo.bounds`); empty without any.
    pub bounds: Box<[Option<usize>]>,
}

/// The type of a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A tensor.
    Tensor(TensorType),
    /// A tensor of quantized numbers.
    Quantized(QuantizedTensorType),
    /// A tensor some of whose dimensions are known only when the program runs.
    Dynamic(DynamicTensorType),
    /// An ordering token.
    Token,
    /// What an asynchronous operation will give.
    Future(Vec<Self>),
    /// A tuple of values.
    Tuple(Vec<Self>),
}

/// A place in the source text, one-based; `line` 0 means unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Location {
    /// One-based line.
    pub line: u32,
    /// One-based column, in bytes.
    pub column: u32,
}

/// A value's type and origin.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueData {
    /// The type.
    pub ty: Type,
    /// What defines it.
    pub def: ValueDef,
}

/// What defines a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueDef {
    /// The result of an operation, by position.
    Result(Op, usize),
    /// The argument of a block, by position.
    Argument(Block, usize),
}

/// An operation with its operands, results and nested regions.
#[derive(Clone, Debug, PartialEq)]
pub struct OpData {
    /// Which operation it is, with its attributes.
    pub kind: OpKind,
    /// The operands, in the order of the StableHLO specification.
    pub operands: Vec<Value>,
    /// The results.
    pub results: Vec<Value>,
    /// Nested bodies, in the order of the StableHLO specification.
    pub regions: Vec<Region>,
    /// How each result is to be spread (`sdy.sharding`); empty when the source does not say.
    pub shardings: Vec<Sharding>,
    /// How exact the result is to be (`result_accuracy`), where that is not the default.
    pub accuracy: Option<Box<Accuracy>>,
    /// Where it was read.
    pub location: Location,
}

/// Arguments and operations of a block; the last operation is its terminator.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct BlockData {
    /// The arguments.
    pub arguments: Vec<Value>,
    /// The operations, in order.
    pub ops: Vec<Op>,
}

/// A region; every region StableHLO uses has exactly one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionData {
    /// The block.
    pub block: Block,
}

/// A parameter of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// The value it defines, an argument of the entry block.
    pub value: Value,
    /// `sdy.sharding`, if given.
    pub sharding: Option<Sharding>,
    /// `mhlo.sharding`, if given, unparsed.
    pub hlo_sharding: Option<String>,
    /// The kind of memory it is in (`mhlo.memory_kind`), if given.
    pub memory_kind: Option<String>,
    /// The index of the result whose buffer may reuse this parameter's (`tf.aliasing_output`).
    pub aliases_output: Option<usize>,
    /// Whether the caller gives this buffer away (`jax.buffer_donor`).
    pub donated: bool,
}

/// A result of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultInfo {
    /// The type.
    pub ty: Type,
    /// `sdy.sharding`, if given.
    pub sharding: Option<Sharding>,
    /// `mhlo.sharding`, if given, unparsed.
    pub hlo_sharding: Option<String>,
    /// The kind of memory it is in (`mhlo.memory_kind`), if given.
    pub memory_kind: Option<String>,
}

/// A function; its regions, nested ones included, share these maps.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// The symbol name, without `@`.
    pub name: String,
    /// Whether it may be called from outside the module.
    pub public: bool,
    /// The parameters.
    pub params: Vec<Param>,
    /// The results.
    pub results: Vec<ResultInfo>,
    /// The entry block.
    pub entry: Block,
    /// All values.
    pub values: PrimaryMap<Value, ValueData>,
    /// All operations.
    pub ops: PrimaryMap<Op, OpData>,
    /// All blocks.
    pub blocks: PrimaryMap<Block, BlockData>,
    /// All regions.
    pub regions: PrimaryMap<Region, RegionData>,
    /// Where it was read.
    pub location: Location,
}

/// An arrangement of devices (`sdy.mesh`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mesh {
    /// The symbol name, without `@`. A mesh that is written in place, inside a sharding, is called
    /// by its text, so that equal ones are one mesh of the module.
    pub name: String,
    /// Axis names and sizes, outermost first.
    pub axes: Vec<(String, usize)>,
    /// The devices in row-major order of the axes; `None` means 0, 1, 2, ….
    pub device_ids: Option<Vec<i64>>,
}

/// A program: functions and meshes. `main` is where it starts.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    /// The symbol name, without `@`; empty when there is none.
    pub name: String,
    /// `mhlo.num_partitions`, 1 when absent.
    pub num_partitions: usize,
    /// `mhlo.num_replicas`, 1 when absent.
    pub num_replicas: usize,
    /// The meshes, with those written in place.
    pub meshes: Vec<Mesh>,
    /// The functions, in source order.
    pub functions: Vec<Function>,
}

impl Module {
    /// The function called `name`.
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|function| function.name == name)
    }

    /// The mesh called `name`.
    pub fn mesh(&self, name: &str) -> Option<&Mesh> {
        self.meshes.iter().find(|mesh| mesh.name == name)
    }
}

impl Param {
    /// A parameter about which nothing is said.
    pub(super) fn plain(value: Value) -> Self {
        Self {
            value,
            sharding: None,
            hlo_sharding: None,
            memory_kind: None,
            aliases_output: None,
            donated: false,
        }
    }
}

impl ResultInfo {
    /// A result about which nothing is said.
    pub(super) fn plain(ty: Type) -> Self {
        Self { ty, sharding: None, hlo_sharding: None, memory_kind: None }
    }
}

impl OpData {
    /// An operation about which nothing more is said; without results and regions yet.
    pub fn new(kind: OpKind, operands: Vec<Value>, location: Location) -> Self {
        let (results, regions, shardings) = (Vec::new(), Vec::new(), Vec::new());
        Self { kind, operands, results, regions, shardings, accuracy: None, location }
    }
}

impl Mesh {
    /// Whether this has no axes but names one device, which does everything on it.
    pub fn is_maximal(&self) -> bool {
        self.axes.is_empty() && self.device_ids.as_ref().is_some_and(|ids| ids.len() == 1)
    }

    /// Whether a mesh called `name` is written in place.
    pub(super) fn is_in_place(name: &str) -> bool {
        name.starts_with('<')
    }
}

impl Function {
    /// The type of a value.
    pub fn ty(&self, value: Value) -> &Type {
        &self.values[value].ty
    }

    /// The operations that stand in a block, in the order of blocks.
    pub fn placed(&self) -> impl Iterator<Item = &OpData> {
        self.blocks.values().flat_map(|block| &block.ops).map(|&op| &self.ops[op])
    }

    /// The type of a value that the verifier has shown to be a tensor; `None` for others.
    pub fn tensor(&self, value: Value) -> Option<&TensorType> {
        match self.ty(value) {
            Type::Tensor(ty) => Some(ty),
            Type::Quantized(_)
            | Type::Dynamic(_)
            | Type::Token
            | Type::Future(_)
            | Type::Tuple(_) => None,
        }
    }
}

impl DynamicTensorType {
    /// Whether `bounds` may be those of a tensor of these dimensions: there are none, or one or
    /// nothing for each dimension, and static dimensions have none.
    pub(super) fn are_bounds(dims: &[Option<usize>], bounds: &[Option<usize>]) -> bool {
        let fit = |(dim, bound): (&Option<usize>, &Option<usize>)| dim.is_none() || bound.is_none();
        bounds.is_empty() || (bounds.len() == dims.len() && dims.iter().zip(bounds).all(fit))
    }
}

impl Type {
    /// The scalar type of the elements of a tensor; `None` for what has no such elements.
    pub(super) fn element(&self) -> Option<Self> {
        match self {
            Self::Tensor(TensorType { dtype, .. })
            | Self::Dynamic(DynamicTensorType { dtype, .. }) => {
                Some(Self::Tensor(TensorType::new(*dtype, Shape::scalar())))
            }
            Self::Quantized(ty) => ty.of_shape(Shape::scalar()).map(Self::Quantized),
            Self::Token | Self::Future(_) | Self::Tuple(_) => None,
        }
    }
}

impl TensorType {
    /// A tensor type.
    pub fn new(dtype: DType, shape: Shape) -> Self {
        Self { dtype, shape }
    }

    /// Bytes of a dense array of this type.
    pub fn size_bytes(&self) -> usize {
        self.shape.num_elements() * self.dtype.size_bytes()
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tensor<")?;
        for dim in self.shape.dims() {
            write!(f, "{dim}x")?;
        }
        write!(f, "{}>", self.dtype)
    }
}

impl fmt::Display for DynamicTensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = |dim: &Option<usize>| dim.map_or_else(|| "?".to_owned(), |dim| dim.to_string());
        f.write_str("tensor<")?;
        for dim in &self.dims {
            write!(f, "{}x", size(dim))?;
        }
        write!(f, "{}", self.dtype)?;
        if !self.bounds.is_empty() {
            let bounds: Vec<String> = self.bounds.iter().map(size).collect();
            write!(f, ", #stablehlo.bounds<{}>", bounds.join(", "))?;
        }
        f.write_str(">")
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tensor(ty) => ty.fmt(f),
            Self::Quantized(ty) => ty.fmt(f),
            Self::Dynamic(ty) => ty.fmt(f),
            Self::Token => f.write_str("!stablehlo.token"),
            Self::Future(types) => in_brackets(f, "!stablehlo.future<", types),
            Self::Tuple(types) => in_brackets(f, "tuple<", types),
        }
    }
}

fn in_brackets(f: &mut fmt::Formatter<'_>, open: &str, types: &[Type]) -> fmt::Result {
    f.write_str(open)?;
    for (i, ty) in types.iter().enumerate() {
        let comma = if i == 0 { "" } else { ", " };
        write!(f, "{comma}{ty}")?;
    }
    f.write_str(">")
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}
