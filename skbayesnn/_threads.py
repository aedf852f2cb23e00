"""Limits of the threads of the linear algebra library, which slow small matrices down."""

from contextlib import contextmanager, nullcontext
from functools import lru_cache
from threading import Lock

from threadpoolctl import ThreadpoolController

SMALL = 500  # weights up to which one thread is faster, and results are bitwise equal


@lru_cache(maxsize=1)
def _controller():
    return ThreadpoolController()


def blas_threads(n_weights):
    """Return a context manager: one thread for up to `SMALL` weights, else no change."""
    return nullcontext() if n_weights > SMALL else one_blas_thread()


class _Limit:
    """Thread limit of the whole process, shared by fits in several threads."""

    def __init__(self):
        self._lock, self._n_inside, self._limiter = Lock(), 0, None

    def enter(self):
        """Set the limit on the first entry."""
        with self._lock:
            if self._n_inside == 0:
                self._limiter = _controller().limit(limits=1, user_api="blas")
            self._n_inside += 1

    def leave(self):
        """Lift the limit on the last exit, whichever fit has set it."""
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                self._limiter.restore_original_limits()
            with _controller().limit(limits=None):
                pass  # so that threadpoolctl lets other threads set limits again


_limit = _Limit()


@contextmanager
def one_blas_thread():
    """Return a context manager that limits the library to one thread, for equal results."""
    _limit.enter()
    try:
        yield
    finally:
        _limit.leave()
