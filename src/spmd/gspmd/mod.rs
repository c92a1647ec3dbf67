//! Programs that say in XLA's own words how they are spread, in those of Shardy.
//!
//! Owns the meaning of `mhlo.sharding` and of the custom calls `Sharding`, `SPMDFullToShardShape`
//! and `SPMDShardToFullShape`, which frontends write that do not know Shardy. All that a module
//! says becomes shardings over one mesh, and what lies between leaving and entering global shapes
//! becomes a manual computation; what is behind knows nothing else. The strings themselves are read
//! by [`crate::stablehlo::xla`].

mod manual;
mod mesh;

use std::borrow::Cow;

use self::mesh::Tiles;
use super::SpmdError;
use crate::stablehlo::attribute::Attribute;
use crate::stablehlo::op::{OpKind, Sharding};
use crate::stablehlo::xla::{FormatError, HloSharding};
use crate::stablehlo::{Function, Location, Module, OpData, Type, verify};

/// A custom call about how values are spread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    /// A value is spread like this.
    Sharding,
    /// From a global value to the part of it that is the device's.
    FullToShard,
    /// From the parts that are the devices' to a global value.
    ShardToFull,
}

impl Target {
    fn of(kind: &OpKind) -> Option<Self> {
        let OpKind::CustomCall { call_target_name, .. } = kind else { return None };
        match call_target_name.as_str() {
            "Sharding" => Some(Self::Sharding),
            "SPMDFullToShardShape" => Some(Self::FullToShard),
            "SPMDShardToFullShape" => Some(Self::ShardToFull),
            _ => None,
        }
    }
}

/// The module, with shardings of `sdy` for those of XLA.
///
/// # Errors
/// When a string is no sharding, the shardings have no mesh in common or do not fit their values, or
/// a value enters or leaves the parts of devices without its counterpart.
pub(super) fn as_sdy(module: &Module) -> Result<Cow<'_, Module>, SpmdError> {
    let mut said = Vec::new();
    for function in &module.functions {
        let params = function.params.iter().filter_map(|param| param.hlo_sharding.as_deref());
        let results = function.results.iter().filter_map(|result| result.hlo_sharding.as_deref());
        said.extend(params.chain(results).map(|text| (text, function.location)));
        for data in function.placed() {
            if Target::of(&data.kind).is_some() {
                said.push((text(data)?, data.location));
            }
        }
    }
    if said.is_empty() {
        return Ok(Cow::Borrowed(module));
    }
    let read = said.into_iter().map(|(text, location)| read(text, location));
    let tiles = Tiles::new(module, &read.collect::<Result<Vec<_>, _>>()?)?;
    let mut module = module.clone();
    module.meshes.push(tiles.mesh().clone());
    for function in &mut module.functions {
        signature(function, &tiles)?;
        constraints(function, &tiles)?;
        manual::computations(function, &tiles)?;
    }
    verify(&module).map_err(|error| SpmdError::HloShardings { reason: error.to_string() })?;
    Ok(Cow::Owned(module))
}

/// What a custom call says about its result.
fn text(data: &OpData) -> Result<&str, SpmdError> {
    let OpKind::CustomCall { attributes, .. } = &data.kind else {
        return Err(SpmdError::NotVerified("an operation is no custom call"));
    };
    let said = attributes.iter().find(|(name, _)| name == "mhlo.sharding");
    match said {
        Some((_, Attribute::String(text))) => Ok(text),
        _ => Err(SpmdError::HloSharding {
            text: String::new(),
            location: data.location,
            reason: format!("{} must have `mhlo.sharding`, a string", data.kind),
        }),
    }
}

fn read(text: &str, location: Location) -> Result<HloSharding, SpmdError> {
    text.parse().map_err(|error: FormatError| SpmdError::HloSharding {
        text: text.to_owned(),
        location,
        reason: error.to_string(),
    })
}

/// The sharding of a value of type `ty` of which `text` is said.
fn sharding(
    tiles: &Tiles,
    text: &str,
    ty: &Type,
    location: Location,
) -> Result<Option<Sharding>, SpmdError> {
    let refuse =
        |reason: String| Err(SpmdError::HloSharding { text: text.to_owned(), location, reason });
    let Type::Tensor(ty) = ty else { return refuse(format!("it is about {ty}, no array")) };
    match tiles.sharding(&read(text, location)?, ty.shape.rank()) {
        Ok(sharding) => Ok(sharding),
        Err(reason) => refuse(reason),
    }
}

/// What is said of parameters and results; a sharding of `sdy` that is there says the same.
fn signature(function: &mut Function, tiles: &Tiles) -> Result<(), SpmdError> {
    let location = function.location;
    for param in &mut function.params {
        if let Some(text) = param.hlo_sharding.take()
            && param.sharding.is_none()
        {
            param.sharding = sharding(tiles, &text, &function.values[param.value].ty, location)?;
        }
    }
    for result in &mut function.results {
        if let Some(text) = result.hlo_sharding.take()
            && result.sharding.is_none()
        {
            result.sharding = sharding(tiles, &text, &result.ty, location)?;
        }
    }
    Ok(())
}

/// Custom calls `Sharding` become constraints.
fn constraints(function: &mut Function, tiles: &Tiles) -> Result<(), SpmdError> {
    for op in function.ops.keys().collect::<Vec<_>>() {
        let data = &function.ops[op];
        if Target::of(&data.kind) != Some(Target::Sharding) {
            continue;
        }
        let (&[_], &[result]) = (data.operands.as_slice(), data.results.as_slice()) else {
            return Err(SpmdError::HloSharding {
                text: text(data)?.to_owned(),
                location: data.location,
                reason: format!("{} must have one operand and one result", data.kind),
            });
        };
        let ty = function.ty(result);
        let said = sharding(tiles, text(data)?, ty, data.location)?;
        let rank = function.tensor(result).map_or(0, |ty| ty.shape.rank());
        let said = said.unwrap_or_else(|| Sharding::whole(&tiles.mesh().name, rank));
        function.ops[op].kind = OpKind::ShardingConstraint(said);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spmd::{localize, partition};
    use crate::stablehlo::parse;

    const HEAD: &str = "module attributes {mhlo.num_partitions = 4 : i32} {\n";
    const CUT: &str = r#"%0 = stablehlo.custom_call @Sharding(%a) {mhlo.sharding = "{devices=[4]<=[4]}"} : (tensor<8xf32>) -> tensor<8xf32>
        %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {mhlo.sharding = "{manual}"} : (tensor<8xf32>) -> tensor<2xf32>
        "#;
    const JOIN: &str = r#"%3 = stablehlo.custom_call @Sharding(%2) {mhlo.sharding = "{manual}"} : (tensor<2xf32>) -> tensor<2xf32>
        %4 = stablehlo.custom_call @SPMDShardToFullShape(%3) {mhlo.sharding = "{devices=[4]<=[4]}"} : (tensor<2xf32>) -> tensor<8xf32>
        "#;

    fn main(body: &str) -> Module {
        let text = format!(
            "{HEAD}func.func public @main(%a: tensor<8xf32> {{mhlo.sharding = \"{{devices=[4]<=[4]}}\"}}) \
             -> tensor<8xf32> {{\n{body}\n}}\n}}"
        );
        parse(&text).unwrap()
    }

    #[test]
    fn local_operations_are_those_of_one_device() {
        let body = format!(
            "{CUT}%c = stablehlo.constant dense<3.0> : tensor<2xf32>
             %2 = stablehlo.multiply %1, %1 : tensor<2xf32>
             {JOIN}return %4 : tensor<8xf32>"
        );
        let local = localize(&as_sdy(&main(&body)).unwrap()).unwrap();
        let main = local.module.function("main").unwrap();
        let kinds: Vec<String> = main.placed().map(|data| data.kind.to_string()).collect();
        assert!(kinds.iter().any(|kind| kind == "stablehlo.multiply"), "{kinds:?}");
        assert!(!kinds.iter().any(|kind| kind.contains("gather")), "{kinds:?}");
        assert_eq!(main.params.len(), 1);
        let ty = main.tensor(main.params[0].value).unwrap();
        assert_eq!((ty.shape.dims(), local.result_shardings.len()), (&[2][..], 1));
        assert_eq!(local.parameter_shardings, local.result_shardings);
    }

    #[test]
    fn one_computation_may_follow_another() {
        let second = CUT.replace("%1", "%6").replace("%0", "%5").replace("%a", "%4");
        let exit = JOIN.replace("%4", "%9").replace("%3", "%8").replace("%2", "%7");
        let body = format!(
            "{CUT}%2 = stablehlo.add %1, %1 : tensor<2xf32>
             {JOIN}{second}%7 = stablehlo.multiply %6, %6 : tensor<2xf32>
             {exit}return %9 : tensor<8xf32>"
        );
        let module = main(&body);
        let module = as_sdy(&module).unwrap();
        let manual = |data: &&OpData| matches!(data.kind, OpKind::ManualComputation(_));
        assert_eq!(module.functions[0].placed().filter(manual).count(), 2);
        assert!(partition(&module).is_ok());
    }

    #[test]
    fn what_is_not_said_in_whole_is_refused_by_line() {
        let whole = |body: &str| as_sdy(&main(body)).unwrap_err().to_string();
        let no_entry = "%2 = stablehlo.constant dense<3.0> : tensor<2xf32>\n";
        let error = whole(&format!("{no_entry}{JOIN}return %4 : tensor<8xf32>"));
        assert!(
            error.contains("SPMDFullToShardShape before it") && error.contains("5:"),
            "{error}"
        );
        let error = whole(&format!("{CUT}return %a : tensor<8xf32>"));
        assert!(
            error.contains("SPMDShardToFullShape behind it") && error.contains("4:"),
            "{error}"
        );
        let (cut, add) = (CUT.replace("(%0)", "(%a)"), "%2 = stablehlo.add %1, %1 : tensor<2xf32>");
        let error = whole(&format!("{cut}{add}\n{JOIN}return %4 : tensor<8xf32>"));
        assert!(error.contains("Sharding for its operand"), "{error}");
        let error = whole(&format!("{}return %a : tensor<8xf32>", CUT.replace("[4]<=", "[5]<=")));
        assert!(error.contains("{devices=[5]<=[4]}"), "{error}");
        let wrong = CUT.replace("-> tensor<2xf32>", "-> tensor<4xf32>");
        let body = format!(
            "{wrong}%2 = stablehlo.slice %1 [0:2] : (tensor<4xf32>) -> tensor<2xf32>
             {JOIN}return %4 : tensor<8xf32>"
        );
        assert!(whole(&body).contains("the body takes"), "{}", whole(&body));
    }
}
