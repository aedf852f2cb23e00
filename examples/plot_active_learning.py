"""
Active learning: choosing measurements
======================================

We want to know a function of one input between 0 and 2. We can measure it
anywhere between -4 and 4, with noise of standard deviation 0.05, and every
measurement costs money. The example starts with 12 random inputs and measures
five more at a time. It compares three strategies: random inputs, the largest
error bars, and the largest mean marginal information gain about the range of
interest (D. J. C. MacKay, *Bayesian Methods for Adaptive Models*, PhD thesis,
1992, equation 4.13).
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import EvidenceMLPRegressor
from skbayesnn.active_learning import select

NOISE = 0.05
N_FIRST, N_BATCH, N_ROUNDS, N_REPETITIONS = 12, 5, 4, 4


def true_function(x):
    """A step near -2 and a bump near 1.2, on a falling line."""
    return np.tanh(2.0 * (x + 2.0)) + np.exp(-((x - 1.2) ** 2) / 0.3) - 0.3 * x


# with 12 rows the evidence is rough
warnings.simplefilter("ignore", ConvergenceWarning)
wanted = np.linspace(0.0, 2.0, 60)[:, None]

# %%
# The loop
# --------
# Fit, choose, measure, repeat. ``select`` chooses a whole batch: after each
# choice the error bars are updated as if it had been measured. The noise of the
# instrument is known. The evidence is not needed here, and measuring it would
# take most of the time, so ``method="laplace"``. Each strategy chooses
# from the same pool of inputs, and finds the same noise at the same input.


def learn(strategy, seed):
    """Inputs measured, in order, and the error after every fit."""
    rng = np.random.default_rng(seed)
    pool = rng.uniform(-4.0, 4.0, (300, 1))
    y = true_function(pool[:, 0]) + NOISE * rng.standard_normal(300)
    measured, free = np.arange(N_FIRST), np.arange(N_FIRST, 300)
    errors = []
    for _ in range(N_ROUNDS + 1):
        model = EvidenceMLPRegressor(
            (8,),
            noise=NOISE,
            n_restarts=1,
            method="laplace",
            random_state=seed,
        )
        model.fit(pool[measured], y[measured])
        errors.append(
            np.sqrt(
                np.mean(
                    (model.predict(wanted) - true_function(wanted[:, 0])) ** 2
                )
            )
        )
        if strategy == "random":
            new = rng.choice(len(free), N_BATCH, replace=False)
        elif strategy == "largest error bar":
            new = select(model, pool[free], N_BATCH)
        else:
            new = select(model, pool[free], N_BATCH, wanted)
        measured, free = np.append(measured, free[new]), np.delete(free, new)
    return pool[measured[:-N_BATCH], 0], np.array(errors)


STRATEGIES = ["random", "largest error bar", "mean marginal gain"]
runs = {
    name: [learn(name, seed) for seed in range(N_REPETITIONS)]
    for name in STRATEGIES
}

# %%
# Learning curves
# ---------------
# Means over the repetitions with their standard errors. The lower picture shows
# the inputs of the first repetition.

COLOURS = dict(
    zip(STRATEGIES, ["0.45", "#D55E00", "#0072B2"], strict=True)
)  # Okabe and Ito
MARKERS = dict(zip(STRATEGIES, "so^", strict=True))
numbers = N_FIRST + N_BATCH * np.arange(N_ROUNDS + 1)
plt.rcParams.update(
    {"font.size": 8, "axes.linewidth": 0.6, "legend.fontsize": 7}
)
fig, (above, below) = plt.subplots(
    2, 1, figsize=(3.54, 4.4), height_ratios=[1.5, 1], layout="constrained"
)
final = {}
for shift, name in zip([-0.25, 0.0, 0.25], STRATEGIES, strict=True):
    errors = np.array([curve for _, curve in runs[name]])
    final[name] = errors[:, -1].mean()
    mean = errors.mean(axis=0)
    spread = errors.std(axis=0, ddof=1) / np.sqrt(N_REPETITIONS)
    style = {
        "color": COLOURS[name],
        "marker": MARKERS[name],
        "ms": 3.5,
        "lw": 1.1,
        "capsize": 2,
    }
    above.errorbar(numbers + shift, mean, spread, label=name, **style)
    print(
        name + ":",
        *(f"{e:.3f} ± {s:.3f}" for e, s in zip(mean, spread, strict=True)),
    )
above.set(
    yscale="log",
    xticks=numbers,
    xlabel="measurements",
    ylabel="error, rms (units of y)",
)
above.set_yticks(
    [0.02, 0.05, 0.1, 0.2, 0.5], ["0.02", "0.05", "0.1", "0.2", "0.5"]
)
above.minorticks_off()
above.legend(loc="upper right", frameon=False)

grid = np.linspace(-4.0, 4.0, 300)
below.axvspan(0.0, 2.0, color="0.92", lw=0)
below.plot(grid, true_function(grid), color="black", lw=1.0)
for level, name in zip([-2.2, -2.8, -3.4], STRATEGIES, strict=True):
    x = runs[name][0][0]
    below.plot(
        x[N_FIRST:],
        np.full(len(x) - N_FIRST, level),
        "|",
        color=COLOURS[name],
        ms=6,
    )
below.text(1.0, 2.2, "wanted here", ha="center", fontsize=7)
below.set(
    xlabel="input x", ylabel="true function", xlim=(-4, 4), ylim=(-3.8, 2.8)
)
below.set_yticks([-1, 0, 1])
for ax in (above, below):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Random choice wastes three measurements out of four outside the range of
# interest. The largest error bars are in gaps and at edges, also outside the
# range of interest. The mean marginal gain measures in this range, and needs
# about half of the measurements for the same error.

mean_curve = np.mean([curve for _, curve in runs["mean marginal gain"]], axis=0)
needed = numbers[np.argmax(mean_curve < final["random"])]
print(
    f"random choice ends at {final['random']:.3f} after {numbers[-1]} "
    "measurements; the mean "
    f"marginal gain is there after {needed}"
)
