"""Threads of the linear algebra library: many of them slow small matrices down by far."""

from contextlib import contextmanager, nullcontext
from functools import lru_cache
from threading import Lock

from threadpoolctl import ThreadpoolController

SMALL = 500  # weights up to which one thread is faster, and results are the same to the last bit


@lru_cache(maxsize=1)
def _controller():
    return ThreadpoolController()


def blas_threads(n_weights):
    """Context manager: one thread for networks of up to `SMALL` weights, else no change."""
    return nullcontext() if n_weights > SMALL else one_blas_thread()


class _Limit:
    """A limit that holds for the whole process: fits in several threads share it."""

    def __init__(self):
        self._lock, self._n_inside, self._limiter = Lock(), 0, None

    def enter(self):
        """The first one sets the limit."""
        with self._lock:
            if self._n_inside == 0:
                self._limiter = _controller().limit(limits=1, user_api="blas")
            self._n_inside += 1

    def leave(self):
        """The last one lifts it, whichever has set it."""
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                self._limiter.restore_original_limits()
            with _controller().limit(limits=None):
                pass  # so that threadpoolctl lets other threads set limits again


_limit = _Limit()


@contextmanager
def one_blas_thread():
    """Context manager: results to the last bit the same, whatever threads other processes use."""
    _limit.enter()
    try:
        yield
    finally:
        _limit.leave()
