"""
Maximise a yield in few experiments
===================================

The yield of a reaction depends on temperature and concentration. Eight
experiments are spread over the region. Then the model suggests the following
ones, one at a time: where the expected improvement over the best yield so far
is largest. Yields lie between 0 and 100 %, and so do all predictions: the model
learns log odds. Not all conditions are safe.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit, logit
from scipy.stats import qmc
from sklearn.base import clone

from skbayesnn import EvidenceMLPRegressor
from skbayesnn.active_learning import suggest

LIMITS = [(300.0, 400.0), (0.1, 1.0)]  # temperature, concentration
NOISE = 0.5  # per cent of yield, known from repeated experiments


def true_yield(X):
    """Yield in per cent, with a ridge."""
    t, c = (X[:, 0] - 355) / 30, (X[:, 1] - 0.55) / 0.25
    return 85 * np.exp(-((t + c) ** 2) - 0.15 * (t - c) ** 2)


def is_safe(X):
    """Hot and concentrated mixtures boil over."""
    return X[:, 0] + 50 * X[:, 1] < 390


def log_odds(y):
    """Log odds of yields, and their standard deviations; the slope is 1/pq."""
    p = np.clip(y / 100, 0.01, 0.99)
    return logit(p), NOISE / 100 / (p * (1 - p))


# %%
# The loop
# --------
# The noise is given for every row, as it differs on the scale of log odds. The
# largest log odds and the largest yield are at the same place.

rng = np.random.default_rng(1)
low, high = np.transpose(LIMITS)
X = low + (high - low) * qmc.LatinHypercube(2, rng=1).random(16)
X = X[is_safe(X)][:8]
y = true_yield(X) + NOISE * rng.standard_normal(len(X))
first = len(X)
model = EvidenceMLPRegressor((8,), noise=0, n_restarts=2, random_state=0)
for step in range(8):
    z, std = log_odds(y)
    model = clone(model).fit(X, z, measurement_std=std)
    x = suggest(model, LIMITS, constraint=is_safe, random_state=step)
    X, y = (
        np.vstack([X, x]),
        np.append(y, true_yield(x) + NOISE * rng.standard_normal()),
    )
    print(f"{x[0, 0]:.0f} degrees, {x[0, 1]:.2f} mol/l: yield {y[-1]:.1f} %")

# %%
# What was learnt
# ---------------
# Left: the predicted yield. Right: the novelty, the share of the prior
# uncertainty that is left. It is large where there are no experiments, also in
# the unsafe corner (hatched). The suggested experiments gather near the top.
# Far from them the prediction is a mere extrapolation.

z, std = log_odds(y)
model = clone(model).fit(X, z, measurement_std=std)
t, c = (np.linspace(*limit, 41) for limit in LIMITS)
grid = np.column_stack([axis.ravel() for axis in np.meshgrid(t, c)])
plt.rcParams.update({"font.size": 9, "axes.linewidth": 0.6})
fig, axes = plt.subplots(
    1, 2, figsize=(6.5, 3.2), sharey=True, layout="constrained"
)
shown = {
    "predicted yield (%)": 100 * expit(model.predict(grid)),
    "novelty (log10)": np.log10(np.maximum(model.novelty(grid), 1e-6)),
}
unsafe = 1.0 - is_safe(grid).reshape(41, 41)
for ax, (name, values) in zip(axes, shown.items(), strict=True):
    picture = ax.contourf(t, c, values.reshape(41, 41), 12, cmap="viridis")
    ax.contourf(t, c, unsafe, [0.5, 1.5], colors="none", hatches=["///"])
    ax.plot(*X[:first].T, "ow", mec="black", ms=4, label="first experiments")
    ax.plot(*X[first:].T, "xr", ms=5, label="suggested ones")
    ax.set(xlabel="temperature (degrees)", title=name)
    fig.colorbar(picture, ax=ax)
axes[0].set_ylabel("concentration (mol/l)")
handles, labels = axes[0].get_legend_handles_labels()
fig.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False)
plt.show()

# %%
# In which direction does the yield rise at the best experiment so far? The
# slopes have error bars. A yield of p changes by pq per unit of its log odds.

best, p = X[[np.argmax(y)]], np.max(y) / 100
slope, error = model.predict_gradient(best, return_std=True)
per_unit = 100 * p * (1 - p)
for name, value, bar in zip(
    ["temperature", "concentration"], slope[0], error[0], strict=True
):
    value, bar = per_unit * value, per_unit * bar
    print(f"yield per unit of {name}: {value:.2f} +- {bar:.2f}")
