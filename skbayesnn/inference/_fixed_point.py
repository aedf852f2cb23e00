"""Fixed points of maps that are expensive to evaluate."""

import numpy as np


class FixedPoint:
    """Anderson's (1965) method: extrapolates to where the moves asked for vanish.

    D. G. Anderson, "Iterative procedures for nonlinear integral equations", Journal of the ACM 12.
    The next point is exact where the moves are linear in the point and the memory reaches far
    enough.

    Parameters
    ----------
    x : ndarray of shape (n,)
        The first point.
    memory : int
        How many earlier points take part.
    cut : float
        Singular values of their differences that count as zero, relative to the largest.

    Attributes
    ----------
    x : ndarray of shape (n,)
        The present point.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import FixedPoint
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
        """The next point, given the move that the present one asks for."""
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
