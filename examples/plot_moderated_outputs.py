"""
Class probabilities that allow for uncertain weights
====================================================

If the weights of a classifier are uncertain, the probabilities of its most
probable weights are too extreme. D. J. C. MacKay (*Bayesian Methods for
Adaptive Models*, PhD thesis, 1992, section 5.2) therefore averages the
probabilities over the posterior: the *moderated* outputs. ``predict_proba(X)``
returns them, and ``predict_proba(X, moderated=False)`` returns the others. The
pictures follow his figures 5.1 (the average and an approximation of it), 5.2
(contours of both outputs) and 5.3 (test errors of both), and figure 5.23 of C.
M. Bishop, *Pattern Recognition and Machine Learning* (2006).
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from scipy.stats import norm
from sklearn.inspection import DecisionBoundaryDisplay

from skbayesnn import EvidenceMLPClassifier

# Okabe and Ito
BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
plt.rcParams.update(
    {"font.size": 8, "axes.linewidth": 0.6, "legend.fontsize": 7}
)

# %%
# What moderation does
# --------------------
# The weights are Gaussian, so the activation ``a`` of the output is too, with a
# mean and a standard deviation ``s`` that depends on the input. The moderated
# output is the average of the logistic function over it, ``psi(a, s^2)``
# (equation 5.7 of the thesis). The well-known approximation ``sigmoid(kappa
# a)`` with ``kappa = (1 + pi s^2 / 8)^(-1/2)`` (5.8) has the right shape.

a = np.linspace(-10.0, 10.0, 201)
z = np.linspace(-8.0, 8.0, 2001)
density = norm.pdf(z) * (z[1] - z[0])


def psi(a, s):
    """Average of the logistic function over ``N(a, s^2)``, by summation."""
    return expit(a[:, None] + s * z) @ density


fig, ax = plt.subplots(figsize=(3.54, 2.5), layout="constrained")
worst = 0.0
for s, colour in [(0.0, "black"), (2.0, BLUE), (4.0, ORANGE), (8.0, GREEN)]:
    exact, approximate = psi(a, s), expit(a / np.sqrt(1 + np.pi * s**2 / 8))
    ax.plot(a, exact, color=colour, lw=1.2, label=f"s = {s:g}")
    ax.plot(a, approximate, color=colour, lw=0.9, ls=(0, (1, 2)))
    worst = max(worst, np.max(np.abs(exact - approximate)))
ax.plot([], [], color="0.3", lw=0.9, ls=(0, (1, 2)), label="approximation")
ax.set(xlabel="mean activation $a$", ylabel="moderated output", xlim=(-10, 10))
ax.legend(frameon=False, loc="upper left")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The error of the approximation is below 0.02, but tiny probabilities are wrong
# by a large factor. ``predict_proba`` uses exact quadrature.

tail = psi(np.array([-9.0]), 2.0)[0]
factor = expit(-9.0 / np.sqrt(1 + np.pi * 4 / 8)) / tail
print(f"largest error of the approximation: {worst:.3f}")
print(
    f"at a = -9, s = 2: exactly {tail:.5f}, approximation larger by a factor "
    f"{factor:.1f}"
)

# %%
# Six Gaussians
# -------------
# There are two classes of three round Gaussians each, and 100 points. The
# contours of the most probable outputs are parallel up to the edge of the
# picture. The contours of the moderated outputs spread where there are no
# points. The lines are the probabilities 0.1, 0.5 and 0.9 of class 1 (orange),
# from dark to light.
# ``combine="best"`` uses the Gaussian around the best minimum, as MacKay does.
# By default the average is over networks drawn from the posterior.

CENTRES = np.array(
    [
        [[-2.4, 0.6], [0.2, -1.6], [1.8, 1.9]],
        [[-0.6, 1.5], [2.2, -0.4], [-1.9, -1.6]],
    ]
)


def draw(n_rows, rng):
    """Points with their classes."""
    y = rng.integers(2, size=n_rows)
    return CENTRES[
        y, rng.integers(3, size=n_rows)
    ] + 0.75 * rng.standard_normal((n_rows, 2)), y


X, y = draw(100, np.random.default_rng(2))
settings = {"combine": "best", "method": "laplace"}
model = EvidenceMLPClassifier((10,), random_state=0, **settings).fit(X, y)
fig, (left, right) = plt.subplots(
    1, 2, figsize=(7.1, 3.4), sharey=True, layout="constrained"
)
levels = 0.1, 0.5, 0.9
display = DecisionBoundaryDisplay.from_estimator(
    model,
    X,
    eps=3.0,
    response_method="predict_proba",
    plot_method="contour",
    levels=levels,
    ax=right,
)
grid = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
sure, moderated = (
    model.predict_proba(grid, moderated=some)[:, 1].reshape(display.xx0.shape)
    for some in (False, True)
)
left.contour(display.xx0, display.xx1, sure, levels=levels)
for ax, title in [(left, "most probable"), (right, "moderated")]:
    ax.set(title=title, xlabel="$x_0$", ylabel="$x_1$" * (ax is left))
    for label, colour, marker in [(0, BLUE, "o"), (1, ORANGE, "s")]:
        ax.plot(*X[y == label].T, marker, color=colour, ms=3)
plt.show()

# %%
# The line of probability 1/2 is nearly the same in both. (It would be exactly
# the same if the Gaussian were centred at the most probable weights. The
# library uses the Gaussian that is closest to the posterior.) At the edge of
# the picture the moderated probabilities are closer to 1/2.

edge = np.ones_like(display.xx0, dtype=bool)
edge[1:-1, 1:-1] = False
sure, moderated = sure[edge], moderated[edge]
print(
    "mean distance from 1/2 on the edge: most probable "
    f"{np.mean(np.abs(sure - 0.5)):.3f}, moderated "
    f"{np.mean(np.abs(moderated - 0.5)):.3f}"
)

# %%
# Moderated outputs predict better
# --------------------------------
# For many data sets and networks, the picture compares the mean log loss (minus
# the log probability of the true class) of both sets of outputs, on 2000 new
# points.

X_test, y_test = draw(2000, np.random.default_rng(1))


def log_loss(model, moderated):
    """Log loss on the test points, in nats per point."""
    probability = model.predict_proba(X_test, moderated=moderated)
    return -np.mean(np.log(probability[np.arange(len(y_test)), y_test]))


losses = []
for seed in range(16):
    X, y = draw([100, 200][seed % 2], np.random.default_rng([7, seed]))
    network = EvidenceMLPClassifier(
        (10,), n_restarts=2, random_state=seed, **settings
    )
    network.fit(X, y)
    losses.append([log_loss(network, moderated) for moderated in (False, True)])
losses = np.array(losses)

fig, ax = plt.subplots(figsize=(3.54, 3.2), layout="constrained")
for first, colour, marker, rows in [(0, BLUE, "o", 100), (1, ORANGE, "s", 200)]:
    ax.plot(
        *losses[first::2].T,
        marker,
        color=colour,
        ms=4,
        label=f"{rows} training points",
    )
ends = [losses.min() - 0.01, losses.max() + 0.01]
ax.plot(ends, ends, color="0.5", lw=0.8, zorder=0)
ax.set(xlim=ends, ylim=ends, aspect="equal")
ax.set(
    xlabel="log loss, most probable (nats)", ylabel="log loss, moderated (nats)"
)
ax.legend(frameon=False, loc="upper left")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Nearly all networks lie on the line or below it, where the moderated outputs
# predict better. Overconfident networks gain most. The others lose nothing.

gain = losses[:, 0] - losses[:, 1]
print(
    f"moderated outputs are better in {np.sum(gain > 0)} of {len(gain)} "
    "networks"
)
print(
    f"gain: mean {gain.mean():.4f}, {gain.min():.4f} to {gain.max():.4f} nats "
    "per point"
)
