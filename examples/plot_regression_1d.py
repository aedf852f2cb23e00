"""
Regression with error bars
==========================

A network is fitted to 60 noisy points of a smooth function of one input. There
are no points in the middle of the range. The network infers its weight decay
rates and the noise level from the points. Its error bars have two parts: the
noise, which is the same everywhere, and the uncertainty of the weights, which
grows in the gap and beyond the last points.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skbayesnn import EvidenceMLPRegressor

NOISE = 0.1


def true_function(x):
    """A step near -2 and a bump near 1.8, on a falling line."""
    return np.tanh(2.0 * (x + 2.0)) + np.exp(-((x - 1.8) ** 2) / 0.3) - 0.3 * x


# %%
# The inputs lie between -3 and -0.9 and between 0.9 and 3; the noise has
# standard deviation 0.1.

rng = np.random.default_rng(0)
x = np.concatenate([rng.uniform(-3.0, -0.9, 30), rng.uniform(0.9, 3.0, 30)])
y = true_function(x) + NOISE * rng.standard_normal(len(x))

model = EvidenceMLPRegressor(hidden_layer_sizes=(8,), random_state=0).fit(
    x[:, None], y
)
print(f"noise: estimated {model.noise_std_:.3f}, true {NOISE}")
print(f"log evidence: {model.log_evidence_:.1f} nats")

# %%
# ``predict_std`` gives the two parts of the error bar. Their squares add up to
# the square of the total. ``sample_y`` draws whole functions from the
# posterior, without noise: all of them pass near the points, and they differ
# where there are none.

grid = np.linspace(-3.8, 3.8, 400)
X_grid = grid[:, None]
mean, total = model.predict(X_grid, return_std=True)
weights_only = model.predict_std(X_grid, kind="epistemic")
functions = model.sample_y(X_grid, n_samples=5, random_state=1)

# %%
# The dark band holds two standard deviations due to the weights on either side
# of the mean; the light band adds the noise. About 95 % of new points should
# lie in the light band.

# Okabe and Ito: safe for colour-blind readers
BLUE, ORANGE = "#0072B2", "#D55E00"
plt.rcParams.update(
    {"font.size": 8, "axes.linewidth": 0.6, "legend.fontsize": 7}
)
fig, ax = plt.subplots(
    figsize=(3.54, 2.9), layout="constrained"
)  # inches; 9 cm wide
ax.fill_between(
    grid,
    mean - 2 * total,
    mean + 2 * total,
    color="#CFE6F5",
    lw=0,
    label="weights and noise, ±2 sd",
)
ax.fill_between(
    grid,
    mean - 2 * weights_only,
    mean + 2 * weights_only,
    color="#8EC3E6",
    lw=0,
    label="weights alone, ±2 sd",
)
lines = ax.plot(grid, functions, color=BLUE, lw=0.5, alpha=0.8)
lines[0].set_label("posterior functions")
ax.plot(grid, mean, color=BLUE, lw=1.6, label="predictive mean")
ax.plot(
    grid,
    true_function(grid),
    color=ORANGE,
    lw=1.2,
    ls=(0, (4, 2)),
    label="true function",
)
ax.plot(
    x,
    y,
    "o",
    ms=2.6,
    mfc="black",
    mec="white",
    mew=0.3,
    label="training points",
)
ax.set(xlim=(grid[0], grid[-1]), xlabel="input x", ylabel="target y")
ax.spines[["top", "right"]].set_visible(False)
fig.legend(
    loc="outside upper center",
    ncols=2,
    frameon=False,
    handlelength=1.8,
    columnspacing=1.2,
)
if "--save" in sys.argv:
    fig.savefig(
        Path(__file__).parents[1] / "doc" / "images" / "regression_1d.png",
        dpi=220,
    )
plt.show()

# %%
# The noise level is found from the points, the error bars due to the weights
# are several times wider in the gap and outside than among the points, and the
# true function lies inside the bands.

among = (np.abs(grid) > 1.1) & (np.abs(grid) < 2.8)
gap, outside = np.abs(grid) < 0.4, np.abs(grid) > 3.5
for name, region in [
    ("among the points", among),
    ("in the gap", gap),
    ("outside", outside),
]:
    print(
        f"sd due to the weights, median {name}: "
        f"{np.median(weights_only[region]):.3f}"
    )
