"""Splines in a Fourier basis."""

import numbers
from dataclasses import KW_ONLY, dataclass

import numpy as np

from skbayesnn.basis._base import ColumnFeatures, middle_and_reach
from skbayesnn.estimators.inputs._parameters import check


@dataclass(eq=False, repr=False)
class FourierSplineFeatures(ColumnFeatures):
    """Cosines and sines whose prior makes the model a smoothing spline of any order.

    Harmonic ``h`` contributes ``h^(-p/2) cos(2 pi h x / period)`` and the corresponding sine. One
    precision for all weights then means the regulariser ``sum_h h^p (w_cos^2 + w_sin^2) / 2`` of
    MacKay (1992, chapter 2): it penalises the derivative of order ``p/2`` of the function, summed
    over a period. The constant, ``h = 0``, is the intercept of the model. Several inputs have their
    functions side by side.

    Parameters
    ----------
    p : float, default=4.0
        Order of the regulariser, not negative: the larger, the smoother. 2 makes broken lines
        (a random walk), 4 a cubic smoothing spline; values need not be even or whole.
    n_harmonics : int, default=50
        Highest harmonic. Details below ``period / n_harmonics`` cannot be described.
    period : float or "auto", default="auto"
        Period of all functions, in units of the inputs. ``"auto"`` is twice the range of each
        input's training data. Only a period far beyond the data, with proportionally more
        harmonics, makes a true spline: otherwise the two ends of the data are neighbours around the
        circle.

    Attributes
    ----------
    period_ : ndarray of shape (n_features,)
        Period of each input.
    middle_ : ndarray of shape (n_features,)
        Middle of the training data, from which the phases count.

    Notes
    -----
    The function ``f`` of a model with weight precision ``alpha`` and noise precision ``beta``
    minimises ``sum (y - f(x))^2 + lam * integral of f''(x)^2`` for ``p = 4``, apart from the
    intercept's own prior, where ``lam = (alpha / beta) (2 / period) (period / (2 pi))^4`` and the
    integral goes over a period. This ``lam`` is that of `scipy.interpolate.make_smoothing_spline`.

    References
    ----------
    D. J. C. MacKay (1992), Bayesian Methods for Adaptive Models, PhD thesis, California Institute
    of Technology, chapter 2; "Bayesian interpolation", Neural Computation 4.

    Examples
    --------
    >>> from skbayesnn.basis import FourierSplineFeatures
    >>> basis = FourierSplineFeatures(p=2, n_harmonics=2, period=4.0)
    >>> basis.fit_transform([[-1.0], [0.0], [1.0]]).round(3) + 0.0
    array([[ 0. , -1. , -0.5,  0. ],
           [ 1. ,  0. ,  0.5,  0. ],
           [ 0. ,  1. , -0.5,  0. ]])
    >>> basis.get_feature_names_out()
    array(['x0_cos1', 'x0_sin1', 'x0_cos2', 'x0_sin2'], dtype=object)
    """

    p: float = 4.0
    _: KW_ONLY
    n_harmonics: int = 50
    period: float | str = "auto"

    def _check_parameters(self):
        if not (isinstance(self.p, numbers.Real) and np.isfinite(self.p) and self.p >= 0):
            raise ValueError(f"p must be a finite number that is not negative, got {self.p!r}.")
        check(self, n_harmonics=1)
        if isinstance(self.period, str) and self.period == "auto":
            return
        check(self, period=float)

    def _learn(self, X):
        self.middle_, reach = middle_and_reach(X)
        period = 4.0 * reach if isinstance(self.period, str) else float(self.period)
        self.period_ = np.broadcast_to(period, reach.shape).copy()

    def _functions(self, X):
        h = np.arange(1, self.n_harmonics + 1)
        phase = 2.0 * np.pi * h * ((X - self.middle_) / self.period_)[..., None]
        waves = np.stack([np.cos(phase), np.sin(phase)], axis=-1)
        scaled = waves * (h ** -(0.5 * self.p))[:, None]
        return scaled.reshape(*X.shape, -1)

    def _labels(self):
        return [f"{wave}{h}" for h in range(1, self.n_harmonics + 1) for wave in ("cos", "sin")]
