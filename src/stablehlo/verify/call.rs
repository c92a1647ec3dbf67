//! Calls: their targets exist and fit, and none leads back to itself.

use std::collections::HashMap;

use super::check::Check;
use super::{Checked, VerifyError, sharding, shown};
use crate::stablehlo::attribute::Attribute;
use crate::stablehlo::op::{Composite, OpKind};
use crate::stablehlo::{Function, Location, Module, Type};

/// A return from a function must give the types that the function promises.
pub(super) fn function_return(check: &Check<'_>) -> Checked {
    check.counts(check.data.operands.len(), 0, 0)?;
    let expected: Vec<Type> = check.function.results.iter().map(|r| r.ty.clone()).collect();
    let found = check.operand_types();
    check.require(expected == found, "", || {
        format!("the function promises {}, returned are {}", shown(&expected), shown(&found))
    })
}

/// `func.call`.
pub(super) fn call(check: &Check<'_>, callee: &str) -> Checked {
    check.counts(check.data.operands.len(), check.data.results.len(), 0)?;
    signature(check, callee, ["", "", ""])
}

/// `composite`: its decomposition computes its results.
pub(super) fn composite(check: &Check<'_>, composite: &Composite) -> Checked {
    let Composite { name, decomposition, .. } = composite;
    let mut words = name.split('.');
    let starts = |word: &str| word.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_word = |word: &str| {
        let rest = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$');
        !word.is_empty() && word.chars().all(rest)
    };
    let namespace = words.next().is_some_and(|word| starts(word) && is_word(word));
    let is_namespaced = namespace && name.contains('.') && words.all(is_word);
    check.require(is_namespaced, "C1", || {
        format!("\"{name}\" must be a name with a namespace such as \"my.op\"")
    })?;
    signature(check, decomposition, ["C2", "C3", "C4"])
}

/// `callee` must be there and have the types of the operands and the results.
fn signature(check: &Check<'_>, callee: &str, [there, takes, gives]: [&'static str; 3]) -> Checked {
    let Some(function) = check.functions.get(callee) else {
        return Err(check.error(there, format!("there is no function @{callee}")));
    };
    let params = function.params.iter().filter_map(|param| function.values.get(param.value));
    let params: Vec<Type> = params.map(|value| value.ty.clone()).collect();
    let found = check.operand_types();
    check.require(params == found, takes, || {
        format!("@{callee} takes {}, passed are {}", shown(&params), shown(&found))
    })?;
    let results: Vec<Type> = function.results.iter().map(|r| r.ty.clone()).collect();
    let found = check.result_types();
    check.require(results == found, gives, || {
        format!("@{callee} returns {}, expected are {}", shown(&results), shown(&found))
    })
}

/// `custom_call`: the functions it names must exist.
pub(super) fn custom_call(
    check: &Check<'_>,
    called: &[String],
    attributes: &[(String, Attribute)],
) -> Checked {
    let rules = attributes.iter().filter(|(name, _)| name == "sdy.sharding_rule");
    for (_, value) in rules {
        match value.resolved() {
            Attribute::ShardingRule(rule) => sharding::rule(check, rule)?,
            _ => {
                return Err(check.error("", "its sharding rule must be `#sdy.op_sharding_rule<…>`"));
            }
        }
    }
    match called.iter().find(|name| !check.functions.contains_key(name.as_str())) {
        None => Ok(()),
        Some(name) => Err(check.error("", format!("there is no function @{name}"))),
    }
}

/// No function may call itself, directly or through others: a backend would never end.
pub(super) fn no_recursion(module: &Module, functions: &HashMap<&str, &Function>) -> Checked {
    let mut done = HashMap::with_capacity(functions.len());
    for root in &module.functions {
        if done.contains_key(root.name.as_str()) {
            continue;
        }
        done.insert(root.name.as_str(), false);
        // Functions being walked, each with the calls that are still to follow.
        let mut stack = vec![(root, calls(root).into_iter())];
        while let Some((function, calls_left)) = stack.last_mut() {
            let Some((callee, kind, location)) = calls_left.next() else {
                done.insert(function.name.as_str(), true);
                stack.pop();
                continue;
            };
            match done.get(callee) {
                Some(true) => {}
                Some(false) => {
                    return Err(VerifyError {
                        message: format!("calling @{callee} here never ends"),
                        subject: kind.to_string(),
                        function: function.name.clone(),
                        location,
                        constraint: None,
                    });
                }
                None => {
                    let Some(&function) = functions.get(callee) else { continue };
                    done.insert(callee, false);
                    stack.push((function, calls(function).into_iter()));
                }
            }
        }
    }
    Ok(())
}

/// The functions that a function calls, and where.
fn calls(function: &Function) -> Vec<(&str, &OpKind, Location)> {
    let calls = function.ops.values().filter_map(|data| match &data.kind {
        OpKind::Call { callee } => Some((callee.as_str(), &data.kind, data.location)),
        OpKind::Composite(composite) => {
            Some((composite.decomposition.as_str(), &data.kind, data.location))
        }
        _ => None,
    });
    calls.collect()
}
