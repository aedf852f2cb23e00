"""
Error ellipses of outputs that err together
===========================================

A tracker follows a point along a curve. Its two coordinates share a source of
error, so the measurements lie in a narrow, tilted ellipse around the truth. A
model with independent noise of both coordinates has upright ellipses.
``noise="correlated"`` finds the tilt, and has a higher evidence.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

from skbayesnn import EvidenceMLPRegressor

rng = np.random.default_rng(1)
SD, CORRELATION = np.array([0.25, 0.15]), 0.9
covariance = np.outer(SD, SD) * [[1.0, CORRELATION], [CORRELATION, 1.0]]


def path(t):
    """Position of the point at a time."""
    return np.column_stack([2.0 * np.cos(t[:, 0]), np.sin(2.0 * t[:, 0])])


def measure(t):
    """Positions that the tracker reports."""
    return path(t) + rng.multivariate_normal(np.zeros(2), covariance, len(t))


t = rng.uniform(-2.5, 2.5, (90, 1))
seen = measure(t)

# %%
# Both fits are compared by the Gaussian approximation of their evidence.

models = {}
for noise in ("constant", "correlated"):
    options = {"n_restarts": 3, "method": "laplace", "random_state": 0}
    model = EvidenceMLPRegressor((8,), noise=noise, **options).fit(t, seen)
    models[noise] = model
    print(f"{noise:10s} log evidence {model.log_evidence_:7.1f} nats")
found = models["correlated"].noise_correlation_[0, 1]
print(f"correlation of the noise: {found:.2f}")

# %%
# ``predict_output_cov`` is the covariance of a new measurement, from weights
# and noise together. The ellipses hold 95 % of the measurements: 5.99 is the
# quantile of a chi-squared distribution with two degrees of freedom.

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "0.5"  # Okabe and Ito
plt.rcParams.update(
    {"font.size": 8, "axes.linewidth": 0.6, "legend.fontsize": 7}
)
line = np.linspace(-2.5, 2.5, 200)[:, None]
places = np.linspace(-2.2, 2.2, 6)[:, None]


def draw_ellipses(ax, centres, covariances, **style):
    """Draw an ellipse at every place."""
    for centre, matrix in zip(centres, covariances, strict=True):
        values, vectors = np.linalg.eigh(matrix)
        angle = np.degrees(np.arctan2(*vectors[::-1, 1]))
        size = 2.0 * np.sqrt(5.99 * values)
        ellipse = Ellipse(centre, size[1], size[0], angle=angle, **style)
        ax.add_patch(ellipse)


fig, axes = plt.subplots(
    2, 1, figsize=(3.54, 5.2), sharex=True, sharey=True, layout="constrained"
)
for ax, noise, colour in zip(axes, models, (ORANGE, BLUE), strict=True):
    model = models[noise]
    ax.plot(*seen.T, ".", color=GREY, ms=2.5, label="measurements")
    ax.plot(*path(line).T, "k--", lw=0.8, label="true path")
    ax.plot(*model.predict(line).T, color=colour, lw=1.2, label="mean")
    style = {"facecolor": colour, "alpha": 0.3, "lw": 0}
    found = model.predict_output_cov(places)
    draw_ellipses(ax, model.predict(places), found, **style)
    style = {"fill": False, "edgecolor": "black", "lw": 0.6}
    draw_ellipses(ax, path(places), [covariance] * 6, **style)
    ax.set(title=f'noise="{noise}"', ylabel="second coordinate")
    ax.set(aspect="equal", ylim=(-1.8, 2.0))
    ax.spines[["top", "right"]].set_visible(False)
fig.legend(
    *axes[1].get_legend_handles_labels(),
    loc="outside upper center",
    ncols=3,
    frameon=False,
    handlelength=1.2,
)
axes[1].set(xlabel="first coordinate")
plt.show()

# %%
# The blue ellipses have nearly the tilt and the shape of the black ones, which
# show the true noise. The orange ones are upright. The joint log density of
# both coordinates of new measurements is higher with correlated noise:

later = rng.uniform(-2.5, 2.5, (500, 1))
new, density = measure(later), {}
for noise, model in models.items():
    density[noise] = model.log_predictive_density(later, new).mean()
    print(f"{noise:10s} log density {density[noise]:.2f} nats per measurement")
