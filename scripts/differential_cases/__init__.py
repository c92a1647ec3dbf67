"""The programs of scripts/differential, by family: generators of cases, the same for a seed."""

from .composed import control, random, special
from .elementwise import binary, choose, compare, convert, reduce_precision, unary
from .linear import convolution, dot, fft, linear_algebra
from .movement import gather_scatter, movement
from .reduction import batch_norm, reduce, reduce_window, select_and_scatter, sort

FAMILIES = [
    unary, binary, compare, convert, reduce_precision, choose, reduce, reduce_window, sort, movement,
    gather_scatter, dot, convolution, fft, select_and_scatter, batch_norm, random, special, control, linear_algebra,
]  # fmt: skip
