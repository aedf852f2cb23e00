"""Anderson acceleration of fixed-point iterations whose maps are expensive to evaluate."""

import numpy as np


class FixedPoint:
    """Anderson acceleration of a fixed-point iteration (Anderson 1965).

    D. G. Anderson, "Iterative procedures for nonlinear integral equations", Journal of the ACM 12.
    The next point is exact if the residual is linear in the point and the memory is long enough.

    Parameters
    ----------
    x : ndarray of shape (n,)
        First point.
    memory : int
        Number of earlier points in the extrapolation.
    cut : float
        Relative cut-off of the singular values of the residual differences.

    Attributes
    ----------
    x : ndarray of shape (n,)
        Current point.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference.noise._fixed_point import FixedPoint
    >>> point = FixedPoint(np.array([1.0]), memory=1, cut=1e-10)
    >>> for _ in range(3):
    ...     x = point.move(0.5 - 0.1 * point.x)
    >>> x.round(9)
    array([5.])
    """

    def __init__(self, x, memory, cut):
        self.x, self._memory, self._cut = x, memory, cut
        self._points, self._residuals = [], []

    def move(self, residual):
        """Move to the next point, given the residual (map minus identity) at the current one."""
        kept = 1 + min(len(self.x), self._memory)
        self._points = [*self._points, self.x][-kept:]
        self._residuals = [*self._residuals, residual][-kept:]
        step = residual
        if len(self._points) > 1:
            dx = np.diff(self._points, axis=0).T
            dr = np.diff(self._residuals, axis=0).T
            mix = np.linalg.lstsq(dr, residual, rcond=self._cut)[0]
            step = residual - dr @ mix - dx @ mix
        self.x = self.x + step
        return self.x
