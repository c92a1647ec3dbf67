//! The tokens that a program takes and gives, as arrays.
//!
//! Frontends pass on tokens between programs so that their effects stay in order, as arrays of
//! booleans without elements. Launches are in order on each device, so that is all they are here.

use std::borrow::Cow;

use crate::ifrt::{DType, Shape};
use crate::stablehlo::{
    Function, Literal, Module, OpData, OpKind, TensorType, Type, Value, ValueData, ValueDef,
};

/// The module, with arrays for the tokens among the parameters and results of `main`.
pub(super) fn as_arrays(module: &Module) -> Cow<'_, Module> {
    let position = module.functions.iter().position(|function| {
        let params = function.params.iter().map(|param| function.ty(param.value));
        let mut types = params.chain(function.results.iter().map(|result| &result.ty));
        function.name == "main" && types.any(|ty| *ty == Type::Token)
    });
    let Some(position) = position else { return Cow::Borrowed(module) };
    let mut module = module.clone();
    if let Some(main) = module.functions.get_mut(position) {
        parameters(main);
        results(main);
    }
    Cow::Owned(module)
}

/// What a token is outside of the program.
fn array() -> TensorType {
    let none = Shape::new([0]).unwrap_or_else(|_| Shape::scalar());
    TensorType::new(DType::Bool, none)
}

/// Each parameter that is a token becomes an array, and a new token takes its place.
fn parameters(main: &mut Function) {
    let params = main.params.iter().map(|param| param.value);
    let tokens: Vec<Value> = params.filter(|&param| *main.ty(param) == Type::Token).collect();
    for (place, param) in tokens.into_iter().enumerate() {
        main.values[param].ty = Type::Tensor(array());
        let token = insert(main, place, OpKind::AfterAll, Type::Token);
        let ops: Vec<_> = main.ops.keys().collect();
        for op in ops {
            for operand in &mut main.ops[op].operands {
                if *operand == param {
                    *operand = token;
                }
            }
        }
    }
}

/// Each result that is a token becomes an array.
fn results(main: &mut Function) {
    let tokens: Vec<usize> =
        (0..main.results.len()).filter(|&i| main.results[i].ty == Type::Token).collect();
    let Some(literal) = Literal::dense(array(), Vec::new()) else { return };
    for index in tokens {
        let array = insert(main, 0, OpKind::Constant(literal.clone()), Type::Tensor(array()));
        main.results[index].ty = Type::Tensor(self::array());
        let ret = main.blocks[main.entry].ops.last().copied();
        if let Some(operand) = ret.and_then(|ret| main.ops[ret].operands.get_mut(index)) {
            *operand = array;
        }
    }
}

/// Inserts an operation without operands into the body, and returns its result.
fn insert(main: &mut Function, place: usize, kind: OpKind, ty: Type) -> Value {
    let op = main.ops.push(OpData::new(kind, Vec::new(), main.location));
    let def = ValueDef::Result(op, 0);
    let value = main.values.push(ValueData { ty, def });
    main.ops[op].results.push(value);
    main.blocks[main.entry].ops.insert(place, op);
    value
}
