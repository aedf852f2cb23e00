"""
Error bars as data arrive, and far from the data
================================================

This example follows figures 3.8 and 3.9 of C. M. Bishop, *Pattern Recognition
and Machine Learning* (2006). A model with nine Gaussian basis functions and a
given prior and noise learns a sinusoid from 2, 4, 8 and 25 noisy points. The
error bars shrink around each new point. Far outside the range of the basis
functions they stay narrow, although there are no points. This model is
overconfident there. The error bars of a network grow.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

from skbayesnn import EvidenceMLPRegressor, Prior
from skbayesnn.basis import RadialBasisFeatures

NOISE = 0.2  # beta = 25
ALPHA = 2.0
rng = np.random.default_rng(1)
X = rng.uniform(0, 1, (25, 1))


def true_function(x):
    """One period."""
    return np.sin(2 * np.pi * x[:, 0])


y = true_function(X) + NOISE * rng.standard_normal(25)

# %%
# Nine basis functions
# --------------------
# The features are scaled by ``1 / width`` in
# :class:`~skbayesnn.basis.RadialBasisFeatures`. A prior precision divided by
# the square of the width makes the model that of the book, whose functions have
# height 1.

WIDTH = 0.1
basis = RadialBasisFeatures(centers=np.linspace(0, 1, 9)[:, None], width=WIDTH)


def fixed_basis(n_rows):
    """Bishop's model after some points."""
    linear = EvidenceMLPRegressor(
        (),
        prior=Prior(
            ["weight"] * 9 + ["bias"],
            precision={"weight": ALPHA / WIDTH**2, "bias": ALPHA},
        ),
        noise=NOISE,
        standardize=False,
    )
    return make_pipeline(basis, linear).fit(X[:n_rows], y[:n_rows])


NUMBERS = [2, 4, 8, 25]
models = {n: fixed_basis(n) for n in NUMBERS}
grid = np.linspace(0, 1, 201)[:, None]

# Okabe and Ito: safe for the colour-blind
BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"
plt.rcParams.update(
    {"font.size": 8, "axes.linewidth": 0.6, "legend.fontsize": 7}
)


def show(ax, grid, model, transform, n_rows):
    """Mean, error bars in two parts, true function and points."""
    rows = transform(grid)
    mean, total = model.predict(rows, return_std=True)
    part = model.predict_std(rows, kind="epistemic")
    x = grid[:, 0]
    ax.fill_between(
        x,
        mean - total,
        mean + total,
        color="#CFE6F5",
        lw=0,
        label="±1 sd, with noise",
    )
    ax.fill_between(
        x,
        mean - part,
        mean + part,
        color="#8EC3E6",
        lw=0,
        label="±1 sd, weights",
    )
    ax.plot(x, mean, color=BLUE, lw=1.3, label="mean")
    ax.plot(
        x,
        true_function(grid),
        color=ORANGE,
        lw=1.0,
        ls=(0, (4, 2)),
        label="true function",
    )
    ax.plot(
        X[:n_rows, 0],
        y[:n_rows],
        "o",
        color="black",
        ms=2.5,
        mew=0,
        label="data",
    )
    ax.spines[["top", "right"]].set_visible(False)


fig, axes = plt.subplots(
    2, 4, figsize=(7.1, 3.7), sharex=True, sharey=True, layout="constrained"
)
for (above, below), n in zip(axes.T, NUMBERS, strict=True):
    linear, transform = models[n][-1], models[n][:-1].transform
    show(above, grid, linear, transform, n)
    drawn = linear.sample_y(transform(grid), n_samples=5, random_state=0)
    below.plot(grid[:, 0], drawn, color=BLUE, lw=0.7)
    below.plot(
        grid[:, 0], true_function(grid), color=ORANGE, lw=1.0, ls=(0, (4, 2))
    )
    below.plot(X[:n, 0], y[:n], "o", color="black", ms=2.5, mew=0)
    below.spines[["top", "right"]].set_visible(False)
    above.set(title=f"{n} points", ylim=(-2.2, 2.2), xlim=(0, 1))
    below.set(xlabel="$x$")
axes[0, 0].set_ylabel("$y$, predicted")
axes[1, 0].set_ylabel("$y$, drawn")
fig.legend(
    *axes[0, 0].get_legend_handles_labels(),
    loc="outside lower center",
    ncols=5,
    frameon=False,
)
plt.show()

# %%
# The band is wide where there is no point, and every new point narrows it. It
# can never grow at any input (Bishop, exercise 3.11). Functions drawn from the
# posterior (below) agree near the points and differ elsewhere.

widths = np.array(
    [
        m[-1].predict_std(m[:-1].transform(grid), kind="epistemic")
        for m in models.values()
    ]
)
print(
    "mean sd due to the weights:", *(f"{sd:.3f}" for sd in widths.mean(axis=1))
)

# %%
# Far from the data
# -----------------
# The pictures show the same model, and a network of eight hidden units with the
# same known noise, over a wider range.

wide = np.linspace(-1, 2, 301)[:, None]
network = EvidenceMLPRegressor((8,), noise=NOISE, random_state=0).fit(X, y)
fig, (left, right) = plt.subplots(
    1, 2, figsize=(7.1, 2.6), sharey=True, layout="constrained"
)
show(left, wide, models[25][-1], models[25][:-1].transform, 25)
show(right, wide, network, np.asarray, 25)
for ax, title in [
    (left, "nine basis functions"),
    (right, "network, eight hidden units"),
]:
    ax.set(title=title, xlabel="$x$", xlim=(-1, 2), ylim=(-4, 4))
left.set_ylabel("$y$")
fig.legend(
    *left.get_legend_handles_labels(),
    loc="outside lower center",
    ncols=5,
    frameon=False,
)
plt.show()

# %%
# On the left, where all basis functions vanish, mean and band are those of the
# constant term, equal at all inputs. The network's band grows with the
# distance, as the points leave open where each hidden unit bends and how far it
# rises. Neither model is periodic. The true function leaves the band on the
# left even at two standard deviations; on the right it leaves the band that is
# drawn, but stays within two of them. Error bars assume that the model is
# right.

outside = (wide[:, 0] < -0.5) | (wide[:, 0] > 1.5)
inside = (wide[:, 0] > 0) & (wide[:, 0] < 1)
predicted = {
    "basis": (models[25][-1], models[25][:-1].transform(wide)),
    "network": (network, wide),
}
sds, covered = {}, {}
for name, (model, rows) in predicted.items():
    sds[name] = model.predict_std(rows, kind="epistemic")
    within = np.abs(model.predict(rows) - true_function(wide)) < 2 * sds[name]
    covered[name] = np.mean(within[outside])
    print(
        f"{name}: sd due to the weights inside {sds[name][inside].mean():.2f}, "
        "far outside "
        f"{sds[name][outside].mean():.2f}; true function within 2 sd there: "
        f"{covered[name]:.0%}"
    )
