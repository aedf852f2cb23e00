"""
Chains in ArviZ
===============

ArviZ has tables, checks and figures for draws of any sampler.
``to_inference_data`` passes the draws of a network to it, with names and in the
units of the data. ArviZ is an optional dependency
(``pip install skbayesnn[arviz]``).
"""

import warnings

import arviz
import matplotlib.pyplot as plt
import numpy as np

from skbayesnn import HMCMLPRegressor

# %%
# A curve with outliers: the noise is Student-t with three degrees of freedom.
# Two models of it are sampled.

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (80, 1))
y = 20 * np.sin(X[:, 0]) + 2 * rng.standard_t(3, 80)

models = {
    noise: HMCMLPRegressor(
        (3,),
        noise=noise,
        n_warmup=100,
        n_draws=200,
        evidence=False,
        random_state=0,
    ).fit(X, y)
    for noise in ("constant", "student_t")
}
draws = {noise: model.to_inference_data() for noise, model in models.items()}

# %%
# Weights have names, and the noise is in units of ``y``. R-hat of single
# weights says little, because hidden units may change places. ``diagnostics_``
# compares the outputs of the networks instead.

print(models["student_t"].diagnostics_)
print(
    arviz.summary(
        draws["student_t"],
        var_names=["noise_sd", "degrees_of_freedom", "prior_sd"],
    )
)

# %%
# How well is a row predicted by a model trained without it? Leave-one-out
# cross-validation by importance sampling needs no further fit (Vehtari, Gelman
# and Gabry 2017).

elpd = {}
for noise, data in draws.items():
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # of outliers, which a Gaussian cannot do without
        elpd[noise] = arviz.loo(data)
    print(elpd[noise])

# %%
# Targets drawn from each model beside those that were measured: a curve per
# draw of the posterior. Student-t noise now and then draws an outlier far from
# all others.

fig, axes = plt.subplots(
    1, 2, figsize=(6.5, 2.6), sharex=True, sharey=True, layout="constrained"
)
for ax, (noise, data) in zip(axes, draws.items(), strict=True):
    arviz.plot_ppc(data, num_pp_samples=60, ax=ax, random_seed=0, textsize=8)
    ax.set(title=f"{noise} noise", xlabel="y")
axes[0].legend(fontsize=7, frameon=False, loc="upper center")
axes[1].get_legend().remove()
plt.show()

# %%
# Traces of the noise level and of the degrees of freedom, a line per chain.

arviz.plot_trace(
    draws["student_t"],
    var_names=["noise_sd", "degrees_of_freedom"],
    figsize=(6.5, 3.2),
)
plt.gcf().set_layout_engine("constrained")
plt.show()

assert elpd["student_t"].elpd_loo > elpd["constant"].elpd_loo
