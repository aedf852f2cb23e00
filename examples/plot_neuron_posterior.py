"""
The posterior of a single neuron as data arrive
===============================================

A neuron with two inputs and a logistic output has two weights. Their whole
posterior distribution can be drawn, and averages over it can be computed
exactly by summing over a grid. D. J. C. MacKay does this in *Information
Theory, Inference, and Learning Algorithms* (2003), chapter 41. Figure 41.1
shows the posterior as points are added. Figure 41.11 shows its Gaussian
approximation in the space of weights, and the predictions of the approximation
in the space of inputs. The points here are drawn from a known neuron, so you
can see where the posterior should go.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from scipy.special import expit, logsumexp

from skbayesnn import EvidenceMLPClassifier, Prior

ALPHA, W_TRUE = 0.05, np.array([2.5, 1.0])
rng = np.random.default_rng(1)
X = rng.uniform(-2, 2, (80, 2))
y = (rng.random(80) < expit(X @ W_TRUE)).astype(int)
NUMBERS = [2, 5, 15, 80]

# %%
# The exact posterior on a grid
# -----------------------------
# The energy ``M(w) = G(w) + alpha E_W(w)`` at every point of a grid gives the
# posterior and, added up, the evidence.

side = np.linspace(-20.0, 20.0, 501)
weights = np.stack(np.meshgrid(side, side), axis=-1)
log_prior = -0.5 * ALPHA * np.sum(weights**2, axis=-1) + np.log(
    ALPHA / (2 * np.pi)
)


def log_joint(n):
    """Logarithm of prior times likelihood of the first points, on the grid."""
    a = weights @ X[:n].T
    return log_prior - np.sum(np.logaddexp(0, np.where(y[:n], -a, a)), axis=-1)


def exact(n):
    """Posterior probability of every grid point, and the log evidence."""
    logs = log_joint(n)
    total = logsumexp(logs)
    return np.exp(logs - total), total + 2 * np.log(side[1] - side[0])


# %%
# The Gaussian approximation
# --------------------------
# ``EvidenceMLPClassifier`` finds the most probable weights, and a Gaussian
# around them from the second derivatives of ``M`` there. The neuron has no
# bias: a separate prior with a large precision holds the bias at zero.
# Evidences are not measured, because this example shows how good that of the
# Gaussian is. The Gaussian is ``posterior_[0]``.


def fit(n):
    """The neuron after some points."""
    return EvidenceMLPClassifier(
        (),
        prior=Prior(
            ["weight", "weight", "bias"],
            precision={"weight": ALPHA, "bias": 1e6},
        ),
        standardize=False,
        method="laplace",
    ).fit(X[:n], y[:n])


models = {n: fit(n) for n in NUMBERS}
posteriors = {n: exact(n) for n in NUMBERS}
gaussians = {n: model.posterior_[0] for n, model in models.items()}
covariances = {n: some.covariance[:2, :2] for n, some in gaussians.items()}
print(gaussians[80].names, gaussians[80])

p = expit(X @ models[80].coefs_[0][:, 0])  # the Hessian is (41.22-41.24)

# %%
# The upper pictures show the points so far and the exact predictions, which are
# averages of the neuron's output over the posterior. The lower ones show the
# posterior, and contours of the Gaussian at one and two standard deviations.

BLUE, ORANGE, YELLOW = "#0072B2", "#D55E00", "#F0E442"  # Okabe and Ito
CLASSES = LinearSegmentedColormap.from_list(
    "classes", ["#5DA8D6", "white", "#EE9A5E"]
)
plt.rcParams.update(
    {"font.size": 8, "axes.linewidth": 0.6, "legend.fontsize": 7}
)
axis = np.linspace(-4.0, 4.0, 41)
places = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
LEVELS = [0.1, 0.25, 0.5, 0.75, 0.9]


def average(n, rows):
    """Probability of class 1, averaged over the exact posterior."""
    probability = posteriors[n][0].ravel()
    kept = probability > 1e-5 * probability.max()
    w, share = (
        weights.reshape(-1, 2)[kept],
        probability[kept] / probability[kept].sum(),
    )
    return np.concatenate(
        [expit(part @ w.T) @ share for part in np.array_split(rows, 10)]
    )


def show_classes(ax, surface, n):
    """Contours of the probability of class 1 with the points."""
    surface = surface.reshape(len(axis), len(axis))
    ax.contourf(axis, axis, surface, np.linspace(0, 1, 21), cmap=CLASSES)
    lines = ax.contour(
        axis, axis, surface, LEVELS, colors="0.25", linewidths=0.7
    )
    ax.clabel(lines, fontsize=6, fmt="%g", inline_spacing=1)
    for label, marker, colour in [(0, "o", BLUE), (1, "s", ORANGE)]:
        points = X[:n][y[:n] == label].T
        ax.plot(
            *points,
            marker,
            color=colour,
            ms=3.5,
            mec="white",
            mew=0.4,
            label=f"class {label}",
        )
    ax.set(aspect="equal", xticks=[-4, 0, 4], yticks=[-4, 0, 4])


turn = np.linspace(0, 2 * np.pi, 81)
circle = np.stack([np.cos(turn), np.sin(turn)])
fig, axes = plt.subplots(
    2, 4, figsize=(7.1, 4.3), sharey="row", layout="constrained"
)
for (above, below), n in zip(axes.T, NUMBERS, strict=True):
    show_classes(above, average(n, places), n)
    above.set(title=f"{n} points", xlabel="input $x_1$")
    density = posteriors[n][0] / posteriors[n][0].max()
    below.contourf(side, side, density, np.linspace(0.01, 1, 12), cmap="Greys")
    root = np.linalg.cholesky(covariances[n])
    mode = gaussians[n].mean[:2, None]
    for size in (1, 2):
        below.plot(
            *(mode + size * root @ circle),
            color=ORANGE,
            lw=1.0,
            label="Gaussian, 1, 2 sd",
        )
    below.plot(
        *mode,
        "*",
        color=YELLOW,
        mec="black",
        mew=0.5,
        ms=7,
        label="most probable",
    )
    below.plot(*W_TRUE, "x", color=BLUE, ms=5, mew=1.4, label="true weights")
    below.set(
        xlim=(-4, 12), ylim=(-6, 10), aspect="equal", xlabel="weight $w_1$"
    )
axes[0, 0].set_ylabel("input $x_2$")
axes[1, 0].set_ylabel("weight $w_2$")
handles = [
    *axes[0, 0].get_legend_handles_labels()[0],
    *axes[1, 0].get_legend_handles_labels()[0][1:],
]
fig.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False)
plt.show()

# %%
# A few points only exclude directions. Their posterior is a wedge with a long
# tail towards steep neurons, which no Gaussian has. With more points it gathers
# around the true weights, and becomes nearly Gaussian. The evidence shows how
# good the approximation is: its error falls to a few hundredths of a nat.

print("points  log evidence: exact  Gaussian   area of the posterior (2 sd)")
gaps = []
for n, model in models.items():
    gaps.append(model.log_evidence_ - posteriors[n][1])
    area = 4 * np.pi * np.sqrt(np.linalg.det(covariances[n]))
    print(
        f"{n:6d}  {posteriors[n][1]:19.3f}  {model.log_evidence_:8.3f}   "
        f"{area:.2f}"
    )

# %%
# Predictions of the approximation
# --------------------------------
# The same input space three times, for the first two points. The most probable
# neuron ignores the width of the posterior: its contours are parallel. The
# average over the exact posterior and the moderated output, which averages over
# the Gaussian (41.29-41.30), fan out.


def predictions(n):
    """Probabilities of class 1 over the plane."""
    return {
        "most probable": models[n].predict_proba(places, moderated=False)[:, 1],
        "Gaussian, moderated": models[n].predict_proba(places)[:, 1],
        "exact average": average(n, places),
    }


fig, axes = plt.subplots(
    1, 3, figsize=(7.1, 3.0), sharey=True, layout="constrained"
)
for ax, (name, surface) in zip(axes, predictions(2).items(), strict=True):
    show_classes(ax, surface, 2)
    ax.set(title=name, xlabel="input $x_1$")
axes[0].set_ylabel("input $x_2$")
fig.legend(
    *ax.get_legend_handles_labels(),
    loc="outside lower center",
    ncols=2,
    frameon=False,
)
plt.show()

# %%
# The moderated outputs have the shape of the exact averages. How much worse
# than the exact averages do both predict, in nats per new point of the plane?
# With few points, the most probable neuron is much too certain and has a high
# loss. The moderated outputs lose almost nothing. Their Gaussian is not the one
# of the pictures above, around the most probable weights, but the one closest
# to the skewed posterior: its centre lies further up the tail of steep neurons.

print("excess log loss over the exact average (nats per point)")
print("points  most probable  moderated")
excess = {}
for n in NUMBERS:
    surfaces = predictions(n)
    p = surfaces["exact average"]
    excess[n] = [
        np.mean(p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q)))
        for q in (surfaces["most probable"], surfaces["Gaussian, moderated"])
    ]
    print("{:6d}  {:13.4f}  {:9.4f}".format(n, *excess[n]))
