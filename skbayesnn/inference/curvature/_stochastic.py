"""Stochastic estimates of traces from matrix-vector products."""

import numpy as np

MOST_PROBES, ENOUGH_SIGNS = 8, 8000  # random signs; the error of a trace is about sqrt(2 / signs)
FEW_ROWS, ROWS = 1024, 4096  # least and most rows of the sample that is used
ROWS_PER_WEIGHT = 4  # rows of the sample for every weight, within these bounds
DOUBLES = 5e6  # largest number of doubles of the outputs' curvatures on the sample
MOST_ITERATIONS = 80  # most iterations of conjugate gradients
SETTLED = 5e-4  # relative change of the trace by one iteration at convergence
ANEW = 0.3  # relative change of the Kronecker-factored count after which it is checked
TINY = np.finfo(float).tiny  # avoids division by zero for probes that have converged


def total_determined(posterior, point):
    """Effective number of parameters ``gamma`` of one network (MacKay 1992, equation 2.23).

    In ``gamma = k - Tr(diag(alpha) A^-1)`` the trace is the mean of ``b^T A^-1 b``, ``b =
    diag(alpha)^(1/2) z``, over random signs ``z`` (Hutchinson 1990). ``A^-1 b`` is found by
    conjugate gradients, preconditioned by the Kronecker-factored curvature. That curvature on its
    own assumes inputs and derivatives to be independent, and overestimates ``gamma`` by half with
    softmax outputs.

    The point has a `KroneckerPrecision`.
    """
    k, n = len(point.theta), len(posterior.X)
    rows = min(ROWS, max(FEW_ROWS, ROWS_PER_WEIGHT * k))
    rows = min(rows, int(np.ceil(DOUBLES / posterior.network.n_outputs**2)))
    if n > rows:
        sample = posterior.of_rows(np.random.default_rng(0).choice(n, rows, replace=False))
        posterior = sample.scaled(posterior.n_rows / sample.n_rows)
    root = np.sqrt(posterior.groups.diagonal(point.hyper.alpha))
    n_probes = min(MOST_PROBES, -(-ENOUGH_SIGNS // k))
    probes = root * np.random.default_rng(0).choice([-1.0, 1.0], (n_probes, k))
    found, residual = np.zeros_like(probes), probes.copy()
    near = point.precision.solve(residual.T).T
    direction, length, trace = near, np.sum(residual * near, axis=1), 0.0
    times_matrix = posterior.hessian_operator(point.theta, point.hyper, exact=False)
    for _ in range(MOST_ITERATIONS):
        product = np.stack(times_matrix(direction))
        step = (length / np.maximum(np.sum(direction * product, axis=1), TINY))[:, None]
        found, residual = found + step * direction, residual - step * product
        before, trace = trace, np.mean(np.sum(probes * found, axis=1))
        if abs(trace - before) < SETTLED * (k - trace):
            break
        near = point.precision.solve(residual.T).T
        shorter = np.sum(residual * near, axis=1)
        direction = near + (shorter / np.maximum(length, TINY))[:, None] * direction
        length = shorter
    return float(k - trace)


class CheckedCounts:
    """Effective number of parameters by Kronecker factors, corrected by `total_determined`.

    ``share`` is the ratio of the checked number to that of the Kronecker factors, at the last
    check.
    """

    def __init__(self):
        self.share, self._counted = 1.0, 0.0

    def total(self, posterior, point):
        """Effective number of parameters at a point with a `KroneckerPrecision`."""
        counted = point.precision.determined(posterior.groups, point.hyper.alpha).sum()
        if abs(counted - self._counted) > ANEW * counted:
            found = total_determined(posterior, point)
            self._counted, self.share = counted, found / max(counted, TINY)
        return self.share * counted
