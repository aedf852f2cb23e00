"""
Sampling the weights of a single neuron
=======================================

A neuron with two inputs, a bias and a logistic output learns ten points. Two
methods draw its three weights from their posterior distribution, with the same
number of gradients. The Langevin method takes one step and then accepts or
rejects it. Hamiltonian Monte Carlo takes a hundred steps. The demonstration is
that of D. J. C. MacKay, *Information Theory, Inference, and Learning
Algorithms* (2003), chapter 41, with other points.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import EvidenceMLPClassifier, HMCMLPClassifier, Prior, Sampler
from skbayesnn.samplers import bulk_ess

CLASS_0 = [(2, 3), (3, 7), (4, 2), (5, 5), (7, 2)]
CLASS_1 = [(5, 9), (7, 6), (8, 8), (9, 4), (10, 6)]
X, y = np.array([*CLASS_0, *CLASS_1], dtype=float), np.repeat([0, 1], 5)

# %%
# The precision of the weights is fixed, and the inputs are used as they are.
# Then the model is MacKay's, and the samplers move in the space of the weights
# themselves.

MODEL = {"prior": Prior("single", precision=0.01), "standardize": False}
optimised = EvidenceMLPClassifier((), **MODEL, random_state=0).fit(X, y)
w_best = np.append(optimised.coefs_[0], optimised.intercepts_[0])
print(
    "most probable weights: w1 {:.2f}, w2 {:.2f}, bias {:.2f}".format(*w_best)
)

# %%
# Both samplers start at the most probable weights and take steps of the size
# used by MacKay. Four chains make 10,000 gradients each: 10,000 transitions by
# the Langevin method, 100 by Hamiltonian Monte Carlo. If the chains have not
# converged, the fit warns.

STEP = np.sqrt(2 * 0.01)
N_CHAINS, N_GRADIENTS = 4, 10_000
models, weights = {}, {}
for sampler, n_steps in [("langevin", 1), ("hmc", 100)]:
    model = HMCMLPClassifier(
        (),
        **MODEL,
        sampler=Sampler(sampler, step_size=STEP, n_steps=n_steps),
        n_chains=N_CHAINS,
        n_warmup=0,
        n_draws=N_GRADIENTS // n_steps,
        measure_evidence=False,
        random_state=0,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(X, y)
    drawn = [
        np.append(network.coefs[0], network.intercepts[0])
        for network in model.networks_
    ]
    models[sampler] = model
    weights[sampler] = np.reshape(drawn, (N_CHAINS, -1, 3))
    print(
        f"\n{sampler}:", *(f"warning: {warning.message}" for warning in caught)
    )
    print(model.diagnostics_)

# %%
# How many independent draws are 10,000 gradients worth? The effective sample
# size is the number of independent draws that would determine the mean of a
# weight equally well.

ess = {sampler: bulk_ess(drawn).min() for sampler, drawn in weights.items()}
per_gradient = {
    name: ess[name] / models[name].diagnostics_.n_gradients for name in models
}
gain = per_gradient["hmc"] / per_gradient["langevin"]
print()
for name in models:
    print(
        f"{name}: {ess[name]:.0f} effective draws of the weights "
        f"from {models[name].diagnostics_.n_gradients} gradients"
    )
print(f"Hamiltonian Monte Carlo: {gain:.0f} times as many per gradient")

# %%
# The upper pictures show the traces of one chain each, the lower ones the draws
# of all four chains.

# Okabe and Ito: safe for colour-blind readers
BLUE, ORANGE = "#0072B2", "#D55E00"
GREEN, YELLOW = "#009E73", "#F0E442"
plt.rcParams.update(
    {"font.size": 8, "axes.linewidth": 0.6, "legend.fontsize": 7}
)
TITLES = {"langevin": "Langevin method", "hmc": "Hamiltonian Monte Carlo"}
STYLES = [(GREEN, "weight $w_1$"), (ORANGE, "weight $w_2$"), (BLUE, "bias")]

fig, axes = plt.subplots(
    3,
    2,
    figsize=(7.1, 6.0),
    height_ratios=[1, 1, 1.7],
    sharey="row",
    layout="constrained",
)
for (above, middle, below), name in zip(axes.T, models, strict=True):
    drawn = weights[name]
    gradients = np.linspace(0, N_GRADIENTS, drawn.shape[1] + 1)
    for i, ax in enumerate([above, above, middle]):
        colour, label = STYLES[i]
        ax.plot(
            gradients,
            np.append(w_best[i], drawn[0, :, i]),
            color=colour,
            lw=0.8,
            label=label,
        )
        ax.set(xlim=(0, N_GRADIENTS))
    above.set(title=TITLES[name], xticklabels=[])
    middle.set(xlabel="gradients evaluated")
    shown = drawn[:, :: max(1, drawn.shape[1] // 1000), :2].reshape(-1, 2)
    below.plot(
        *shown.T,
        ".",
        color="0.45",
        ms=2.5,
        mew=0,
        label="drawn, all four chains",
    )
    below.plot(
        *w_best[:2],
        "*",
        color=YELLOW,
        ms=9,
        mec="black",
        mew=0.6,
        label="most probable",
    )
    below.set(
        xlim=(-1, 5.8), ylim=(-1, 5.8), xlabel="weight $w_1$", aspect="equal"
    )
for ax, label in zip(
    axes[:, 0], ["weights", "bias", "weight $w_2$"], strict=True
):
    ax.set_ylabel(label)
axes[0, 1].legend(
    loc="lower right", bbox_to_anchor=(1, 0.86), ncols=2, frameon=False
)
axes[2, 1].legend(loc="upper right", frameon=False, handletextpad=0.2)
for ax in axes.flat:
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The Langevin method accepts nearly all of its steps (MacKay: 93 %), but they
# are small and have random directions. In 10,000 steps it crosses the
# distribution only once or twice. A single trajectory of a hundred steps may
# cross it.
#
# Most of the drawn neurons are steeper than the optimised one: the classes can
# be separated, so that only the prior keeps the weights from growing.

acceptance = models["langevin"].diagnostics_.acceptance
print(f"\nLangevin steps accepted: {acceptance:.1%}")
steeper = np.linalg.norm(weights["hmc"][..., :2], axis=-1) > np.linalg.norm(
    w_best[:2]
)
print(f"drawn neurons steeper than the optimised one: {np.mean(steeper):.0%}")

# %%
# Predictions
# -----------
# The optimised neuron is equally certain all along its boundary. The average
# over the posterior is certain only near the points, because the boundaries of
# the sampled neurons spread far from them. The right picture shows the
# boundaries (probability 1/2) of thirty sampled neurons.

axis = np.linspace(0.0, 11.0, 111)
grid = np.stack(np.meshgrid(axis, axis), axis=-1)
predicted = {
    "P(class 1), optimised neuron": lambda rows: optimised.predict_proba(
        rows, moderated=False
    )[:, 1],
    "P(class 1), posterior average": lambda rows: models["hmc"].predict_proba(
        rows
    )[:, 1],
}

LEVELS = expit([-3, -2, -1, 0, 1, 2, 3])
COLOURS = LinearSegmentedColormap.from_list(
    "classes", ["#5DA8D6", "white", "#EE9A5E"]
)
fig, axes = plt.subplots(
    1, 3, figsize=(7.1, 3.3), sharey=True, layout="constrained"
)
for ax, (name, predict) in zip(axes[:2], predicted.items(), strict=True):
    surface = predict(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    ax.contourf(axis, axis, surface, [0, *LEVELS, 1], cmap=COLOURS)
    lines = ax.contour(
        axis, axis, surface, LEVELS, colors="0.25", linewidths=0.7
    )
    ax.clabel(lines, fontsize=6, fmt="%.2f", inline_spacing=1)
    ax.set_title(name)
spread = weights["hmc"].reshape(-1, 3)
for w1, w2, bias in spread[:: len(spread) // 30][:30]:
    axes[2].plot(axis, -(w1 * axis + bias) / w2, color="0.4", lw=0.6)
axes[2].set_title("thirty neurons drawn")
for ax in axes:
    for label, marker, colour in [(0, "o", BLUE), (1, "s", ORANGE)]:
        points = X[y == label].T
        ax.plot(
            *points,
            marker,
            color=colour,
            ms=6,
            mec="white",
            label=f"class {label}",
        )
    ax.set(xlabel="input $x_1$", aspect="equal", xlim=(0, 11), ylim=(0, 11))
axes[0].set_ylabel("input $x_2$")
fig.legend(
    *ax.get_legend_handles_labels(),
    loc="outside lower center",
    ncols=2,
    frameon=False,
)
plt.show()

# %%
# The optimised neuron gives three places equal probabilities: one next to the
# points, and two far away in either direction along its boundary. Averages over
# the posterior agree with the neuron at the first place, and are less certain
# at the others.

across = w_best[:2] / np.linalg.norm(w_best[:2])
along = np.array([-across[1], across[0]])
centre = X.mean(axis=0)
centre += (
    (3.0 - w_best[2] - w_best[:2] @ centre)
    / np.linalg.norm(w_best[:2])
    * across
)
places = np.array([centre, centre + 10 * along, centre - 10 * along])
values = {name: predict(places) for name, predict in predicted.items()}
for name, probability in values.items():
    print(
        "{}: {:.2f} near the points, {:.2f} and {:.2f} far away".format(
            name, *probability
        )
    )
