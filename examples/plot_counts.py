"""
Counts and detection limits
===========================

Instruments count particles during an exposure, or report that a concentration
is below a limit. Counts have a law of their own (``noise="poisson"`` or
``"negative_binomial"``), and limits are passed to ``fit`` as ``censored``.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone

from skbayesnn import EvidenceMLPRegressor

rng = np.random.default_rng(3)
grid = np.linspace(0, 10, 201)[:, None]
OPTIONS = {"method": "laplace", "random_state": 0}

# %%
# Photons are counted for one to twenty seconds at each of 100 angles. The
# logarithm of the rate is the output of the network; the mean of a count is its
# exposure times the rate. The lamp flickers, so that counts vary more than
# those of Poisson's law.


def rate(X):
    """Two lines on a background, in photons per second."""
    x = X[:, 0]
    lines = 6 * np.exp(-2 * (x - 3) ** 2) + 3 * np.exp(-((x - 7) ** 2))
    return 0.5 + lines


X = rng.uniform(0, 10, (100, 1))
exposure = rng.uniform(1, 20, 100)
counts = rng.poisson(exposure * rate(X) * rng.gamma(10, 0.1, 100))
models = {}
for noise in ("poisson", "negative_binomial"):
    model = EvidenceMLPRegressor((8,), noise=noise, **OPTIONS)
    models[noise] = model.fit(X, counts, exposure=exposure)
    print(f"{noise:18s} log evidence {models[noise].log_evidence_:.1f}")
dispersed = models["negative_binomial"]
print(f"dispersion {dispersed.dispersion_:.2f}, truly 0.10")

# %%
# The predictive distribution of a count depends on its exposure. Here are the
# mean and central interval of counts in five seconds at the two lines and
# between them.

at = dispersed.predict_distribution([[3.0], [5.0], [7.0]], exposure=5.0)
for mean, (low, high) in zip(at.mean(), at.interval(0.9), strict=True):
    print(f"expected {mean:4.1f}, 90 % interval {low:.0f} to {high:.0f}")

# %%
# Next, concentrations fall with depth until they are below the limit of
# detection, 0.6 mg/l. A fit without these rows uses only the high ones among
# the deep measurements. A fit with their limits uses the probability of a value
# below the limit.


def concentration(X):
    """Decay with depth."""
    return 3.0 * np.exp(-0.3 * X[:, 0])


Z = np.sort(rng.uniform(0, 10, 60))[:, None]
found = concentration(Z) + 0.25 * rng.standard_normal(60)
below = found < 0.6
y = np.where(below, 0.6, found)
sides = np.where(below, -1, 0)  # -1: the value lies below y
curve = EvidenceMLPRegressor((4,), noise="constant", **OPTIONS)
left_out = curve.fit(Z[~below], y[~below])
limits = clone(curve).fit(Z, y, censored=sides)
for name, model in (("left out", left_out), ("limits", limits)):
    error = model.predict(grid) - concentration(grid)
    print(f"{name:9s} rms error of the curve {np.sqrt(np.mean(error**2)):.2f}")

# %%
# The bands are 90 % intervals: of the rate on the left, of the concentration on
# the right, both without the noise of a new measurement.

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "0.55"  # Okabe and Ito
plt.rcParams.update(
    {"font.size": 8, "axes.linewidth": 0.6, "legend.fontsize": 7}
)
fig, axes = plt.subplots(1, 2, figsize=(7.2, 2.9), layout="constrained")


def band(ax, model, colour, label):
    """Mean and central interval of the function."""
    functions = model.sample_y(grid, 400)
    functions = np.exp(functions) if model.noise_model_ in models else functions
    low, high = np.quantile(functions, [0.05, 0.95], axis=1)
    ax.fill_between(grid[:, 0], low, high, color=colour, alpha=0.2, lw=0)
    ax.plot(grid[:, 0], model.predict(grid), color=colour, lw=1.2, label=label)


band(axes[0], dispersed, BLUE, "negative binomial")
axes[0].plot(grid[:, 0], rate(grid), color=GREY, lw=1, ls="--", label="truth")
axes[0].scatter(
    X[:, 0],
    counts / exposure,
    1.5 * exposure,
    "k",
    lw=0,
    alpha=0.5,
    label="measured, longer exposure larger",
)
axes[0].set(xlabel="angle (degrees)", ylabel="photons per second", ylim=(0, 10))

band(axes[1], limits, BLUE, "with limits")
band(axes[1], left_out, ORANGE, "left out")
truth = concentration(grid)
axes[1].plot(grid[:, 0], truth, color=GREY, lw=1, ls="--", label="truth")
axes[1].scatter(Z[~below, 0], y[~below], 8, "k", lw=0, label="measured")
axes[1].scatter(Z[below, 0], y[below], 14, "k", marker="v", lw=0, label="limit")
axes[1].set(xlabel="depth (m)", ylabel="concentration (mg/l)", ylim=(-0.3, 3.4))
for ax in axes:
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# With limits the curve falls below the limit of detection, its error falls to a
# third, and its band widens. Without these rows the curve stays above the
# limit.
