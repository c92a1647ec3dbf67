//! Hermitian matrices made tridiagonal by reflections from both sides, laid out as LAPACK's `sytrd`
//! and `hetrd` do. All is computed in double precision and rounded once.

use bytemuck::{cast_slice, cast_slice_mut};
use faer::traits::ComplexField;

use super::householder::{reflect, reflect_columns, reflector};
use super::{Field, Wide, with_field};
use crate::backend::cpu::step::{Input, Kernel, Scratch};
use crate::ifrt::DType;

/// A stack of Hermitian matrices into the packed reflectors, the diagonal, what is beside it, and
/// the `tau`s.
#[derive(Debug)]
pub(crate) struct Tridiagonal {
    size: usize,
    lower: bool,
    run: fn(&Self, &[u8], [&mut [u8]; 4]),
}

impl Tridiagonal {
    /// The reduction of `size` by `size` matrices of which the lower or the upper triangle is read
    /// and overwritten, if the element type has one.
    pub(crate) fn new(dtype: DType, size: usize, lower: bool) -> Option<Self> {
        let run = with_field!(dtype, T => Self::reduce::<T>, _ => return None);
        Some(Self { size, lower, run })
    }

    fn reduce<T: Field>(&self, a: &[u8], [packed, d, e, taus]: [&mut [u8]; 4]) {
        let n = self.size;
        // The upper triangle is the lower one of the matrix turned by half a turn.
        let place = |i: usize, j: usize| {
            let (i, j) = if self.lower { (i, j) } else { (n - 1 - i, n - 1 - j) };
            i * n + j
        };
        let along = |i: usize, count: usize| if self.lower { i } else { count - 1 - i };
        let stack = cast_slice::<_, T>(a).chunks_exact(n * n);
        let packed = cast_slice_mut::<_, T>(packed).chunks_exact_mut(n * n);
        let (d, e) = (cast_slice_mut::<_, T::Real>(d), cast_slice_mut::<_, T::Real>(e));
        let taus = cast_slice_mut::<_, T>(taus);
        for (index, (a, packed)) in stack.zip(packed).enumerate() {
            let mut whole = hermitian(n, |i, j| a[place(i, j)].widen());
            packed.copy_from_slice(a);
            let real = |x: f64| T::real_part_impl(&T::narrow(T::Wide::from_real_impl(&x)));
            let mut put = |i: usize, j: usize, x: T::Wide| packed[place(i, j)] = T::narrow(x);
            for i in 0..n {
                let diagonal = T::Wide::real_part_impl(&whole[i * n + i]);
                d[index * n + along(i, n)] = real(diagonal);
                put(i, i, T::Wide::from_real_impl(&diagonal));
                if i + 1 == n {
                    break;
                }
                let (beside, v, tau) = eliminate(&mut whole, n, i);
                e[index * (n - 1) + along(i, n - 1)] = real(beside);
                taus[index * (n - 1) + along(i, n - 1)] = T::narrow(tau);
                put(i + 1, i, T::Wide::from_real_impl(&beside));
                for (row, &v) in (i + 2..n).zip(&v[1..]) {
                    put(row, i, v);
                }
            }
        }
    }
}

/// The whole of a Hermitian matrix of which `at` reads the lower triangle.
fn hermitian<W: Wide>(n: usize, at: impl Fn(usize, usize) -> W) -> Vec<W> {
    let element = |index: usize| match (index / n, index % n) {
        (i, j) if i == j => W::from_real_impl(&W::real_part_impl(&at(i, i))),
        (i, j) if j < i => at(i, j),
        (i, j) => W::conj_impl(&at(j, i)),
    };
    (0..n * n).map(element).collect()
}

/// Makes column `i` zero but for one element below the diagonal, which is returned with `v` and
/// `tau`, and applies the reflection to the rows and columns behind it.
fn eliminate<W: Wide>(whole: &mut [W], n: usize, i: usize) -> (f64, Vec<W>, W) {
    let rest = &mut whole[(i + 1) * n..];
    let mut v: Vec<W> = rest.iter().skip(i).step_by(n).copied().collect();
    let (beside, tau) = reflector(&mut v);
    reflect(rest, n, i + 1, &v, W::conj_impl(&tau));
    reflect_columns(rest, n, i + 1, &v, tau);
    (beside, v, tau)
}

impl Kernel for Tridiagonal {
    fn run(&self, inputs: &[Input<'_>], outputs: &mut [&mut [u8]], _: &mut Scratch) {
        if let ([a], [packed, d, e, taus]) = (inputs, outputs)
            && !packed.is_empty()
        {
            (self.run)(self, a.bytes(), [packed, d, e, taus]);
        }
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "test data is rounded to f32 on purpose")]
mod tests {
    use bytemuck::Pod;
    use num_complex::Complex;

    use super::super::tests::numbers;
    use super::*;

    /// `q` of `a = q t qᴴ`, from reflectors as LAPACK has them, and `t`.
    fn composed(n: usize, lower: bool, found: &[Vec<Complex<f64>>; 4]) -> Vec<Complex<f64>> {
        let [packed, d, e, taus] = found;
        let zero = Complex::default();
        let at = |i: usize, j: usize| i * n + j;
        let mut t = vec![zero; n * n];
        for i in 0..n {
            t[at(i, i)] = d[i];
            if i + 1 < n {
                t[at(i, i + 1)] = e[i];
                t[at(i + 1, i)] = e[i];
            }
        }
        // The reflections undone, the last one first.
        let order: Vec<usize> =
            if lower { (0..n.max(1) - 1).rev().collect() } else { (0..n.max(1) - 1).collect() };
        for i in order {
            let v: Vec<_> = (0..n)
                .map(|row| match lower {
                    true if row == i + 1 => Complex::from(1.0),
                    true if row > i + 1 => packed[at(row, i)],
                    false if row == i => Complex::from(1.0),
                    false if row < i => packed[at(row, i + 1)],
                    _ => zero,
                })
                .collect();
            let h = |r: usize, c: usize| {
                Complex::from(f64::from(u8::from(r == c))) - taus[i] * v[r] * v[c].conj()
            };
            let left: Vec<_> = (0..n * n)
                .map(|x| (0..n).map(|k| h(x / n, k) * t[at(k, x % n)]).sum::<Complex<f64>>())
                .collect();
            t = (0..n * n)
                .map(|x| (0..n).map(|k| left[at(x / n, k)] * h(x % n, k).conj()).sum())
                .collect();
        }
        t
    }

    fn run<T: Pod, R: Pod>(
        dtype: DType,
        n: usize,
        lower: bool,
        a: &[T],
    ) -> (Vec<Vec<T>>, Vec<Vec<R>>) {
        let (mut packed, mut taus) = (a.to_vec(), vec![T::zeroed(); n - 1]);
        let (mut d, mut e) = (vec![R::zeroed(); n], vec![R::zeroed(); n - 1]);
        Tridiagonal::new(dtype, n, lower).unwrap().run(
            &[Input::Bytes(cast_slice(a))],
            &mut [
                cast_slice_mut(&mut packed),
                cast_slice_mut(&mut d),
                cast_slice_mut(&mut e),
                cast_slice_mut(&mut taus),
            ],
            &mut Scratch::default(),
        );
        (vec![packed, taus], vec![d, e])
    }

    #[test]
    fn the_reflections_undone_give_the_matrix_whichever_triangle_is_read() {
        for n in [1, 2, 3, 8, 33] {
            for lower in [true, false] {
                let (re, im) = (numbers(n * n, n), numbers(n * n, n + 1));
                let a: Vec<_> = re.iter().zip(&im).map(|(&re, &im)| Complex::new(re, im)).collect();
                let whole =
                    hermitian(n, |i, j| if lower { a[i * n + j] } else { a[j * n + i].conj() });
                let (complex, real) = run::<_, f64>(DType::C128, n, lower, &a);
                let wide = |values: &Vec<f64>| values.iter().map(|&x| Complex::from(x)).collect();
                let found =
                    [complex[0].clone(), wide(&real[0]), wide(&real[1]), complex[1].clone()];
                for (x, y) in composed(n, lower, &found).iter().zip(&whole) {
                    assert!((x - y).norm() < 1e-12 * n as f64, "{n} {lower}: {x} for {y}");
                }
                let symmetric =
                    hermitian(n, |i, j| if lower { re[i * n + j] } else { re[j * n + i] });
                let narrow: Vec<f32> = re.iter().map(|&x| x as f32).collect();
                let (first, second) = run::<_, f32>(DType::F32, n, lower, &narrow);
                let wide = |values: &Vec<f32>| {
                    values.iter().map(|&x| Complex::from(f64::from(x))).collect()
                };
                let found = [wide(&first[0]), wide(&second[0]), wide(&second[1]), wide(&first[1])];
                for (x, y) in composed(n, lower, &found).iter().zip(&symmetric) {
                    assert!((x - y).norm() < 1e-5 * n as f64, "{n} {lower}: {x} for {y}");
                }
            }
        }
    }

    #[test]
    fn the_layout_is_that_of_lapack() {
        // As SciPy's `dsytrd` has it.
        let a = [4.0, 0.0, 0.0, 3.0, 1.0, 0.0, 4.0, 2.0, 5.0];
        let (packed, real) = run::<f64, f64>(DType::F64, 3, true, &a);
        assert_eq!(real[0][0], 4.0);
        assert!((real[1][0] + 5.0).abs() < 1e-14, "{real:?}");
        assert!((packed[1][0] - 1.6).abs() < 1e-14 && (packed[0][6] - 0.5).abs() < 1e-14);
        assert_eq!(packed[0][1..3], [0.0, 0.0]);
        assert_eq!(packed[1][1], 0.0);
    }
}
