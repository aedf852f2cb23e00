"""Display of the sensitivity of a function to its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from skbayesnn._typing import Axes, Estimator
from skbayesnn.displays._display import BLUE, ORANGE, Display, feature_names, output_index
from skbayesnn.metrics import SobolIndices, sobol_indices

N_LARGEST = 20  # inputs that are shown


@dataclass(eq=False, repr=False)
class SensitivityDisplay(Display):
    """Sobol indices of every input as bars, with posterior error bars of one standard deviation.

    Create it with `from_estimator`.

    Parameters
    ----------
    indices : SobolIndices
        Result of `sobol_indices` for one output.
    names : list of str
        Names of the inputs.

    Attributes
    ----------
    bars_ : list of matplotlib BarContainer
        Bars of the first-order and of the total indices, most important input first.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.displays import SensitivityDisplay
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = EvidenceMLPRegressor((), noise="constant").fit(X, y)
    >>> display = SensitivityDisplay.from_estimator(model, X)
    >>> display.ax_.get_yticklabels()[0].get_text()
    'x2'
    """

    indices: SobolIndices
    names: Sequence[str]

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: ArrayLike,
        *,
        output: int = 0,
        ax: Axes = None,
        **options: Any,
    ) -> Self:
        """Compute and draw the indices of a fit.

        Parameters
        ----------
        estimator : fitted regressor of this package, or Pipeline that ends in one
            Model of the function.
        X : array-like of shape (n_samples, n_features)
            Rows whose columns are the distributions of the inputs.
        output : int, default=0
            Output to show, counted from 0.
        **options
            Options of `sobol_indices`.
        """
        of_outputs = [np.atleast_2d(some) for some in sobol_indices(estimator, X, **options)]
        output = output_index(output, len(of_outputs[0]))
        indices = SobolIndices(*(some[output] for some in of_outputs))
        return cls(indices, feature_names(estimator, X)).plot(ax)

    def plot(self, ax: Axes = None) -> Self:
        """Draw the bars, of at most 20 inputs."""
        order = np.argsort(-self.indices.total, kind="stable")[:N_LARGEST]
        position, self.bars_ = np.arange(len(order)), []
        first, first_std, total, total_std = (some[order] for some in self.indices)
        kinds = [
            (-0.2, first, first_std, BLUE, "by itself"),
            (0.2, total, total_std, ORANGE, "with interactions"),
        ]
        with self._panels(ax, (1, 1), (3.5, 0.9 + 0.25 * max(3, len(order)))) as (axes,):
            error = {"elinewidth": 0.9}
            for offset, values, std, color, label in kinds:
                style = {"color": color, "height": 0.38, "label": label}
                bars = axes.barh(position + offset, values, xerr=std, error_kw=error, **style)
                self.bars_.append(bars)
            axes.set_yticks(position, [self.names[i] for i in order])
            axes.set(ylim=(len(order) - 0.4, -0.6), xlabel="share of the variance")
            self._legend(self.figure_)
        return self
