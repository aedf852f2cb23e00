"""Modes of the posterior in the samplers' coordinates, and what is around them."""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from skbayesnn.samplers import log_sum_exp

TAILS = 8.0  # degrees of freedom of the Student-t distributions
WIDER = 1.2  # than the curvature says
LEAST_SHARE = 0.05  # of a mode, before all are made to sum to 1
MOST_MODES = 4
SINGULAR = 1e-13  # ratio of eigenvalues of the curvature
SAME = 1.0  # standard deviations apart below which two modes are one
COPY = 0.3  # nats by which energies and log determinants of copies may differ, together
STEPS, LONGEST_STEP, TOLERANCE = 40, 2.0, 1e-3


class Modes(NamedTuple):
    """A mixture of multivariate Student-t distributions.

    Attributes
    ----------
    position : ndarray of shape (m, d)
    root : ndarray of shape (m, d, d)
        Upper triangular; ``root root^T`` is the scale matrix.
    whitener : ndarray of shape (m, d, d)
        Inverses of the roots.
    shares : ndarray of shape (m,)
    """

    position: np.ndarray
    root: np.ndarray
    whitener: np.ndarray
    shares: np.ndarray

    @classmethod
    def near(cls, joint, minima, others=()):
        """Minima of the evidence, and the modes of the posterior that are reached from them.

        Both, as a mode in these coordinates, precisions among them, may be a narrow place far from
        the minimum. Of symmetric copies one is kept.

        Parameters
        ----------
        joint : JointPosterior
        minima : ndarray of shape (m, d)
        others : sequence of ndarray of shape (d,)
            Further positions from which modes are looked for.

        Returns
        -------
        Modes or None
            ``None`` if none is usable.
        """
        if not minima.size:  # nothing is free
            return None
        with np.errstate(all="ignore"):
            position = _descended(joint, np.concatenate([minima, *(q[None] for q in others)]))
            position = np.concatenate([minima, position])
            value, curvature = joint.energy(position)[0], joint.curvature(position)
            good = np.isfinite(value) & np.all(np.isfinite(curvature), axis=(1, 2))
            values = np.linalg.eigvalsh(curvature[good])
            good[good] &= values[:, 0] > SINGULAR * values[:, -1]
        if not good.any():
            return None
        position, value, curvature = position[good], value[good], curvature[good]
        log_det = np.linalg.slogdet(curvature)[1]
        logs, kept = -value - 0.5 * log_det, []
        for i in np.argsort(-logs):
            away = position[i] - position[kept]
            near = np.einsum("mi,mij,mj->m", away, curvature[kept], away) <= SAME**2
            alike = np.abs(value[i] - value[kept]) + np.abs(log_det[i] - log_det[kept]) <= COPY
            if not np.any(near | alike):
                kept.append(i)
        kept = kept[:MOST_MODES]
        shares = np.maximum(np.exp(logs[kept] - logs[kept[0]]), LEAST_SHARE)
        whitener = np.linalg.cholesky(curvature[kept]).swapaxes(-1, -2) / WIDER
        return cls(position[kept], np.linalg.inv(whitener), whitener, shares / shares.sum())

    def draw(self, rng, size, only=None):
        """Positions ``(size, d)``; perhaps around one mode only."""
        d = self.position.shape[1]
        chosen = rng.choice(len(self.shares), size, p=self.shares)
        chosen = chosen if only is None else np.full(size, only)
        normal = rng.standard_normal((size, d))
        normal /= np.sqrt(rng.chisquare(TAILS, size) / TAILS)[:, None]
        return self.position[chosen] + (self.root[chosen] @ normal[..., None])[..., 0]

    def log_density(self, q, terms=None):
        """``(n,)``, and its gradient ``(n, d)``."""
        n, d = q.shape
        whitener = self.whitener.reshape(-1, d)  # of all modes, one below the other
        centre = np.einsum("mij,mj->mi", self.whitener, self.position)
        white = (q @ whitener.T).reshape(n, *centre.shape) - centre
        squares = np.einsum("nmi,nmi->nm", white, white)
        logs = self._log_norms - 0.5 * (TAILS + d) * np.log1p(squares / TAILS)
        total = log_sum_exp(logs, axis=1)
        slopes = np.exp(logs - total[:, None]) * (-(TAILS + d) / (TAILS + squares))
        return total, (white * slopes[..., None]).reshape(n, -1) @ whitener

    @property
    def _log_norms(self):
        """Logarithms of the shares times the densities at the modes."""
        d = self.position.shape[1]
        diagonals = np.diagonal(self.whitener, axis1=1, axis2=2)
        norms = np.log(self.shares) + np.sum(np.log(diagonals), axis=1)
        norms += gammaln(0.5 * (TAILS + d)) - gammaln(0.5 * TAILS)
        return norms - 0.5 * d * np.log(TAILS * np.pi)

    def compiled(self, of_joint, of_data, of_first):
        """What `Tempering` needs."""
        shape = TAILS, self.position, self.whitener, self._log_norms
        return of_joint, of_data, of_first, *shape


def _descended(joint, q):
    """Positions at the ends of damped Newton steps from ``q``, all side by side."""
    value, gradient = joint.energy(q)
    damping, diagonal = np.full(len(q), 1e-3), np.arange(q.shape[1])
    for _ in range(STEPS):
        curvature = joint.curvature(q)
        curvature[:, diagonal, diagonal] += damping[:, None]
        step = -np.linalg.solve(curvature, gradient[..., None])[..., 0]
        step *= np.minimum(1.0, LONGEST_STEP / np.max(np.abs(step), axis=1))[:, None]
        there = q + step
        its_value, its_gradient = joint.energy(there)
        better = its_value <= value
        gain = np.where(better, value - its_value, np.inf)
        q = np.where(better[:, None], there, q)
        value = np.where(better, its_value, value)
        gradient = np.where(better[:, None], its_gradient, gradient)
        damping *= np.where(better, 0.2, 10.0)
        if np.all(gain < TOLERANCE):
            break
    return q
