//! The attributes of one operation, taken one by one by name and type.

use crate::ifrt::DType;
use crate::stablehlo::attribute::{Attribute, NamedAttribute};
use crate::stablehlo::op::{
    Accuracy, AccuracyMode, AxesMove, AxisRef, PrecisionType, Sharding, Unary,
};
use crate::stablehlo::{Literal, Location, Type};

/// Attributes that say nothing about what an operation computes.
const HARMLESS: &[&str] = &["mhlo.frontend_attributes"];

/// Dialects whose attributes are notes of the frontend to itself.
const HARMLESS_DIALECTS: &[&str] = &["jax."];

/// Why the attributes of an operation are refused.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::stablehlo) struct AttributeError {
    /// What is wrong.
    pub(in crate::stablehlo) message: String,
    /// Where: an attribute, or the operation.
    pub(in crate::stablehlo) location: Location,
    /// Whether it may well be right, but has no meaning here yet.
    pub(in crate::stablehlo) not_known: bool,
}

type Taken<T> = Result<T, AttributeError>;

/// The attributes of one operation that have not been taken yet.
pub(in crate::stablehlo) struct Attributes {
    op: String,
    location: Location,
    entries: Vec<NamedAttribute>,
    rank: Option<usize>,
}

impl Attributes {
    /// The attributes of the operation called `op` at `location`.
    ///
    /// # Errors
    /// When a name occurs twice.
    pub(in crate::stablehlo) fn new(
        op: &str,
        location: Location,
        entries: Vec<NamedAttribute>,
    ) -> Taken<Self> {
        let mut names: Vec<(&str, Location)> =
            entries.iter().map(|entry| (entry.name.as_str(), entry.location)).collect();
        names.sort_unstable_by_key(|&(name, location)| (name, location.line, location.column));
        if let Some(pair) = names.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(AttributeError {
                message: format!("{op} has the attribute `{}` twice", pair[1].0),
                location: pair[1].1,
                not_known: false,
            });
        }
        Ok(Self { op: op.to_owned(), location, entries, rank: None })
    }

    /// The same, of an operation whose first operand has this type.
    pub(in crate::stablehlo) fn on(self, operand: Option<&Type>) -> Self {
        let rank = match operand {
            Some(Type::Tensor(ty)) => Some(ty.shape.rank()),
            Some(Type::Quantized(ty)) => Some(ty.shape().rank()),
            Some(Type::Dynamic(ty)) => Some(ty.dims.len()),
            _ => None,
        };
        Self { rank, ..self }
    }

    /// The rank of the first operand, if that is a tensor.
    pub(super) fn rank(&self) -> Option<usize> {
        self.rank
    }

    /// Takes the attribute called `name`.
    pub(super) fn take(&mut self, name: &str) -> Option<NamedAttribute> {
        let position = self.entries.iter().position(|entry| entry.name == name)?;
        Some(self.entries.swap_remove(position))
    }

    fn required(&mut self, name: &str) -> Taken<NamedAttribute> {
        self.take(name).ok_or_else(|| self.lacks(name))
    }

    /// The error that there is no attribute called `name`.
    pub(super) fn lacks(&self, name: &str) -> AttributeError {
        AttributeError {
            message: format!("{} lacks the attribute `{name}`", self.op),
            location: self.location,
            not_known: false,
        }
    }

    /// The error that `entry` is not `expected`.
    pub(super) fn wrong(&self, entry: &NamedAttribute, expected: &str) -> AttributeError {
        AttributeError {
            message: format!("the attribute `{}` of {} must be {expected}", entry.name, self.op),
            location: entry.location,
            not_known: false,
        }
    }

    /// The error that the operation, or something about it, has no meaning here yet.
    pub(super) fn not_known(&self, what: &str) -> AttributeError {
        let message = if what == self.op {
            format!("{what} is not known yet")
        } else {
            format!("{what} is not known yet, at {}", self.op)
        };
        AttributeError { message, location: self.location, not_known: true }
    }

    /// Refuses what is left, unless it is harmless.
    pub(super) fn finish(self) -> Taken<()> {
        let left = self.entries.iter().find(|entry| {
            let name = entry.name.as_str();
            let note = HARMLESS_DIALECTS.iter().any(|dialect| name.starts_with(dialect));
            !note && !HARMLESS.contains(&name)
        });
        match left {
            None => Ok(()),
            Some(entry) => Err(AttributeError {
                message: format!("the attribute `{}` of {} is not known yet", entry.name, self.op),
                location: entry.location,
                not_known: true,
            }),
        }
    }

    /// Takes every attribute that is left but what is harmless, sorted by name.
    pub(super) fn take_others(&mut self) -> Vec<(String, Attribute)> {
        let (taken, left) = std::mem::take(&mut self.entries).into_iter().partition(|entry| {
            !HARMLESS_DIALECTS.iter().any(|dialect| entry.name.starts_with(dialect))
        });
        self.entries = left;
        let taken: Vec<NamedAttribute> = taken;
        let mut taken: Vec<_> = taken.into_iter().map(|entry| (entry.name, entry.value)).collect();
        taken.sort_by(|a, b| a.0.cmp(&b.0));
        taken
    }

    /// A whole number that fits `T`.
    pub(super) fn integer<T: TryFrom<i128>>(&mut self, name: &str) -> Taken<T> {
        let entry = self.required(name)?;
        self.to_integer(&entry)
    }

    /// A whole number that fits `T`, if present.
    pub(super) fn optional_integer<T: TryFrom<i128>>(&mut self, name: &str) -> Taken<Option<T>> {
        self.take(name).map(|entry| self.to_integer(&entry)).transpose()
    }

    fn to_integer<T: TryFrom<i128>>(&self, entry: &NamedAttribute) -> Taken<T> {
        let expected = "a whole number in range";
        match entry.value.resolved() {
            &Attribute::Integer(value, _) => T::try_from(value).ok(),
            _ => None,
        }
        .ok_or_else(|| self.wrong(entry, expected))
    }

    /// A list of whole numbers that fit `T`; empty when absent.
    pub(super) fn integers<T: TryFrom<i64>>(&mut self, name: &str) -> Taken<Vec<T>> {
        Ok(self.optional_integers(name)?.unwrap_or_default())
    }

    /// A list of whole numbers that fit `T`, which must be there.
    pub(super) fn required_integers<T: TryFrom<i64>>(&mut self, name: &str) -> Taken<Vec<T>> {
        let entry = self.required(name)?;
        self.to_integers(&entry)
    }

    /// A list of whole numbers that fit `T`, if present.
    pub(super) fn optional_integers<T: TryFrom<i64>>(
        &mut self,
        name: &str,
    ) -> Taken<Option<Vec<T>>> {
        self.take(name).map(|entry| self.to_integers(&entry)).transpose()
    }

    fn to_integers<T: TryFrom<i64>>(&self, entry: &NamedAttribute) -> Taken<Vec<T>> {
        let numbers = match entry.value.resolved() {
            Attribute::Integers(numbers) => Some(numbers.clone()),
            Attribute::DenseArray(flags) if flags.ty().dtype == DType::Bool => {
                Some(flags.stored_bytes().iter().map(|&flag| flag.into()).collect())
            }
            Attribute::Array(items) => items.iter().map(whole_number).collect(),
            Attribute::Elements(literal) if literal.ty().shape.rank() == 1 => {
                matrix_elements(literal)
            }
            _ => None,
        };
        numbers
            .and_then(|numbers| numbers.into_iter().map(|n| T::try_from(n).ok()).collect())
            .ok_or_else(|| self.wrong(entry, "a list of whole numbers in range"))
    }

    /// Rows of whole numbers: `dense<[[0, 1], [2, 3]]>`.
    pub(super) fn rows(&mut self, name: &str) -> Taken<Option<Vec<Vec<i64>>>> {
        self.take(name).map(|entry| self.to_rows(&entry)).transpose()
    }

    /// The rows that `entry` is.
    pub(super) fn to_rows(&self, entry: &NamedAttribute) -> Taken<Vec<Vec<i64>>> {
        match entry.value.resolved() {
            Attribute::Elements(literal) => literal_rows(literal),
            _ => None,
        }
        .ok_or_else(|| self.wrong(entry, "a matrix of whole numbers, written out"))
    }

    /// `true`, `false`, or present without a value; false when absent.
    pub(super) fn flag(&mut self, name: &str) -> Taken<bool> {
        let Some(entry) = self.take(name) else { return Ok(false) };
        match entry.value.resolved() {
            Attribute::Unit => Ok(true),
            &Attribute::Bool(value) => Ok(value),
            _ => Err(self.wrong(&entry, "`true` or `false`")),
        }
    }

    /// `true` or `false`, which must be there.
    pub(super) fn required_flag(&mut self, name: &str) -> Taken<bool> {
        let is_there = self.entries.iter().any(|entry| entry.name == name);
        if is_there { self.flag(name) } else { Err(self.lacks(name)) }
    }

    /// `{name = value}`, sorted by name; empty when absent.
    pub(super) fn dictionary(&mut self, name: &str) -> Taken<Vec<(String, Attribute)>> {
        let Some(entry) = self.take(name) else { return Ok(Vec::new()) };
        match entry.value.resolved() {
            Attribute::Dictionary(fields) => {
                let mut fields = fields.clone();
                fields.sort_by(|a, b| a.0.cmp(&b.0));
                let unique = fields.windows(2).all(|pair| pair[0].0 != pair[1].0);
                unique.then_some(fields).ok_or_else(|| self.wrong(&entry, "without repetitions"))
            }
            _ => Err(self.wrong(&entry, "`{name = value}`")),
        }
    }

    /// A constant.
    pub(super) fn elements(&mut self, name: &str) -> Taken<Literal> {
        let entry = self.required(name)?;
        match entry.value.resolved() {
            Attribute::Elements(literal) => Ok(literal.clone()),
            _ => Err(self.wrong(&entry, "a constant such as `dense<0> : tensor<i32>`")),
        }
    }

    /// A string.
    pub(super) fn string(&mut self, name: &str) -> Taken<String> {
        let entry = self.required(name)?;
        match entry.value.resolved() {
            Attribute::String(text) => Ok(text.clone()),
            _ => Err(self.wrong(&entry, "a string")),
        }
    }

    /// A string, if present.
    pub(super) fn optional_string(&mut self, name: &str) -> Taken<Option<String>> {
        let is_there = self.entries.iter().any(|entry| entry.name == name);
        if is_there { self.string(name).map(Some) } else { Ok(None) }
    }

    /// A 32-bit float.
    pub(super) fn float(&mut self, name: &str) -> Taken<f32> {
        let entry = self.required(name)?;
        match entry.value.resolved() {
            #[expect(clippy::cast_possible_truncation, reason = "the attribute is a 32-bit float")]
            Attribute::Float(value, None | Some(DType::F32)) => Ok(*value as f32),
            _ => Err(self.wrong(&entry, "a float such as `1.0e-5 : f32`")),
        }
    }

    /// A 64-bit float, if present.
    pub(super) fn optional_double(&mut self, name: &str) -> Taken<Option<f64>> {
        let Some(entry) = self.take(name) else { return Ok(None) };
        match entry.value.resolved() {
            Attribute::Float(value, None | Some(DType::F64)) => Ok(Some(*value)),
            _ => Err(self.wrong(&entry, "a float such as `1.0e-5 : f64`")),
        }
    }

    /// The type of a precision, such as `tf32`.
    pub(super) fn precision_type(&mut self, name: &str) -> Taken<PrecisionType> {
        let entry = self.required(name)?;
        match entry.value.resolved() {
            Attribute::Opaque(name) => PrecisionType::from_name(name),
            _ => None,
        }
        .ok_or_else(|| self.wrong(&entry, "an element type such as `tf32`"))
    }

    /// A symbol.
    pub(super) fn symbol(&mut self, name: &str) -> Taken<String> {
        let entry = self.required(name)?;
        match entry.value.resolved() {
            Attribute::Symbol(symbol) => Ok(symbol.clone()),
            _ => Err(self.wrong(&entry, "a symbol such as `@main`")),
        }
    }

    /// A list of symbols; empty when absent.
    pub(super) fn symbols(&mut self, name: &str) -> Taken<Vec<String>> {
        let Some(entry) = self.take(name) else { return Ok(Vec::new()) };
        let symbols = match entry.value.resolved() {
            Attribute::Array(items) => items
                .iter()
                .map(|item| match item.resolved() {
                    Attribute::Symbol(symbol) => Some(symbol.clone()),
                    _ => None,
                })
                .collect(),
            _ => None,
        };
        symbols.ok_or_else(|| self.wrong(&entry, "a list of symbols"))
    }

    /// The fields of the attribute `name`, which is `#kind<…>`.
    pub(super) fn fields(&mut self, name: &str, kind: &str) -> Taken<Option<Self>> {
        let Some(entry) = self.take(name) else { return Ok(None) };
        match entry.value.resolved() {
            Attribute::Fields { name, fields } if name == kind => {
                let location = entry.location;
                let entries = fields.iter().map(|(name, value)| NamedAttribute {
                    name: name.clone(),
                    value: value.clone(),
                    location,
                });
                Self::new(&format!("#{kind}"), location, entries.collect()).map(Some)
            }
            _ => Err(self.wrong(&entry, &format!("`#{kind}<…>`"))),
        }
    }

    /// The fields of the attribute `name`, which must be there.
    pub(super) fn required_fields(&mut self, name: &str, kind: &str) -> Taken<Self> {
        self.fields(name, kind)?.ok_or_else(|| self.lacks(name))
    }

    /// A case of the enumeration `family`, if present.
    pub(super) fn case<T>(
        &mut self,
        name: &str,
        family: &str,
        from_name: impl Fn(&str) -> Option<T>,
    ) -> Taken<Option<T>> {
        let Some(entry) = self.take(name) else { return Ok(None) };
        match one_case(&entry.value, family, &from_name) {
            Some(case) => Ok(Some(case)),
            None => Err(self.wrong(&entry, &format!("a case of {family}"))),
        }
    }

    /// A case of the enumeration `family`, which must be there.
    pub(super) fn required_case<T>(
        &mut self,
        name: &str,
        family: &str,
        from_name: impl Fn(&str) -> Option<T>,
    ) -> Taken<T> {
        let entry = self.required(name)?;
        one_case(&entry.value, family, &from_name)
            .ok_or_else(|| self.wrong(&entry, &format!("a case of {family}")))
    }

    /// A list of cases of the enumeration `family`; empty when absent.
    pub(super) fn cases<T>(
        &mut self,
        name: &str,
        family: &str,
        from_name: impl Fn(&str) -> Option<T>,
    ) -> Taken<Vec<T>> {
        let Some(entry) = self.take(name) else { return Ok(Vec::new()) };
        let cases = match entry.value.resolved() {
            Attribute::Array(items) => {
                items.iter().map(|item| one_case(item, family, &from_name)).collect()
            }
            _ => None,
        };
        cases.ok_or_else(|| self.wrong(&entry, &format!("a list of cases of {family}")))
    }

    /// `#sdy.sharding<…>`.
    pub(super) fn sharding(&mut self, name: &str) -> Taken<Sharding> {
        let entry = self.required(name)?;
        match entry.value.resolved() {
            Attribute::Sharding(sharding) => Ok(sharding.clone()),
            _ => Err(self.wrong(&entry, "`#sdy.sharding<…>`")),
        }
    }

    /// `#sdy.sharding<…>`, if present.
    pub(super) fn optional_sharding(&mut self, name: &str) -> Taken<Option<Sharding>> {
        let is_there = self.entries.iter().any(|entry| entry.name == name);
        if is_there { self.sharding(name).map(Some) } else { Ok(None) }
    }

    /// `#sdy.sharding_per_value<…>`.
    pub(super) fn shardings(&mut self, name: &str) -> Taken<Vec<Sharding>> {
        let entry = self.required(name)?;
        match entry.value.resolved() {
            Attribute::Shardings(shardings) => Ok(shardings.clone()),
            _ => Err(self.wrong(&entry, "`#sdy.sharding_per_value<…>`")),
        }
    }

    /// `#sdy.sharding_per_value<…>`; empty when absent.
    pub(super) fn optional_shardings(&mut self, name: &str) -> Taken<Vec<Sharding>> {
        let is_there = self.entries.iter().any(|entry| entry.name == name);
        if is_there { self.shardings(name) } else { Ok(Vec::new()) }
    }

    /// `#sdy<axis_ref_list{…}>`.
    pub(super) fn axis_refs(&mut self, name: &str) -> Taken<Vec<AxisRef>> {
        let entry = self.required(name)?;
        match entry.value.resolved() {
            Attribute::AxisRefs(axes) => Ok(axes.clone()),
            _ => Err(self.wrong(&entry, "`#sdy<axis_ref_list{…}>`")),
        }
    }

    /// `#sdy<list_of_axis_ref_lists[…]>`.
    pub(super) fn axis_ref_lists(&mut self, name: &str) -> Taken<Vec<Vec<AxisRef>>> {
        let entry = self.required(name)?;
        match entry.value.resolved() {
            Attribute::AxisRefLists(lists) => Ok(lists.clone()),
            _ => Err(self.wrong(&entry, "`#sdy<list_of_axis_ref_lists[…]>`")),
        }
    }

    /// `#sdy<all_to_all_param_list[…]>`.
    pub(super) fn axes_moves(&mut self, name: &str) -> Taken<Vec<AxesMove>> {
        let entry = self.required(name)?;
        match entry.value.resolved() {
            Attribute::AxesMoves(moves) => Ok(moves.clone()),
            _ => Err(self.wrong(&entry, "`#sdy<all_to_all_param_list[…]>`")),
        }
    }

    /// `#sdy<manual_axes{…}>`.
    pub(super) fn axes(&mut self, name: &str) -> Taken<Vec<String>> {
        let entry = self.required(name)?;
        match entry.value.resolved() {
            Attribute::Axes(axes) => Ok(axes.clone()),
            _ => Err(self.wrong(&entry, "`#sdy<manual_axes{…}>`")),
        }
    }

    /// What each dimension of a convolution is.
    pub(super) fn conv_dimensions(
        &mut self,
        name: &str,
    ) -> Taken<crate::stablehlo::attribute::ConvDimensions> {
        let entry = self.required(name)?;
        match entry.value.resolved() {
            Attribute::ConvDimensions(dimensions) => Ok((**dimensions).clone()),
            _ => Err(self.wrong(&entry, "`#stablehlo.conv<…>`")),
        }
    }

    /// `result_accuracy`, where it is not the default.
    fn accuracy(&mut self) -> Taken<Option<Box<Accuracy>>> {
        let Some(mut fields) = self.fields("result_accuracy", "stablehlo.result_accuracy")? else {
            return Ok(None);
        };
        let mode = fields.case("mode", "result_accuracy_mode", AccuracyMode::from_name)?;
        let accuracy = Accuracy {
            mode: mode.unwrap_or(AccuracyMode::Default),
            atol: fields.optional_double("atol")?.unwrap_or(0.0),
            rtol: fields.optional_double("rtol")?.unwrap_or(0.0),
            ulps: fields.optional_integer("ulps")?.unwrap_or(0),
        };
        fields.finish()?;
        Ok((!accuracy.is_default()).then(|| Box::new(accuracy)))
    }

    /// What any operation may say besides its own attributes.
    pub(in crate::stablehlo) fn common(&mut self) -> Taken<Common> {
        let takes_accuracy = self.op.strip_prefix("stablehlo.").and_then(Unary::from_name);
        let accuracy = match takes_accuracy {
            Some(_) => self.accuracy()?,
            None => None,
        };
        Ok(Common { shardings: self.optional_shardings("sdy.sharding")?, accuracy })
    }
}

/// What any operation may say besides its own attributes.
pub(in crate::stablehlo) struct Common {
    /// How each result is to be spread; empty when the source does not say.
    pub(in crate::stablehlo) shardings: Vec<Sharding>,
    /// How exact the result is to be, where that is not the default.
    pub(in crate::stablehlo) accuracy: Option<Box<Accuracy>>,
}

fn one_case<T>(
    value: &Attribute,
    family: &str,
    from_name: impl Fn(&str) -> Option<T>,
) -> Option<T> {
    match value.resolved() {
        Attribute::Case { family: found, case } if found == family => from_name(case),
        _ => None,
    }
}

fn whole_number(attribute: &Attribute) -> Option<i64> {
    match attribute.resolved() {
        &Attribute::Integer(value, _) => i64::try_from(value).ok(),
        _ => None,
    }
}

/// The elements of a 64-bit integer constant that is written out.
///
/// A splat stands for as many elements as its type likes to say, so only a single one, or two in
/// a row (a window's padding), are taken from one.
pub(in crate::stablehlo) fn matrix_elements(literal: &Literal) -> Option<Vec<i64>> {
    let ty = literal.ty();
    if ty.dtype != DType::S64 {
        return None;
    }
    let numbers = literal.stored_bytes().chunks_exact(8).map(|bytes| {
        let mut element = [0; 8];
        element.copy_from_slice(bytes);
        i64::from_le_bytes(element)
    });
    let numbers: Vec<i64> = numbers.collect();
    match (literal.splat_element(), numbers.as_slice()) {
        (None, _) => Some(numbers),
        (Some(_), &[number]) if ty.shape.num_elements() <= MAX_SPLAT_ELEMENTS => {
            Some(vec![number; ty.shape.num_elements()])
        }
        _ => None,
    }
}

/// How many elements of a splat are taken: the padding of a window of 16 dimensions.
const MAX_SPLAT_ELEMENTS: usize = 32;

fn literal_rows(literal: &Literal) -> Option<Vec<Vec<i64>>> {
    let &[rows, columns] = literal.ty().shape.dims() else { return None };
    let numbers = matrix_elements(literal)?;
    if columns == 0 {
        // Rows without elements would take memory that the text has not paid for.
        return (rows == 0).then(Vec::new);
    }
    Some(numbers.chunks_exact(columns).map(<[i64]>::to_vec).collect())
}
