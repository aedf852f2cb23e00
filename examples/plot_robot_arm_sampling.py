"""
The robot arm, sampled
======================

This is Neal's first demonstration of Bayesian learning by sampling (R. M. Neal,
"Bayesian learning via stochastic dynamics", *Advances in Neural Information
Processing Systems* 5, 1992), on MacKay's test problem: predict the position of
a hand from the two joint angles of an arm. Two hundred measured positions have
noise of standard deviation 0.05 m. Networks of 16 hidden units are drawn from
their posterior. Where they differ, the data do not determine the position. The
example compares their spread with the error bars of an evidence fit of the same
network.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.patches import Rectangle
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import EvidenceMLPRegressor, HMCMLPRegressor

NOISE = 0.05
# the evidence may end some nats low; sampling is what is shown
warnings.simplefilter("ignore", ConvergenceWarning)
FIRST, SECOND = (
    (0.453, 1.932),
    (0.534, 3.142),
)  # training range: both signs of the first angle


def hand(angles):
    """Position of the hand, in m, from the angles of shoulder and elbow, in
    rad.
    """
    shoulder, both = angles[..., 0], angles[..., 0] + angles[..., 1]
    return np.stack(
        [
            2.0 * np.cos(shoulder) + 1.3 * np.cos(both),
            2.0 * np.sin(shoulder) + 1.3 * np.sin(both),
        ],
        axis=-1,
    )


def draw_angles(n_rows, rng):
    """Random angles inside the two training regions."""
    sign = rng.choice([-1.0, 1.0], n_rows)
    return np.column_stack(
        [sign * rng.uniform(*FIRST, n_rows), rng.uniform(*SECOND, n_rows)]
    )


rng = np.random.default_rng(0)
X = draw_angles(200, rng)
y = hand(X) + NOISE * rng.standard_normal(X.shape)
X_test = draw_angles(1000, rng)
y_test = hand(X_test) + NOISE * rng.standard_normal(X_test.shape)

# %%
# ``from_evidence`` uses the model of an evidence fit, and the chains start at
# its minima. There are fewer draws than by default, so that the example takes
# less than a minute. ``diagnostics_`` uses the outputs of the networks.
# Precisions of hidden layers converge more slowly, which hardly matters for the
# predictions.

evidence_fit = EvidenceMLPRegressor(
    (16,), noise="shared", n_restarts=4, random_state=0
).fit(X, y)
sampling = HMCMLPRegressor.from_evidence(
    evidence_fit, n_chains=4, n_warmup=150, n_draws=150, measure_evidence=False
).fit(X, y)
print(sampling.diagnostics_.full())
print(sampling.comparison_)

# %%
# The spread of predictions is the standard deviation of the position due to the
# weights, for both coordinates together. The picture shows it in centimetres,
# over the plane of the two angles.


def spread(model, angles):
    """Standard deviation of the hand's position due to the weights, in cm."""
    sd = model.predict_std(angles.reshape(-1, 2), kind="epistemic")
    return 100 * np.sqrt(np.sum(sd**2, axis=1)).reshape(angles.shape[:-1])


shoulder, elbow = np.linspace(-2.6, 2.6, 66), np.linspace(-0.4, 4.0, 56)
plane = np.stack(np.meshgrid(shoulder, elbow), axis=-1)
spreads = {
    "sampling": spread(sampling, plane),
    "evidence fit": spread(evidence_fit, plane),
}

plt.rcParams.update(
    {"font.size": 8, "axes.linewidth": 0.6, "legend.fontsize": 7}
)
LEVELS = [1, 1.5, 2, 3, 5, 10, 20, 50, 100]
fig, axes = plt.subplots(
    1, 2, figsize=(7.1, 3.1), sharey=True, layout="constrained"
)
for ax, (name, values) in zip(axes, spreads.items(), strict=True):
    style = {
        "cmap": "cividis",
        "norm": LogNorm(LEVELS[0], LEVELS[-1]),
        "extend": "both",
    }
    filled = ax.contourf(shoulder, elbow, values, LEVELS, **style)
    ax.contour(shoulder, elbow, values, LEVELS, colors="white", linewidths=0.4)
    for left in (-FIRST[1], FIRST[0]):
        region = (left, SECOND[0]), FIRST[1] - FIRST[0], SECOND[1] - SECOND[0]
        ax.add_patch(Rectangle(*region, fill=False, ec="white", lw=1.4))
    ax.plot(*X.T, ".", color="white", ms=1.8)
    ax.set(xlabel="shoulder angle $x_1$ (rad)", title=name)
axes[0].set_ylabel("elbow angle $x_2$ (rad)")
bar = fig.colorbar(
    filled, ax=axes, label="spread of the hand (cm)", ticks=LEVELS, pad=0.02
)
bar.ax.set_yticklabels([f"{level:g}" for level in LEVELS])
bar.minorticks_off()
plt.show()

# %%
# The spread is smallest in the two training regions (frames), larger in the gap
# between them, and much larger outside. Inside and in the gap both engines
# nearly agree. Outside, where the Gaussian approximation is stretched furthest,
# they differ, either way.

inside = (abs(abs(plane[..., 0]) - np.mean(FIRST)) < np.ptp(FIRST) / 2) & (
    abs(plane[..., 1] - np.mean(SECOND)) < np.ptp(SECOND) / 2
)
gap = (abs(plane[..., 0]) < FIRST[0]) & (
    abs(plane[..., 1] - np.mean(SECOND)) < np.ptp(SECOND) / 2
)
typical = {}
for name, values in spreads.items():
    typical[name] = [
        np.median(values[where]) for where in (inside, gap, ~inside & ~gap)
    ]
    print(
        "spread by {}, median: inside {:.1f} cm, in the gap {:.1f} cm, outside "
        "{:.1f} cm".format(name, *typical[name])
    )
ratio = spreads["sampling"] / spreads["evidence fit"]
for name, where in [
    ("inside and in the gap", inside | gap),
    ("outside", ~inside & ~gap),
]:
    low, high = np.quantile(ratio[where], [0.05, 0.95])
    print(
        f"ratio of the two, {name}: {low:.2f} to {high:.2f} at nine angles in "
        "ten"
    )

# %%
# A path through the gap
# ----------------------
# The shoulder turns from one side to the other while the elbow stays at 0.9
# rad. ``sample_y`` gives the paths that drawn networks predict, without noise.

# Okabe and Ito: safe for colour-blind readers
BLUE, ORANGE = "#0072B2", "#D55E00"
turn = np.linspace(-2.4, 2.4, 97)
path = np.column_stack([turn, np.full_like(turn, 0.9)])
drawn = sampling.sample_y(
    path, n_samples=25, random_state=0
)  # (angle, coordinate, draw)
fitted, fitted_sd = (
    evidence_fit.predict(path),
    evidence_fit.predict_std(path, kind="epistemic"),
)

fig = plt.figure(figsize=(7.1, 3.9), layout="constrained")
axes = fig.subplot_mosaic(
    [["hand", "first"], ["hand", "second"]], width_ratios=[1, 1.15]
)
for ax, coordinate in [(axes["first"], 0), (axes["second"], 1)]:
    true = hand(path)[:, coordinate]
    for left in (-FIRST[1], FIRST[0]):
        ax.axvspan(left, left + np.ptp(FIRST), color="0.92", lw=0)
    ax.plot(
        turn,
        100 * (drawn[:, coordinate] - true[:, None]),
        color=BLUE,
        lw=0.5,
        alpha=0.7,
    )
    for edge in (-2, 2):
        band = fitted[:, coordinate] + edge * fitted_sd[:, coordinate] - true
        ax.plot(turn, 100 * band, color=ORANGE, lw=1.2, ls=(0, (4, 2)))
    ax.axhline(0.0, color="black", lw=1.0)
    ax.set(
        xlim=(turn[0], turn[-1]),
        ylim=(-32, 32),
        ylabel=f"error of $t_{coordinate + 1}$ (cm)",
    )
axes["first"].set(xticklabels=[], title="errors (grey: training regions)")
axes["second"].set(xlabel="shoulder angle $x_1$ (rad)")
axes["hand"].plot(drawn[:, 0], drawn[:, 1], color=BLUE, lw=0.5, alpha=0.7)
axes["hand"].plot(*hand(path).T, color="black", lw=1.0)
axes["hand"].set(
    xlabel="hand $t_1$ (m)",
    ylabel="hand $t_2$ (m)",
    title="paths",
    aspect="equal",
)
handles = [
    plt.Line2D([], [], color="black", lw=1.0, label="true position"),
    plt.Line2D([], [], color=BLUE, lw=0.8, label="25 drawn networks"),
    plt.Line2D(
        [],
        [],
        color=ORANGE,
        lw=1.2,
        ls=(0, (4, 2)),
        label="evidence fit, ±2 sd (weights)",
    ),
]
fig.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
for ax in axes.values():
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Drawn networks agree to a few centimetres in the training regions, spread a
# little in the gap and fan out beyond the last points, mostly between the error
# bars of the evidence fit. In the training regions their average is closer to
# the true positions than the evidence fit, as Neal found.

between = (fitted - 2 * fitted_sd)[..., None] < drawn
between &= drawn < (fitted + 2 * fitted_sd)[..., None]
print(
    f"drawn predictions within two error bars of the evidence fit: "
    f"{np.mean(between):.0%}"
)
scores = {}
for name, model in [("sampling", sampling), ("evidence fit", evidence_fit)]:
    error = np.mean(np.sum((model.predict(X_test) - hand(X_test)) ** 2, axis=1))
    density = np.mean(model.log_predictive_density(X_test, y_test))
    scores[name] = error, density
    print(
        f"{name}: rms distance to the true position {100 * np.sqrt(error):.2f} "
        "cm, "
        f"mean log density of new measurements {density:.3f} nats"
    )
