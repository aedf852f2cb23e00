"""
Rates of change, sensitivity and novelty
========================================

The yield of a reaction is measured at forty temperatures and times. A network
is fitted, and answers three questions. How fast does the yield change
with temperature, and how sure is that? Which input matters more? Which settings
are unlike those that were measured? The data are generated, so the true rate is
known.
"""

import matplotlib.pyplot as plt
import numpy as np

from skbayesnn import EvidenceMLPRegressor
from skbayesnn.displays import SensitivityDisplay

NOISE = 1.0  # per cent


def true_yield(temperature, hours):
    """Yield in per cent; the reaction starts at about 60 degrees."""
    started = 1 / (1 + np.exp(-(temperature - 60) / 6))
    return 80 * started * (1 - np.exp(-hours / 2))


rng = np.random.default_rng(0)
X = np.column_stack([rng.uniform(30, 90, 40), rng.uniform(1, 6, 40)])
y = true_yield(*X.T) + NOISE * rng.standard_normal(40)
model = EvidenceMLPRegressor((6,), noise="constant", random_state=0).fit(X, y)

# %%
# Derivative and novelty
# ----------------------
# ``predict_gradient`` gives per cent per degree, in the units of the data.
# Temperatures below 30 and above 90 degrees were not measured.

BLUE, ORANGE = "#0072B2", "#D55E00"
plt.rcParams.update(
    {"font.size": 8, "axes.linewidth": 0.6, "legend.fontsize": 7}
)
temperature = np.linspace(0, 120, 241)
rows = np.column_stack([temperature, np.full(241, 4.0)])
slope, std = (some[:, 0] for some in model.predict_gradient(rows, True))
h = 1e-3
change = true_yield(temperature + h, 4.0) - true_yield(temperature - h, 4.0)
novelty, distance = model.novelty(rows, return_distance=True)

fig, (top, bottom) = plt.subplots(
    2,
    1,
    figsize=(3.54, 3.4),
    sharex=True,
    height_ratios=[2, 1],
    layout="constrained",
)
top.fill_between(
    temperature,
    slope - 2 * std,
    slope + 2 * std,
    color=BLUE,
    alpha=0.25,
    lw=0,
    label="± 2 sd",
)
top.plot(temperature, slope, color=BLUE, lw=1.2, label="network")
top.plot(
    temperature,
    change / (2 * h),
    color="black",
    lw=0.8,
    ls=(0, (4, 2)),
    label="true rate",
)
top.set(ylabel="per cent per degree")
top.legend(frameon=False)
bottom.semilogy(temperature, novelty, color=BLUE, lw=1.2)
bottom.axhline(model.novelty(X).max(), color="0.4", lw=0.8, ls=(0, (4, 2)))
bottom.set(xlabel="temperature (degrees) at 4 hours", ylabel="novelty")
right = bottom.twinx()
right.plot(temperature, distance, color=ORANGE, lw=1.0)
right.set_ylabel("distance (sd)", color=ORANGE)
for ax in (top, bottom):
    ax.axvspan(30, 90, color="0.95", zorder=-5)
for ax in (top, bottom, right):
    ax.spines["top"].set_visible(False)
plt.show()

# %%
# The error bars of the rate stay wide outside the shaded range, where nothing
# was measured, but not wide enough: around 100 degrees the true rate lies
# outside of them. Novelty shows that these rows are unlike the training rows.
# It rises above its largest value there (dashed), and so does the distance.

# %%
# Sensitivity
# -----------
# The bars are shares of the variance of the yield over the measured range.

SensitivityDisplay.from_estimator(model, X).ax_.set_yticklabels(
    ["temperature", "time"]
)
plt.show()

# %%
# Temperature causes most of the variance. The total index of each input is
# larger than its first-order index, because time matters only where the
# reaction has started.
