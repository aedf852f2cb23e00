"""
Error ellipses of outputs that err together
===========================================

A tracker follows a point along a curve. Its two coordinates share a source of error, so that what
it sees lies in a narrow ellipse around the truth. Noise of each coordinate by itself can only make
an upright ellipse of it; ``noise="correlated"`` finds its tilt, and the evidence says that it is
there.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

from skbayesnn import EvidenceMLPRegressor

rng = np.random.default_rng(1)
SD, CORRELATION = np.array([0.25, 0.15]), 0.9
covariance = np.outer(SD, SD) * [[1.0, CORRELATION], [CORRELATION, 1.0]]


def path(t):
    """Where the point is at a time."""
    return np.column_stack([2.0 * np.cos(t[:, 0]), np.sin(2.0 * t[:, 0])])


t = rng.uniform(-2.5, 2.5, (90, 1))
seen = path(t) + rng.multivariate_normal(np.zeros(2), covariance, 90)

# %%
# Both fits are compared by the Gaussian approximation of their evidence.

models = {}
for noise in ("constant", "correlated"):
    model = EvidenceMLPRegressor(
        (8,), noise=noise, n_restarts=3, measure_evidence=False, random_state=0
    )
    models[noise] = model.fit(t, seen)
    print(f"{noise:10s} log evidence {model.log_evidence_:7.1f}, noise sd {model.noise_std_}")
print(f"correlation of the noise: {models['correlated'].noise_correlation_[0, 1]:.2f}")
assert models["correlated"].log_evidence_ > models["constant"].log_evidence_ + 20
assert abs(models["correlated"].noise_correlation_[0, 1] - CORRELATION) < 0.08

# %%
# ``predict_output_cov`` is the covariance of a new measurement, weights and noise together. Drawn
# are ellipses that hold 95 % of the measurements: 5.99 is the quantile of a chi-squared
# distribution with two degrees of freedom.

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "0.5"  # Okabe and Ito: safe for colour-blind readers
plt.rcParams.update({"font.size": 8, "axes.linewidth": 0.6, "legend.fontsize": 7})
line, places = np.linspace(-2.5, 2.5, 200)[:, None], np.linspace(-2.2, 2.2, 6)[:, None]


def draw_ellipses(ax, centres, covariances, **style):
    """One for every place."""
    for centre, matrix in zip(centres, covariances, strict=True):
        values, vectors = np.linalg.eigh(matrix)
        angle = np.degrees(np.arctan2(*vectors[::-1, 1]))
        size = 2.0 * np.sqrt(5.99 * values)
        ax.add_patch(Ellipse(centre, size[1], size[0], angle=angle, **style))


fig, axes = plt.subplots(2, 1, figsize=(3.54, 5.0), sharex=True, sharey=True, layout="constrained")
for ax, (noise, model), colour in zip(axes, models.items(), (ORANGE, BLUE), strict=True):
    ax.plot(*seen.T, ".", color=GREY, ms=2.5, label="measurements")
    ax.plot(*path(line).T, color="black", lw=0.8, ls="--", label="true path")
    ax.plot(*model.predict(line).T, color=colour, lw=1.2, label="mean")
    style = {"facecolor": colour, "alpha": 0.3, "lw": 0}
    draw_ellipses(ax, model.predict(places), model.predict_output_cov(places), **style)
    truth = {"fill": False, "edgecolor": "black", "lw": 0.6}
    draw_ellipses(ax, path(places), np.tile(covariance, (6, 1, 1)), **truth)
    ax.set(title=f'noise="{noise}"', ylabel="second coordinate", aspect="equal")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].legend(frameon=False, loc="upper center", ncols=3, handlelength=1.2)
axes[1].set(xlabel="first coordinate", ylim=(-1.8, 2.0))
plt.show()

# %%
# What should be seen: the blue ellipses have the tilt and the shape of the black ones, which are
# those of the true noise; the orange ones are upright. How well new measurements are predicted,
# both coordinates together, says the same:

later = rng.uniform(-2.5, 2.5, (500, 1))
new = path(later) + rng.multivariate_normal(np.zeros(2), covariance, 500)
density = {}
for noise, model in models.items():
    density[noise] = model.log_predictive_density(later, new).mean()
    print(f"{noise:10s} log density per new measurement {density[noise]:.2f} nats")
assert density["correlated"] > density["constant"] + 0.5
