"""
The robot arm: error ellipses and the number of hidden units
============================================================

MacKay's test problem (D. J. C. MacKay, *Bayesian Methods for Adaptive Models*, PhD thesis, 1992,
section 3.4): the two joint angles of an arm are given, and the position of its hand is wanted. The
segments of the arm are 2.0 m and 1.3 m long. The 200 measured positions have noise of standard
deviation 0.05 m in both coordinates.
"""

import matplotlib.pyplot as plt
import numpy as np

from skbayesnn import EvidenceMLPRegressor

NOISE = 0.05
FIRST, SECOND = (0.453, 1.932), (0.534, 3.142)  # training range: both signs of the first angle


def hand(angles):
    """Position of the hand, in m, from the angles of shoulder and elbow, in rad."""
    shoulder, both = angles[:, 0], angles[:, 0] + angles[:, 1]
    return np.column_stack(
        [
            2.0 * np.cos(shoulder) + 1.3 * np.cos(both),
            2.0 * np.sin(shoulder) + 1.3 * np.sin(both),
        ]
    )


def draw_angles(n_rows, rng):
    """Random angles inside the two training regions."""
    sign = rng.choice([-1.0, 1.0], n_rows)
    return np.column_stack([sign * rng.uniform(*FIRST, n_rows), rng.uniform(*SECOND, n_rows)])


rng = np.random.default_rng(0)
X = draw_angles(200, rng)
y = hand(X) + NOISE * rng.standard_normal(X.shape)
X_test = draw_angles(1000, rng)

# %%
# Error ellipses
# --------------
# One network predicts both coordinates. They are measured in the same way, so that one noise level
# serves both. ``predict_output_cov`` gives the covariance of the two coordinates, for angles inside
# the two training regions, between them and a short distance outside.

model = EvidenceMLPRegressor(hidden_layer_sizes=(10,), noise="shared", random_state=0).fit(X, y)

shoulder = np.array([-2.4, -2.1, -1.8, -1.2, -0.6, 0.0, 0.6, 1.2, 1.8, 2.1, 2.4])
elbow = np.array([0.1, 0.7, 1.4, 2.1, 2.8, 3.4])
angles = np.stack(np.meshgrid(shoulder, elbow, indexing="ij"), axis=-1).reshape(-1, 2)
inside = (FIRST[0] <= abs(angles[:, 0])) & (abs(angles[:, 0]) <= FIRST[1])
inside &= (SECOND[0] <= angles[:, 1]) & (angles[:, 1] <= SECOND[1])

position = model.predict(angles)
covariance = model.predict_output_cov(angles)

# %%
# An ellipse of one standard deviation is the image of the unit circle under the Cholesky factor of
# the covariance. Compare figure 3.1 of the thesis.

BLUE, ORANGE = "#0072B2", "#D55E00"  # Okabe and Ito: safe for colour-blind readers
plt.rcParams.update({"font.size": 8, "axes.linewidth": 0.6, "legend.fontsize": 7})
turn = np.linspace(0.0, 2.0 * np.pi, 61)
ellipses = np.linalg.cholesky(covariance) @ np.stack([np.cos(turn), np.sin(turn)])

fig, (above, below) = plt.subplots(
    2, 1, figsize=(3.54, 5.2), height_ratios=[2.4, 1], layout="constrained"
)
selections = [(inside, BLUE, "in the training regions"), (~inside, ORANGE, "outside")]
for chosen, colour, name in selections:
    for centre, ellipse in zip(position[chosen], ellipses[chosen], strict=True):
        for n_sd, width in [(1, 0.8), (2, 0.4)]:
            above.plot(*(centre[:, None] + n_sd * ellipse), color=colour, lw=width)
    above.plot(*position[chosen].T, ".", color=colour, ms=1.5)
    below.plot(*angles[chosen].T, "o", color=colour, ms=3.5, label=f"predicted, {name}")
above.plot(*hand(angles).T, "x", color="black", ms=2.5, mew=0.5)
above.plot([], [], "x", color="black", ms=2.5, mew=0.5, label="true position")
above.text(0.98, 0.02, "ellipses: 1 and 2 sd", ha="right", transform=above.transAxes)
above.set(xlabel="hand $t_1$ (m)", ylabel="hand $t_2$ (m)", aspect="equal")
below.plot(*X.T, ".", color="0.55", ms=2.0, zorder=0, label="training points")
below.set(xlabel="shoulder angle $x_1$ (rad)", ylabel="elbow angle $x_2$ (rad)")
for ax in (above, below):
    ax.spines[["top", "right"]].set_visible(False)
fig.legend(loc="outside upper center", ncols=2, frameon=False, handletextpad=0.3)
plt.show()

# %%
# What should be seen: inside the training regions the ellipses are nearly circles, hardly larger
# than the noise. Outside they grow, and in the gap between the two regions a little. Ellipses of
# two standard deviations should hold 86 % of new measured positions, and more of the true ones.
# Outside they hold fewer: error bars are those of the chosen model, and far from the data they say
# what that model believes.

area = np.pi * np.sqrt(np.linalg.det(covariance))
between = ~inside & (abs(angles[:, 0]) < FIRST[0]) & (abs(angles[:, 1] - 1.75) < 1.1)
for name, chosen in [("inside", inside), ("between", between), ("outside", ~inside & ~between)]:
    print(f"area of one standard deviation, median {name}: {1e4 * np.median(area[chosen]):.0f} cm²")
print(f"noise alone, as estimated: {1e4 * np.pi * model.noise_std_[0] ** 2:.0f} cm²")
miss = (hand(angles) - position)[:, :, None]
within = np.sum(miss * np.linalg.solve(covariance, miss), axis=(1, 2)) < 2.0**2
for name, chosen in [("inside", inside), ("elsewhere", ~inside)]:
    print(f"true position within two standard deviations, {name}: {np.mean(within[chosen]):.0%}")
print(f"noise: estimated {model.noise_std_[0]:.4f} m, true {NOISE} m")
assert np.median(area[~inside]) > 2 * np.median(area[inside])
assert np.median(area[between]) > np.median(area[inside])
assert np.mean(within[inside]) > 0.86
assert abs(model.noise_std_[0] / NOISE - 1) < 0.1

# %%
# The number of hidden units
# --------------------------
# The evidence of networks of several widths, under one prior precision for all weights
# (``"single"``) and under one for each layer (``"layer"``), beside an error that the networks
# cannot know: the distance to the noise-free positions of 1000 new pairs of angles.

WIDTHS = [4, 6, 8, 10, 12, 16, 20]
evidence, error, kept = {}, {}, {}
for prior in ("single", "layer"):
    fits = [
        EvidenceMLPRegressor(
            hidden_layer_sizes=(width,), prior=prior, noise="shared", n_restarts=3, random_state=0
        ).fit(X, y)
        for width in WIDTHS
    ]
    evidence[prior] = np.array([fit.log_evidence_ for fit in fits])
    kept[prior] = np.array([len(fit.intercepts_[0]) for fit in fits])
    squares = [np.sum((fit.predict(X_test) - hand(X_test)) ** 2, axis=1) for fit in fits]
    error[prior] = np.sqrt(np.mean(squares, axis=1))
    print(prior)
    for row in zip(WIDTHS, kept[prior], evidence[prior], error[prior], strict=True):
        print("  {:2d} hidden units, {:2d} kept: {:6.1f} nats, test error {:.3f} m".format(*row))

# %%
# Networks of 4 units cannot describe the arm; their evidence lies far below the picture, and is
# given as a number.

fig, (above, below) = plt.subplots(2, 1, figsize=(3.54, 3.9), sharex=True, layout="constrained")
lowest = min(values[1:].min() for values in evidence.values()) - 20
highest = max(values.max() for values in evidence.values()) + 6
for prior, colour, marker in [("single", ORANGE, "s"), ("layer", BLUE, "o")]:
    style = {"color": colour, "marker": marker, "ms": 3.5, "lw": 1.0, "label": f'prior="{prior}"'}
    above.plot(WIDTHS, evidence[prior], **style)
    place = {"single": 3, "layer": 10}[prior]
    above.annotate(
        f"↓ {evidence[prior][0]:.0f}", (4, lowest + place), color=colour, ha="center", fontsize=7
    )
    below.plot(WIDTHS, 100 * error[prior], **style)
above.set(xlim=(3, 20.6), ylim=(lowest, highest), ylabel="log evidence (nats)")
below.set(xticks=WIDTHS, yscale="log", xlabel="hidden units", ylabel="test error, rms (cm)")
below.set_yticks([2, 3, 5, 10, 20], ["2", "3", "5", "10", "20"])
below.minorticks_off()
for ax in (above, below):
    ax.spines[["top", "right"]].set_visible(False)
fig.legend(*above.get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)
plt.show()

# %%
# What should be seen: the evidence rises steeply up to 8 units. With the single prior the best
# network has a moderate number of them; 20 units have less evidence and no smaller error. The prior
# per layer has more evidence and a smaller error wherever there are enough units. Units that are
# not needed are switched off by their prior and then removed, so that much wider networks end with
# 10 to 15 units. What remains from width to width, some nats, also depends on the random starts.

best = int(np.argmax(evidence["single"]))
assert 8 <= kept["single"][best] <= 13
assert evidence["single"][-1] < evidence["single"][best] - 3
assert np.all(evidence["layer"] > evidence["single"])
assert np.all(error["layer"][1:] < error["single"][1:])
assert all(values[0] < values[1:].min() - 100 for values in evidence.values())
assert kept["layer"][-1] < 20
