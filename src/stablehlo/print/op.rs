//! Operations as text.

use std::fmt;

use super::attribute::{accuracy, list, quoted, shardings, symbol};
use super::literal::{constant, decimal};
use super::properties::{custom_call_entries, is_discardable, properties};
use super::{Form, FunctionPrinter, separated, type_list};
use crate::stablehlo::op::{Expectation, OpKind};
use crate::stablehlo::{OpData, Type};

/// Prints one operation.
pub(super) struct OpPrinter<'a> {
    pub(super) printer: &'a FunctionPrinter<'a>,
    pub(super) op: &'a OpData,
    /// The indentation, in steps.
    pub(super) indent: usize,
    /// What a return is called here: it is named after what it returns from.
    pub(super) return_name: &'static str,
}

impl OpPrinter<'_> {
    pub(super) fn print(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(&first) = self.op.results.first() {
            let name = self.printer.name(first).to_string();
            let base = name.split('#').next().unwrap_or_default();
            match self.op.results.len() {
                1 => write!(f, "{base} = ")?,
                count => write!(f, "{base}:{count} = ")?,
            }
        }
        if self.printer.form == Form::Generic {
            return self.generic(f);
        }
        match &self.op.kind {
            OpKind::Constant(literal) => {
                f.write_str("stablehlo.constant")?;
                self.attributes(f)?;
                f.write_str(" ")?;
                constant(f, literal, self.printer.constants)
            }
            OpKind::Unary(_) | OpKind::Binary(_) | OpKind::Clamp | OpKind::Convert => {
                self.plain(f, true)
            }
            OpKind::Reshape | OpKind::BitcastConvert | OpKind::DynamicUpdateSlice => {
                self.plain(f, false)
            }
            OpKind::Compare { direction, compare_type } => {
                write!(f, "stablehlo.compare {}, ", direction.name())?;
                self.operands(f)?;
                if let Some(compare_type) = compare_type {
                    write!(f, ", {}", compare_type.name())?;
                }
                self.attributes_and_types(f)
            }
            OpKind::Select => self.select(f),
            OpKind::AfterAll if self.op.operands.is_empty() => {
                f.write_str("stablehlo.create_token")?;
                self.attributes(f)?;
                f.write_str(" : ")?;
                separated(f, self.result_types(), |f, ty| write!(f, "{ty}"))
            }
            OpKind::Iota { dimension } => {
                write!(f, "stablehlo.iota dim = {dimension}")?;
                self.attributes(f)?;
                f.write_str(" : ")?;
                separated(f, self.result_types(), |f, ty| write!(f, "{ty}"))
            }
            OpKind::BroadcastInDim { dimensions } => self.dims(f, dimensions),
            OpKind::Transpose { permutation } => self.dims(f, permutation),
            OpKind::Call { callee } => {
                write!(f, "func.call {}(", symbol(callee))?;
                self.operands(f)?;
                f.write_str(")")?;
                self.attributes_and_types(f)
            }
            OpKind::Return => {
                f.write_str(self.return_name)?;
                if !self.op.operands.is_empty() {
                    f.write_str(" ")?;
                    self.operands(f)?;
                    f.write_str(" : ")?;
                    separated(f, self.operand_types(), |f, ty| write!(f, "{ty}"))?;
                }
                Ok(())
            }
            OpKind::CustomCall { call_target_name, .. } => self.custom_call(f, call_target_name),
            OpKind::ManualComputation(_)
            | OpKind::ShardingConstraint(_)
            | OpKind::Reshard(_)
            | OpKind::ShardingGroup { .. }
            | OpKind::PropagationBarrier(_)
            | OpKind::DataFlowEdge(_)
            | OpKind::NamedComputation(_) => self.sdy(f),
            OpKind::Expect(expectation) => self.expectation(f, expectation),
            _ => self.generic(f),
        }
    }

    pub(super) fn operands(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        separated(f, &self.op.operands, |f, &value| write!(f, "{}", self.printer.name(value)))
    }

    pub(super) fn operand_types(&self) -> Vec<&Type> {
        self.op.operands.iter().map(|&value| self.printer.function.ty(value)).collect()
    }

    pub(super) fn result_types(&self) -> Vec<&Type> {
        self.op.results.iter().map(|&value| self.printer.function.ty(value)).collect()
    }

    /// ` {result_accuracy = …, sdy.sharding = …}`, or nothing: what any operation may have besides its own attributes.
    pub(super) fn attributes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let accuracy = self.op.accuracy.as_deref().map(accuracy);
        super::braces(f, &accuracy.into_iter().chain(self.shardings()).collect::<Vec<_>>())
    }

    fn shardings(&self) -> Option<String> {
        let values = &self.op.shardings;
        let text = || format!("sdy.sharding = #sdy.sharding_per_value<{}>", shardings(values));
        (!values.is_empty()).then(text)
    }

    /// ` {attributes} : (types) -> types`.
    pub(super) fn attributes_and_types(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.attributes(f)?;
        self.function_type(f)
    }

    /// ` : (types) -> types`.
    fn function_type(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(" : (")?;
        separated(f, self.operand_types(), |f, ty| write!(f, "{ty}"))?;
        f.write_str(") -> ")?;
        type_list(f, &self.result_types())
    }

    /// `op %a, %b : type`; one type stands for all when `short` and they are the same.
    fn plain(&self, f: &mut fmt::Formatter<'_>, short: bool) -> fmt::Result {
        write!(f, "{} ", self.op.kind)?;
        self.operands(f)?;
        if let (true, [result]) = (short, self.result_types().as_slice())
            && self.operand_types().iter().all(|ty| ty == result)
        {
            self.attributes(f)?;
            return write!(f, " : {result}");
        }
        self.attributes_and_types(f)
    }

    /// `stablehlo.select %p, %a, %b : predicate type, type`.
    fn select(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.operand_types().as_slice(), self.result_types().as_slice()) {
            ([predicate, on_true, on_false], [result])
                if on_true == result && on_false == result =>
            {
                f.write_str("stablehlo.select ")?;
                self.operands(f)?;
                self.attributes(f)?;
                write!(f, " : {predicate}, {result}")
            }
            _ => self.generic(f),
        }
    }

    fn dims(&self, f: &mut fmt::Formatter<'_>, dims: &[usize]) -> fmt::Result {
        write!(f, "{} ", self.op.kind)?;
        self.operands(f)?;
        write!(f, ", dims = [{}]", list(dims))?;
        self.attributes_and_types(f)
    }

    fn custom_call(&self, f: &mut fmt::Formatter<'_>, target: &str) -> fmt::Result {
        write!(f, "stablehlo.custom_call {}(", symbol(target))?;
        self.operands(f)?;
        f.write_str(")")?;
        let mut entries = custom_call_entries(&self.op.kind);
        entries.extend(self.shardings());
        super::braces(f, &entries)?;
        self.function_type(f)
    }

    /// `check.expect_eq %a, %b : type`.
    fn expectation(&self, f: &mut fmt::Formatter<'_>, expectation: &Expectation) -> fmt::Result {
        write!(f, "{} ", self.op.kind)?;
        self.operands(f)?;
        if let Expectation::EqConst(value) | Expectation::AlmostEqConst { value, .. } = expectation
        {
            f.write_str(", ")?;
            constant(f, value, self.printer.constants)?;
        }
        match expectation {
            Expectation::Eq | Expectation::EqConst(_) => {}
            Expectation::SerializedEq { probe_id, iteration } => {
                write!(f, ", probe_id = {}, iter = {iteration}", quoted(probe_id))?;
            }
            Expectation::AlmostEq { tolerance } | Expectation::AlmostEqConst { tolerance, .. } => {
                write!(f, ", tolerance = {}", decimal(*tolerance))?;
            }
            Expectation::Close { least, most } => {
                write!(f, ", max_ulp_difference = {most}, min_ulp_difference = {least}")?;
            }
        }
        let types = match expectation {
            Expectation::EqConst(_) | Expectation::AlmostEqConst { .. } => return Ok(()),
            Expectation::Eq | Expectation::AlmostEq { .. } | Expectation::SerializedEq { .. } => 1,
            Expectation::Close { .. } => 2,
        };
        f.write_str(" : ")?;
        separated(f, self.operand_types().into_iter().take(types), |f, ty| write!(f, "{ty}"))
    }

    /// What a return from a region of this operation is called.
    fn inner_return(&self) -> &'static str {
        match self.op.kind {
            OpKind::ManualComputation(_) | OpKind::NamedComputation(_) => "sdy.return",
            _ => "stablehlo.return",
        }
    }

    /// `"op"(%a) <{properties}> ({regions}) : (types) -> types`.
    fn generic(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.op.kind {
            OpKind::Return => write!(f, "\"{}\"(", self.return_name)?,
            // As JAX writes it.
            OpKind::AfterAll if self.op.operands.is_empty() => {
                f.write_str("\"stablehlo.create_token\"(")?;
            }
            _ => write!(f, "\"{}\"(", self.op.kind)?,
        }
        self.operands(f)?;
        f.write_str(")")?;
        let mut properties = properties(&self.op.kind);
        properties.extend(self.op.accuracy.as_deref().map(accuracy));
        if !properties.is_empty() {
            write!(f, " <{{{}}}>", properties.join(", "))?;
        }
        if !self.op.regions.is_empty() {
            f.write_str(" (")?;
            separated(f, &self.op.regions, |f, &region| {
                self.printer.region(f, region, self.indent, self.inner_return())
            })?;
            f.write_str(")")?;
        }
        let mut entries = custom_call_entries(&self.op.kind);
        entries.retain(|entry| is_discardable(entry));
        entries.extend(self.shardings());
        super::braces(f, &entries)?;
        self.function_type(f)
    }
}
