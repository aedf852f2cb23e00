"""
Classifiers: evidence and test error
====================================

The data are two classes in the plane with three round Gaussians each. Networks
of several widths and weight decay rates are fitted to 150 points and ranked by
their evidence, which needs no other points. Does the ranking agree with the log
loss on new points? D. J. C. MacKay asks this question in *Bayesian Methods for
Adaptive Models* (PhD thesis, 1992, chapter 5). The last picture follows figure
5.22 of C. M. Bishop, *Pattern Recognition and Machine Learning* (2006). It
shows the boundary without regularisation, the boundary with the regularisation
of highest evidence, and the best possible boundary.
"""

# sphinx_gallery_thumbnail_number = 2

import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import spearmanr
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import EvidenceMLPClassifier, Prior
from skbayesnn.model_selection import EvidenceSearch

CENTRES = np.array(
    [
        [[-2.4, 0.6], [0.2, -1.6], [1.8, 1.9]],
        [[-0.6, 1.5], [2.2, -0.4], [-1.9, -1.6]],
    ]
)
WIDTH = 0.75  # sd of every Gaussian
# networks with much weight decay predict no better than class frequencies
warnings.simplefilter("ignore", ConvergenceWarning)


def draw(n_rows, rng):
    """Points with their classes."""
    y = rng.integers(2, size=n_rows)
    return CENTRES[
        y, rng.integers(3, size=n_rows)
    ] + WIDTH * rng.standard_normal((n_rows, 2)), y


def true_probability(X):
    """Probability of class 1."""
    squares = np.sum((X[:, None, None, :] - CENTRES) ** 2, axis=-1)
    density = np.exp(-0.5 * squares / WIDTH**2).sum(axis=-1)
    return density[:, 1] / density.sum(axis=1)


rng = np.random.default_rng(4)
X_test, y_test = draw(5000, rng)
X, y = draw(150, rng)


def log_loss(model, X, y, moderated=True):
    """Minus mean log probability of the true class, in nats."""
    return -np.mean(
        np.log(
            model.predict_proba(X, moderated=moderated)[np.arange(len(y)), y]
        )
    )


# %%
# Weight decay rates and widths
# -----------------------------
# Networks of three widths have one precision for all weights, which is fixed at
# nine values. Of two starts the one with the higher evidence is kept. All
# evidences are Gaussian approximations (``method="laplace"``), so the
# comparison is fair.

ALPHAS, WIDTHS = np.geomspace(1e-3, 10, 9), [(2,), (4,), (8,)]
model = EvidenceMLPClassifier(
    prior="single",
    n_restarts=2,
    combine="best",
    method="laplace",
    random_state=0,
)
grid = {"hidden_layer_sizes": WIDTHS, "prior__precision": ALPHAS.tolist()}
search = EvidenceSearch(model, grid).fit(X, y)
evidence = np.reshape(
    search.results_["log_evidence"], (len(WIDTHS), len(ALPHAS))
)
losses = np.reshape(
    [log_loss(fit, X_test, y_test) for fit in search.estimators_],
    evidence.shape,
)
order = [p["hidden_layer_sizes"] for p in search.results_["params"]][
    :: len(ALPHAS)
]
best_possible = true_probability(X_test)
best_possible = -np.mean(
    np.log(np.where(y_test == 1, best_possible, 1 - best_possible))
)

# Okabe and Ito: safe for the colour-blind
BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"
plt.rcParams.update(
    {"font.size": 8, "axes.linewidth": 0.6, "legend.fontsize": 7}
)
fig, (above, below) = plt.subplots(
    2, 1, figsize=(3.54, 4.2), sharex=True, layout="constrained"
)
for values, ax in [(evidence, above), (losses, below)]:
    for row, colour, marker, sizes in zip(
        values, (BLUE, ORANGE, GREEN), "os^", order, strict=True
    ):
        style = {"color": colour, "marker": marker, "ms": 4, "lw": 1.0}
        ax.plot(ALPHAS, row, label=f"{sizes[0]} hidden units", **style)
    ax.spines[["top", "right"]].set_visible(False)
below.axhline(best_possible, color="0.4", lw=0.8, ls="--")
below.text(
    ALPHAS[0],
    best_possible,
    "true probabilities",
    va="top",
    color="0.3",
    fontsize=7,
)
above.set(ylabel="log evidence (nats)", ylim=(-132, -76))
below.set(xscale="log", ylim=(0.28, 0.75), xlabel="weight decay rate alpha")
below.set_ylabel("test log loss (nats)")
fig.legend(
    *above.get_legend_handles_labels(),
    loc="outside upper center",
    ncols=3,
    frameon=False,
)
plt.show()

# %%
# Agreement
# ---------
# The picture shows evidence and test error of all fits. If they do not agree,
# the model is wrong (MacKay's warning bell).

fig, ax = plt.subplots(figsize=(3.54, 2.6), layout="constrained")
for row, loss, colour, marker, sizes in zip(
    evidence, losses, (BLUE, ORANGE, GREEN), "os^", order, strict=True
):
    label = f"{sizes[0]} hidden units"
    ax.plot(row, loss, marker, color=colour, ms=4, label=label)
ax.set(xlabel="log evidence (nats)", ylabel="test log loss (nats)")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Evidence and test error agree, in every width. The evidence has its peak where
# the test error is nearly smallest. Two units are too few for six Gaussians,
# and their evidence is lower. The agreement is poorest where the weight decay
# is very weak and the starts end in different minima.

together = spearmanr(evidence.ravel(), losses.ravel()).statistic
chosen = losses.ravel()[evidence.argmax()]
print(f"rank correlation over {evidence.size} fits: {together:.2f}; by width:")
for sizes, row, loss in zip(order, evidence, losses, strict=True):
    print(f"  {sizes[0]} units: {spearmanr(row, loss).statistic:.2f}")
print(
    f"test log loss: {chosen:.3f} at the highest evidence, {losses.min():.3f} "
    "smallest, "
    f"{best_possible:.3f} true probabilities"
)

# %%
# Boundaries
# ----------
# A network of eight hidden units is fitted three times: with very weak weight
# decay (as above), with the single weight decay rate that the evidence infers,
# and with one for each layer (the default). On the lines both classes are
# equally probable. The dashed line is the best possible boundary.

BOUNDARIES = {
    "alpha = 0.001": {"prior": Prior("single", precision=1e-3)},
    "one alpha, inferred": {"prior": "single"},
    "one per layer, inferred": {"prior": "layer"},
}
axis = np.linspace(-5.0, 5.0, 121)
plane = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
shape = (len(axis), len(axis))
fig, axes = plt.subplots(
    1, 3, figsize=(7.1, 2.9), sharey=True, layout="constrained"
)
results = {}
for ax, (name, parameters) in zip(axes, BOUNDARIES.items(), strict=True):
    fit = EvidenceMLPClassifier(
        (8,),
        n_restarts=1,
        combine="best",
        method="laplace",
        random_state=0,
        **parameters,
    )
    fit.fit(X, y)
    training = log_loss(fit, X, y, moderated=False)
    results[name] = training, log_loss(fit, X_test, y_test), fit.log_evidence_
    surface = fit.predict_proba(plane)[:, 1].reshape(shape)
    best = true_probability(plane).reshape(shape)
    ax.contour(
        axis, axis, best, [0.5], colors="black", linewidths=0.9, linestyles="--"
    )
    ax.contour(axis, axis, surface, [0.5], colors=GREEN, linewidths=1.6)
    for label, marker, colour in [(0, "o", BLUE), (1, "s", ORANGE)]:
        points = X[y == label].T
        ax.plot(
            *points,
            marker,
            color=colour,
            ms=2.8,
            mec="white",
            mew=0.3,
            label=f"class {label}",
        )
    ax.set(
        title=name, xlabel="$x_1$", aspect="equal", xlim=(-5, 5), ylim=(-5, 5)
    )
axes[0].set_ylabel("$x_2$")
handles = [
    *axes[0].get_legend_handles_labels()[0],
    plt.Line2D([], [], color=GREEN, lw=1.6, label="network"),
    plt.Line2D([], [], color="black", lw=0.9, ls="--", label="best possible"),
]
fig.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
plt.show()

# %%
# The network on the left has corners around single points. It has the smallest
# training error, the largest test error and the lowest evidence. The network
# with one precision per layer has the highest evidence.

for name, (training, test, log_evidence) in results.items():
    print(
        f"{name}: log loss {training:.3f} training, {test:.3f} test; "
        f"log evidence {log_evidence:.1f} nats"
    )
