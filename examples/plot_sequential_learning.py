"""
Learning a line, one point at a time
====================================

The posterior of the points seen so far is the prior of the next one (Bishop
2006, section 3.3.1). Here ``partial_fit`` draws his figure 3.7: a line
``y = a x + b`` is learnt from 20 points, each of which is a batch.

Before any data the distribution of intercept and slope is a circle (the prior).
After one point it is a ridge: all lines through that point. After 20 points it
is a small spot around the true values (cross), and the lines drawn from the
posterior nearly coincide. The last section checks that learning in batches
loses nothing here.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone

from skbayesnn import EvidenceMLPRegressor, Prior

INTERCEPT, SLOPE, NOISE, ALPHA = -0.3, 0.5, 0.2, 2.0  # as in the book
rng = np.random.default_rng(1)
X = rng.uniform(-1, 1, (20, 1))
y = INTERCEPT + SLOPE * X[:, 0] + NOISE * rng.standard_normal(20)
line = np.array([[-1.0], [1.0]])

# %%
# The model
# ---------
# There is no hidden layer, the precisions of weights and noise are given, and
# nothing is scaled. The posterior is then a Gaussian in closed form.

model = EvidenceMLPRegressor(
    (),
    prior=Prior(precision=ALPHA),
    noise=NOISE,
    standardize=False,
)


def plot_weights(ax, mean, covariance):
    """Ellipses that hold 39, 86 and 99 % of a Gaussian over the weights."""
    angle = np.linspace(0, 2 * np.pi, 100)
    circle = np.linalg.cholesky(covariance) @ np.stack(
        [np.cos(angle), np.sin(angle)]
    )
    for radius in (3, 2, 1):
        ax.fill(
            *(mean[:, None] + radius * circle), color="C0", alpha=0.25, lw=0
        )
    ax.plot(INTERCEPT, SLOPE, "k+", ms=8)
    ax.set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), box_aspect=1)


def weights_of(functions):
    """Intercept and slope of lines that are given at -1 and 1."""
    return np.stack(
        [functions.sum(axis=0) / 2, np.diff(functions, axis=0)[0] / 2]
    )


# %%
# One point after the other
# -------------------------
# ``sample_y`` draws functions. Two points of each give its intercept and slope.

plt.rcParams.update({"font.size": 9, "axes.linewidth": 0.6})
fig, axes = plt.subplots(
    2, 4, figsize=(6.5, 4.1), sharey=True, layout="constrained"
)
plot_weights(axes[0, 0], np.zeros(2), np.eye(2) / ALPHA)
prior = np.random.default_rng(0).standard_normal((2, 6)) / np.sqrt(ALPHA)
axes[1, 0].plot(line, prior[0] + prior[1] * line, color="C1", lw=1)
shown = iter(axes.T[1:])
for n in range(20):
    model.partial_fit(X[[n]], y[[n]])
    if n + 1 in (1, 2, 20):
        above, below = next(shown)
        weights = weights_of(model.sample_y(line, 4000))
        plot_weights(above, weights.mean(axis=1), np.cov(weights))
        below.plot(line, model.sample_y(line, 6), color="C1", lw=1)
        below.plot(X[: n + 1], y[: n + 1], "o", mfc="none", color="C0", ms=4)
for n, (above, below) in zip((0, 1, 2, 20), axes.T, strict=True):
    above.set(title=f"{n} point{'s' * (n != 1)}", xlabel="intercept")
    below.set(xlabel="$x$", xlim=(-1, 1), box_aspect=1)
axes[0, 0].set_ylabel("slope")
axes[1, 0].set_ylabel("lines drawn, $y$")
plt.show()

# %%
# The same result as one fit
# --------------------------
# One fit of all points has the same weights, error bars and evidence. The
# evidence of the batches is a sum by the chain rule. Each term shows how well
# the points before a point predict it.

at_once = clone(model).fit(X, y)
for some in (model, at_once):
    slope, error = some.coefs_[0][0, 0], some.coefs_std_[0][0, 0]
    print(f"slope {slope:.10f} +- {error:.10f}", end=", ")
    print(f"log evidence {some.log_evidence_:.10f}")
print("first points:", np.round(model.batch_log_evidences_[:4], 2))
