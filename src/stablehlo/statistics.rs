//! What a program costs, counted from its text.
//!
//! Every operation counts once, as written: what a loop repeats and a function called twice count
//! once, since the text does not say how often a loop runs.

use std::collections::BTreeMap;

use super::{Function, Module, OpData, OpKind, TensorType, Value};

/// Counts of a program; sums that do not fit 64 bits stop at the largest number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// How many operations of each kind there are, by name with the dialect.
    pub ops: BTreeMap<String, u64>,
    /// Arithmetic on elements: one for each element an elementwise operation makes or a reduction
    /// combines, two for each product that a `dot_general` or a `convolution` adds up.
    pub flops: u64,
    /// Bytes of the operands and results of all operations.
    pub bytes_accessed: u64,
    /// Bytes of the parameters of `main`.
    pub parameter_bytes: u64,
    /// Bytes of the results of `main`.
    pub result_bytes: u64,
    /// Bytes that the constants keep in memory.
    pub constant_bytes: u64,
    /// Operations between devices, by name with the dialect.
    pub collectives: BTreeMap<String, Traffic>,
}

/// How much the collectives of one kind work on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// How many there are.
    pub count: u64,
    /// Bytes of their operands on one device.
    pub bytes: u64,
}

impl Module {
    /// Counts the operations of a verified module and what they cost.
    pub fn statistics(&self) -> Statistics {
        let mut statistics = Statistics::default();
        for function in &self.functions {
            for data in function.ops.values() {
                statistics.add(function, data);
            }
        }
        if let Some(main) = self.function("main") {
            let params = main.params.iter().map(|param| param.value);
            statistics.parameter_bytes = bytes(main, params);
            let returned = main.blocks[main.entry].ops.last().map(|&ret| &main.ops[ret].operands);
            statistics.result_bytes = bytes(main, returned.into_iter().flatten().copied());
        }
        statistics
    }
}

impl Statistics {
    fn add(&mut self, function: &Function, data: &OpData) {
        let name = data.kind.to_string();
        let operands = bytes(function, data.operands.iter().copied());
        if data.kind.is_collective() {
            let traffic = self.collectives.entry(name.clone()).or_default();
            traffic.count += 1;
            traffic.bytes = traffic.bytes.saturating_add(operands);
        }
        *self.ops.entry(name).or_default() += 1;
        self.flops = self.flops.saturating_add(flops(function, data));
        if let OpKind::Constant(literal) = &data.kind {
            let stored = saturating(literal.stored_bytes().len());
            self.constant_bytes = self.constant_bytes.saturating_add(stored);
        }
        let moves = match data.kind {
            // These pass values on, and constants are in memory already.
            OpKind::Constant(_) | OpKind::Return | OpKind::Call { .. } => 0,
            _ => operands.saturating_add(bytes(function, data.results.iter().copied())),
        };
        self.bytes_accessed = self.bytes_accessed.saturating_add(moves);
    }
}

/// The arithmetic of one operation; see [`Statistics::flops`].
fn flops(function: &Function, data: &OpData) -> u64 {
    let tensor = |values: &[Value], i: usize| values.get(i).and_then(|&v| function.tensor(v));
    let elements = |ty: Option<&TensorType>| ty.map_or(0, |ty| ty.shape.num_elements());
    let result = elements(tensor(&data.results, 0));
    let dims = |i: usize| tensor(&data.operands, i).map_or(&[][..], |ty| ty.shape.dims());
    let product = |sizes: &mut dyn Iterator<Item = usize>| {
        sizes.fold(1_u64, |product, size| product.saturating_mul(saturating(size)))
    };
    let per_result = match &data.kind {
        OpKind::Unary(_)
        | OpKind::Binary(_)
        | OpKind::Compare { .. }
        | OpKind::Select
        | OpKind::Clamp => 1,
        OpKind::DotGeneral(dot) => {
            let contracted = &mut dot.lhs_contracting.iter().filter_map(|&dim| dims(0).get(dim));
            product(&mut contracted.copied()).saturating_mul(2)
        }
        OpKind::Convolution(convolution) => {
            // The kernel's input features are those of one group.
            let summed = convolution.kernel_spatial_dimensions.iter();
            let summed = summed.chain([&convolution.kernel_input_feature_dimension]);
            product(&mut summed.filter_map(|&dim| dims(1).get(dim)).copied()).saturating_mul(2)
        }
        OpKind::ReduceWindow(window) => product(&mut window.dimensions.iter().copied()),
        OpKind::Reduce { .. } => {
            return saturating(elements(tensor(&data.operands, 0)).saturating_sub(result));
        }
        _ => 0,
    };
    saturating(result).saturating_mul(per_result)
}

fn bytes(function: &Function, values: impl Iterator<Item = Value>) -> u64 {
    let sizes = values.filter_map(|value| function.tensor(value)).map(|ty| {
        let size = saturating(ty.dtype.size_bytes());
        saturating(ty.shape.num_elements()).saturating_mul(size)
    });
    sizes.fold(0, u64::saturating_add)
}

fn saturating(value: usize) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stablehlo::parse;

    #[test]
    fn products_and_sums_are_counted() {
        let text = "module {
  func.func @main(%a: tensor<3x5xf32>, %b: tensor<5x7xf32>) -> tensor<3xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<3x5xf32>, tensor<5x7xf32>) -> tensor<3x7xf32>
    %d = stablehlo.reduce(%c init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<3x7xf32>, tensor<f32>) -> tensor<3xf32>
    return %d : tensor<3xf32>
  }
}";
        let statistics = parse(text).unwrap().statistics();
        // 3x7 results of five products; 21 elements into 3; one addition in the reduction's body.
        assert_eq!(statistics.flops, 2 * 5 * 21 + 18 + 1);
        assert_eq!(statistics.parameter_bytes, 4 * (15 + 35));
        assert_eq!(statistics.result_bytes, 12);
        assert_eq!(statistics.constant_bytes, 4);
        assert_eq!(statistics.bytes_accessed, 4 * (15 + 35 + 21) + 4 * (21 + 1 + 3) + 4 * 3);
        let ops: Vec<_> =
            statistics.ops.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        let expected = [
            ("stablehlo.add", 1),
            ("stablehlo.constant", 1),
            ("stablehlo.dot_general", 1),
            ("stablehlo.reduce", 1),
            ("stablehlo.return", 2),
        ];
        assert_eq!(ops, expected);
        assert!(statistics.collectives.is_empty());
    }

    #[test]
    fn collectives_are_counted_by_kind() {
        let path = "tests/data/corpus/lockstep/sm_pmax_pmin_pmean/program.stablehlo.mlir";
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let module = parse(&std::fs::read_to_string(path).unwrap()).unwrap();
        let collectives: Vec<_> = module.statistics().collectives.into_iter().collect();
        let traffic = Traffic { count: 3, bytes: 3 * 4 * 4 * 4 };
        assert_eq!(collectives, [("stablehlo.all_reduce".to_owned(), traffic)]);
    }
}
