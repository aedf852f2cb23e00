"""
Bayesian optimisation with drawn functions
==========================================

The lowest point of a function is wanted, and every measurement of it is expensive and noisy.
Thompson sampling (Thompson 1933) measures where a function drawn from the posterior is lowest:
where the minimum probably is, or where it may be because nobody has looked. ``sample_y`` draws such
functions, and the loop has four lines. What should be seen: after fourteen measurements all runs,
or nearly all, have found the minimum, and half of those of random search have not.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import EvidenceMLPRegressor

NOISE = 0.1
N_FIRST, N_LAST, N_REPETITIONS = 5, 14, 10


def objective(x):
    """A standard test function with three minima; the lowest, -1.8996, lies at 5.146."""
    return np.sin(x) + np.sin(10.0 * x / 3.0)


LOWEST = -1.8996
grid = np.linspace(2.7, 7.5, 200)
warnings.simplefilter("ignore", ConvergenceWarning)  # with five rows the evidence is rough

# %%
# The loop
# --------
# With so few measurements the prior matters, and is given, in the units of the objective: functions
# vary by a few units, and within distances of about 0.3. So is the noise of the instrument. Left at
# "auto" they would be inferred; but where the first five values happen to be alike, the most
# probable explanation is a flat function, its error bars vanish, and the search stops looking.
# Fits need not be exact, which saves time (``tol``, ``max_iter``).

PRIOR = {"hidden1_weights": 1 / 25, "hidden1_biases": 1 / 25, "output": 1.0}  # precisions


def inputs(x):
    """Column of inputs of order 1."""
    return (np.reshape(x, (-1, 1)) - 5.1) / 1.4


def make_model(seed):
    """A network under the given prior."""
    return EvidenceMLPRegressor(
        (8,),
        weight_precision=PRIOR,
        noise_std=NOISE,
        standardize=False,
        n_restarts=1,
        tol=0.05,
        max_iter=100,
        random_state=seed,
    )


def optimise(seed):
    """Every fit, and all measurements."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(2.7, 7.5, N_FIRST)
    y = objective(x) + NOISE * rng.standard_normal(N_FIRST)
    fits = []
    for step in range(N_FIRST, N_LAST + 1):
        model = make_model(seed).fit(inputs(x), y)
        fits.append(model)
        if step < N_LAST:
            drawn = model.sample_y(inputs(grid), random_state=seed + step)
            x = np.append(x, grid[np.argmin(drawn)])
            y = np.append(y, objective(x[-1]) + NOISE * rng.standard_normal())
    return fits, x, y


runs = [optimise(seed) for seed in range(N_REPETITIONS)]

# %%
# One run
# -------
# The drawn function (thin) decides where to measure next (dotted). Drawn functions differ from fit
# to fit where there are no data, and agree later about the minimum, which is then measured again.
# The first one is nearly flat, and its lowest point is a matter of chance. The error bars are those
# of the whole posterior. Yet the true function leaves them on both sides, where nobody has looked:
# the prior expects fewer bends, and nothing promises a lower minimum there.

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "0.45"  # Okabe and Ito
plt.rcParams.update({"font.size": 8, "axes.linewidth": 0.6, "legend.fontsize": 7})
fits, x, y = runs[0]
fig, axes = plt.subplots(2, 2, figsize=(6.5, 4.6), sharex=True, sharey=True, layout="constrained")
for ax, n in zip(axes.flat, [5, 7, 9, 13], strict=True):
    model = fits[n - N_FIRST]
    mean, std = model.predict(inputs(grid)), model.predict_std(inputs(grid), kind="epistemic")
    drawn = model.sample_y(inputs(grid), random_state=n)[:, 0]
    ax.fill_between(
        grid, mean - 2 * std, mean + 2 * std, color=BLUE, alpha=0.2, lw=0, label="±2 sd"
    )
    ax.plot(grid, mean, color=BLUE, lw=1.3, label="mean")
    ax.plot(grid, drawn, color=ORANGE, lw=0.8, label="drawn function")
    ax.plot(grid, objective(grid), color="black", lw=0.8, ls="--", label="true function")
    ax.axvline(x[n], color=ORANGE, lw=0.8, ls=":", label="next measurement")
    ax.plot(x[:n], y[:n], "o", color="black", ms=3, label="measured")
    ax.set(title=f"{n} measurements", xlim=(2.7, 7.5), ylim=(-4, 4))
    ax.spines[["top", "right"]].set_visible(False)
for ax in axes[1]:
    ax.set_xlabel("input $x$")
for ax in axes[:, 0]:
    ax.set_ylabel("objective")
fig.legend(
    *axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=6, frameon=False
)
plt.show()

# %%
# Against random search
# ---------------------
# A run has found the minimum if the objective, at the place that one would choose now, is within
# the noise of its lowest value. That place is where the predictive mean is lowest, or, in random
# search, where the lowest value was measured. Random search starts from the same five points; it
# costs nothing to repeat it two hundred times.


def random_search(seed):
    """Loss after every measurement."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(2.7, 7.5, N_FIRST)
    y = objective(x) + NOISE * rng.standard_normal(N_FIRST)
    more = rng.uniform(2.7, 7.5, N_LAST - N_FIRST)
    x = np.append(x, more)
    y = np.append(y, objective(more) + NOISE * rng.standard_normal(len(more)))
    chosen = [x[np.argmin(y[:n])] for n in range(N_FIRST, N_LAST + 1)]
    return objective(np.array(chosen)) - LOWEST


def loss(model):
    """Of the place where the predictive mean is lowest."""
    return objective(grid[np.argmin(model.predict(inputs(grid)))]) - LOWEST


losses = {
    "random search": np.array([random_search(seed) for seed in range(200)]),
    "Thompson sampling": np.array([[loss(model) for model in fits] for fits, _, _ in runs]),
}
numbers = np.arange(N_FIRST, N_LAST + 1)
fig, ax = plt.subplots(figsize=(3.54, 2.8), layout="constrained")
found = {name: values < NOISE for name, values in losses.items()}
for (name, values), colour, marker in zip(found.items(), [GREY, BLUE], "so", strict=True):
    fraction, error = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))
    label = f"{name} ({len(values)} runs)"
    ax.errorbar(
        numbers,
        fraction,
        error,
        color=colour,
        marker=marker,
        ms=3.5,
        lw=1.1,
        capsize=2,
        label=label,
    )
    loss = np.median(losses[name][:, -1])
    print(
        f"{name}: found by {fraction[-1]:.0%} ± {error[-1]:.0%} of the runs; median loss {loss:.3f}"
    )
ax.set(
    xlabel="measurements", ylabel="fraction of runs that found it", xticks=numbers, ylim=(0, 1.05)
)
fig.legend(loc="outside upper center", ncols=2, frameon=False, columnspacing=1)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# A run may settle in the second-lowest minimum. With a prior of smoother functions (precisions of
# 1/9) two of these ten did: between points that happened to be alike their posterior was too sure
# of a flat function. With more inputs a network needs more measurements before its error bars mean
# anything.

assert found["Thompson sampling"][:, -1].mean() >= 0.9
assert found["Thompson sampling"][:, -1].mean() > found["random search"][:, -1].mean() + 0.2
assert np.median(losses["Thompson sampling"][:, -1]) < NOISE / 4
