//! The verifier: whether a module is a program, by the constraints of the StableHLO specification.
//!
//! A module that passes has valid indices, values defined before their use, blocks that end in
//! their only return, operations whose types and attributes fit, and calls that end. Backends rely
//! on this. Messages give the number of the violated constraint, as `(C3)`.

mod asynchronous;
mod call;
mod check;
mod chlo;
mod collective;
mod control;
mod convolution;
mod dynamic;
mod elementwise;
mod expectation;
mod gather;
mod legacy;
mod linalg;
mod normalization;
mod quantized;
mod resharding;
mod scope;
mod shape;
mod sharding;
mod transfer;
mod window;

use std::collections::HashMap;
use std::fmt;

pub(super) use window::num_windows;

use super::{Function, Location, Module, Type};

/// Why a module is no program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct VerifyError {
    /// What is wrong: what was expected, what was found.
    pub message: String,
    /// The operation, or what else is wrong.
    pub subject: String,
    /// The function it is in, without `@`; empty when it is in none.
    pub function: String,
    /// Where it was read.
    pub location: Location,
    /// The number of the specification's constraint, such as `C3`.
    pub constraint: Option<&'static str>,
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.subject)?;
        if self.location != Location::default() {
            write!(f, " at {}", self.location)?;
        }
        if !self.function.is_empty() {
            write!(f, " in @{}", self.function)?;
        }
        write!(f, ": {}", self.message)?;
        match self.constraint {
            Some(constraint) => write!(f, " ({constraint})"),
            None => Ok(()),
        }
    }
}

/// What checking answers.
type Checked<T = ()> = Result<T, VerifyError>;

/// Checks that `module` is a program.
///
/// # Errors
/// The first violation found, in the order of the text.
pub fn verify(module: &Module) -> Result<(), VerifyError> {
    let mut functions = HashMap::with_capacity(module.functions.len());
    for function in &module.functions {
        if functions.insert(function.name.as_str(), function).is_some() {
            return Err(about(function, "it is defined twice"));
        }
    }
    sharding::meshes(module)?;
    for function in &module.functions {
        signature(module, function)?;
        scope::function(module, &functions, function)?;
    }
    call::no_recursion(module, &functions)
}

/// The parameters of a function must be the arguments of its entry block.
fn signature(module: &Module, function: &Function) -> Checked {
    let Some(entry) = function.blocks.get(function.entry) else {
        return Err(about(function, "it has no body"));
    };
    if function.params.iter().map(|param| param.value).ne(entry.arguments.iter().copied()) {
        return Err(about(function, "its parameters are not the arguments of its body"));
    }
    let aliases = function.params.iter().filter_map(|param| param.aliases_output);
    if aliases.into_iter().any(|result| result >= function.results.len()) {
        return Err(about(function, "a parameter lends its memory to a result that is not there"));
    }
    for (i, param) in function.params.iter().enumerate() {
        let Some(value) = function.values.get(param.value) else {
            return Err(about(function, "a parameter has no value"));
        };
        if let Some(sharding) = &param.sharding {
            sharding::fits(module, sharding, &value.ty)
                .map_err(|message| about(function, &format!("parameter {i}: {message}")))?;
        }
    }
    for (i, result) in function.results.iter().enumerate() {
        if let Some(sharding) = &result.sharding {
            sharding::fits(module, sharding, &result.ty)
                .map_err(|message| about(function, &format!("result {i}: {message}")))?;
        }
    }
    Ok(())
}

/// An error about a function as a whole.
fn about(function: &Function, message: &str) -> VerifyError {
    VerifyError {
        message: message.to_owned(),
        subject: format!("func.func @{}", function.name),
        function: String::new(),
        location: function.location,
        constraint: None,
    }
}

/// Types as a message shows them.
fn shown(types: &[Type]) -> String {
    let types: Vec<String> = types.iter().map(Type::to_string).collect();
    format!("({})", types.join(", "))
}
