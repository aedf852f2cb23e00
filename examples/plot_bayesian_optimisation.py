"""
Find the minimum of an expensive function
=========================================

Bayesian optimisation finds the lowest point of a function with as few noisy
measurements as possible. Thompson sampling (Thompson 1933) draws a function
from the posterior and measures next where this function is lowest. So it
measures where the minimum probably is, and also where it may be because there
are no measurements yet. ``sample_y`` draws the functions.

The error bars contain the function, and after twelve measurements most runs
have found the minimum. Random search finds it in one run out of three.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import beta
from sklearn.base import clone

from skbayesnn import EvidenceMLPRegressor, Noise, Prior

NOISE = 0.05
N_FIRST, N_LAST, N_RUNS = 4, 12, 5


def objective(x):
    """A test function with two minima (Forrester et al. 2008), divided by 5."""
    return (6 * x - 2) ** 2 * np.sin(12 * x - 4) / 5


grid = np.linspace(0, 1, 201)
LOWEST = objective(grid).min()

# %%
# The loop
# --------
# With so few measurements the prior matters, so it is given here: the output
# weights have standard deviation 2, and the input weights and biases 5. The
# noise of the instrument is given as well. With ``"auto"`` both would be
# inferred. Four similar values would then suggest a flat function with narrow
# error bars, and the search would stop too early.
#
# The fits are small. Their evidence is therefore measured by sampling, and the
# predictions come from networks that are drawn from the posterior, not from a
# Gaussian around one minimum.

PRIOR = {"hidden1_weights": 1 / 25, "hidden1_biases": 1 / 25, "output": 1 / 4}


def inputs(x):
    """Column of inputs with standard deviation 1."""
    return (np.reshape(x, (-1, 1)) - 0.5) / 0.3


def optimise(seed):
    """Every fit, and all measurements."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 1, N_FIRST)
    y = objective(x) + NOISE * rng.standard_normal(N_FIRST)
    model = EvidenceMLPRegressor(
        (8,),
        prior=Prior(precision=PRIOR),
        noise=Noise("constant", std=NOISE),
        standardize=False,
        n_restarts=1,
        random_state=seed,
    )
    fits = []
    for step in range(N_FIRST, N_LAST + 1):
        fits.append(clone(model).fit(inputs(x), y))
        drawn = fits[-1].sample_y(inputs(grid), random_state=step)
        x = np.append(x, grid[np.argmin(drawn)])
        y = np.append(y, objective(x[-1]) + NOISE * rng.standard_normal())
    return fits, x, y


runs = [optimise(seed) for seed in range(N_RUNS)]

# %%
# One run
# -------
# The drawn function (thin) decides where to measure next (dotted). Where there
# are no data, the drawn functions differ from fit to fit. Later they agree
# about the minimum, and the search measures there again.

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "0.45"  # Okabe and Ito
plt.rcParams.update(
    {"font.size": 9, "axes.linewidth": 0.6, "legend.fontsize": 8}
)
fits, x, y = runs[0]
fig, axes = plt.subplots(
    2, 2, figsize=(6.5, 4.6), sharex=True, sharey=True, layout="constrained"
)
for ax, n in zip(axes.flat, [4, 6, 8, 12], strict=True):
    model = fits[n - N_FIRST]
    mean = model.predict(inputs(grid))
    std = model.predict_std(inputs(grid), kind="epistemic")
    drawn = model.sample_y(inputs(grid), random_state=n)[:, 0]
    band = mean - 2 * std, mean + 2 * std
    ax.fill_between(grid, *band, color=BLUE, alpha=0.2, lw=0, label="±2 sd")
    ax.plot(grid, mean, color=BLUE, lw=1.3, label="mean")
    ax.plot(grid, drawn, color=ORANGE, lw=0.8, label="drawn function")
    ax.plot(grid, objective(grid), "k--", lw=0.8, label="true function")
    ax.axvline(x[n], color=ORANGE, lw=0.8, ls=":", label="next measurement")
    ax.plot(x[:n], y[:n], "o", color="black", ms=3, label="measured")
    ax.set(title=f"{n} measurements", xlim=(0, 1), ylim=(-5, 5))
    ax.spines[["top", "right"]].set_visible(False)
for ax in axes[1]:
    ax.set_xlabel("input $x$")
for ax in axes[:, 0]:
    ax.set_ylabel("objective")
handles, labels = axes[0, 0].get_legend_handles_labels()
fig.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
plt.show()

# %%
# Are the error bars right? Over all runs and fits, the true function lies
# inside ±2 standard deviations nearly everywhere.

distances = np.array(
    [
        np.abs(objective(grid) - model.predict(inputs(grid)))
        / model.predict_std(inputs(grid), kind="epistemic")
        for fits, _, _ in runs
        for model in fits
    ]
)
print(f"inside ±2 sd: {np.mean(distances < 2):.0%} of the grid")
at_minimum = distances[:, np.argmin(objective(grid))]
print(f"largest distance at the minimum: {at_minimum.max():.1f} sd")

# %%
# Comparison with random search
# -----------------------------
# Both methods finally choose a place: where the predictive mean is lowest, or
# where random search has measured the lowest value. A run has found the minimum
# if the objective at this place is within the noise of its lowest value. Random
# search starts from the same four points and is repeated two hundred times. The
# error bars are 68 % intervals for the fraction (of a Beta distribution).


def random_search(seed):
    """Loss of the place that is chosen, after every measurement."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 1, N_FIRST)
    y = objective(x) + NOISE * rng.standard_normal(N_FIRST)
    more = rng.uniform(0, 1, N_LAST - N_FIRST)
    x = np.append(x, more)
    y = np.append(y, objective(more) + NOISE * rng.standard_normal(len(more)))
    chosen = [x[np.argmin(y[:n])] for n in range(N_FIRST, N_LAST + 1)]
    return objective(np.array(chosen)) - LOWEST


def loss(model):
    """Loss of the place where the predictive mean is lowest."""
    return objective(grid[np.argmin(model.predict(inputs(grid)))]) - LOWEST


losses = {
    "random search": np.array([random_search(seed) for seed in range(200)]),
    "Thompson sampling": np.array(
        [[loss(m) for m in fits] for fits, _, _ in runs]
    ),
}
numbers = np.arange(N_FIRST, N_LAST + 1)
found = {name: values < NOISE for name, values in losses.items()}
fig, ax = plt.subplots(figsize=(3.54, 2.8), layout="constrained")
for (name, values), colour, marker in zip(
    found.items(), [GREY, BLUE], "so", strict=True
):
    share = values.mean(axis=0)
    successes = values.sum(axis=0)
    posterior = beta(successes + 0.5, len(values) - successes + 0.5)
    error = np.abs(posterior.ppf([[0.16], [0.84]]) - share)
    style = {
        "color": colour,
        "marker": marker,
        "ms": 3.5,
        "lw": 1.1,
        "capsize": 2,
    }
    label = f"{name} ({len(values)} runs)"
    ax.errorbar(numbers, share, error, label=label, **style)
    print(f"{name}: {share[-1]:.0%} of the runs have found the minimum")
ax.set(xlabel="measurements", ylabel="successful runs (fraction)")
ax.set(xticks=numbers, ylim=(0, 1.05))
fig.legend(loc="outside upper center", ncols=1, frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# A run may settle in the higher minimum if the prior expects smoother
# functions. With more inputs the network needs more measurements.
