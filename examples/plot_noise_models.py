"""
Noise that depends on the input, and outliers
=============================================

Constant Gaussian noise is wrong if measurements are more precise in one region
than in another, or if some of them are far off. This example has a data set of
each kind. The evidence compares the noise models.
"""

# sphinx_gallery_thumbnail_number = 2

import matplotlib.pyplot as plt
import numpy as np

from skbayesnn import EvidenceMLPRegressor

rng = np.random.default_rng(0)
grid = np.linspace(-3.4, 3.4, 241)[:, None]


def signal(X):
    """True function."""
    return np.sin(1.5 * X[:, 0])


def noise_sd(X):
    """True noise level, from 0.05 to 0.5 over the range of the data."""
    return 0.05 * 10 ** ((X[:, 0] + 3) / 6)


X = rng.uniform(-3, 3, (200, 1))
y = {
    "unequal": signal(X) + noise_sd(X) * rng.standard_normal(200),
    "outliers": signal(X) + 0.1 * rng.standard_normal(200),
}
wrong = rng.permutation(200)[:14]
y["outliers"][wrong] += rng.choice([-1, 1], 14) * rng.uniform(0.8, 2.5, 14)

# %%
# Every data set is fitted under every noise model. ``method="laplace"``
# uses Laplace's approximation for all of them. The default, ``noise="auto"``,
# needs no choice where networks are drawn by chains: their noise law has the
# others as limits. Small fits predict with the noise models that tests of the
# residuals suggest, with shares that maximise the leave-one-out density
# (stacking).

models = {}
for data, targets in y.items():
    for noise in ("constant", "input_dependent", "student_t"):
        model = EvidenceMLPRegressor(
            (8,),
            noise=noise,
            n_restarts=2,
            method="laplace",
            random_state=0,
        )
        models[data, noise] = model.fit(X, targets)
    print(f"{data}:")
    for noise in ("constant", "input_dependent", "student_t"):
        print(f"  {noise:16s}{models[data, noise].log_evidence_:8.1f} nats")

# %%
# Noise that depends on the input
# -------------------------------
# The intervals of constant noise are too wide on the left and too narrow on the
# right. With ``noise="input_dependent"`` a second network learns the logarithm
# of the noise level. It is driven by the evidence, not by the likelihood
# (MacKay 1992, chapter 6): a point that the first network could fit exactly
# has no influence on the noise. ``predict_std(X, kind="aleatoric")`` is the
# noise level of each row.

# Okabe and Ito: safe for colour-blind readers
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "0.45"
plt.rcParams.update(
    {"font.size": 8, "axes.linewidth": 0.6, "legend.fontsize": 7}
)


def show(ax, model, targets, colour):
    """Data, mean, and the interval that holds 95 % of new targets."""
    low, high = model.predict_interval(grid, 0.95).T
    ax.fill_between(
        grid[:, 0],
        low,
        high,
        color=colour,
        alpha=0.25,
        lw=0,
        label="95 % interval",
    )
    ax.plot(grid[:, 0], model.predict(grid), color=colour, lw=1.2, label="mean")
    ax.plot(
        grid[:, 0],
        signal(grid),
        color="black",
        lw=0.7,
        ls="--",
        label="true function",
    )
    ax.plot(X[:, 0], targets, ".", color=GREY, ms=2.5, label="data")
    ax.set(ylabel="target $y$", xlim=(-3.4, 3.4))
    ax.spines[["top", "right"]].set_visible(False)


fig, axes = plt.subplots(
    3,
    1,
    figsize=(3.54, 5.6),
    sharex=True,
    height_ratios=[1, 1, 0.8],
    layout="constrained",
)
fits = [models["unequal", noise] for noise in ("constant", "input_dependent")]
for ax, model, colour in zip(axes, fits, (ORANGE, BLUE), strict=False):
    show(ax, model, y["unequal"], colour)
    ax.set(title=f'noise="{model.noise}"', ylim=(-2.6, 2.6))
fig.legend(
    *axes[0].get_legend_handles_labels(),
    loc="outside upper center",
    ncols=4,
    frameon=False,
    columnspacing=0.8,
    handlelength=1.2,
)
for model, colour in zip(fits, (ORANGE, BLUE), strict=True):
    level = model.predict_std(grid, kind="aleatoric")
    axes[2].plot(
        grid[:, 0], level, color=colour, lw=1.2, label=f'"{model.noise}"'
    )
axes[2].plot(
    grid[:, 0], noise_sd(grid), color="black", lw=0.7, ls="--", label="true"
)
axes[2].set(yscale="log", ylim=(0.03, 1), xlabel="input $x$", ylabel="noise sd")
axes[2].set_yticks([0.03, 0.1, 0.3, 1.0], ["0.03", "0.1", "0.3", "1"])
axes[2].minorticks_off()
axes[2].legend(frameon=False)
axes[2].spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# In the lowest panel the blue curve follows the dashed one closely. The report
# has the terms of both networks. A noise network that is not needed switches
# itself off, as for the second data set above: the evidence is then hardly
# different from that of constant noise.

print(models["unequal", "input_dependent"].evidence_report_.full())
central = np.abs(grid[:, 0]) < 2.7
found = models["unequal", "input_dependent"].predict_std(
    grid[central], kind="aleatoric"
)
ratio = found / noise_sd(grid[central])
print(f"noise sd over the true one: {ratio.min():.2f} to {ratio.max():.2f}")

# %%
# Outliers
# --------
# Seven per cent of the targets are wrong by 8 to 25 standard deviations. With
# constant noise the intervals are too wide everywhere, and the mean is wrong in
# places. Student-t noise has heavy tails, so the outliers hardly matter. The
# fit infers the degrees of freedom, which say how heavy the tails are.

fig, axes = plt.subplots(
    2, 1, figsize=(3.54, 4.2), sharex=True, layout="constrained"
)
fits = [models["outliers", noise] for noise in ("constant", "student_t")]
for ax, model, colour in zip(axes, fits, (ORANGE, BLUE), strict=True):
    show(ax, model, y["outliers"], colour)
    ax.set(title=f'noise="{model.noise}"', ylim=(-3.6, 3.6))
fig.legend(
    *axes[0].get_legend_handles_labels(),
    loc="outside upper center",
    ncols=4,
    frameon=False,
    columnspacing=0.8,
    handlelength=1.2,
)
axes[1].set(xlabel="input $x$")
plt.show()

# %%
# The lower mean is almost equal to the true function, while the upper one is
# wrong in places.

inside = np.abs(grid[:, 0]) < 3
for model in fits:
    error = np.sqrt(np.mean((model.predict(grid) - signal(grid))[inside] ** 2))
    print(
        f"{model.noise:10s} rms error of the mean {error:.3f}, noise sd "
        f"{model.noise_std_:.2f}"
    )
print(
    f"degrees of freedom: {models['outliers', 'student_t'].degrees_of_freedom_}"
)

# %%
# The noise model of default fits:

for data, targets in y.items():
    model = EvidenceMLPRegressor((8,), n_restarts=2, random_state=0).fit(
        X, targets
    )
    print(f"{data}: {model.noise_model_}")
