"""
Mixed columns: a pipeline, and a search over it
===============================================

A table has numerical columns, categories and missing values. scikit-learn
prepares them, and an estimator of this package is the last step of the
pipeline. A search by evidence compares whole pipelines, including the
preparation, and holds out no rows. The target is the time that a batch of
concrete takes to set. The data are generated, so the true function and the
noise are known. The search finds that one numerical column needs a logarithm
and that the network needs hidden units. Its choice is also the best on new
rows, and its error bars are right.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from skbayesnn import EvidenceMLPRegressor
from skbayesnn.displays import PredictiveDisplay
from skbayesnn.metrics import interval_coverage
from skbayesnn.model_selection import EvidenceSearch

NOISE = 0.4  # hours
CEMENTS = {"rapid": -1.5, "normal": 0.0, "slag": 1.5}


def true_hours(temperature, retarder, cement="slag", water=0.5):
    """Retarder acts by its logarithm, and more on slag cement."""
    hours = 4 + 8 / (1 + np.exp((temperature - 14) / 4)) + 10 * (water - 0.5)
    return (
        hours
        + np.log10(retarder) * np.where(cement == "slag", 2.0, 0.7)
        + CEMENTS[cement]
    )


def make_batches(n, rng):
    """A table with two kinds of columns and missing values, and the setting
    times in hours.
    """
    table = pd.DataFrame(
        {
            "temperature": rng.uniform(2.0, 35.0, n),
            "retarder": 10 ** rng.uniform(-2.0, 1.0, n),
            "water": rng.normal(0.5, 0.05, n),
            "cement": rng.choice(list(CEMENTS), n),
            "plant": rng.choice(["A", "B", "C", "D"], n),
        }
    )
    hours = [
        true_hours(*row)
        for row in table[
            ["temperature", "retarder", "cement", "water"]
        ].to_numpy()
    ]
    hours = pd.Series(
        hours + NOISE * rng.standard_normal(n), name="setting time (h)"
    )
    table.loc[rng.random(n) < 0.05, "water"] = np.nan
    table.loc[rng.random(n) < 0.05, "plant"] = None
    return table, hours


rng = np.random.default_rng(0)
X, y = make_batches(250, rng)
X_test, y_test = make_batches(500, rng)
print(X.head())

# %%
# The pipeline
# ------------
# Missing numbers are replaced by the median of the column, and an additional
# column marks them. Missing categories become another category. The search will
# try the column of retarder with and without a logarithm. The network scales
# its own inputs.


def logarithm(X):
    """Logarithm of one column."""
    return np.log(X)


prepare = ColumnTransformer(
    [
        (
            "numbers",
            SimpleImputer(strategy="median", add_indicator=True),
            ["temperature", "water"],
        ),
        (
            "retarder",
            FunctionTransformer(feature_names_out="one-to-one"),
            ["retarder"],
        ),
        (
            "categories",
            OneHotEncoder(drop="first", sparse_output=False),
            ["cement", "plant"],
        ),
    ],
    verbose_feature_names_out=False,
).set_output(transform="pandas")
model = make_pipeline(
    prepare, EvidenceMLPRegressor(n_restarts=2, random_state=0)
)

# %%
# The search
# ----------
# Candidates may differ in any parameter of any step. The evidence compares them
# on the training rows: the targets are the same, whatever is done to the
# inputs.

grid = {
    "columntransformer__retarder__func": [None, logarithm],
    "evidencemlpregressor__hidden_layer_sizes": [(), (2,), (4,)],
}
search = EvidenceSearch(model, grid).fit(X, y)

results = pd.DataFrame(search.results_)
results["test_rmse"] = [
    np.sqrt(np.mean((candidate.predict(X_test) - y_test) ** 2))
    for candidate in search.estimators_
]
results["test_log_density"] = [
    candidate[-1]
    .log_predictive_density(candidate[:-1].transform(X_test), y_test)
    .mean()
    for candidate in search.estimators_
]
functions = results["param_columntransformer__retarder__func"]
results["function"] = [getattr(f, "__name__", "") for f in functions]
results["units"] = results[
    "param_evidencemlpregressor__hidden_layer_sizes"
].astype(str)
columns = [
    "function",
    "units",
    "log_evidence",
    "verdict",
    "test_rmse",
    "test_log_density",
]
print(
    results.sort_values("log_evidence", ascending=False)[columns]
    .round(2)
    .to_string(index=False)
)

# %%
# The evidence comes from 250 training rows alone. It agrees with the error on
# 500 new rows about the best candidate, and nearly about the order of all
# candidates.

BLUE, ORANGE = "#0072B2", "#D55E00"  # Okabe and Ito
plt.rcParams.update(
    {"font.size": 8, "axes.linewidth": 0.6, "legend.fontsize": 7}
)
fig, ax = plt.subplots(figsize=(3.54, 2.8), layout="constrained")
for function, colour, marker in (("", ORANGE, "s"), ("logarithm", BLUE, "o")):
    rows = results[results["function"] == function]
    label = f"{function} of retarder" if function else "retarder as it is"
    style = {"color": colour, "marker": marker, "ms": 4, "ls": "none"}
    ax.plot(rows["log_evidence"], rows["test_rmse"], label=label, **style)
    shift = {
        "textcoords": "offset points",
        "xytext": (5, 3) if function else (-5, -7),
    }
    for units, x, error in zip(
        rows["units"], rows["log_evidence"], rows["test_rmse"], strict=True
    ):
        ax.annotate(
            units, (x, error), ha="left" if function else "right", **shift
        )
ax.axhline(NOISE, color="0.45", lw=0.8, ls="--")
ax.text(
    results["log_evidence"].min(),
    NOISE + 0.01,
    "noise alone",
    color="0.45",
    fontsize=7,
)
ax.set(xlabel="log evidence (nats)", ylabel="test error, rms (h)")
ax.set(xlim=(-445, -230), ylim=(0.35, None))
ax.legend(frameon=False, title="hidden units at the points")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Predictions
# -----------
# The search predicts with its best candidate, error bars included. It takes
# tables with missing values and the original columns. A display varies one
# column; the others are held at their medians or most frequent categories, or
# at given values.

mean, std = search.predict(X_test, return_std=True)
coverage = interval_coverage(y_test, search.predict_interval(X_test, 0.95))
best = search.best_estimator_[-1]
print(
    f"test error {np.sqrt(np.mean((mean - y_test) ** 2)):.2f} h, noise "
    f"{best.noise_std_:.2f} h"
)
print(f"in 95 % intervals: {coverage:.0%}")

fig, axes = plt.subplots(1, 2, figsize=(6.5, 2.9), layout="constrained")
held = {"cement": "slag", "plant": "A", "water": 0.5}
options = {"n_functions": 0, "margin": 0.0, "grid_resolution": 1000}
TRUE = {"color": "black", "lw": 1.0, "ls": "--", "label": "true function"}
PredictiveDisplay.from_estimator(
    search,
    X,
    feature="temperature",
    fixed=held | {"retarder": 0.1},
    ax=axes[0],
    **options,
)
PredictiveDisplay.from_estimator(
    search,
    X,
    feature="retarder",
    fixed=held | {"temperature": 15.0},
    ax=axes[1],
    **options,
)
warm, much = (ax.lines[0].get_xdata() for ax in axes)
axes[0].plot(warm, true_hours(warm, 0.1), **TRUE)
axes[1].plot(much, true_hours(15.0, much), **TRUE)
axes[0].set(
    xlabel="temperature (°C), with 0.1 kg/m³ of retarder",
    ylabel="setting time (h)",
)
axes[1].set(
    xlabel="retarder (kg/m³), at 15 °C", ylabel="setting time (h)", xscale="log"
)
axes[1].set_xticks([0.01, 0.1, 1.0, 10.0], ["0.01", "0.1", "1", "10"])
for ax in axes:
    ax.get_legend().remove()
    ax.spines[["top", "right"]].set_visible(False)
fig.legend(
    *axes[0].get_legend_handles_labels(),
    loc="outside upper center",
    ncols=4,
    frameon=False,
)
plt.show()

# %%
# The true function (dashed) lies in or near the inner band, which shows the
# uncertainty of the weights. The outer band is for new batches.
