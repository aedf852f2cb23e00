"""Display of predictions of a regressor along one input, with error bars in two parts."""

from __future__ import annotations

from collections import Counter
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_regressor
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length

from skbayesnn._typing import Array, Axes, Estimator, RandomState
from skbayesnn.displays._display import BLUE, NETWORKS, Display, feature_names, output_index
from skbayesnn.estimators._pipeline import predictor
from skbayesnn.metrics._scorers import distribution, moments

BANDS = ("#CFE6F5", "#8EC3E6")  # light: total; dark: weights alone


@dataclass(eq=False, repr=False)
class PredictiveDisplay(Display):
    """Mean, error bars, drawn functions and data along one input.

    The error bars have two parts (MacKay 1992, section 2.6; Bishop 2006, equations 5.172-5.173):
    the uncertainty of the weights, and the noise. Create it with `from_estimator`.

    Parameters
    ----------
    x : ndarray of shape (n,)
        Values of the input.
    mean, total_std : ndarray of shape (n,)
        Predictions and their standard deviations in units of y.
    epistemic_std : ndarray of shape (n,), optional
        Standard deviations without noise.
    functions : ndarray of shape (n, n_functions), optional
        Functions drawn from the posterior, without noise; for counts their rates.
    x_data, y_data : ndarray of shape (n_data,), optional
        Data points.
    feature_name, target_name, data_name : str
        Names of the axes and the points.
    least : float, default=-inf
        Least possible target, at which bands end: 0 for counts.

    Attributes
    ----------
    line_ : matplotlib Line2D
        Line of the mean.
    bands_ : list of matplotlib PolyCollection
        Bands with noise, and, where known, of the weights alone.
    functions_ : list of matplotlib Line2D
    data_ : matplotlib Line2D or None

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn import EvidenceMLPRegressor
    >>> from skbayesnn.displays import PredictiveDisplay
    >>> X = np.linspace(-2, 2, 30)[:, None]
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(30)
    >>> model = EvidenceMLPRegressor((4,), n_restarts=1, random_state=0).fit(X, y)
    >>> display = PredictiveDisplay.from_estimator(model, X, y)
    >>> display.ax_.get_xlabel()
    'x0'
    """

    x: Array
    mean: Array
    total_std: Array
    epistemic_std: Array | None = None
    _: KW_ONLY
    functions: Array | None = None
    x_data: Array | None = None
    y_data: Array | None = None
    feature_name: str = "x"
    target_name: str = "y"
    data_name: str = "data"
    least: float = -np.inf

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        feature: int | str = 0,
        output: int = 0,
        fixed: dict[Any, Any] | None = None,
        exposure: ArrayLike | None = None,
        n_functions: int = 5,
        grid_resolution: int = 200,
        margin: float = 0.1,
        random_state: RandomState = 0,
        ax: Axes = None,
    ) -> Self:
        """Predict along one input and draw the result.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows that define the range of the input and the values of the others (medians; most
            frequent ones of categories).
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Targets of these rows, drawn as points.
        feature : int or str, default=0
            Input that varies.
        output : int, default=0
            Index of the output, if there are several.
        fixed : dict, optional
            Values of other inputs, by number or name.
        exposure : array-like of shape (n_samples,), optional
            Exposures of the counts ``y``. Points are then rates, counts divided by exposures, and
            the band with noise is that of a rate at the median exposure.
        n_functions : int, default=5
            Functions drawn from the posterior.
        grid_resolution : int, default=200
            Number of values of the input.
        margin : float, default=0.1
            Margin beyond the rows, as a fraction of their range.
        """
        if not is_regressor(estimator):
            raise TypeError(
                "This display needs a regressor; for classifiers there is "
                f"sklearn.inspection.DecisionBoundaryDisplay. Got {estimator!r}."
            )
        X = X if hasattr(X, "columns") else check_array(X, ensure_all_finite="allow-nan")
        names = feature_names(estimator, X)
        index = feature_index(feature, names)
        low, high = feature_range(column(X, index), names[index], margin)
        x = np.linspace(low, high, grid_resolution)
        rows = slice_of_inputs(X, index, x, fixed, names)
        model, rows = predictor(estimator, rows)
        mean, std = (some.reshape(len(x), -1) for some in moments(model, rows))
        n_outputs = mean.shape[1]
        output = output_index(output, n_outputs)
        counts = getattr(model, "_counts", False)
        if counts and model._has_exposures and exposure is None and y is not None:
            raise ValueError("The model was fitted with exposures. Pass those of y as exposure.")
        if exposure is not None:
            exposure = check_array(exposure, ensure_2d=False)
            typical = np.median(exposure)
            std = distribution(model, rows, typical).std()[:, None] / typical
        epistemic, functions, x_data, y_data = None, None, None, None
        if isinstance(model, NETWORKS):  # draws by others may include the noise
            epistemic = model.predict_std(rows, kind="epistemic").reshape(mean.shape)[:, output]
            if n_functions:
                functions = model.sample_y(rows, n_functions, random_state)
                functions = functions.reshape(*mean.shape, n_functions)[:, output]
                functions = np.exp(functions) if counts else functions  # they are log rates
        if y is not None:
            check_consistent_length(X, y, exposure)
            x_data = column(X, index).astype(float)
            y_data = _target(check_array(y, ensure_2d=False), output, n_outputs)
            y_data = y_data if exposure is None else y_data / exposure
        display = cls(
            x,
            mean[:, output],
            std[:, output],
            epistemic,
            functions=functions,
            x_data=x_data,
            y_data=y_data,
            feature_name=names[index],
            target_name=_target_name(y, output, n_outputs) if exposure is None else "rate",
            data_name="data" if len(names) == 1 else "data (other inputs vary)",
            least=0.0 if counts else -np.inf,
        )
        return display.plot(ax)

    def plot(self, ax: Axes = None) -> Self:
        """Draw mean, bands of two standard deviations, functions and data."""
        with self._panels(ax, (1, 1), (3.5, 2.8)) as (axes,):
            self.bands_ = []
            parts = [(self.total_std, BANDS[0], "predictive")]
            if self.epistemic_std is not None:
                parts = [
                    (self.total_std, BANDS[0], "weights and noise"),
                    (self.epistemic_std, BANDS[1], "weights alone"),
                ]
            for std, color, name in parts:
                style = {"color": color, "lw": 0, "label": f"{name}, ±2 sd"}
                low, high = self.mean - 2.0 * std, self.mean + 2.0 * std
                low = np.maximum(low, self.least)
                self.bands_.append(axes.fill_between(self.x, low, high, **style))
            self.functions_ = []
            if self.functions is not None:
                style = {"color": BLUE, "lw": 0.5, "alpha": 0.8}
                self.functions_ = axes.plot(self.x, self.functions, **style)
                self.functions_[0].set_label("posterior functions")
            style = {"color": BLUE, "lw": 1.6, "label": "predictive mean"}
            (self.line_,) = axes.plot(self.x, self.mean, **style)
            self.data_ = None
            if self.x_data is not None:
                style = {"mfc": "black", "mec": "white", "mew": 0.3, "ms": 3}
                (self.data_,) = axes.plot(
                    self.x_data, self.y_data, "o", label=self.data_name, **style
                )
            axes.set(
                xlim=(self.x[0], self.x[-1]), xlabel=self.feature_name, ylabel=self.target_name
            )
            self._legend(self.figure_)
        return self


def _target(y, output, n_outputs):
    """Select one column of the targets."""
    if y.size != len(y) * n_outputs:
        raise ValueError(f"y has shape {y.shape}, the model was fitted with {n_outputs} outputs.")
    return y.reshape(len(y), -1)[:, output]


def _target_name(y, output, n_outputs):
    """Name of a target, if y is a named column or a data frame."""
    if hasattr(y, "columns"):
        return str(y.columns[output])
    if getattr(y, "name", None) is not None:
        return str(y.name)
    return "y" if n_outputs == 1 else f"y{output}"


def feature_index(feature, names):
    """Position of a feature given by number or name."""
    if isinstance(feature, str) and feature in names:
        return names.index(feature)
    if isinstance(feature, int | np.integer) and -len(names) <= feature < len(names):
        return int(feature) % len(names)
    raise ValueError(
        f"There is no feature {feature!r}; X has {len(names)} features: {', '.join(names)}."
    )


def column(X, index):
    """Values of one feature."""
    return np.asarray(X[X.columns[index]] if hasattr(X, "columns") else X[:, index])


def feature_range(values, name, margin):
    """Range of a feature, widened by a fraction of it on either side."""
    try:
        values = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Feature {name} is not numeric. Give another as feature=.") from error
    low, high = np.nanmin(values), np.nanmax(values)
    if not low < high:
        raise ValueError(f"Feature {name} has the same value in all rows of X: nothing to vary.")
    return low - margin * (high - low), high + margin * (high - low)


def typical_value(values):
    """Typical value: the median of numbers, the most frequent value of anything else."""
    if np.issubdtype(values.dtype, np.number):
        return np.nanmedian(values)
    return Counter(values).most_common(1)[0][0]  # missing values and names cannot be sorted


def slice_of_inputs(X, index, values, fixed, names):
    """Make rows like those of X in which one feature varies, with the others at typical values.

    ``fixed`` holds values of other features, by number or name, in place of the typical ones.
    """
    fixed = {feature_index(key, names): value for key, value in (fixed or {}).items()}
    if index in fixed:
        raise ValueError(f"Feature {names[index]} cannot be fixed: it varies in this display.")
    columns = [
        values if i == index else np.repeat(fixed.get(i, typical_value(column(X, i))), len(values))
        for i in range(len(names))
    ]
    if hasattr(X, "columns"):
        return type(X)(dict(zip(X.columns, columns, strict=True)))
    return np.column_stack(columns)
