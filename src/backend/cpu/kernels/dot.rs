//! Matrix products, batched: `faer` for floats and complex numbers, plain loops for integers.

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use faer::linalg::matmul::matmul;
use faer::traits::ComplexField;
use faer::{Accum, MatMut, MatRef, Par};
use num_complex::Complex;

use super::element::{Bool, Element, with_integer};
use crate::backend::cpu::parallel::for_each_chunk;
use crate::backend::cpu::step::{Input, Kernel, Scratch};
use crate::backend::cpu::view::{Odometer, View};
use crate::ifrt::DType;

/// One operand: a stack of matrices laid over a buffer.
#[derive(Clone, Debug)]
pub(crate) struct Matrices {
    batch_strides: Vec<isize>,
    offset: usize,
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl Matrices {
    /// A view whose last two dimensions are rows and columns; `None` when neither is contiguous
    /// or they overlap.
    pub(crate) fn new(view: &View) -> Option<Self> {
        let rank = view.dims.len();
        let (&[rows, columns], &[row_stride, column_stride]) =
            (view.dims.last_chunk::<2>()?, view.strides.last_chunk::<2>()?);
        // The stride of a dimension of size 1 is never used: take the one of a dense matrix.
        let column_stride = if columns == 1 { 1 } else { usize::try_from(column_stride).ok()? };
        let row_stride = match (rows, column_stride) {
            (1, 1) => columns.max(1),
            (1, _) => 1,
            _ => usize::try_from(row_stride).ok()?,
        };
        let column_stride =
            if columns == 1 && row_stride == 1 { rows.max(1) } else { column_stride };
        let by_rows = column_stride == 1 && row_stride >= columns;
        let by_columns = row_stride == 1 && column_stride >= rows;
        (by_rows || by_columns).then(|| Self {
            batch_strides: view.strides[..rank - 2].to_vec(),
            offset: view.offset,
            rows,
            columns,
            row_stride,
            column_stride,
        })
    }

    fn matrix<'a, T>(&self, data: &'a [T], position: usize) -> MatRef<'a, T> {
        let data = &data[position..];
        if self.column_stride == 1 && self.row_stride >= self.columns {
            MatRef::from_row_major_slice_with_stride(data, self.rows, self.columns, self.row_stride)
        } else {
            MatRef::from_column_major_slice_with_stride(
                data,
                self.rows,
                self.columns,
                self.column_stride,
            )
        }
    }
}

/// `[batch.., m, k]` times `[batch.., k, n]` into a dense `[batch.., m, n]`.
#[derive(Debug)]
pub(crate) struct Dot {
    lhs: Matrices,
    rhs: Matrices,
    batch_dims: Vec<usize>,
    run: fn(&Self, &[u8], &[u8], &mut [u8]),
}

impl Dot {
    /// The product, if the element type has one.
    pub(crate) fn new(
        dtype: DType,
        batch_dims: &[usize],
        lhs: Matrices,
        rhs: Matrices,
    ) -> Option<Self> {
        let run: fn(&Self, &[u8], &[u8], &mut [u8]) = match dtype {
            DType::F32 => run_faer::<f32>,
            DType::F64 => run_faer::<f64>,
            DType::C64 => run_faer::<Complex<f32>>,
            DType::C128 => run_faer::<Complex<f64>>,
            DType::Bool => run_loops::<Bool>,
            dtype => with_integer!(dtype, T => run_loops::<T>, _ => return None),
        };
        Some(Self { lhs, rhs, batch_dims: batch_dims.to_vec(), run })
    }

    /// Calls `product` for every matrix of the batch: positions in both operands, and the result.
    fn for_each<T>(&self, out: &mut [T], mut product: impl FnMut(usize, usize, &mut [T])) {
        let (lhs, rhs) = (&self.lhs, &self.rhs);
        let size = lhs.rows * rhs.columns;
        if size == 0 {
            return;
        }
        let mut odometer = Odometer::new(
            &self.batch_dims,
            [&lhs.batch_strides, &rhs.batch_strides],
            [lhs.offset, rhs.offset],
        );
        for out in out.chunks_exact_mut(size) {
            if let Some(([lhs, rhs], _)) = odometer.next() {
                product(lhs, rhs, out);
            }
        }
    }
}

impl Kernel for Dot {
    fn run(&self, inputs: &[Input<'_>], outputs: &mut [&mut [u8]], _: &mut Scratch) {
        if let ([lhs, rhs], [out]) = (inputs, outputs) {
            if self.lhs.columns == 0 {
                // An empty sum.
                out.fill(0);
            } else {
                (self.run)(self, lhs.bytes(), rhs.bytes(), out);
            }
        }
    }
}

/// Products of this many multiplications on are shared by several threads.
const PARALLEL: usize = 1 << 20;

/// How many rows of a result are computed at once: by the shape alone, so that the bits do not
/// depend on how many threads there are. Every panel packs the right operand anew, so they are few.
fn panel_rows(rows: usize) -> usize {
    (rows / 4).next_multiple_of(32).clamp(64, 512)
}

fn run_faer<T: Pod + ComplexField + Send + Sync>(
    dot: &Dot,
    lhs: &[u8],
    rhs: &[u8],
    out: &mut [u8],
) {
    let (lhs, rhs) = (cast_slice::<_, T>(lhs), cast_slice::<_, T>(rhs));
    let (rows, columns) = (dot.lhs.rows, dot.rhs.columns);
    let height = panel_rows(rows);
    let out = cast_slice_mut::<_, T>(out);
    let multiplications = out.len().saturating_mul(dot.lhs.columns);
    let panel = |l: usize, r: usize, first: usize, out: &mut [T]| {
        let count = out.len() / columns;
        let out = MatMut::from_row_major_slice_mut(out, count, columns);
        let (l, r) = (dot.lhs.matrix(lhs, l).subrows(first, count), dot.rhs.matrix(rhs, r));
        matmul(out, Accum::Replace, l, r, T::one_impl(), Par::Seq);
    };
    if multiplications < PARALLEL || out.len() <= height * columns {
        dot.for_each(out, |l, r, out| {
            for (i, out) in out.chunks_mut(height * columns).enumerate() {
                panel(l, r, i * height, out);
            }
        });
        return;
    }
    let mut matrices = Vec::new();
    let mut odometer = Odometer::new(
        &dot.batch_dims,
        [&dot.lhs.batch_strides, &dot.rhs.batch_strides],
        [dot.lhs.offset, dot.rhs.offset],
    );
    while let Some((positions, _)) = odometer.next() {
        matrices.push(positions);
    }
    for_each_chunk(out, rows * columns, |at, out| {
        let [l, r] = matrices[at];
        for_each_chunk(out, height * columns, |i, out| panel(l, r, i * height, out));
    });
}

fn run_loops<T: Element>(dot: &Dot, lhs: &[u8], rhs: &[u8], out: &mut [u8]) {
    let (lhs, rhs) = (cast_slice::<_, T>(lhs), cast_slice::<_, T>(rhs));
    let (left, right) = (&dot.lhs, &dot.rhs);
    dot.for_each(cast_slice_mut(out), |l, r, out| {
        for (i, row) in out.chunks_exact_mut(right.columns).enumerate() {
            row.fill(T::default());
            for k in 0..left.columns {
                let x = lhs[l + i * left.row_stride + k * left.column_stride];
                let line = r + k * right.row_stride;
                for (j, out) in row.iter_mut().enumerate() {
                    *out = out.add(x.multiply(rhs[line + j * right.column_stride]));
                }
            }
        }
    });
}

#[cfg(test)]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "test data is small"
)]
mod tests {
    use super::*;
    use crate::backend::cpu::view::advance;

    /// The product by definition, of small integers, which every type represents exactly.
    fn expected(a: &View, b: &View, lhs: &[i64], rhs: &[i64]) -> Vec<i64> {
        let (m, k, n) = (a.dims[1], a.dims[2], b.dims[2]);
        let at = |view: &View, data: &[i64], index: [usize; 3]| {
            let position = index
                .iter()
                .zip(&view.strides)
                .fold(view.offset, |position, (&i, &stride)| advance(position, stride, i));
            data[position]
        };
        let mut out = Vec::new();
        for batch in 0..a.dims[0] {
            for i in 0..m {
                for j in 0..n {
                    let terms =
                        (0..k).map(|k| at(a, lhs, [batch, i, k]) * at(b, rhs, [batch, k, j]));
                    out.push(terms.sum());
                }
            }
        }
        out
    }

    fn product<T: Pod + Default>(
        dtype: DType,
        a: &View,
        b: &View,
        lhs: &[i64],
        rhs: &[i64],
        from: fn(i64) -> T,
    ) -> Vec<T> {
        let lhs: Vec<T> = lhs.iter().map(|&x| from(x)).collect();
        let rhs: Vec<T> = rhs.iter().map(|&x| from(x)).collect();
        let mut out = vec![T::default(); a.dims[0] * a.dims[1] * b.dims[2]];
        let matrices = [Matrices::new(a).unwrap(), Matrices::new(b).unwrap()];
        let [l, r] = matrices;
        Dot::new(dtype, &[a.dims[0]], l, r).unwrap().run(
            &[Input::Bytes(cast_slice(&lhs)), Input::Bytes(cast_slice(&rhs))],
            &mut [cast_slice_mut(&mut out)],
            &mut Scratch::default(),
        );
        out
    }

    #[test]
    fn products_match_in_every_layout_and_size() {
        for (m, k, n) in [
            (1, 1, 1),
            (1, 5, 1),
            (4, 1, 3),
            (1, 3, 4),
            (3, 4, 1),
            (7, 9, 5),
            (33, 17, 2),
            (300, 150, 40),
            (2, 0, 3),
            (0, 2, 3),
        ] {
            let lhs: Vec<i64> = (0..2 * m * k).map(|i| (i * 7 % 11) as i64 - 5).collect();
            let rhs: Vec<i64> = (0..2 * k * n).map(|i| (i * 5 % 13) as i64 - 6).collect();
            let lefts = [View::dense(&[2, m, k]), View::dense(&[2, k, m]).transpose(&[0, 2, 1])];
            let rights = [View::dense(&[2, k, n]), View::dense(&[2, n, k]).transpose(&[0, 2, 1])];
            for a in &lefts {
                for b in &rights {
                    let sums = expected(a, b, &lhs, &rhs);
                    let wide: Vec<f32> = sums.iter().map(|&x| x as f32).collect();
                    assert_eq!(product(DType::F32, a, b, &lhs, &rhs, |x| x as f32), wide);
                    assert_eq!(product(DType::S64, a, b, &lhs, &rhs, |x| x), sums);
                    // (1 + i)² = 2i
                    let turned: Vec<_> = wide.iter().map(|&x| Complex::new(0.0, 2.0 * x)).collect();
                    let narrow = |x| Complex::new(x as f32, x as f32);
                    assert_eq!(product(DType::C64, a, b, &lhs, &rhs, narrow), turned);
                    let turned: Vec<_> =
                        sums.iter().map(|&x| Complex::new(0.0, 2.0 * x as f64)).collect();
                    let narrow = |x| Complex::new(x as f64, x as f64);
                    assert_eq!(product(DType::C128, a, b, &lhs, &rhs, narrow), turned);
                }
            }
        }
    }

    #[test]
    fn overlapping_or_scattered_matrices_are_declined() {
        assert!(Matrices::new(&View::splat(&[2, 2])).is_none());
        assert!(Matrices::new(&View::dense(&[4, 6]).slice(&[0, 0], &[4, 6], &[1, 2])).is_none());
        assert!(Matrices::new(&View::dense(&[4, 6]).reverse(&[0])).is_none());
        assert!(Matrices::new(&View::dense(&[4, 6]).slice(&[1, 2], &[3, 5], &[1, 1])).is_some());
    }
}
