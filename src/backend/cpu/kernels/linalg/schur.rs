//! Schur forms of any square matrices, by the shifted QR iteration on Hessenberg matrices.
//!
//! All is computed in double precision and rounded once.

use bytemuck::{cast_slice, cast_slice_mut};
use num_complex::Complex;

use super::householder::{reflect, reflect_columns, reflector};
use super::{Field, Wide, narrow, widened, with_field};
use crate::backend::cpu::step::{Input, Kernel, Scratch};
use crate::ifrt::DType;

/// How often a block is iterated on before it is given up. Three are usual; every tenth shift is
/// another than the usual one, for what that would turn in circles.
const MOST_ITERATIONS: usize = 300;

/// A Schur form of a stack of matrices: `t` and unitary `z`, where `a = z t zᴴ`. It is triangular,
/// but for a 2 by 2 block on the diagonal of a real one for each pair of complex eigenvalues. A
/// matrix with an element that is no finite number has NaN for both; so has one on which the
/// iteration does not converge.
#[derive(Debug)]
pub(crate) struct Schur {
    size: usize,
    run: fn(&Self, &[u8], &mut [u8], &mut [u8]),
}

impl Schur {
    /// The decomposition of `size` by `size` matrices, if the element type has one.
    pub(crate) fn new(dtype: DType, size: usize) -> Option<Self> {
        let run = with_field!(dtype, T => Self::decompose::<T>, _ => return None);
        Some(Self { size, run })
    }

    fn decompose<T: Field>(&self, a: &[u8], t: &mut [u8], z: &mut [u8]) {
        let n = self.size;
        let stack = cast_slice::<_, T>(a).chunks_exact(n * n);
        let results = cast_slice_mut::<_, T>(t)
            .chunks_exact_mut(n * n)
            .zip(cast_slice_mut::<_, T>(z).chunks_exact_mut(n * n));
        for (a, (t, z)) in stack.zip(results) {
            if let Some(form) = schur(n, &widened(a)) {
                narrow(&form.t, t);
                narrow(&form.z, z);
            } else {
                t.fill(T::nan_impl());
                z.fill(T::nan_impl());
            }
        }
    }
}

impl Kernel for Schur {
    fn run(&self, inputs: &[Input<'_>], outputs: &mut [&mut [u8]], _: &mut Scratch) {
        if let ([a], [t, z]) = (inputs, outputs)
            && !t.is_empty()
        {
            (self.run)(self, a.bytes(), t, z);
        }
    }
}

/// The form of one matrix, by rows.
pub(super) struct Form<W> {
    pub(super) t: Vec<W>,
    pub(super) z: Vec<W>,
}

/// The form of a matrix of `n` rows; none if it has an element that is no finite number, or if the
/// iteration does not converge.
pub(super) fn schur<W: Wide>(n: usize, a: &[W]) -> Option<Form<W>> {
    if !a.iter().all(W::is_finite_impl) {
        return None;
    }
    // Squares of the elements are to be finite. A power of two changes no digit.
    let greatest = a.iter().map(W::abs1_impl).fold(f64::MIN_POSITIVE, f64::max);
    let scale = greatest.log2().floor().clamp(-1000.0, 1000.0).exp2();
    let t = a.iter().map(|x| W::mul_real_impl(x, &(1.0 / scale))).collect();
    let mut z = vec![W::zero_impl(); n * n];
    z.iter_mut().step_by(n + 1).for_each(|x| *x = W::one_impl());
    let mut form = Form { t, z };
    make_hessenberg(n, &mut form);
    iterate(n, &mut form)?;
    form.t.iter_mut().for_each(|x| *x = W::mul_real_impl(x, &scale));
    Some(form)
}

impl<W: Wide> Form<W> {
    /// Applies the reflection of rows `at..` by `v`, `tau` from both sides: to columns from `first`
    /// on and to rows before `end`.
    fn reflect(&mut self, n: usize, at: usize, first: usize, end: usize, v: &[W], tau: W) {
        let rows = &mut self.t[at * n..(at + v.len()) * n];
        reflect(rows, n, first, v, W::conj_impl(&tau));
        reflect_columns(&mut self.t[..end * n], n, at, v, tau);
        reflect_columns(&mut self.z, n, at, v, tau);
    }
}

/// Makes everything zero below the elements that are next to the diagonal.
fn make_hessenberg<W: Wide>(n: usize, form: &mut Form<W>) {
    for column in 0..n.saturating_sub(2) {
        let below = (column + 1) * n + column;
        let mut v: Vec<W> = form.t[below..].iter().step_by(n).copied().collect();
        let (length, tau) = reflector(&mut v);
        form.reflect(n, column + 1, column + 1, n, &v, tau);
        form.t[below..].iter_mut().step_by(n).for_each(|x| *x = W::zero_impl());
        form.t[below] = W::from_real_impl(&length);
    }
}

/// Iterates on a Hessenberg matrix until it is a Schur form.
fn iterate<W: Wide>(n: usize, form: &mut Form<W>) -> Option<()> {
    let (mut end, mut iterations) = (n, 0);
    while end > 0 {
        let start = active(n, &mut form.t, end);
        if start + 1 == end {
            (end, iterations) = (start, 0);
        } else if W::IS_REAL && start + 2 == end {
            split(n, form, start);
            (end, iterations) = (start, 0);
        } else if iterations == MOST_ITERATIONS {
            return None;
        } else {
            iterations += 1;
            chase(n, form, start, end, iterations % 10 == 0);
        }
    }
    Some(())
}

/// Where the last block begins that ends before `end`; what is negligible above it becomes zero.
fn active<W: Wide>(n: usize, t: &mut [W], end: usize) -> usize {
    for i in (1..end).rev() {
        let size = |at: usize| W::abs1_impl(&t[at]);
        let neighbours = size(i * n + i) + size((i - 1) * n + i - 1);
        // All elements are at most about 1.
        let neighbours = if neighbours == 0.0 { 1.0 } else { neighbours };
        if size(i * n + i - 1) <= f64::EPSILON * neighbours {
            t[i * n + i - 1] = W::zero_impl();
            return i;
        }
    }
    0
}

/// Makes a real 2 by 2 block triangular if its eigenvalues are real.
fn split<W: Wide>(n: usize, form: &mut Form<W>, at: usize) {
    let [[a, b], [c, d]] = block(n, &form.t, at).map(|row| row.map(|x| W::real_part_impl(&x)));
    let half = (a - d) / 2.0;
    let square = half * half + b * c;
    if square >= 0.0 {
        let beyond = half + square.sqrt().copysign(half);
        let first = [beyond, c].map(|x| W::from_real_impl(&x));
        turn(n, form, at, first);
    }
}

/// Makes the blocks of a real form triangular; complex eigenvalues need complex numbers for that.
pub(super) fn make_triangular(n: usize, form: &mut Form<Complex<f64>>) {
    for at in 0..n.saturating_sub(1) {
        let [[a, b], [c, d]] = block(n, &form.t, at);
        if c != Complex::default() {
            let half = (a - d) / 2.0;
            let beyond = half + (half * half + b * c).sqrt();
            turn(n, form, at, [beyond, c]);
            // They are conjugates to the last digit.
            let (first, second) = (at * n + at, (at + 1) * n + at + 1);
            form.t[second] = form.t[first].conj();
        }
    }
}

/// Turns a block whose eigenvector is `first` so that this becomes its first direction.
fn turn<W: Wide>(n: usize, form: &mut Form<W>, at: usize, first: [W; 2]) {
    let mut v = first;
    let (_, tau) = reflector(&mut v);
    form.reflect(n, at, at, at + 2, &v, tau);
    form.t[(at + 1) * n + at] = W::zero_impl();
}

/// The 2 by 2 block at `at` on the diagonal.
fn block<W: Wide>(n: usize, t: &[W], at: usize) -> [[W; 2]; 2] {
    let first = at * n + at;
    [[t[first], t[first + 1]], [t[first + n], t[first + n + 1]]]
}

/// One step of the iteration on the block `start..end`, which is larger than what it may end as:
/// the first column of a polynomial of the matrix is reflected, and what that puts below the
/// Hessenberg matrix is chased out of it.
///
/// For a complex matrix the polynomial has one zero, the shift, for a real one two, whose sum and
/// product are real.
fn chase<W: Wide>(n: usize, form: &mut Form<W>, start: usize, end: usize, is_unusual: bool) {
    let t = &form.t;
    let [[a, b], [c, d]] = block(n, t, end - 2);
    let (first, below) = (t[start * n + start], t[(start + 1) * n + start]);
    let mut column = if W::IS_REAL {
        let (mut sum, mut product) = (a + d, a * d - b * c);
        if is_unusual {
            let size = W::abs1_impl(&c) + W::abs1_impl(&t[(end - 2) * n + end - 3]);
            (sum, product) = (W::from_real_impl(&(1.5 * size)), W::from_real_impl(&(size * size)));
        }
        let [[_, right], [_, second]] = block(n, t, start);
        vec![
            first * (first - sum) + product + right * below,
            below * (first + second - sum),
            below * t[(start + 2) * n + start + 1],
        ]
    } else {
        // The eigenvalue of the last block that is nearer to its last element.
        let half = (a - d) * W::from_real_impl(&0.5);
        let root = W::sqrt_impl(&(half * half + b * c));
        let far = if W::abs1_impl(&(half + root)) > W::abs1_impl(&(half - root)) {
            half + root
        } else {
            half - root
        };
        let shift = if is_unusual || far == W::zero_impl() {
            d + W::from_real_impl(&W::abs1_impl(&c))
        } else {
            d - b * c / far
        };
        vec![first - shift, below]
    };
    let size = column.len();
    for k in start..end - 1 {
        let count = size.min(end - k);
        if k > start {
            column = (0..count).map(|i| form.t[(k + i) * n + k - 1]).collect();
        }
        column.truncate(count);
        let (length, tau) = reflector(&mut column);
        form.reflect(n, k, k, end.min(k + size + 1), &column, tau);
        if k > start {
            for i in 0..count {
                form.t[(k + i) * n + k - 1] = W::zero_impl();
            }
            form.t[k * n + k - 1] = W::from_real_impl(&length);
        }
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "test data is rounded to f32 on purpose")]
pub(super) mod tests {
    use bytemuck::Pod;

    use super::super::tests::numbers;
    use super::*;

    type Number = Complex<f64>;

    /// Matrices of `n` by `n` that make such algorithms stumble, and some that do not.
    pub(in super::super) fn matrices(n: usize) -> Vec<Vec<f64>> {
        let make =
            |at: &dyn Fn(usize, usize) -> f64| (0..n * n).map(|x| at(x / n, x % n)).collect();
        let one = |is: bool| f64::from(u8::from(is));
        vec![
            numbers(n * n, n),
            vec![0.0; n * n],
            make(&|i, j| one(i == j)),
            // A cycle, a single block, a companion, a symmetric one, and one of great spread.
            make(&|i, j| one((i + 1) % n == j)),
            make(&|i, j| one(i == j) + one(i + 1 == j)),
            make(&|i, j| one(i == j + 1) - one(i == 0) * 0.5),
            make(&|i, j| 1.0 / (1.0 + (i + j) as f64)),
            make(&|i, j| ((i * 5 + j * 3) % 7) as f64 * 10.0_f64.powf((i % 9) as f64 - 4.0)),
            make(&|i, j| one(i % 2 == 0 && j == i + 1) - one(i % 2 == 1 && j + 1 == i)),
        ]
    }

    pub(in super::super) fn greatest(values: &[Number]) -> f64 {
        values.iter().fold(1.0, |greatest, x| x.norm().max(greatest))
    }

    pub(in super::super) fn product(a: &[Number], b: &[Number], n: usize) -> Vec<Number> {
        (0..n * n).map(|x| (0..n).map(|k| a[x / n * n + k] * b[k * n + x % n]).sum()).collect()
    }

    pub(in super::super) fn adjoint(a: &[Number], n: usize) -> Vec<Number> {
        (0..n * n).map(|x| a[x % n * n + x / n].conj()).collect()
    }

    pub(in super::super) fn assert_close(what: &str, a: &[Number], b: &[Number], bound: f64) {
        let scale = greatest(b);
        for (x, y) in a.iter().zip(b) {
            assert!((x - y).norm() <= bound * scale, "{what}: {x} for {y}");
        }
    }

    pub(in super::super) fn run<T: Pod, R: Pod>(
        kernel: &dyn Kernel,
        a: &[T],
        lengths: &[usize],
    ) -> Vec<Vec<R>> {
        let mut out: Vec<Vec<R>> = lengths.iter().map(|&len| vec![R::zeroed(); len]).collect();
        let mut bytes: Vec<&mut [u8]> = out.iter_mut().map(|out| cast_slice_mut(out)).collect();
        kernel.run(&[Input::Bytes(cast_slice(a))], &mut bytes, &mut Scratch::default());
        out
    }

    /// `a = z t zᴴ`, where `z` is unitary, and how far below its diagonal `t` is zero.
    fn check_schur(what: &str, a: &[Number], t: &[Number], z: &[Number], n: usize, bound: f64) {
        let z_h = adjoint(z, n);
        let bound = bound * n as f64;
        assert_close(what, &product(&product(z, t, n), &z_h, n), a, bound);
        let identity: Vec<Number> =
            (0..n * n).map(|x| f64::from(u8::from(x / n == x % n)).into()).collect();
        assert_close(what, &product(&z_h, z, n), &identity, bound);
        for i in 0..n {
            assert!(t[i * n..][..i.saturating_sub(1)].iter().all(|x| *x == Number::default()));
        }
        let below = |i: usize| t[(i + 1) * n + i] != Number::default();
        for i in 0..n.saturating_sub(2) {
            assert!(!(below(i) && below(i + 1)), "{what}: blocks overlap at {i}");
        }
    }

    #[test]
    fn a_schur_form_makes_the_matrix_again() {
        for n in [1, 2, 3, 5, 8, 17, 33, 70] {
            // The larger they are, the fewer: the test's own products take their time.
            for (which, a) in matrices(n).iter().take(300 / n).enumerate() {
                let what = format!("{n}, matrix {which}");
                let real: Vec<Number> = a.iter().map(|&x| x.into()).collect();
                let found: Vec<Vec<f64>> =
                    run(&Schur::new(DType::F64, n).unwrap(), a, &[n * n, n * n]);
                let found: Vec<Vec<Number>> =
                    found.iter().map(|values| values.iter().map(|&x| x.into()).collect()).collect();
                check_schur(&what, &real, &found[0], &found[1], n, 1e-13);
                let complex: Vec<Number> =
                    a.iter().zip(numbers(n * n, 3)).map(|(&x, y)| Complex::new(x, x * y)).collect();
                let found = run(&Schur::new(DType::C128, n).unwrap(), &complex, &[n * n, n * n]);
                check_schur(&what, &complex, &found[0], &found[1], n, 1e-13);
                let below = |i: usize| found[0][(i + 1) * n + i] != Number::default();
                assert!((0..n - 1).all(|i| !below(i)), "{what}: a complex form is triangular");
            }
        }
    }

    #[test]
    fn what_is_not_finite_has_nan_for_all_and_its_neighbours_do_not() {
        let a = [1.0, f64::NAN, 0.0, 1.0, 2.0, 0.0, 0.0, 1.0];
        let found: Vec<Vec<f64>> = run(&Schur::new(DType::F64, 2).unwrap(), &a, &[8, 8]);
        assert!(found[0][..4].iter().chain(&found[1][..4]).all(|x| x.is_nan()), "{found:?}");
        assert_eq!(found[0][4..], [2.0, 0.0, 0.0, 1.0]);
        assert!(Schur::new(DType::F16, 2).is_none());
    }
}
