"""
Chains in ArviZ
===============

ArviZ has tables, checks and figures for the draws of any sampler.
``to_inference_data`` converts the draws of a network for ArviZ, with names and
in the units of the data. ArviZ is an optional dependency: in a copy of the
repository, run ``pip install ".[arviz]"``. This example compares two noise
models of data with outliers.
"""

import arviz
import matplotlib.pyplot as plt
import numpy as np

from skbayesnn import HMCMLPRegressor

# %%
# The data are a curve with Student-t noise of three degrees of freedom, which
# has outliers. One model assumes Gaussian noise, the other Student-t noise.

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (80, 1))
y = 20 * np.sin(X[:, 0]) + 2 * rng.standard_t(3, 80)

models = {
    noise: HMCMLPRegressor(
        (3,),
        noise=noise,
        n_warmup=100,
        n_draws=200,
        measure_evidence=False,
        random_state=0,
    ).fit(X, y)
    for noise in ("constant", "student_t")
}
draws = {noise: model.to_inference_data() for noise, model in models.items()}

# %%
# Weights have names, and the noise is in units of ``y``. R-hat of single
# weights is not meaningful, because hidden units may change places.
# ``diagnostics_`` compares the outputs of the networks instead.

print(models["student_t"].diagnostics_)
summary = arviz.summary(
    draws["student_t"],
    var_names=["noise_sd", "degrees_of_freedom", "prior_sd"],
)
print(summary[["mean", "sd", "ess_bulk", "ess_tail", "r_hat"]])

# %%
# How well does a model predict a row that it was not trained on? Leave-one-out
# cross-validation by importance sampling needs no further fit (Vehtari, Gelman
# and Gabry 2017). ``elpd_loo`` is the sum of the log predictive densities: a
# higher value is better. ArviZ warns if rows have so much influence that the
# estimate is unreliable.

elpd = {noise: arviz.loo(data) for noise, data in draws.items()}
for noise, estimate in elpd.items():
    print(noise, estimate, sep="\n")

# %%
# A posterior predictive check compares targets drawn from each model with the
# measured ones. Each thin line is the cumulative distribution of the targets of
# one draw. Some outliers that Student-t noise draws are outside the figure.

fig, axes = plt.subplots(
    1, 2, figsize=(6.5, 2.9), sharex=True, sharey=True, layout="constrained"
)
for ax, (noise, data) in zip(axes, draws.items(), strict=True):
    arviz.plot_ppc(
        data,
        kind="cumulative",
        num_pp_samples=60,
        mean=False,
        ax=ax,
        random_seed=0,
    )
    ax.set_xlim(-45, 45)
    ax.set_title(f"noise={noise!r}", fontsize=10)
    ax.set_xlabel("target $y$", fontsize=9)
    ax.tick_params(labelsize=8)
    ax.get_legend().remove()
axes[0].set_ylabel("fraction below", fontsize=9)
fig.legend(
    *axes[0].get_legend_handles_labels(),
    loc="outside upper center",
    ncols=2,
    fontsize=8,
    frameon=False,
)
plt.show()

# %%
# The traces of the noise level and of the degrees of freedom have a line per
# chain. The degrees of freedom are drawn from a grid. Vertical bars mark
# divergent trajectories; a few of them do no harm.

arviz.plot_trace(
    draws["student_t"],
    var_names=["noise_sd", "degrees_of_freedom"],
    figsize=(6.5, 3.6),
    plot_kwargs={"textsize": 9},
)
plt.gcf().set_layout_engine("constrained")
plt.show()
