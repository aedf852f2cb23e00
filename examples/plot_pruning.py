"""
Pruning weights, and automatic relevance determination
======================================================

Which weights does a network need? *Optimal brain surgeon* (B. Hassibi & D. G.
Stork, *Advances in Neural Information Processing Systems* 5, 1993) removes the
weight of least saliency, ``w_i^2 / (2 [A^-1]_ii)``, and adjusts the others.
*Optimal brain damage* (Y. Le Cun, J. S. Denker & S. A. Solla, 1990) does this
with the diagonal of the Hessian ``A``. Both need a rule for when to stop. D. J.
C. MacKay (PhD thesis, 1992, section 3.5) proposes the evidence.
``prune="saliency"`` combines the two.

The data are made like those of C. M. Bishop (*Pattern Recognition and Machine
Learning*, 2006, figure 6.10, after I. T. Nabney). The target is a sine of the
first input, with noise. The second input is a noisy copy of the first. The
third has no effect.
"""

import matplotlib.pyplot as plt
import numpy as np

from skbayesnn import EvidenceMLPRegressor

NOISE = 0.1
INPUTS = ["x1, which matters", "x2, its noisy copy", "x3, of no use"]


def make_data(n, seed):
    """Three inputs and a target."""
    rng = np.random.default_rng(seed)
    x1 = 0.35 * rng.standard_normal(n)
    X = np.column_stack(
        [x1, x1 + 0.1 * rng.standard_normal(n), 0.35 * rng.standard_normal(n)]
    )
    return X, np.sin(2 * np.pi * x1) + NOISE * rng.standard_normal(n)


X, y = make_data(100, 0)
X_test, y_test = make_data(2000, 1)

# %%
# Four ways
# ---------
# The weights of a layer have one prior, or there is one for every input
# (automatic relevance determination, ARD). Networks are kept as trained, or
# pruned. The density of new targets tells which is best.


def fit(prior, prune):
    """The network of eight hidden units, all minima from the same starts."""
    return EvidenceMLPRegressor(
        (8,),
        prior=prior,
        prune=prune,
        noise="constant",
        measure_evidence=False,
        n_restarts=5,
        random_state=0,
    ).fit(X, y)


models = {
    "plain": fit("layer", None),
    "ARD": fit("ard", None),
    "pruned": fit("layer", "saliency"),
    "ARD, pruned": fit("ard", "saliency"),
}
inside = np.all((X_test >= X.min(axis=0)) & (X_test <= X.max(axis=0)), axis=1)


def densities(model):
    """Mean log density of new targets: within the range of X, and of all."""
    each = model.log_predictive_density(X_test, y_test)
    return np.mean(each[inside]), np.mean(each)


scores = {name: densities(model) for name, model in models.items()}
print(
    f"{np.mean(inside):.0%} of the new rows lie within the range of the "
    "training inputs"
)
print(
    "             weights  log evidence  log density of a new target: there  "
    "of all"
)
for name, model in models.items():
    report = model.evidence_report_
    print(
        f"{name:12s} {report.n_weights:7d}  "
        f"{report.minima[0].log_evidence:12.1f}"
        "                               {:6.3f}  {:6.3f}".format(*scores[name])
    )

# %%
# What to look for: pruning finds the same small network from both priors. Its
# evidence is higher than with ARD, which cannot remove single weights of an
# input that matters. Where there are training data, pruned networks predict
# best. Outside their error bars may be much too narrow, because they treat the
# chosen structure as certain. The evidence of that structure is too high for
# the same reason.


# %%
# The evidence along the way
# --------------------------
# ``prune_path_`` lists the evidence after every step. The path continues beyond
# the best network until the evidence has fallen by ten nats.

BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"  # Okabe and Ito
plt.rcParams.update(
    {"font.size": 8, "axes.linewidth": 0.6, "legend.fontsize": 7}
)
path = models["pruned"].prune_path_
n_weights = np.array([step.n_weights for step in path])
evidence = np.array([step.log_evidence for step in path])
best = int(evidence.argmax())
fig, ax = plt.subplots(figsize=(3.54, 2.4), layout="constrained")
ax.plot(n_weights, evidence, "o-", color=BLUE, ms=3, lw=1.0)
ax.plot(n_weights[best], evidence[best], "o", color=ORANGE, ms=6)
ax.annotate(
    f"{n_weights[best]} weights",
    (n_weights[best], evidence[best]),
    xytext=(0, 6),
    textcoords="offset points",
    ha="center",
    color=ORANGE,
)
ax.invert_xaxis()
ax.margins(y=0.15)
ax.set(xlabel="weights left", ylabel="log evidence (nats)")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

print("from", path[0].n_weights, "weights:")
for step in path[1:]:
    print(
        f"{step.name:20s} saliency {step.saliency:6.2f}  "
        f"log evidence {step.log_evidence:8.2f}"
    )

# %%
# The remaining weights
# ---------------------
# The picture shows the weights from the inputs to the hidden units, for inputs
# of standard deviation 1, relative to the largest. Grey weights are exactly
# zero.

fig, axes = plt.subplots(
    1, 4, figsize=(7.1, 1.9), sharey=True, layout="constrained"
)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    weights = model.coefs_[0] * X.std(axis=0)[:, None]
    largest = np.max(np.abs(weights))
    shown = np.where(weights == 0, np.nan, weights / largest)
    image = ax.imshow(shown, cmap="PuOr", vmin=-1, vmax=1, aspect="auto")
    ax.set_facecolor("0.8")
    ax.set(
        title=name,
        xticks=range(weights.shape[1]),
        yticks=range(3),
        xlabel="hidden unit",
    )
axes[0].set_yticklabels(INPUTS)
fig.colorbar(image, ax=axes, label="of the largest", ticks=[-1, 0, 1])
plt.show()

# %%
# What to look for: ARD switches the copy and the useless input off. Their
# weights are tiny. The pruned networks have lost these weights, and hidden
# units as well. The result is easy to interpret: three hyperbolic tangents make
# a sine.
