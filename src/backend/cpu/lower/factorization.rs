//! Factorizations of stacks of matrices: the custom calls that JAX makes on every platform, and
//! ours for what it has no other way to say.
//!
//! The operand is `a` of `[.., m, n]`, of `f32`, `f64` or complex numbers of either; `k` is the
//! lesser of `m` and `n`. Results are of the operand's type where no other is said. Options stand
//! in the dictionary that configures the call (`mhlo.backend_config`).
//!
//! | target | results |
//! |---|---|
//! | `Qr` | the packed factors `[.., m, n]` and the `tau`s `[.., k]`, as LAPACK's `geqrf` has them |
//! | `ProductOfElementaryHouseholderReflectors` of the packed `[.., m, n]` and the `tau`s | the first `n` columns of `q`, `[.., m, n]` |
//! | `lockstep.lu` | the packed factors `[.., m, n]`; the row that each row changed places with, one after the other, `i32` `[.., k]`; the row of `a` that each row of the product is, `i32` `[.., m]`; both from 0 |
//! | `lockstep.eigh`, option `lower` | eigenvalues ascending `[.., n]`, real, and vectors in columns `[.., n, n]` |
//! | `lockstep.eig`, options `left`, `right` | eigenvalues `[.., n]`, then left vectors in columns `[.., n, n]` if `left`, then right ones if `right`; all complex. `uᴴ a = w uᴴ` and `a v = v w`; each of length 1, its greatest element real |
//! | `lockstep.schur` | `t` and unitary `z`, both `[.., n, n]`, where `a = z t zᴴ`. `t` is triangular, but for a 2 by 2 block on the diagonal for each pair of complex eigenvalues of a real `a` |
//! | `lockstep.tridiagonal`, option `lower` | as LAPACK's `sytrd` and `hetrd`: `a` with reflectors in the triangle that is read `[.., n, n]`, the diagonal `[.., n]`, what is beside it `[.., n - 1]`, both real, and the `tau`s `[.., n - 1]` |
//! | `lockstep.svd` | values descending `[.., k]`, real, left vectors `[.., m, k]`, right ones conjugated `[.., k, n]`; or all vectors, `[.., m, m]` and `[.., n, n]` |
//!
//! Eigenvalues, Schur forms and singular values of a matrix with an element that is no finite number
//! are NaN, with all that comes with them.

use super::Lowering;
use super::custom_call::option;
use crate::backend::cpu::kernels::linalg::{
    Eig, Eigh, Lu, Qr, ReflectorProduct, Schur, Svd, Tridiagonal,
};
use crate::backend::cpu::step::Kernel;
use crate::ifrt::{DType, Result, Status};
use crate::stablehlo::attribute::Attribute;
use crate::stablehlo::{OpData, TensorType};

/// A stack of matrices.
struct Stack<'f> {
    dtype: DType,
    batch: &'f [usize],
    rows: usize,
    columns: usize,
}

impl Stack<'_> {
    /// Whether a tensor has one array of `dims` for each matrix.
    fn fits(&self, ty: &TensorType, dtype: DType, dims: &[usize]) -> bool {
        ty.dtype == dtype
            && ty.shape.dims().strip_prefix(self.batch).is_some_and(|inner| inner == dims)
    }
}

impl<'f> Lowering<'f> {
    /// Lowers a custom call of one of these targets.
    pub(super) fn factorization(
        &mut self,
        op: &OpData,
        target: &str,
        attributes: &[(String, Attribute)],
    ) -> Result<()> {
        let stack = self.stack(op)?;
        let Stack { dtype, rows: m, columns: n, .. } = stack;
        let k = m.min(n);
        let (real, complex) = (real(dtype), complex(dtype));
        if m != n && !matches!(target, "Qr" | "lockstep.lu" | "lockstep.svd") {
            return Err(self.unimplemented_because(op, "of matrices that are not square"));
        }
        let flag = |name: &str| match option(attributes, name) {
            Some(&Attribute::Bool(value)) => Ok(value),
            _ => Err(self.unimplemented_because(op, &format!("without `{name}`"))),
        };
        match target {
            "Qr" => {
                let results = [(dtype, vec![m, n]), (dtype, vec![k])];
                self.factor(op, &stack, &results, Qr::new(dtype, [m, n]))
            }
            "lockstep.lu" => {
                let results = [(dtype, vec![m, n]), (DType::S32, vec![k]), (DType::S32, vec![m])];
                self.factor(op, &stack, &results, Lu::new(dtype, [m, n]))
            }
            "lockstep.eigh" => {
                let kernel = Eigh::new(dtype, n, flag("lower")?);
                self.factor(op, &stack, &[(real, vec![n]), (dtype, vec![n, n])], kernel)
            }
            "lockstep.eig" => {
                let (left, right) = (flag("left")?, flag("right")?);
                let mut results = vec![(complex, vec![n])];
                results.resize(1 + usize::from(left) + usize::from(right), (complex, vec![n, n]));
                self.factor(op, &stack, &results, Eig::new(dtype, n, left, right))
            }
            "lockstep.schur" => {
                let results = [(dtype, vec![n, n]), (dtype, vec![n, n])];
                self.factor(op, &stack, &results, Schur::new(dtype, n))
            }
            "lockstep.tridiagonal" => {
                let kernel = Tridiagonal::new(dtype, n, flag("lower")?);
                let beside = vec![n.saturating_sub(1)];
                let results =
                    [(dtype, vec![n, n]), (real, vec![n]), (real, beside.clone()), (dtype, beside)];
                self.factor(op, &stack, &results, kernel)
            }
            "lockstep.svd" => {
                let is_square = |index: usize, size: usize| -> Result<bool> {
                    let ty =
                        op.results.get(index).map(|&vectors| self.tensor(vectors)).transpose()?;
                    Ok(ty.is_some_and(|ty| stack.fits(ty, dtype, &[size, size])))
                };
                // Without values there is nothing that all vectors could be told from.
                let full = k > 0 && is_square(1, m)? && is_square(2, n)?;
                let (left, right) = if full { (m, n) } else { (k, k) };
                let results = [(real, vec![k]), (dtype, vec![m, left]), (dtype, vec![right, n])];
                self.factor(op, &stack, &results, Svd::new(dtype, [m, n], full))
            }
            _ => Err(self.unimplemented(op)),
        }
    }

    /// `ProductOfElementaryHouseholderReflectors`.
    pub(super) fn reflector_product(&mut self, op: &OpData) -> Result<()> {
        let ([a, taus], [q]) = (op.operands.as_slice(), op.results.as_slice()) else {
            return Err(self.wrong_types(op));
        };
        let (a, taus, q) = (self.tensor(*a)?, self.tensor(*taus)?, self.tensor(*q)?);
        let ([batch @ .., rows, columns], [taus_batch @ .., reflectors]) =
            (a.shape.dims(), taus.shape.dims())
        else {
            return Err(self.wrong_types(op));
        };
        if q != a || taus.dtype != a.dtype || batch != taus_batch {
            return Err(self.wrong_types(op));
        }
        let kernel = ReflectorProduct::new(a.dtype, [*rows, *columns], *reflectors);
        self.kernel(op, kernel.ok_or_else(|| self.wrong_types(op))?)
    }

    /// Lowers to a kernel, if there is one and the results are an array of these types and
    /// dimensions for each matrix.
    fn factor(
        &mut self,
        op: &OpData,
        stack: &Stack<'_>,
        results: &[(DType, Vec<usize>)],
        kernel: Option<impl Kernel + 'static>,
    ) -> Result<()> {
        let mut fit = op.results.len() == results.len();
        for (&result, (dtype, dims)) in op.results.iter().zip(results) {
            fit &= stack.fits(self.tensor(result)?, *dtype, dims);
        }
        let kernel = kernel.filter(|_| fit).ok_or_else(|| self.wrong_types(op))?;
        self.kernel(op, kernel)
    }

    /// The only operand as a stack of matrices.
    fn stack(&self, op: &OpData) -> Result<Stack<'f>> {
        if let &[a] = op.operands.as_slice() {
            let ty = self.tensor(a)?;
            if let [batch @ .., rows, columns] = ty.shape.dims() {
                return Ok(Stack { dtype: ty.dtype, batch, rows: *rows, columns: *columns });
            }
        }
        Err(self.wrong_types(op))
    }

    fn wrong_types(&self, op: &OpData) -> Status {
        self.unimplemented_because(op, "with these types")
    }
}

/// The type of the absolute value of an element.
fn real(dtype: DType) -> DType {
    match dtype {
        DType::C64 => DType::F32,
        DType::C128 => DType::F64,
        real => real,
    }
}

/// The type of an element's eigenvalues.
fn complex(dtype: DType) -> DType {
    match dtype {
        DType::F32 => DType::C64,
        DType::F64 => DType::C128,
        other => other,
    }
}
