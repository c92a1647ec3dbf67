"""Factorizations of matrices: JAX's operations as custom calls that Lockstep has kernels for.

JAX lowers these to LAPACK on CPUs and to libraries of vendors on GPUs, and most of them to nothing
elsewhere. `src/backend/cpu/lower/factorization.rs` says what each target takes and gives.
"""

import jax
from jax._src.interpreters import mlir
from jax._src.lax import linalg
from jax.core import ShapedArray


def _call(ctx, target, operand, results, **options):
    """The custom call `target` with results like the abstract values `results`."""
    rule = jax.ffi.ffi_lowering(f"lockstep.{target}")
    return rule(ctx.replace(avals_out=results), operand, **options)


def _eigh(ctx, operand, *, lower, sort_eigenvalues, subset_by_index, algorithm):
    del sort_eigenvalues, algorithm  # They are ascending always.
    vectors, values = ctx.avals_out
    n = ctx.avals_in[0].shape[-1]
    if subset_by_index not in (None, (0, n)):
        raise NotImplementedError("lockstep: some of the eigenvalues of a matrix")
    w, v = _call(ctx, "eigh", operand, [values, vectors], lower=lower)
    return [v, w]


def _eig(ctx, operand, *, compute_left_eigenvectors, compute_right_eigenvectors, **_):
    sides = {"left": compute_left_eigenvectors, "right": compute_right_eigenvectors}
    return _call(ctx, "eig", operand, ctx.avals_out, **sides)


def _schur(ctx, operand, *, compute_schur_vectors, sort_eig_vals, select_callable):
    del compute_schur_vectors, select_callable
    if sort_eig_vals:
        raise NotImplementedError("lockstep: a Schur form with sorted eigenvalues")
    (matrix,) = ctx.avals_in
    return _call(ctx, "schur", operand, [matrix, matrix])[: len(ctx.avals_out)]


def _lu(ctx, operand):
    return _call(ctx, "lu", operand, ctx.avals_out)


def _svd(ctx, operand, *, full_matrices, compute_uv, subset_by_index, algorithm=None):
    del algorithm
    (matrix,) = ctx.avals_in
    *batch, m, n = matrix.shape
    k = min(m, n)
    if subset_by_index not in (None, (0, k)):
        raise NotImplementedError("lockstep: some of the singular values of a matrix")
    if k == 0:
        # The vectors of no value can be any: JAX says which.
        empty = mlir.lower_fun(linalg._empty_svd, multiple_results=True)
        return empty(ctx, operand, full_matrices=full_matrices, compute_uv=compute_uv)
    results = list(ctx.avals_out)
    if not compute_uv:
        left = ShapedArray((*batch, m, k), matrix.dtype)
        right = ShapedArray((*batch, k, n), matrix.dtype)
        results += [left, right]
    return _call(ctx, "svd", operand, results)[: len(ctx.avals_out)]


def _tridiagonal(ctx, operand, *, lower):
    return _call(ctx, "tridiagonal", operand, ctx.avals_out, lower=lower)


def register(platform: str) -> None:
    """Lowers JAX's factorizations on `platform`."""
    rules = {
        linalg.eigh_p: _eigh,
        linalg.eig_p: _eig,
        linalg.schur_p: _schur,
        linalg.lu_p: _lu,
        linalg.svd_p: _svd,
        linalg.tridiagonal_p: _tridiagonal,
    }
    for primitive, rule in rules.items():
        mlir.register_lowering(primitive, rule, platform=platform)
