"""
Hyperparameters: guessed, inferred, sampled
===========================================

There are three ways to treat weight decay rates and the noise level. One can
guess them. One can set them to their values of highest evidence, with a
Gaussian for the weights (MacKay 1992). Or one can sample weights and
hyperparameters together, without either approximation (Neal 1996). Each way
takes more time than the one before. With 80 rows the second way is as good as
the third. With 10 rows its error bars are far too narrow in the gap between the
rows, as ``comparison_`` says.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

from skbayesnn import EvidenceMLPRegressor, HMCMLPRegressor, Prior

NOISE = {10: 0.1, 80: 0.2}


def true_function(x):
    """A step on a slope."""
    return np.tanh(2 * x) + 0.3 * x


def make_data(n, seed=1):
    """Inputs from -3 to 3; with few rows none between -1 and 1."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3, 3, n)
    if n == 10:
        x = np.sign(x) * (1 + np.abs(x) * 2 / 3)
    return x[:, None], true_function(x) + NOISE[n] * rng.standard_normal(n)


# %%
# Three ways
# ----------
# The guess: all precisions 1 for standardised inputs and targets, which is a
# common choice, and a noise level of half the spread of the targets. Then an
# evidence fit, and ``from_evidence``, which samples the same model with chains
# that start at the minima of that fit. Small fits measure their evidence and
# predict with the networks that this draws; here ``method="laplace"``
# keeps the Gaussian approximation.

GAUSSIAN = {"method": "laplace", "combine": "best", "n_restarts": 2}
GAUSSIAN["random_state"] = 0
data, models = {}, {}
for n in (80, 10):
    X, y = data[n] = make_data(n)
    width = (2,) if n == 80 else (3,)
    start = time.process_time()
    inferred = EvidenceMLPRegressor(width, **GAUSSIAN).fit(X, y)
    guess = {"prior": Prior(precision=1.0), "noise": 0.5 * y.std()}
    guessed = EvidenceMLPRegressor(width, **guess, **GAUSSIAN).fit(X, y)
    middle = time.process_time()
    sampled = HMCMLPRegressor.from_evidence(
        inferred,
        n_draws=400,
        measure_evidence=False,
        random_state=0,
    ).fit(X, y)
    took = middle - start, time.process_time() - middle
    print(f"{n} rows: sampling took {took[1]:.1f} s, both fits {took[0]:.1f} s")
    print(sampled.comparison_, end="\n\n")
    models[n] = {"guessed": guessed, "inferred": inferred, "sampled": sampled}


# %%
# The function, as predicted by each
# ----------------------------------
# Bands of two standard deviations, without the noise.

BLUE = "#0072B2"
plt.rcParams.update({"font.size": 8, "axes.linewidth": 0.6})
grid = np.linspace(-4, 4, 161)[:, None]
fig, axes = plt.subplots(
    2, 3, figsize=(6.5, 4.2), sharex=True, sharey=True, layout="constrained"
)
for row, n in zip(axes, (80, 10), strict=True):
    for ax, (rung, model) in zip(row, models[n].items(), strict=True):
        mean = model.predict(grid)
        std = model.predict_std(grid, kind="epistemic")
        band = {"color": BLUE, "alpha": 0.25, "lw": 0}
        band["label"] = "±2 sd of the function"
        ax.fill_between(grid[:, 0], mean - 2 * std, mean + 2 * std, **band)
        ax.plot(grid, mean, color=BLUE, lw=1.3, label="mean")
        truth = true_function(grid)
        ax.plot(grid, truth, "k--", lw=0.8, label="true function")
        ax.plot(*data[n], "o", color="black", ms=2, label="data")
        noise = model.noise_std_
        ax.set_title(f"{n} rows, {rung}: noise sd {noise:.2f}", fontsize=8)
        ax.spines[["top", "right"]].set_visible(False)
    row[0].set_ylabel("target $y$")
for ax in axes[1]:
    ax.set_xlabel("input $x$")
axes[0, 0].set(xlim=(-4, 4), ylim=(-3.6, 3.6))
fig.legend(
    *axes[0, 0].get_legend_handles_labels(),
    loc="outside upper center",
    ncols=4,
    frameon=False,
)
plt.show()

# %%
# The guessed noise is several times too large, and so are all error bars. With
# 10 rows the step can be anywhere in the gap. The Gaussian around one solution
# covers one place of the step, the samples cover all. Typical error bars at the
# training inputs and in the gap show the difference:

gap = np.linspace(-0.7, 0.7, 29)[:, None]
bars = {}
where = {"training inputs": None, "gap": gap}
for n in (80, 10):
    for name, inputs in where.items():
        inputs = data[n][0] if inputs is None else inputs
        std = {
            rung: m.predict_std(inputs, kind="epistemic")
            for rung, m in models[n].items()
        }
        bars[n, name] = {
            rung: np.sqrt(np.mean(s**2)) for rung, s in std.items()
        }
        print(f"{n} rows, error bars at {name}:", end=" ")
        print(
            ", ".join(
                f"{rung} {bar:.3f}" for rung, bar in bars[n, name].items()
            )
        )


# %%
# The log density per row of new rows between -3 and 3, in nats, shows how good
# the predictions are.

rng = np.random.default_rng(2)
x_new = rng.uniform(-3, 3, 1000)
density = {}
for n in (80, 10):
    y_new = true_function(x_new) + NOISE[n] * rng.standard_normal(1000)
    rows = {
        rung: model.log_predictive_density(x_new[:, None], y_new)
        for rung, model in models[n].items()
    }
    for rung, values in rows.items():
        density[n, rung] = values.mean()
        error = values.std(ddof=1) / np.sqrt(len(values))
        print(f"{n} rows, {rung:8s} {density[n, rung]:6.2f} ± {error:.2f}")
