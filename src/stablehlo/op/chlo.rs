//! Operations of `chlo`, which are close to what a frontend says: special functions, and operations
//! that broadcast their operands.

use super::{Binary, CompareType, Direction, OpKind};
use crate::stablehlo::Literal;

/// An operation of `chlo` and its attributes.
#[derive(Clone, Debug, PartialEq)]
pub enum Chlo {
    /// One operand, element by element.
    Unary(ChloUnary),
    /// Two operands of one shape, element by element.
    Binary(ChloBinary),
    /// Two operands whose shapes are made equal first.
    Broadcast {
        /// Which operation.
        op: Broadcasting,
        /// For each dimension of the operand of lower rank, that of the other one; the last ones
        /// when the source does not say.
        dimensions: Option<Vec<usize>>,
    },
    /// `broadcast_compare`: two operands whose shapes are made equal first.
    BroadcastCompare {
        /// As for [`Chlo::Broadcast`].
        dimensions: Option<Vec<usize>>,
        /// The comparison.
        direction: Direction,
        /// The order floats are compared in.
        compare_type: Option<CompareType>,
    },
    /// `broadcast_select`: predicate, on true, on false.
    BroadcastSelect,
    /// `constant_like`: a number, repeated in the shape of the operand.
    ConstantLike(Literal),
    /// `top_k`: the greatest elements along the last dimension, and their indices.
    TopK {
        /// How many.
        k: usize,
    },
}

named! {
    /// Functions of one operand.
    pub enum ChloUnary {
        Acos = "acos",
        Acosh = "acosh",
        Asin = "asin",
        Asinh = "asinh",
        Atan = "atan",
        Atanh = "atanh",
        BesselI1e = "bessel_i1e",
        Conj = "conj",
        Cosh = "cosh",
        Digamma = "digamma",
        Erf = "erf",
        ErfInv = "erf_inv",
        Erfc = "erfc",
        IsInf = "is_inf",
        IsNegInf = "is_neg_inf",
        IsPosInf = "is_pos_inf",
        Lgamma = "lgamma",
        Sinh = "sinh",
        Square = "square",
        Tan = "tan",
    }
}

named! {
    /// Functions of two operands.
    pub enum ChloBinary {
        NextAfter = "next_after",
        Polygamma = "polygamma",
        Zeta = "zeta",
    }
}

named! {
    /// Operations of two operands that are broadcast.
    pub enum Broadcasting {
        Add = "broadcast_add",
        And = "broadcast_and",
        Atan2 = "broadcast_atan2",
        Complex = "broadcast_complex",
        Divide = "broadcast_divide",
        Maximum = "broadcast_maximum",
        Minimum = "broadcast_minimum",
        Multiply = "broadcast_multiply",
        NextAfter = "broadcast_next_after",
        Or = "broadcast_or",
        Polygamma = "broadcast_polygamma",
        Power = "broadcast_power",
        Remainder = "broadcast_remainder",
        ShiftLeft = "broadcast_shift_left",
        ShiftRightArithmetic = "broadcast_shift_right_arithmetic",
        ShiftRightLogical = "broadcast_shift_right_logical",
        Subtract = "broadcast_subtract",
        Xor = "broadcast_xor",
        Zeta = "broadcast_zeta",
    }
}

impl Broadcasting {
    /// The operation on operands of one shape.
    pub fn kind(self) -> Option<OpKind> {
        let name = self.name().strip_prefix("broadcast_")?;
        let binary = Binary::from_name(name).map(OpKind::Binary);
        binary.or_else(|| ChloBinary::from_name(name).map(|op| OpKind::Chlo(Chlo::Binary(op))))
    }
}

impl Chlo {
    /// The name of the operation, without the dialect.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Unary(unary) => unary.name(),
            Self::Binary(binary) => binary.name(),
            Self::Broadcast { op, .. } => op.name(),
            Self::BroadcastCompare { .. } => "broadcast_compare",
            Self::BroadcastSelect => "broadcast_select",
            Self::ConstantLike(_) => "constant_like",
            Self::TopK { .. } => "top_k",
        }
    }
}
