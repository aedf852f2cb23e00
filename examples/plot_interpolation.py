"""
Interpolation with fixed basis functions
========================================

This example repeats the study of D. J. C. MacKay, "Bayesian interpolation",
Neural Computation 4 (1992), with new data. Forty points of ``1.1 (1 - x + 2
x^2) exp(-x^2 / 2)`` with noise of standard deviation 0.1 are interpolated by
polynomials, radial basis functions, splines of every order, Hermite functions,
and a network. The curve is exactly a sum of three Hermite functions. The
evidence, which uses only the forty points, should find this out. At the end all
models are compared on a second curve, which none of them contains.
"""

# sphinx_gallery_thumbnail_number = 3

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

from skbayesnn import EvidenceMLPRegressor
from skbayesnn.basis import (
    HermiteFunctionFeatures,
    LegendreFeatures,
    RadialBasisFeatures,
)
from skbayesnn.model_selection import EvidenceSearch

NOISE = 0.1
# some bases cannot represent the curve
warnings.simplefilter("ignore", ConvergenceWarning)


def truth(x):
    """The curve, a sum of three Hermite functions."""
    return 1.1 * (1 - x + 2 * x**2) * np.exp(-(x**2) / 2)


rng = np.random.default_rng(0)
X = rng.uniform(-5, 5, (40, 1))
y = truth(X[:, 0]) + NOISE * rng.standard_normal(40)

# %%
# Every model
# -----------
# A model that is linear in its weights is an estimator without a hidden layer
# behind a transformer. ``standardize=False`` keeps the sizes of the features,
# which belong to the model. The precision of the weights and the noise level
# are inferred in each.


class Splines(TransformerMixin, BaseEstimator):
    """Waves of twice the range of X, whose prior favours smooth functions."""

    def __init__(self, p=4):
        self.p = p  # order of the regulariser

    def fit(self, X, y=None):
        """Nothing to learn but the number of inputs."""
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        """Cosines and sines of 50 harmonics."""
        h = np.arange(1, 51)
        waves = [np.cos(np.pi * h * X / 10), np.sin(np.pi * h * X / 10)]
        return np.hstack(waves) * np.tile(h ** (-0.5 * self.p), 2)


def interpolant(basis):
    """A fixed-basis model, not fitted yet."""
    return make_pipeline(
        basis, EvidenceMLPRegressor((), noise="constant", standardize=False)
    )


hermite = interpolant(HermiteFunctionFeatures(3)).fit(X, y)
network = make_pipeline(
    EvidenceMLPRegressor((8,), noise="constant", random_state=0)
).fit(X, y)

# %%
# The width ``r`` of radial functions is a continuous parameter that is not
# known beforehand. With a log-uniform prior between 0.1 and 10 the evidence of
# the family is the average over a grid, which is the ``log_evidence_`` of a
# search. It is lower than the evidence of the best width by the Occam factor of
# ``r``. The same holds for the degree of the polynomials and the order of the
# splines. Every value in the range has the same prior probability.

WIDTHS, ORDERS, DEGREES = np.geomspace(0.1, 10.0, 13), range(1, 9), range(4, 25)


def family(basis, X, y, **values):
    """Fits with every value of a parameter of the basis."""
    ((name, grid),) = values.items()
    step = type(basis).__name__.lower()
    return EvidenceSearch(
        interpolant(basis), {f"{step}__{name}": list(grid)}
    ).fit(X, y)


radial = {
    kernel: family(RadialBasisFeatures(60, kernel=kernel), X, y, width=WIDTHS)
    for kernel in ("gaussian", "cauchy")
}
polynomials = family(LegendreFeatures(), X, y, degree=DEGREES)
splines = family(Splines(), X, y, p=ORDERS)
best_degree = polynomials.best_params_["legendrefeatures__degree"]
best_order = splines.best_params_["splines__p"]
families = {
    "Cauchy radial": radial["cauchy"],
    "Gaussian radial": radial["gaussian"],
    "splines": splines,
    "Legendre": polynomials,
}
table = {
    "3 Hermite functions": (hermite[-1].log_evidence_, hermite),
    "network, 8 units": (network[-1].log_evidence_, network),
    **{
        name: (found.log_evidence_, found.best_estimator_)
        for name, found in families.items()
    },
}
between = np.linspace(-5, 5, 401)[:, None]
print("model                 log evidence  noise  well determined  error")
for name, (value, model) in table.items():
    last = model[-1]
    error = np.sqrt(
        np.mean((model.predict(between) - truth(between[:, 0])) ** 2)
    )
    print(
        f"{name:20s}  {value:7.1f} nats  {last.noise_std_:.3f}  "
        f"{last.n_effective_weights_:15.1f}  {error:.3f}"
    )
print(f"best degree {best_degree}, best order of splines p = {best_order}")

# %%
# The curves of three models.

# Okabe and Ito: safe for the colour-blind
BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"
plt.rcParams.update(
    {"font.size": 8, "axes.linewidth": 0.6, "legend.fontsize": 7}
)
shown = {"3 Hermite functions": BLUE, "splines": GREEN, "Legendre": ORANGE}
titles = {
    "splines": f"spline, p = {best_order}",
    "Legendre": f"Legendre, degree {best_degree}",
}
grid = np.linspace(-6, 6, 481)[:, None]
fig, axes = plt.subplots(
    3, 1, figsize=(3.54, 4.4), sharex=True, layout="constrained"
)
for ax, (name, colour) in zip(axes, shown.items(), strict=True):
    model = table[name][1]
    mean = model.predict(grid)
    std = model[-1].predict_std(model[:-1].transform(grid), kind="epistemic")
    ax.fill_between(
        grid[:, 0],
        mean - 2 * std,
        mean + 2 * std,
        color=colour,
        alpha=0.25,
        lw=0,
    )
    ax.plot(grid[:, 0], mean, color=colour, lw=1.2)
    ax.plot(
        grid[:, 0],
        truth(grid[:, 0]),
        color="black",
        lw=0.7,
        ls=(0, (4, 2)),
        label="true curve",
    )
    ax.plot(X[:, 0], y, "o", color="black", ms=2.0, mew=0, label="data")
    ax.text(
        0.88,
        0.93,
        titles.get(name, name),
        ha="right",
        va="top",
        transform=ax.transAxes,
    )
    ax.set(xlim=(-6, 6), ylim=(-1.6, 3.6), ylabel="$y$")
axes[-1].set_xlabel("$x$")
axes[0].fill_between(
    [], [], [], color="0.5", alpha=0.4, lw=0, label="± 2 sd of the curve"
)
handles, names = axes[0].get_legend_handles_labels()
fig.legend(handles, names, loc="outside upper center", ncols=3, frameon=False)
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The table as a picture:

ranked = sorted(table, key=lambda name: table[name][0])
fig, ax = plt.subplots(figsize=(3.54, 1.7), layout="constrained")
for row, name in enumerate(ranked):
    value = table[name][0]
    left = value > 0
    ax.plot(value, row, "o", color=shown.get(name, "0.35"), ms=4.5)
    ax.annotate(
        name,
        (value, row),
        xytext=(-6 if left else 6, 0),
        textcoords="offset points",
        ha="right" if left else "left",
        va="center",
    )
ax.set(yticks=[], ylim=(-0.6, len(ranked) - 0.4), xlabel="log evidence (nats)")
ax.grid(axis="x", lw=0.4, color="0.85")
ax.spines[["top", "right", "left"]].set_visible(False)
plt.show()

# %%
# All models find nearly the same curve where there are points, yet the Hermite
# model is more probable than any other by more than ten nats, a factor of many
# thousands, because it has no unnecessary freedom. Polynomials, which oscillate
# outside the data, are the least probable of the fixed bases.


# %%
# Width and order
# ---------------

fig, (left, right) = plt.subplots(
    1, 2, figsize=(3.54, 2.2), sharey=True, layout="constrained"
)
for kernel, colour, marker in [
    ("gaussian", BLUE, "o"),
    ("cauchy", ORANGE, "s"),
]:
    style = {
        "color": colour,
        "marker": marker,
        "ms": 3,
        "lw": 1.0,
        "label": kernel.capitalize(),
    }
    left.plot(WIDTHS, radial[kernel].results_["log_evidence"], **style)
right.plot(
    ORDERS, splines.results_["log_evidence"], "o-", color=GREEN, ms=3, lw=1
)
for ax in (left, right):
    ax.axhline(hermite[-1].log_evidence_, color="0.4", lw=0.8, ls=(0, (4, 2)))
    ax.spines[["top", "right"]].set_visible(False)
left.text(
    0.1,
    hermite[-1].log_evidence_ - 1,
    "3 Hermite functions",
    va="top",
    color="0.3",
    fontsize=7,
)
left.set(
    xscale="log",
    xlabel="width $r$",
    ylim=(-64, 14),
    ylabel="log evidence (nats)",
)
left.legend(loc="lower center", frameon=False)
right.set(xticks=ORDERS, xlabel="order $p$ of the spline")
plt.show()

# %%
# The best width lies between 0.5 and 2, near the size of the features of the
# curve. Splines of moderate order are best. The smoother ones ripple where the
# curve is flat.


# %%
# What the models assume
# ----------------------
# Functions drawn from the prior of each model, at the inferred precision of its
# weights, show what the model expected before it saw the data.

fig, axes = plt.subplots(
    2, 2, figsize=(3.54, 3.0), sharex=True, layout="constrained"
)
believed = {
    "3 Hermite functions": hermite,
    "Gaussian radial, best $r$": radial["gaussian"].best_estimator_,
    "spline, p = 2": splines.estimators_[ORDERS.index(2)],
    "spline, p = 4": splines.estimators_[ORDERS.index(4)],
}
for ax, (name, model) in zip(axes.flat, believed.items(), strict=True):
    drawn = model[-1].sample_prior(
        model[:-1].transform(between), n_samples=4, random_state=1
    )
    for curve, colour in zip(
        drawn.T, [BLUE, ORANGE, GREEN, "0.45"], strict=True
    ):
        ax.plot(between[:, 0], curve, color=colour, lw=0.9)
    ax.set_title(name, fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)
for ax in axes[1]:
    ax.set_xlabel("$x$")
for ax in axes[:, 0]:
    ax.set_ylabel("$y$")
plt.show()

# %%
# Only the Hermite model assumes that the curve is flat far from zero. The
# spline of order 2 assumes a random walk, and the spline of order 4 slow waves
# of any height.

# %%
# All rows of the table
# ---------------------
# MacKay's table has two sets of data. The second set here are sixty points of a
# broken line, which none of the models contains. Each row of splines is one
# order. The table lists the best value of the parameter, the log evidence
# there, and in brackets that of the family, which is the average over all
# values.


def broken(x):
    """A broken line."""
    return np.interp(
        x,
        [-5, -4, -3.4, -2, -1, -0.4, 0.6, 2, 2.4, 5],
        [0, 1, -1, 1, 1, 2, 0, -1, 1, 0],
    )


rng = np.random.default_rng(1)
X_2 = rng.uniform(-5, 5, (60, 1))
y_2 = broken(X_2[:, 0]) + NOISE * rng.standard_normal(60)
ROWS = {
    "Legendre": (LegendreFeatures(), {"degree": DEGREES}),
    "Legendre, orthonormal": (
        LegendreFeatures(orthonormal=True),
        {"degree": DEGREES},
    ),
    "Gaussian radial": (RadialBasisFeatures(60), {"width": WIDTHS}),
    "Cauchy radial": (
        RadialBasisFeatures(60, kernel="cauchy"),
        {"width": WIDTHS},
    ),
    **{f"splines, p = {p}": (Splines(), {"p": [p]}) for p in range(2, 7)},
    "Hermite functions": (
        HermiteFunctionFeatures(),
        {"n_functions": range(1, 31)},
    ),
}


def column(X, y):
    """Best value, its log evidence, and the average, of every model."""
    found = {}
    for name, (basis, values) in ROWS.items():
        search = family(basis, X, y, **values)
        (best,) = search.best_params_.values()
        found[name] = (
            best,
            max(search.results_["log_evidence"]),
            search.log_evidence_,
        )
    tried = {
        units: EvidenceMLPRegressor(
            (units,), noise="constant", random_state=0
        ).fit(X, y)
        for units in (4, 8)
    }
    evidences = np.array([network.log_evidence_ for network in tried.values()])
    best = list(tried)[evidences.argmax()]
    average = np.logaddexp(*evidences) - np.log(2)
    return found | {"networks": (best, evidences.max(), average)}


columns = {"broken line": column(X_2, y_2), "Hermite curve": column(X, y)}
print(f"{'':21s}" + "".join(f"{name:^32s}" for name in columns))
for name in [*ROWS, "networks"]:
    cells = [columns[curve][name] for curve in columns]
    print(
        f"{name:21s}"
        + "".join(
            f"{best:8.3g} {top:9.1f} ({average:7.1f})    "
            for best, top, average in cells
        )
    )

# %%
# The averages as a picture, in nats, relative to the best model of each column:

fig, axes = plt.subplots(
    1, 2, figsize=(6.0, 2.9), sharey=True, layout="constrained"
)
names = [*ROWS, "networks"]
for ax, (curve, cells), f in zip(
    axes, columns.items(), (broken, truth), strict=True
):
    values = np.array([cells[name][2] for name in names])
    ax.barh(
        names,
        values - values.max(),
        color=[BLUE if v == values.max() else "0.7" for v in values],
    )
    ax.set(xlabel="log evidence minus the highest", title=curve, xlim=(-90, 3))
    ax.spines[["top", "right"]].set_visible(False)
    inset = ax.inset_axes([0.02, 0.03, 0.36, 0.28])
    inset.plot(between[:, 0], f(between[:, 0]), color=ORANGE, lw=1.0)
    inset.axis("off")
axes[0].invert_yaxis()
plt.show()

# %%
# The best model depends on the data. For the broken line, narrow radial
# functions are best, then splines of low order. Hermite functions have no
# advantage there. Legendre polynomials of both scales span the same functions,
# but their priors differ: orthonormal ones allow high degrees as large a share
# as low ones.
