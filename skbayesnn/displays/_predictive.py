"""Predictions of a regressor along one input, with error bars in two parts."""

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length

from skbayesnn.displays._display import BLUE, Display
from skbayesnn.displays._inputs import (
    column,
    extent,
    feature_index,
    feature_names,
    fitted_network,
    output_index,
    slice_of_inputs,
    table,
)

BANDS = ("#CFE6F5", "#8EC3E6")  # light: everything; dark: weights alone


class PredictiveDisplay(Display):
    """Mean, error bars, drawn functions and data along one input.

    The error bars have two parts (MacKay 1992, section 2.6; Bishop 5.172-5.173): the uncertainty
    of the weights, and the noise. Create it with `from_estimator`.

    Parameters
    ----------
    x : ndarray of shape (n,)
        Values of the input.
    mean, total_std, epistemic_std : ndarray of shape (n,)
        Predictions in units of y; standard deviations with and without noise.
    functions : ndarray of shape (n, n_functions), optional
        Drawn from the posterior, without noise.
    x_data, y_data : ndarray of shape (n_data,), optional
        Data points.
    feature_name, target_name, data_name : str
        Names of the axes and the points.

    Attributes
    ----------
    ax_ : matplotlib Axes
    axes_ : ndarray of matplotlib Axes
    figure_ : matplotlib Figure
    mean_ : matplotlib Line2D
    bands_ : list of matplotlib PolyCollection
        With noise, and of weights alone.
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

    def __init__(
        self,
        x,
        mean,
        total_std,
        epistemic_std,
        *,
        functions=None,
        x_data=None,
        y_data=None,
        feature_name="x",
        target_name="y",
        data_name="data",
    ):
        self.x = x
        self.mean = mean
        self.total_std = total_std
        self.epistemic_std = epistemic_std
        self.functions = functions
        self.x_data = x_data
        self.y_data = y_data
        self.feature_name = feature_name
        self.target_name = target_name
        self.data_name = data_name

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        y=None,
        *,
        feature=0,
        output=0,
        fixed=None,
        n_functions=5,
        margin=0.1,
        grid_resolution=200,
        random_state=0,
        ax=None,
        **plot_options,
    ):
        """Predict along one input and draw.

        Parameters
        ----------
        estimator : fitted regressor, or Pipeline that ends in one
            `EvidenceMLPRegressor` or `HMCMLPRegressor`.
        X : array-like of shape (n_samples, n_features)
            Rows that define the range of the input and the values of the others (medians; most
            frequent ones of categories).
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Targets of these rows, drawn as points.
        feature : int or str, default=0
            The input that varies.
        output : int, default=0
            Which output, if there are several.
        fixed : dict, optional
            Values of other inputs, by number or name.
        n_functions : int, default=5
            Functions drawn from the posterior.
        margin : float, default=0.1
            Margin beyond the rows, as a fraction of their range.
        grid_resolution : int, default=200
            Number of values of the input.
        random_state : int, RandomState instance or None, default=0
            Seed of the drawn functions.
        ax : matplotlib Axes, optional
            Where to draw; by default in a new figure.
        **plot_options
            Options of `plot`.

        Returns
        -------
        PredictiveDisplay
            Drawn.
        """
        network, transform = fitted_network(estimator, "regressor")
        X = table(X)
        names = feature_names(estimator, X)
        index = feature_index(feature, names)
        output = output_index(output, network.n_outputs_)
        x = np.linspace(*extent(column(X, index), names[index], margin), grid_resolution)
        grid = transform(slice_of_inputs(X, {index: x}, fixed, names))
        x_data, y_data = None, None
        if y is not None:
            check_consistent_length(X, y)
            x_data = column(X, index).astype(float)
            y_data = _target(check_array(y, ensure_2d=False), output, network.n_outputs_)

        def chosen(values):
            return values.reshape(len(x), -1)[:, output]

        functions = None
        if n_functions:
            draws = network.sample_y(grid, n_functions, random_state)
            functions = draws.reshape(len(x), -1, n_functions)[:, output]
        display = cls(
            x,
            chosen(network.predict(grid)),
            chosen(network.predict_std(grid)),
            chosen(network.predict_std(grid, kind="epistemic")),
            functions=functions,
            x_data=x_data,
            y_data=y_data,
            feature_name=names[index],
            target_name=_target_name(y, output, network.n_outputs_),
            data_name="data" if len(names) == 1 else "data (other inputs vary)",
        )
        return display.plot(ax, **plot_options)

    def plot(self, ax=None, *, n_std=2.0, mean_kw=None, function_kw=None, data_kw=None):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default in a new figure.
        n_std : float, default=2.0
            Half width of the bands in standard deviations.
        mean_kw, function_kw, data_kw : dict, optional
            Style of the mean, the drawn functions and the points (``Axes.plot``).

        Returns
        -------
        PredictiveDisplay
            Itself.
        """
        with self._panels(ax, (1, 1), (3.5, 2.8)) as (axes,):
            self.bands_ = [
                axes.fill_between(
                    self.x,
                    self.mean - n_std * std,
                    self.mean + n_std * std,
                    color=color,
                    lw=0,
                    label=f"{name}, ±{n_std:g} sd",
                )
                for std, color, name in zip(
                    (self.total_std, self.epistemic_std),
                    BANDS,
                    ("weights and noise", "weights alone"),
                    strict=True,
                )
            ]
            self.functions_ = []
            if self.functions is not None:
                style = {"color": BLUE, "lw": 0.5, "alpha": 0.8} | (function_kw or {})
                self.functions_ = axes.plot(self.x, self.functions, **style)
                self.functions_[0].set_label("posterior functions")
            style = {"color": BLUE, "lw": 1.6, "label": "predictive mean"} | (mean_kw or {})
            (self.mean_,) = axes.plot(self.x, self.mean, **style)
            self.data_ = None
            if self.x_data is not None:
                style = {
                    "mfc": "black",
                    "mec": "white",
                    "mew": 0.3,
                    "ms": 3,
                    "label": self.data_name,
                }
                style |= data_kw or {}
                (self.data_,) = axes.plot(self.x_data, self.y_data, "o", **style)
            axes.set(
                xlim=(self.x[0], self.x[-1]), xlabel=self.feature_name, ylabel=self.target_name
            )
            self._legend(2)
        return self


def _target(y, output, n_outputs):
    """One column of the targets."""
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
