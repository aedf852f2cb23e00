"""
Well-determined weights, and a prior that depends on the units
==============================================================

This example continues :ref:`sphx_glr_auto_examples_plot_occam_hill.py`, after
D. J. C. MacKay's study of the robot arm (*Bayesian Methods for Adaptive
Models*, PhD thesis, 1992, section 3.4). It shows how many weights the data
determine, and how large they are, as hidden units are added. It also shows why
MacKay abandoned the prior with one precision for all weights: its results
change if the hand is measured in centimetres.
"""

# sphinx_gallery_thumbnail_number = 2

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import EvidenceMLPRegressor

NOISE = 0.05  # m
# a fit may end some nats low
warnings.simplefilter("ignore", ConvergenceWarning)


def hand(angles):
    """Position of the hand, in m, from the angles of shoulder and elbow, in
    rad.
    """
    shoulder, both = angles[:, 0], angles[:, 0] + angles[:, 1]
    return np.column_stack(
        [
            2.0 * np.cos(shoulder) + 1.3 * np.cos(both),
            2.0 * np.sin(shoulder) + 1.3 * np.sin(both),
        ]
    )


def draw_angles(n_rows, rng):
    """Random angles inside the two training regions."""
    shoulder = rng.choice([-1.0, 1.0], n_rows) * rng.uniform(
        0.453, 1.932, n_rows
    )
    return np.column_stack([shoulder, rng.uniform(0.534, 3.142, n_rows)])


rng = np.random.default_rng(0)
X = draw_angles(200, rng)
y = hand(X) + NOISE * rng.standard_normal((200, 2))
X_test = draw_angles(1000, rng)
y_test = hand(X_test)

# %%
# Every width is fitted under both priors: ``"single"``, one precision for all
# weights, and ``"layer"``, one each for the hidden weights, the hidden biases
# and the output layer. ``method="laplace"`` uses the Gaussian
# approximation for all, as MacKay did.

WIDTHS = [5, 6, 8, 10, 13, 20]
PRIORS = ["single", "layer"]


def fit(n_units, prior):
    """The network of highest evidence of two starts."""
    return EvidenceMLPRegressor(
        (n_units,),
        prior=prior,
        noise="shared",
        n_restarts=2,
        combine="best",
        method="laplace",
        random_state=0,
    ).fit(X, y)


fits = {prior: [fit(n, prior) for n in WIDTHS] for prior in PRIORS}
gamma = {
    prior: np.array([m.n_effective_weights_ for m in fits[prior]])
    for prior in PRIORS
}
n_weights = np.array([2 * n + n + 2 * n + 2 for n in WIDTHS])

# Okabe and Ito
BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
COLOURS, MARKERS = (
    {"single": ORANGE, "layer": BLUE},
    {"single": "s", "layer": "o"},
)
plt.rcParams.update(
    {"font.size": 8, "axes.linewidth": 0.6, "legend.fontsize": 7}
)
fig, (left, right) = plt.subplots(
    1, 2, figsize=(7.1, 2.9), layout="constrained"
)
left.plot(
    WIDTHS, n_weights, color="0.4", lw=0.9, ls="--", label="all weights, $k$"
)
for prior in PRIORS:
    style = {
        "color": COLOURS[prior],
        "marker": MARKERS[prior],
        "ms": 4,
        "lw": 1.0,
    }
    left.plot(
        WIDTHS, gamma[prior], label=f'$\\gamma$, prior="{prior}"', **style
    )
left.set(xlabel="hidden units", ylabel="number of weights", ylim=(0, 105))
left.legend(frameon=False, loc="upper left")

GROUPS = {
    "hidden1_weights": ("hidden weights", GREEN, "^"),
    "hidden1_biases": ("hidden biases", PURPLE, "D"),
    "output": ("output layer", BLUE, "o"),
}
names = fits["layer"][0].weight_group_names_
sds = np.array([m.weight_precisions_**-0.5 for m in fits["layer"]])
for name, sd in zip(names, sds.T, strict=True):
    label, colour, marker = GROUPS[name]
    right.plot(
        WIDTHS, sd, color=colour, marker=marker, ms=4, lw=1.0, label=label
    )
single_sd = [m.weight_precisions_[0] ** -0.5 for m in fits["single"]]
right.plot(
    WIDTHS,
    single_sd,
    color=ORANGE,
    marker="s",
    ms=4,
    lw=1.0,
    label='prior="single"',
)
right.set(yscale="log", ylim=(0.1, 60), xlabel="hidden units")
right.set_ylabel("prior sd of the weights, inferred")
right.set_yticks([0.1, 1, 10], ["0.1", "1", "10"])
right.legend(frameon=False, loc="upper right", ncols=2)
for ax in (left, right):
    ax.set_xticks(WIDTHS)
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# In small networks nearly all weights are well determined. With the single
# precision their number keeps growing with the network, and the precision of
# all weights rises. With a precision for each layer it levels off at about 40:
# further weights are switched off. The precisions show why one is not enough.
# The output weights are always several times larger than the hidden ones.

for prior in PRIORS:
    print(
        f"{prior}: gamma", *(f"{g:.0f}" for g in gamma[prior]), "of", *n_weights
    )

# %%
# Generalised prediction error
# ----------------------------
# J. Moody's generalised prediction error estimates the error of new targets
# from the training error, ``(chi^2 + 2 gamma) / N`` in units of the noise
# variance (section 3.5 of the thesis). It is in every report. The picture shows
# it for the single precision. The test errors include the noise of new
# measurements.


def with_noise(error):
    """Rms error of noisy targets from that of the true ones, squared."""
    return 100 * np.sqrt(error + NOISE**2)


training = [
    100 * np.sqrt(np.mean((m.predict(X) - y) ** 2)) for m in fits["single"]
]
test = [
    with_noise(np.mean((m.predict(X_test) - y_test) ** 2))
    for m in fits["single"]
]
promised = [
    100 * np.sqrt(m.evidence_report_.minima[0].gpe) for m in fits["single"]
]
fig, ax = plt.subplots(figsize=(3.54, 2.5), layout="constrained")
for values, colour, marker, label in [
    (test, "black", "o", "test"),
    (promised, GREEN, "^", "generalised prediction error"),
    (training, ORANGE, "s", "training"),
]:
    ax.plot(
        WIDTHS, values, color=colour, marker=marker, ms=4, lw=1.0, label=label
    )
ax.axhline(100 * NOISE, color="0.6", lw=0.8, ls="--")
ax.text(
    14, 100 * NOISE, "noise", ha="left", va="bottom", color="0.4", fontsize=7
)
ax.set(
    xlabel="hidden units",
    ylabel="error, rms (cm)",
    xticks=WIDTHS,
    ylim=(3.9, 6.6),
)
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The training error falls with every unit. The generalised prediction error has
# a minimum. It stays below the test error, because these 200 points happen to
# have less noise than usual.

print("training", *(f"{value:.2f}" for value in training), "cm")
print("GPE     ", *(f"{value:.2f}" for value in promised), "cm")
print("test    ", *(f"{value:.2f}" for value in test), "cm")

# %%
# Units of measurement
# --------------------
# A network can absorb a change of units: hidden weights for radians become
# hidden weights for degrees. A prior with one precision for all weights cannot,
# since it ties input and output weights together (section 3.4). The example
# fits eight hidden units with ``standardize=False`` in four systems of units.
# All log evidences are densities of positions in metres.

UNITS = {"rad, m": (1, 1), "rad, cm": (1, 100), "deg, m": (180 / np.pi, 1)}
UNITS["deg, cm"] = (180 / np.pi, 100)
evidence, errors = {}, {}
for prior in PRIORS:
    for name, (angle, length) in UNITS.items():
        model = EvidenceMLPRegressor(
            (8,),
            prior=prior,
            noise="shared",
            n_restarts=2,
            standardize=False,
            method="laplace",
            random_state=0,
        ).fit(X * angle, y * length)
        evidence[prior, name] = model.log_evidence_ + y.size * np.log(length)
        error = np.mean((model.predict(X_test * angle) / length - y_test) ** 2)
        errors[prior, name] = 100 * np.sqrt(error)
        print(
            f"{prior:6s} {name:7s}: log evidence {evidence[prior, name]:6.1f} "
            "nats, rms distance "
            f"to the truth {errors[prior, name]:.2f} cm, smallest prior sd "
            f"{min(model.weight_precisions_**-0.5):.3g}"
        )

fig, ax = plt.subplots(figsize=(3.54, 2.2), layout="constrained")
for prior in PRIORS:
    values = [evidence[prior, name] for name in UNITS]
    style = {
        "color": COLOURS[prior],
        "marker": MARKERS[prior],
        "ms": 5,
        "lw": 0,
    }
    ax.plot(range(len(UNITS)), values, label=f'prior="{prior}"', **style)
ax.set_xticks(range(len(UNITS)), UNITS)
ax.set(
    xlim=(-0.5, 3.5), ylim=(280, 550), xlabel="units of angles and positions"
)
ax.set_ylabel("log evidence (nats)")
fig.legend(frameon=False, loc="outside upper center", ncols=2)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# With the single precision the evidence depends on the units by more than a
# hundred nats. With a precision for each layer it hardly does. The remaining
# differences are due to different minima that the random starts have found.
# (With the default ``standardize=True`` all inputs and outputs are brought to
# unit variance first, which removes the dependence for any prior.)

spread = {
    prior: np.ptp([evidence[prior, name] for name in UNITS]) for prior in PRIORS
}
print(
    ", ".join(
        f"{prior}: log evidences differ by {spread[prior]:.1f} nats"
        for prior in PRIORS
    )
)
