//! `triangular_solve`: only the named triangle of `a` is read, and its diagonal unless it is unit.

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place_with_conj, solve_unit_lower_triangular_in_place_with_conj,
    solve_unit_upper_triangular_in_place_with_conj, solve_upper_triangular_in_place_with_conj,
};
use faer::traits::ComplexField;
use faer::{Conj, MatMut, MatRef, Par};

use super::with_field;
use crate::backend::cpu::step::{Input, Kernel, Scratch};
use crate::ifrt::DType;
use crate::stablehlo::op;
use crate::stablehlo::op::TransposeA;

/// Solves `op(a) x = b` or `x op(a) = b` for every pair of a stack.
#[derive(Debug)]
pub(crate) struct TriangularSolve {
    rows: usize,
    columns: usize,
    attributes: op::TriangularSolve,
    run: fn(&Self, &[u8], &mut [u8]),
}

impl TriangularSolve {
    /// The solve for right-hand sides of `rows` by `columns`, if the element type has one.
    pub(crate) fn new(
        dtype: DType,
        [rows, columns]: [usize; 2],
        attributes: op::TriangularSolve,
    ) -> Option<Self> {
        let run = with_field!(dtype, T => Self::solve::<T>, _ => return None);
        Some(Self { rows, columns, attributes, run })
    }

    fn solve<T: Pod + ComplexField>(&self, a: &[u8], b: &mut [u8]) {
        let op::TriangularSolve { left_side, lower, unit_diagonal, transpose_a } = self.attributes;
        let size = if left_side { self.rows } else { self.columns };
        let conj = if transpose_a == TransposeA::Adjoint { Conj::Yes } else { Conj::No };
        // `x a = b` is `aᵀ xᵀ = bᵀ`; each transposition turns one triangle into the other.
        let transpose = (transpose_a != TransposeA::NoTranspose) ^ !left_side;
        let a = cast_slice::<_, T>(a).chunks_exact(size * size);
        let b = cast_slice_mut::<_, T>(b).chunks_exact_mut(self.rows * self.columns);
        for (a, b) in a.zip(b) {
            let a = MatRef::from_row_major_slice(a, size, size);
            let a = if transpose { a.transpose() } else { a };
            let b = MatMut::from_row_major_slice_mut(b, self.rows, self.columns);
            let b = if left_side { b } else { b.transpose_mut() };
            let solve = match (lower ^ transpose, unit_diagonal) {
                (true, false) => solve_lower_triangular_in_place_with_conj,
                (true, true) => solve_unit_lower_triangular_in_place_with_conj,
                (false, false) => solve_upper_triangular_in_place_with_conj,
                (false, true) => solve_unit_upper_triangular_in_place_with_conj,
            };
            solve(a, conj, b, Par::Seq);
        }
    }
}

impl Kernel for TriangularSolve {
    fn in_place(&self) -> Vec<(usize, usize)> {
        vec![(1, 0)]
    }

    fn run(&self, inputs: &[Input<'_>], outputs: &mut [&mut [u8]], _: &mut Scratch) {
        if let ([a, b], [out]) = (inputs, outputs) {
            if let Input::Bytes(bytes) = b {
                out.copy_from_slice(bytes);
            }
            if !out.is_empty() {
                (self.run)(self, a.bytes(), out);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "test data is rounded to f32 on purpose")]
mod tests {
    use super::super::tests::{assert_close, numbers, product, transposed};
    use super::*;

    /// What the operation reads of `a`: a triangle, with ones on the diagonal if it is unit.
    fn triangle(a: &[f64], size: usize, attributes: &op::TriangularSolve) -> Vec<f64> {
        let element = |at: usize, x: f64| {
            let (i, j) = (at / size, at % size);
            match (i == j, (j < i) == attributes.lower) {
                (true, _) if attributes.unit_diagonal => 1.0,
                (true, _) | (false, true) => x,
                (false, false) => 0.0,
            }
        };
        a.iter().enumerate().map(|(at, &x)| element(at, x)).collect()
    }

    /// A matrix whose triangles are far from singular at any size.
    fn tame(size: usize, seed: usize) -> Vec<f64> {
        let mut a = numbers(size * size, seed);
        for (at, x) in a.iter_mut().enumerate() {
            *x = if at / size == at % size { 2.0 + *x } else { *x / size as f64 };
        }
        a
    }

    fn check(rows: usize, columns: usize, attributes: op::TriangularSolve) {
        let what = format!("{rows} {columns} {attributes:?}");
        let size = if attributes.left_side { rows } else { columns };
        let a = [tame(size, 3), tame(size, 4)];
        let x = [numbers(rows * columns, 5), numbers(rows * columns, 6)];
        let mut b = Vec::new();
        for (a, x) in a.iter().zip(&x) {
            let mut a = triangle(a, size, &attributes);
            if attributes.transpose_a != TransposeA::NoTranspose {
                a = transposed(&a, [size, size]);
            }
            b.extend(if attributes.left_side {
                product(&a, x, [rows, rows, columns])
            } else {
                product(x, &a, [rows, columns, columns])
            });
        }
        let (a, x) = (a.concat(), x.concat());
        let mut wide = b.clone();
        TriangularSolve::new(DType::F64, [rows, columns], attributes).unwrap().run(
            &[Input::Bytes(cast_slice(&a)), Input::Output(0)],
            &mut [cast_slice_mut(&mut wide)],
            &mut Scratch::default(),
        );
        assert_close(&what, &wide, &x, 1e-13);
        let [a, b]: [Vec<f32>; 2] =
            [a, b].map(|values| values.into_iter().map(|x| x as f32).collect());
        let mut narrow = vec![0.0_f32; b.len()];
        TriangularSolve::new(DType::F32, [rows, columns], attributes).unwrap().run(
            &[Input::Bytes(cast_slice(&a)), Input::Bytes(cast_slice(&b))],
            &mut [cast_slice_mut(&mut narrow)],
            &mut Scratch::default(),
        );
        let narrow: Vec<f64> = narrow.into_iter().map(f64::from).collect();
        assert_close(&what, &narrow, &x, 1e-5);
    }

    #[test]
    fn every_side_triangle_diagonal_and_transposition_solves_at_every_size() {
        for (rows, columns) in [(1, 1), (2, 3), (4, 2), (3, 5), (9, 8), (17, 16), (33, 40)] {
            for left_side in [true, false] {
                for lower in [true, false] {
                    for unit_diagonal in [true, false] {
                        for &transpose_a in TransposeA::ALL {
                            let attributes = op::TriangularSolve {
                                left_side,
                                lower,
                                unit_diagonal,
                                transpose_a,
                            };
                            check(rows, columns, attributes);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn systems_without_elements_or_a_field_are_left_alone() {
        let attributes = op::TriangularSolve {
            left_side: true,
            lower: true,
            unit_diagonal: false,
            transpose_a: TransposeA::NoTranspose,
        };
        let kernel = TriangularSolve::new(DType::F32, [2, 0], attributes).unwrap();
        let a = [1.0_f32, 0.0, 2.0, 3.0];
        let inputs = [Input::Bytes(cast_slice(&a)), Input::Bytes(&[])];
        kernel.run(&inputs, &mut [&mut []], &mut Scratch::default());
        assert!(TriangularSolve::new(DType::S32, [2, 2], attributes).is_none());
    }
}
