"""
Expected information gains
==========================

How much information would a new measurement give? D. J. C. MacKay (*Bayesian
Methods for Adaptive Models*, PhD thesis, 1992, chapters 4 and 5) computes
expected information gains in nats. They need only the error bars of a fitted
network. The pictures correspond to his figures 4.1 (regression) and 5.7
(classification), and show a weakness that he describes.
"""

import matplotlib.pyplot as plt
import numpy as np

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor
from skbayesnn.active_learning import information_gain, select

NOISE = 0.05

# %%
# Regression
# ----------
# The data are 21 measurements of a smooth function in three groups, with noise
# of standard deviation 0.05. The network has 8 hidden units.

rng = np.random.default_rng(1)
x = np.concatenate(
    [rng.uniform(a, b, 7) for a, b in [(-3.0, -2.0), (-0.9, 0.1), (1.8, 2.6)]]
)
y = (
    np.tanh(1.5 * x)
    + 0.4 * np.sin(2.5 * x)
    + NOISE * rng.standard_normal(len(x))
)
model = EvidenceMLPRegressor((8,), noise=NOISE, random_state=0).fit(
    x[:, None], y
)

# %%
# The *total* gain is about all weights. The *marginal* gains are about the
# function at one point of interest each, the *mean marginal* gain is their
# average over a region of interest.

grid = np.linspace(-6.0, 6.0, 481)[:, None]
points = np.array([[-1.5], [1.0], [4.0]])
region = np.linspace(0.3, 1.7, 15)[:, None]
total = information_gain(model, grid)
marginal = information_gain(model, grid, points, kind="marginal")
mean_marginal = information_gain(model, grid, region)

# %%
# ``select`` chooses several measurements: after each choice the inverse Hessian
# is updated as if the measurement had been made. The ten largest gains alone
# lie next to each other.

chosen = grid[select(model, grid, 10, region)]
largest = grid[np.argsort(mean_marginal)[-10:]]

# Okabe and Ito
BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
plt.rcParams.update(
    {"font.size": 8, "axes.linewidth": 0.6, "legend.fontsize": 7}
)
fig, axes = plt.subplots(
    3,
    1,
    figsize=(3.54, 5.4),
    sharex=True,
    height_ratios=[1.1, 1.2, 1],
    layout="constrained",
)
above, middle, below = axes
mean, sd = model.predict(grid, return_std=True)
above.fill_between(
    grid[:, 0], mean - sd, mean + sd, color="#CFE6F5", lw=0, label="±1 sd"
)
above.plot(grid, mean, color=BLUE, lw=1.2, label="prediction")
above.plot(
    x, y, "o", ms=2.6, mfc="black", mec="white", mew=0.3, label="measurements"
)
above.set(ylabel="target y", ylim=(-3.2, 3.2))
above.legend(
    loc="upper left", frameon=False, ncols=3, columnspacing=1, handlelength=1.4
)

middle.plot(grid, total, color="0.45", lw=1.4, label="total")
for point, gain, colour in zip(
    points[:, 0], marginal.T, (ORANGE, GREEN, PURPLE), strict=True
):
    middle.plot(grid, gain, color=colour, lw=1.1, label=f"at {point:g}")
    middle.plot(
        point, np.interp(point, grid[:, 0], gain), "v", color=colour, ms=5
    )
middle.set(ylabel="gain (nats)", ylim=(0, 1.35 * total.max()))
handles, labels = middle.get_legend_handles_labels()
legend = middle.legend(
    handles[:1], ["total gain"], loc="upper left", frameon=False
)
middle.add_artist(legend)
middle.legend(
    handles[1:],
    labels[1:],
    title="marginal gain about the function",
    title_fontsize=7,
    loc="upper right",
    frameon=False,
    ncols=3,
    columnspacing=1,
    handlelength=1.4,
)

below.axvspan(region[0, 0], region[-1, 0], color="0.92", lw=0)
below.plot(grid, mean_marginal, color=BLUE, lw=1.2)
top = mean_marginal.max()
below.plot(
    chosen,
    np.full(10, -0.1 * top),
    "|",
    color=ORANGE,
    ms=7,
    mew=1.2,
    clip_on=False,
)
below.plot(largest, np.full(10, -0.25 * top), "|", color="0.45", ms=7, mew=1.2)
below.text(
    -5.9,
    -0.1 * top,
    "10 chosen by select",
    va="center",
    color=ORANGE,
    fontsize=7,
)
below.text(
    -5.9, -0.25 * top, "10 largest gains", va="center", color="0.35", fontsize=7
)
below.text(1.0, 1.06 * top, "region of interest", ha="center", fontsize=7)
below.set(xlabel="input x", ylabel="mean marginal\ngain (nats)", xlim=(-6, 6))
below.set_ylim(-0.36 * top, 1.2 * top)
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# A marginal gain peaks at or next to its point of interest (triangle), where it
# equals the total gain. The total gain is large in gaps and keeps growing
# outside, where the error bars are widest: a learner that follows it measures
# at the edges. The mean marginal gain vanishes far from the region of interest.
# The points chosen by ``select`` spread over the region.

far = np.abs(grid[:, 0] - 1.0) > 3.5
print(
    f"mean marginal gain, largest: {top:.3f} nats, far from the region: "
    f"{mean_marginal[far].max():.3f} nats"
)
print(
    f"total gain at the edges: {total[[0, -1]].max():.2f} nats, "
    f"among the points: {np.median(total[np.abs(grid[:, 0] + 0.4) < 0.5]):.2f} "
    "nats"
)

# %%
# Classification
# --------------
# There are two classes in the plane (class 1 is black). Points of interest form
# a lattice over the region of the data. The gain is about the classes there
# (equation 5.22 of the thesis).

CENTRES = np.array(
    [
        [[-2.0, 0.6], [0.4, -1.6], [1.8, 1.9]],
        [[-0.4, 1.7], [2.2, -0.4], [-1.9, -1.6]],
    ]
)
classes = rng.integers(2, size=80)
X = CENTRES[classes, rng.integers(3, size=80)] + 0.7 * rng.standard_normal(
    (80, 2)
)
classifier = EvidenceMLPClassifier((8,), combine="best", random_state=0).fit(
    X, classes
)

side = np.linspace(-10.0, 10.0, 121)
plane = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
lattice = np.stack(
    np.meshgrid(*[np.linspace(-3.0, 3.0, 9)] * 2), axis=-1
).reshape(-1, 2)
probability = classifier.predict_proba(plane)[:, 1]
class_gain = information_gain(classifier, plane, lattice)
exact = information_gain(classifier, lattice, lattice, method="exact")
approximate = information_gain(classifier, lattice, lattice)

fig, (left, right) = plt.subplots(
    2, 1, figsize=(3.54, 5.7), sharex=True, layout="constrained"
)
shape = (len(side), len(side))
filled = left.contourf(
    side,
    side,
    probability.reshape(shape),
    np.linspace(0, 1, 11),
    cmap="cividis",
)
left.contour(
    side,
    side,
    probability.reshape(shape),
    [0.5],
    colors="white",
    linewidths=0.8,
)
fig.colorbar(
    filled, ax=left, label="moderated probability of class 1", ticks=[0, 0.5, 1]
)
for label, marker, colour in [(0, "s", "white"), (1, "o", "black")]:
    left.plot(
        *X[classes == label].T, marker, ms=2.2, mfc=colour, mec="0.5", mew=0.3
    )
shown = right.contourf(
    side, side, 1000 * class_gain.reshape(shape), 10, cmap="cividis"
)
fig.colorbar(shown, ax=right, label="mean marginal gain (0.001 nats)")
right.contour(
    side,
    side,
    probability.reshape(shape),
    [0.5],
    colors="white",
    linewidths=0.8,
)
right.plot(
    [-3, 3, 3, -3, -3], [-3, -3, 3, 3, -3], color="white", lw=0.8, ls="--"
)
for ax in (left, right):
    ax.set(
        ylabel="$x_2$",
        aspect="equal",
        xticks=[-10, -5, 0, 5, 10],
        yticks=[-10, -5, 0, 5, 10],
    )
right.set_xlabel("$x_1$")
plt.show()

# %%
# The gain is high where the class is uncertain, along the boundary (white
# line). It does not end with the data (dashed square: region of interest).
# Ridges run outwards along the boundary, far beyond useful measurements. Far
# outside, the boundary is where one hidden unit changes sign: a straight line
# whose direction is slightly uncertain. A label far out on this line determines
# the direction well, and so gives information about the classes inside, but
# only *if the network is right* and the line is really straight that far out.
# To avoid this, use only candidates at which you would really measure.

outside = np.max(np.abs(plane), axis=1) > 6.0
uncertain = np.abs(probability - 0.5) < 0.1
certain = np.abs(probability - 0.5) > 0.4
print(
    f"gain where the class is uncertain: "
    f"{1000 * np.median(class_gain[uncertain]):.1f}, "
    f"certain: {1000 * np.median(class_gain[certain]):.1f} (0.001 nats, "
    "medians)"
)
print(
    f"largest gain inside: {1000 * class_gain[~outside].max():.1f}, "
    f"far outside: {1000 * class_gain[outside].max():.1f} (0.001 nats)"
)
print(
    f"approximation against exact mutual information on the lattice: "
    "correlation "
    f"{np.corrcoef(exact, approximate)[0, 1]:.2f}, "
    f"ratio of means {approximate.mean() / exact.mean():.2f}"
)
