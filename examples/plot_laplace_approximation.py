"""
How good is the Gaussian approximation?
=======================================

Evidence fits start with a Gaussian approximation of the posterior of the
weights. Its mean is the peak, and its width follows from the curvature of the
log density there. C. M. Bishop shows this *Laplace approximation* in one
dimension (*Pattern Recognition and Machine Learning*, 2006, figure 4.14), for
the density ``exp(-z^2 / 2) sigmoid(20 z + 4)``. This density is a posterior, so
an estimator can be fitted to the corresponding data. A second picture shows how
the error of the evidence falls with the number of data. Small fits measure
their evidence by default; here ``method="laplace"`` keeps the Gaussian
approximation.
"""

# sphinx_gallery_thumbnail_number = 2

import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit, logsumexp
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import EvidenceMLPClassifier, Prior

# Okabe and Ito: safe for the colour-blind
BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"
plt.rcParams.update(
    {"font.size": 8, "axes.linewidth": 0.6, "legend.fontsize": 7}
)
# ten points say little
warnings.simplefilter("ignore", ConvergenceWarning)

# %%
# Bishop's density
# ----------------
# The density is the posterior of a neuron's weight ``z`` with a standard normal
# prior, after a point of class 1 at input 20, when the bias is known to be 4. A
# bias can be made known by data: a million points at input 0, of which the
# fraction ``sigmoid(4)`` belongs to class 1. ``sample_weight`` counts them, so
# that two rows are enough. Such weights give a warning, which is left out here.

SURE = 1e6
X = np.array([[0.0], [0.0], [20.0]])
y = np.array([0, 1, 1])
count = np.array([SURE * expit(-4.0), SURE * expit(4.0), 1.0])


def neuron(n_rows):
    """The neuron with one weight and its bias, fitted to the first rows."""
    model = EvidenceMLPClassifier(
        (),
        prior=Prior(
            ["weight", "bias"], precision={"weight": 1.0, "bias": 1e-4}
        ),
        standardize=False,
        method="laplace",
    )
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return model.fit(X[:n_rows], y[:n_rows], sample_weight=count[:n_rows])


before, after = neuron(2), neuron(3)
mode, sd = after.coefs_[0][0, 0], after.coefs_std_[0][0, 0]
print(
    f"Gaussian: mean {mode:.4f}, sd {sd:.4f}; the bias: "
    f"{after.intercepts_[0][0]:.4f}"
)

z = np.linspace(-2.0, 4.0, 2401)
step = z[1] - z[0]
log_joint = norm.logpdf(z) - np.logaddexp(0, -(20 * z + 4))
log_constant = logsumexp(log_joint) + np.log(step)
exact, gaussian = np.exp(log_joint - log_constant), norm.pdf(z, mode, sd)

fig, (left, right) = plt.subplots(
    1, 2, figsize=(7.1, 2.6), layout="constrained"
)
left.fill_between(z, exact, color="#F5D9A8", lw=0)
left.plot(z, exact, color="black", lw=1.0, label="exact posterior")
left.plot(
    z, gaussian, color=ORANGE, lw=1.4, ls="--", label="Gaussian approximation"
)
left.set(ylabel="density", ylim=(0, 0.9))
right.plot(z, -np.log(exact), color="black", lw=1.0)
right.plot(z, -norm.logpdf(z, mode, sd), color=ORANGE, lw=1.4, ls="--")
right.set(ylabel="minus log density", ylim=(0, 40))
for ax in (left, right):
    ax.set(xlabel="weight $z$", xlim=(-2, 4))
    ax.spines[["top", "right"]].set_visible(False)
fig.legend(
    *left.get_legend_handles_labels(),
    loc="outside upper center",
    ncols=2,
    frameon=False,
)
plt.show()

# %%
# Both curves have the same peak and the same curvature there. The exact
# posterior falls off steeply on the left, where the point would be of the wrong
# class, so that the Gaussian is too wide on one side and too narrow on the
# other. Yet the evidence of the point, the difference of two log evidences, is
# nearly right.

peak = z[np.argmax(exact)]
curvature = 1 / (1 + 400 * expit(20 * peak + 4) * expit(-(20 * peak + 4)))
found = after.log_evidence_ - before.log_evidence_
print(f"exact: peak {peak:.4f}, sd from the curvature {np.sqrt(curvature):.4f}")
print(
    f"log evidence of the point: exact {log_constant:.3f}, Gaussian "
    f"{found:.3f} nats"
)

# %%
# Error against the number of data
# --------------------------------
# A neuron with one input and a bias. The exact evidence is a sum over a grid of
# both weights, eight standard deviations wide in every direction. There are
# twelve data sets of each size, with weights drawn from the prior. The next
# term of the expansion that starts with Laplace's approximation is of order ``1
# / N``.

ALPHA = 0.25
side = np.linspace(-8, 8, 91)
grid = np.stack(np.meshgrid(side, side)).reshape(2, -1)


def error_of_evidence(n_rows, seed):
    """Log evidence by the Gaussian approximation minus the exact one."""
    rng = np.random.default_rng([n_rows, seed])
    rows = np.column_stack([rng.standard_normal(n_rows), np.ones(n_rows)])
    y = rng.random(n_rows) < expit(
        rows @ rng.standard_normal(2) / np.sqrt(ALPHA)
    )
    y[:2] = False, True  # both classes must be present
    fit = EvidenceMLPClassifier(
        (),
        prior=Prior("single", precision=ALPHA),
        standardize=False,
        method="laplace",
    )
    fit.fit(rows[:, :1], y)
    w = np.append(fit.coefs_[0], fit.intercepts_[0])
    p = expit(rows @ w)
    root = np.linalg.inv(
        np.linalg.cholesky(ALPHA * np.eye(2) + (rows.T * p * (1 - p)) @ rows)
    ).T
    weights = w[:, None] + root @ grid
    log_likelihood = -np.logaddexp(
        0, np.where(y, -1, 1)[:, None] * (rows @ weights)
    ).sum(axis=0)
    log_prior = norm.logpdf(weights, scale=ALPHA**-0.5).sum(axis=0)
    cell = (side[1] - side[0]) ** 2 * np.linalg.det(root)
    return (
        fit.log_evidence_ - logsumexp(log_prior + log_likelihood) - np.log(cell)
    )


SIZES = np.array([10, 40, 160, 640])
errors = np.array(
    [[error_of_evidence(n, seed) for seed in range(12)] for n in SIZES]
)
typical = np.median(np.abs(errors), axis=1)
slope = np.polyfit(np.log(SIZES[1:]), np.log(typical[1:]), 1)[0]

fig, ax = plt.subplots(figsize=(3.54, 2.6), layout="constrained")
for n, row in zip(SIZES, np.abs(errors), strict=True):
    ax.plot(
        np.full(len(row), n), row, "o", color=BLUE, ms=2.5, alpha=0.5, mew=0
    )
ax.plot(SIZES, typical, "s-", color=ORANGE, ms=4, lw=1, label="median")
ax.plot(
    SIZES,
    typical[-1] * SIZES[-1] / SIZES,
    color="0.4",
    lw=0.8,
    ls="--",
    label="1 / N",
)
ax.set(
    xscale="log",
    yscale="log",
    xlabel="number of points N",
    ylabel="error of log evidence (nats)",
)
ax.set_xticks(SIZES, [str(n) for n in SIZES])
ax.minorticks_off()
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The error is a tenth of a nat for ten points, and falls in the end as ``1 /
# N``. This is small compared with relevant differences between models, which
# are several nats.
#
# For networks such a sum is impossible. By default the evidence of small
# networks is measured instead: networks are moved in steps from the prior to
# the posterior (``method``). For larger ones
# :meth:`~skbayesnn.HMCMLPRegressor.from_evidence` samples the same
# posterior, and the attribute ``comparison_`` of the sampler says whether the
# Gaussian approximation was adequate, as in
# :ref:`sphx_glr_auto_examples_plot_robot_arm_sampling.py`.

print(
    ", ".join(
        f"N = {n}: {e:.4f} nats" for n, e in zip(SIZES, typical, strict=True)
    )
)
print(f"slope {slope:.2f}")
