//! Batch normalization: inference, training and gradient.
//!
//! Computed in `f64` whatever the element type, and rounded once.

use bytemuck::{cast_slice, cast_slice_mut};

use super::convert::Convert;
use super::element::{Element, with_float};
use crate::backend::cpu::step::{Input, Kernel, Scratch};
use crate::ifrt::DType;

/// Which of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Operand, scale, offset, mean, variance to the normalized operand.
    Inference,
    /// Operand, scale, offset to the normalized operand, mean, variance.
    Training,
    /// Operand, scale, mean, variance, gradient of the output to the gradients of operand, scale
    /// and offset.
    Gradient,
}

/// A batch normalization of dense operands.
#[derive(Debug)]
pub(crate) struct BatchNorm {
    mode: Mode,
    epsilon: f64,
    /// How many features there are, and how many elements follow one another in each.
    features: usize,
    inner: usize,
    run: Run,
}

/// The computation on elements of one type.
type Run = fn(&BatchNorm, &[&[u8]], &mut [&mut [u8]]);

impl BatchNorm {
    /// The normalization of an operand with `dims` whose features lie along `feature_index`, if
    /// the element type has it.
    pub(crate) fn new(
        mode: Mode,
        dtype: DType,
        epsilon: f32,
        dims: &[usize],
        feature_index: usize,
    ) -> Option<Self> {
        let run: Run = with_float!(dtype, T => run::<T>, _ => return None);
        Some(Self {
            mode,
            epsilon: epsilon.into(),
            features: dims[feature_index],
            inner: dims[feature_index + 1..].iter().product(),
            run,
        })
    }

    /// Calls `visit` with the feature and the position of every element.
    fn for_each(&self, count: usize, mut visit: impl FnMut(usize, usize)) {
        let mut position = 0;
        while position < count {
            for feature in 0..self.features {
                for _ in 0..self.inner {
                    visit(feature, position);
                    position += 1;
                }
            }
        }
    }

    /// Per feature, the sum of what `term` gives for its elements.
    fn sums(&self, count: usize, term: impl Fn(usize, usize) -> f64) -> Vec<f64> {
        let mut sums = vec![0.0; self.features];
        self.for_each(count, |feature, position| sums[feature] += term(feature, position));
        sums
    }

    /// Per feature, what a centered element is multiplied by to have variance 1.
    fn scales(&self, variance: &[f64]) -> Vec<f64> {
        variance.iter().map(|variance| 1.0 / (variance + self.epsilon).sqrt()).collect()
    }
}

impl Kernel for BatchNorm {
    fn run(&self, inputs: &[Input<'_>], outputs: &mut [&mut [u8]], _: &mut Scratch) {
        let inputs: Vec<&[u8]> = inputs.iter().map(|input| input.bytes()).collect();
        (self.run)(self, &inputs, outputs);
    }
}

fn run<T: Element + Convert<f64>>(norm: &BatchNorm, inputs: &[&[u8]], outputs: &mut [&mut [u8]])
where
    f64: Convert<T>,
{
    let widened = |bytes: &[u8]| -> Vec<f64> {
        cast_slice::<_, T>(bytes).iter().map(|&x| x.convert()).collect()
    };
    let narrow = |values: &[f64], out: &mut [u8]| {
        for (out, &value) in cast_slice_mut::<_, T>(out).iter_mut().zip(values) {
            *out = value.convert();
        }
    };
    let operands: Vec<Vec<f64>> = inputs.iter().map(|bytes| widened(bytes)).collect();
    let normalized = |x: &[f64], scale: &[f64], offset: &[f64], mean: &[f64], variance: &[f64]| {
        let scales = norm.scales(variance);
        let mut out = vec![0.0; x.len()];
        norm.for_each(x.len(), |feature, at| {
            out[at] = (x[at] - mean[feature]) * scales[feature] * scale[feature] + offset[feature];
        });
        out
    };
    match (norm.mode, operands.as_slice(), outputs) {
        (Mode::Inference, [x, scale, offset, mean, variance], [out]) => {
            narrow(&normalized(x, scale, offset, mean, variance), out);
        }
        (Mode::Training, [x, scale, offset], [out, mean_out, variance_out]) => {
            let per_feature = x.len() as f64 / norm.features as f64;
            let means = |sums: Vec<f64>| -> Vec<f64> {
                sums.into_iter().map(|sum| sum / per_feature).collect()
            };
            let mean = means(norm.sums(x.len(), |_, at| x[at]));
            let squares = |feature: usize, at: usize| (x[at] - mean[feature]).powi(2);
            let variance = means(norm.sums(x.len(), squares));
            narrow(&normalized(x, scale, offset, &mean, &variance), out);
            narrow(&mean, mean_out);
            narrow(&variance, variance_out);
        }
        (Mode::Gradient, [x, scale, mean, variance, gradient], [x_out, scale_out, offset_out]) => {
            let per_feature = x.len() as f64 / norm.features as f64;
            let scales = norm.scales(variance);
            let centered = |feature: usize, at: usize| (x[at] - mean[feature]) * scales[feature];
            let along = norm.sums(x.len(), |feature, at| gradient[at] * centered(feature, at));
            let total = norm.sums(x.len(), |_, at| gradient[at]);
            let mut out = vec![0.0; x.len()];
            norm.for_each(x.len(), |feature, at| {
                // What moves the mean or the variance does not move the output.
                let rest = gradient[at]
                    - (total[feature] + centered(feature, at) * along[feature]) / per_feature;
                out[at] = scale[feature] * scales[feature] * rest;
            });
            narrow(&out, x_out);
            narrow(&along, scale_out);
            narrow(&total, offset_out);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(mode: Mode, dims: &[usize], feature: usize, inputs: &[&[f64]]) -> Vec<Vec<f64>> {
        let kernel = BatchNorm::new(mode, DType::F64, 0.25, dims, feature).unwrap();
        let vector = inputs[1].len();
        let lengths = match mode {
            Mode::Inference => vec![inputs[0].len()],
            Mode::Training | Mode::Gradient => vec![inputs[0].len(), vector, vector],
        };
        let mut outputs: Vec<Vec<f64>> = lengths.into_iter().map(|len| vec![9.0; len]).collect();
        let inputs: Vec<Input<'_>> =
            inputs.iter().map(|input| Input::Bytes(cast_slice(input))).collect();
        let mut bytes: Vec<&mut [u8]> = outputs.iter_mut().map(|out| cast_slice_mut(out)).collect();
        kernel.run(&inputs, &mut bytes, &mut Scratch::default());
        outputs
    }

    #[test]
    fn training_normalizes_each_feature_wherever_its_dimension_is() {
        // Two features: (1, 3, 5, 7) with variance 5 and (0, 0, 2, 2) with variance 1.
        let expected = |x: f64, mean: f64, variance: f64, scale: f64, offset: f64| {
            (x - mean) / (variance + 0.25_f64).sqrt() * scale + offset
        };
        let (scale, offset) = ([2.0, -1.0], [0.5, 10.0]);
        let first = |x| expected(x, 4.0, 5.0, 2.0, 0.5);
        let second = |x| expected(x, 1.0, 1.0, -1.0, 10.0);
        let x = [1.0, 3.0, 0.0, 0.0, 5.0, 7.0, 2.0, 2.0];
        let out = run(Mode::Training, &[2, 2, 2], 1, &[&x, &scale, &offset]);
        let parts = [first(1.0), first(3.0), second(0.0), second(0.0)];
        assert_eq!(out[0][..4], parts);
        assert_eq!(out[0][4..], [first(5.0), first(7.0), second(2.0), second(2.0)]);
        assert_eq!(out[1..], [[4.0, 1.0], [5.0, 1.0]]);
        let last = [1.0, 0.0, 3.0, 0.0, 5.0, 2.0, 7.0, 2.0];
        let out = run(Mode::Training, &[4, 2], 1, &[&last, &scale, &offset]);
        assert_eq!(out[0][..4], [first(1.0), second(0.0), first(3.0), second(0.0)]);
        let inference =
            run(Mode::Inference, &[4, 2], 1, &[&last, &scale, &offset, &[4.0, 1.0], &[5.0, 1.0]]);
        assert_eq!(inference[0], out[0]);
    }

    #[test]
    fn the_gradient_is_the_slope_of_the_training_output() {
        let x = [1.0, 0.5, 3.0, -1.0, 5.0, 2.5, 7.5, 2.0];
        let (scale, offset) = ([2.0, -1.5], [0.5, 10.0]);
        let gradient = [0.3, -1.0, 2.0, 0.25, -0.7, 1.5, 0.1, 0.9];
        let objective = |x: &[f64], scale: &[f64], offset: &[f64]| -> f64 {
            let out = run(Mode::Training, &[4, 2], 1, &[x, scale, offset]);
            out[0].iter().zip(&gradient).map(|(a, b)| a * b).sum()
        };
        let stats = run(Mode::Training, &[4, 2], 1, &[&x, &scale, &offset]);
        let found = run(Mode::Gradient, &[4, 2], 1, &[&x, &scale, &stats[1], &stats[2], &gradient]);
        let step = 1e-5;
        let slope = |which: usize, at: usize| {
            let value = |delta: f64| {
                let mut all = [x.to_vec(), scale.to_vec(), offset.to_vec()];
                all[which][at] += delta;
                objective(&all[0], &all[1], &all[2])
            };
            (value(step) - value(-step)) / (2.0 * step)
        };
        for (which, gradients) in found.iter().enumerate() {
            for (at, &found) in gradients.iter().enumerate() {
                let expected = slope(which, at);
                assert!((found - expected).abs() < 1e-8, "{which} {at}: {found}, {expected}");
            }
        }
    }
}
