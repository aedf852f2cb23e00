"""
Error ellipses of a robot arm
=============================

This is MacKay's test problem (D. J. C. MacKay, *Bayesian Methods for Adaptive
Models*, PhD thesis, 1992, section 3.4): predict the position of a hand from the
two joint angles of an arm. The segments of the arm are 2.0 m and 1.3 m long.
The 200 measured positions have noise of standard deviation 0.05 m in both
coordinates.
"""

import matplotlib.pyplot as plt
import numpy as np

from skbayesnn import EvidenceMLPRegressor

NOISE = 0.05
FIRST, SECOND = (
    (0.453, 1.932),
    (0.534, 3.142),
)  # training range: both signs of the first angle


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
    sign = rng.choice([-1.0, 1.0], n_rows)
    return np.column_stack(
        [sign * rng.uniform(*FIRST, n_rows), rng.uniform(*SECOND, n_rows)]
    )


rng = np.random.default_rng(0)
X = draw_angles(200, rng)
y = hand(X) + NOISE * rng.standard_normal(X.shape)

# %%
# Error ellipses
# --------------
# One network predicts both coordinates. They are measured in the same way, so
# that one noise level serves both. ``predict_output_cov`` gives the covariance
# of the two coordinates, for angles inside the two training regions, between
# them and a short distance outside.

model = EvidenceMLPRegressor(
    hidden_layer_sizes=(10,), noise="shared", random_state=0
).fit(X, y)

shoulder = np.array(
    [-2.4, -2.1, -1.8, -1.2, -0.6, 0.0, 0.6, 1.2, 1.8, 2.1, 2.4]
)
elbow = np.array([0.1, 0.7, 1.4, 2.1, 2.8, 3.4])
angles = np.stack(np.meshgrid(shoulder, elbow, indexing="ij"), axis=-1).reshape(
    -1, 2
)
inside = (FIRST[0] <= abs(angles[:, 0])) & (abs(angles[:, 0]) <= FIRST[1])
inside &= (SECOND[0] <= angles[:, 1]) & (angles[:, 1] <= SECOND[1])

position = model.predict(angles)
covariance = model.predict_output_cov(angles)

# %%
# An ellipse of one standard deviation is the image of the unit circle under the
# Cholesky factor of the covariance. Compare figure 3.1 of the thesis.

# Okabe and Ito: safe for colour-blind readers
BLUE, ORANGE = "#0072B2", "#D55E00"
plt.rcParams.update(
    {"font.size": 8, "axes.linewidth": 0.6, "legend.fontsize": 7}
)
turn = np.linspace(0.0, 2.0 * np.pi, 61)
ellipses = np.linalg.cholesky(covariance) @ np.stack(
    [np.cos(turn), np.sin(turn)]
)

fig, (above, below) = plt.subplots(
    2, 1, figsize=(3.54, 5.2), height_ratios=[2.4, 1], layout="constrained"
)
selections = [
    (inside, BLUE, "in the training regions"),
    (~inside, ORANGE, "outside"),
]
for chosen, colour, name in selections:
    for centre, ellipse in zip(position[chosen], ellipses[chosen], strict=True):
        for n_sd, width in [(1, 0.8), (2, 0.4)]:
            above.plot(
                *(centre[:, None] + n_sd * ellipse), color=colour, lw=width
            )
    above.plot(*position[chosen].T, ".", color=colour, ms=1.5)
    below.plot(
        *angles[chosen].T, "o", color=colour, ms=3.5, label=f"predicted, {name}"
    )
above.plot(*hand(angles).T, "x", color="black", ms=2.5, mew=0.5)
above.plot([], [], "x", color="black", ms=2.5, mew=0.5, label="true position")
above.text(
    0.98, 0.02, "ellipses: 1 and 2 sd", ha="right", transform=above.transAxes
)
above.set(xlabel="hand $t_1$ (m)", ylabel="hand $t_2$ (m)", aspect="equal")
below.plot(*X.T, ".", color="0.55", ms=2.0, zorder=0, label="training points")
below.set(xlabel="shoulder angle $x_1$ (rad)", ylabel="elbow angle $x_2$ (rad)")
for ax in (above, below):
    ax.spines[["top", "right"]].set_visible(False)
fig.legend(
    loc="outside upper center", ncols=2, frameon=False, handletextpad=0.3
)
plt.show()

# %%
# Inside the training regions the ellipses are nearly circles, hardly larger
# than the noise. Outside they grow, and in the gap between the two regions a
# little. Ellipses of two standard deviations should hold 86 % of new measured
# positions, and more of the true ones. Outside they hold fewer: far from the
# data, error bars show what the chosen model assumes.

area = np.pi * np.sqrt(np.linalg.det(covariance))
between = (
    ~inside & (abs(angles[:, 0]) < FIRST[0]) & (abs(angles[:, 1] - 1.75) < 1.1)
)
for name, chosen in [
    ("inside", inside),
    ("between", between),
    ("outside", ~inside & ~between),
]:
    print(
        f"area of one standard deviation, median {name}: "
        f"{1e4 * np.median(area[chosen]):.0f} cm²"
    )
print(
    f"noise alone, as estimated: {1e4 * np.pi * model.noise_std_[0] ** 2:.0f} "
    "cm²"
)
miss = (hand(angles) - position)[:, :, None]
within = np.sum(miss * np.linalg.solve(covariance, miss), axis=(1, 2)) < 2.0**2
for name, chosen in [("inside", inside), ("elsewhere", ~inside)]:
    print(
        f"true position within two standard deviations, {name}: "
        f"{np.mean(within[chosen]):.0%}"
    )
print(f"noise: estimated {model.noise_std_[0]:.4f} m, true {NOISE} m")
