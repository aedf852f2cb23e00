"""Threads of the linear algebra library: many of them slow small matrices down by far."""

from contextlib import nullcontext
from functools import lru_cache

from threadpoolctl import ThreadpoolController

SMALL = 500  # weights up to which one thread is faster, and results are the same to the last bit


@lru_cache(maxsize=1)
def _controller():
    return ThreadpoolController()


def blas_threads(n_weights):
    """Context manager: one thread for networks of up to `SMALL` weights, else no change."""
    return nullcontext() if n_weights > SMALL else one_blas_thread()


def one_blas_thread():
    """Context manager: results to the last bit the same, whatever threads other processes use."""
    return _controller().limit(limits=1, user_api="blas")
