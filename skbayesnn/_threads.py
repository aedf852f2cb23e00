"""Limits of the threads of the linear algebra library, which slow small matrices down."""

from contextlib import contextmanager, nullcontext
from functools import lru_cache
from threading import Lock

from threadpoolctl import ThreadpoolController

SMALL = 500  # weights up to which one thread is faster, and results are bitwise equal
_LOCK = Lock()
_INSIDE: list = []  # the limiter, and an entry for every fit under its limit
_controller = lru_cache(maxsize=1)(ThreadpoolController)  # made when it is first needed


def blas_threads(n_weights):
    """Return a context manager: one thread for up to `SMALL` weights, else no change."""
    return nullcontext() if n_weights > SMALL else one_blas_thread()


@contextmanager
def one_blas_thread():
    """Return a context manager that limits the library to one thread, for equal results.

    The limit holds for the whole process: the first of several fits in threads sets it, and the
    last one lifts it, whichever has set it.
    """
    with _LOCK:
        if not _INSIDE:
            _INSIDE.append(_controller().limit(limits=1, user_api="blas"))
        _INSIDE.append(None)
    try:
        yield
    finally:
        with _LOCK:
            _INSIDE.pop()
            if len(_INSIDE) == 1:
                _INSIDE.pop().restore_original_limits()
            with _controller().limit(limits=None):
                pass  # so that threadpoolctl lets other threads set limits again
