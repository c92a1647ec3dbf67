//! Attributes as they are written, before an operation gives them a meaning.
//!
//! Readers collect an operation's attributes here; `build` turns them
//! into an [`crate::stablehlo::OpKind`]. Nothing else sees them, except what a `custom_call`
//! carries along for whoever implements it.

use std::sync::Arc;

use super::op::{AxesMove, AxisRef, Sharding, ShardingRule};
use super::{Literal, Location, Mesh, Type};
use crate::ifrt::DType;

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    /// Present, without a value.
    Unit,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number and its type, if given.
    Integer(i128, Option<DType>),
    /// A floating-point number and its type, if given.
    Float(f64, Option<DType>),
    /// A string.
    String(String),
    /// `@name`.
    Symbol(String),
    /// `[a, b]`.
    Array(Vec<Self>),
    /// `array<i64: 1, 2>`.
    Integers(Vec<i64>),
    /// `array<f32: 1.0, 2.0>`, of any element type but `i64`.
    DenseArray(Literal),
    /// `dense<…> : tensor<…>`.
    Elements(Literal),
    /// `dense<[1, 0]> : tensor<2xindex>`: the layout of an array, minor dimensions first.
    Layout(Vec<i64>),
    /// `{name = value}`.
    Dictionary(Vec<(String, Self)>),
    /// A type.
    Type(Type),
    /// `(types) -> types`.
    FunctionType(Vec<Type>, Vec<Type>),
    /// A case of an enumeration: `#stablehlo<precision HIGHEST>`.
    Case {
        /// The enumeration.
        family: String,
        /// The case.
        case: String,
    },
    /// Named fields: `#stablehlo.gather<offset_dims = [1]>`.
    Fields {
        /// The name of the attribute, with its dialect.
        name: String,
        /// The fields, in source order.
        fields: Vec<(String, Self)>,
    },
    /// `#stablehlo.conv<…>`: what each dimension of input, kernel and output is.
    ConvDimensions(Box<ConvDimensions>),
    /// `#sdy.sharding<…>`.
    Sharding(Sharding),
    /// `#sdy.sharding_per_value<…>`.
    Shardings(Vec<Sharding>),
    /// `#sdy.op_sharding_rule<…>`.
    ShardingRule(Box<ShardingRule>),
    /// `#sdy<manual_axes{…}>`.
    Axes(Vec<String>),
    /// `#sdy<axis_ref_list{…}>`.
    AxisRefs(Vec<AxisRef>),
    /// `#sdy<list_of_axis_ref_lists[{…}]>`.
    AxisRefLists(Vec<Vec<AxisRef>>),
    /// `#sdy<all_to_all_param_list[…]>`.
    AxesMoves(Vec<AxesMove>),
    /// `#sdy.mesh<…>`, without a name.
    Mesh(Box<Mesh>),
    /// The value of an alias, shared by its uses.
    Shared(Arc<Self>),
    /// Something no operation gives a meaning to; the text as written.
    Opaque(String),
}

/// Which dimension is which, for input, kernel and output of a convolution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvDimensions {
    /// `b`, `f` and the spatial dimensions of the input.
    pub input: ConvOperand,
    /// `i`, `o` and the spatial dimensions of the kernel.
    pub kernel: ConvOperand,
    /// `b`, `f` and the spatial dimensions of the output.
    pub output: ConvOperand,
}

/// The dimensions of one tensor of a convolution.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ConvOperand {
    /// The position of `b` or `i`.
    pub first: usize,
    /// The position of `f` or `o`.
    pub second: usize,
    /// The positions of `0`, `1`, ….
    pub spatial: Vec<usize>,
}

/// A named attribute and where its name stands.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedAttribute {
    /// The name, with its dialect if it has one.
    pub name: String,
    /// The value.
    pub value: Attribute,
    /// Where the name stands.
    pub location: Location,
}

impl Attribute {
    /// A place in some source as the value of an attribute, whose content is not kept.
    pub(super) fn location() -> Self {
        Self::Opaque("loc(unknown)".to_owned())
    }

    /// The attribute itself, through any alias.
    pub fn resolved(&self) -> &Self {
        let mut attribute = self;
        while let Self::Shared(inner) = attribute {
            attribute = inner;
        }
        attribute
    }
}
