"""
Functions drawn from the prior of a network
===========================================

A prior over weights is a prior over functions. ``sample_prior`` draws from it.
The first picture follows figure 5.11 of C. M. Bishop, *Pattern Recognition and
Machine Learning* (2006) and shows how each group of weights affects the
functions. The others follow R. M. Neal, *Bayesian Learning for Neural Networks*
(1996), chapter 2. If there are more and more hidden units, and the output
weights become smaller in proportion, the functions do not become more
complicated. They become a Gaussian process.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import HMCMLPRegressor, Prior, Sampler

# Okabe and Ito
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "0.45"
COLOURS = [BLUE, ORANGE, GREEN, GREY, "#CC79A7"]
plt.rcParams.update(
    {"font.size": 8, "axes.linewidth": 0.6, "legend.fontsize": 7}
)

# %%
# A network with a prior of our choice
# ------------------------------------
# An estimator must be fitted before anything can be drawn from it. The prior is
# fixed here, so that the data cannot change it: two rows and a single draw are
# enough. Four groups are made, by a label for every weight: hidden weights,
# hidden biases, output weights and the output bias.

# chains of a single draw cannot be compared
warnings.simplefilter("ignore", ConvergenceWarning)


def network(n_units, **sd):
    """A network of one hidden layer with given standard deviations of its
    weight groups.
    """
    labels = ["w1"] * n_units + ["b1"] * n_units + ["w2"] * n_units + ["b2"]
    return HMCMLPRegressor(
        (n_units,),
        prior=Prior(
            labels, precision={name: value**-2.0 for name, value in sd.items()}
        ),
        noise=1.0,
        standardize=False,
        sampler=Sampler("langevin", step_size=1e-3, init="prior"),
        n_chains=1,
        n_warmup=0,
        n_draws=1,
        measure_evidence=False,
        random_state=0,
    ).fit([[-1.0], [1.0]], [-1.0, 1.0])


# %%
# What the groups do
# ------------------
# The network has twelve hidden units. The pictures show, from left to right: a
# reference; larger output weights; larger hidden weights; larger hidden weights
# and hidden biases.

x = np.linspace(-1, 1, 401)[:, None]
CASES = {
    "reference": {"w1": 4.0, "b1": 4.0, "w2": 1.0, "b2": 1.0},
    "output weights × 4": {"w1": 4.0, "b1": 4.0, "w2": 4.0, "b2": 1.0},
    "hidden weights × 8": {"w1": 32.0, "b1": 4.0, "w2": 1.0, "b2": 1.0},
    "hidden layer × 8": {"w1": 32.0, "b1": 32.0, "w2": 1.0, "b2": 1.0},
}
drawn = {
    name: network(12, **sd).sample_prior(x, 500, random_state=1)
    for name, sd in CASES.items()
}

fig, axes = plt.subplots(
    1, 4, figsize=(7.1, 2.1), sharey=True, layout="constrained"
)
for ax, (name, functions) in zip(axes, drawn.items(), strict=True):
    for function, colour in zip(functions.T, COLOURS, strict=False):
        ax.plot(x[:, 0], function, color=colour, lw=0.9)
    ax.set(title=name, xlabel="input $x$", xlim=(-1, 1), ylim=(-22, 22))
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("output")
plt.show()

# %%
# Output weights set the vertical scale. Hidden weights set how steep a unit is.
# Hidden biases set where it bends: beside much larger hidden weights all bend
# near zero.


def changes(functions, where):
    """Mean square slope in a region over the variance of the functions."""
    slopes = np.gradient(functions, x[:, 0], axis=0)[where]
    return np.mean(slopes**2) / np.var(functions)


centre, rim = np.abs(x[:, 0]) < 0.2, np.abs(x[:, 0]) > 0.8
scale = {name: functions.std() for name, functions in drawn.items()}
wild = {
    name: [changes(functions, where) for where in (centre, rim)]
    for name, functions in drawn.items()
}
for name in CASES:
    print(
        "{}: sd {:.1f}, relative slopes at the centre {:.1f}, at the rim "
        "{:.1f}".format(name, scale[name], *wild[name])
    )

# %%
# More and more units
# -------------------
# The networks have one, three, ten and a thousand hidden units. The standard
# deviation of the output weights is ``1 / H^(1/2)``, so the variance of the
# function is always the same. The last picture shows the limit: the Gaussian
# process with the covariance of a single unit's output, ``E h(x) h(x')``.

NUMBERS = [1, 3, 10, 1000]
S_HIDDEN, S_BIAS = 5.0, 0.1


def wide(n_units):
    """A network whose prior variance does not depend on its width."""
    return network(
        n_units, w1=S_HIDDEN, b1=S_HIDDEN, w2=n_units**-0.5, b2=S_BIAS
    )


nodes, node_weights = np.polynomial.hermite_e.hermegauss(60)
first, second = np.meshgrid(nodes, nodes)
probability = np.outer(node_weights, node_weights).ravel() / (2 * np.pi)


def unit(x):
    """Output of one hidden unit at inputs ``x``, at the nodes of a quadrature
    over its weights.
    """
    return np.tanh(
        S_HIDDEN * (np.multiply.outer(x, first.ravel()) + second.ravel())
    )


h = unit(x[:, 0])
covariance = (h * probability) @ h.T + S_BIAS**2
values, vectors = np.linalg.eigh(covariance)
root = vectors * np.sqrt(np.maximum(values, 0.0))
process = root @ np.random.default_rng(3).standard_normal((len(x), 5))

models = {n: wide(n) for n in NUMBERS}
fig, axes = plt.subplots(
    1, 5, figsize=(7.1, 2.0), sharey=True, layout="constrained"
)
for ax, n in zip(axes, [*NUMBERS, None], strict=True):
    functions = (
        process if n is None else models[n].sample_prior(x, 5, random_state=2)
    )
    for function, colour in zip(functions.T, COLOURS, strict=True):
        ax.plot(x[:, 0], function, color=colour, lw=0.9)
    title = "Gaussian process" if n is None else f"{n} unit" + "s" * (n > 1)
    ax.set(title=title, xlabel="input $x$", xlim=(-1, 1), ylim=(-3.2, 3.2))
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("output")
plt.show()

# %%
# Values at two inputs, -0.2 and 0.4, of many functions: Neal's figure of the
# convergence. The ellipses hold 86 % of the limit's pairs.

PAIR = np.array([[-0.2], [0.4]])
pairs = {
    n: model.sample_prior(PAIR, 8000, random_state=4)
    for n, model in models.items()
}
h = unit(PAIR[:, 0])
limit = (h * probability) @ h.T + S_BIAS**2
turn = np.linspace(0, 2 * np.pi, 101)
ellipse = 2 * np.linalg.cholesky(limit) @ np.stack([np.cos(turn), np.sin(turn)])
fig, axes = plt.subplots(
    1, 4, figsize=(7.1, 2.2), sharey=True, layout="constrained"
)
for ax, (n, (left, right)) in zip(axes, pairs.items(), strict=True):
    ax.plot(
        left[:1500],
        right[:1500],
        ".",
        color=BLUE,
        ms=1.6,
        mew=0,
        rasterized=True,
    )
    ax.plot(*ellipse, color=ORANGE, lw=1.2)
    ax.set(
        title=f"{n} unit" + "s" * (n > 1), xlabel="$f(-0.2)$", aspect="equal"
    )
    ax.set(xlim=(-4, 4), ylim=(-4, 4))
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("$f(0.4)$")
plt.show()

# %%
# One unit gives a cross, since it is either saturated on the same side at both
# inputs or changes between them; a thousand give the ellipse of the limit. The
# difference of the two values is a sum over independent units. Its excess
# kurtosis, which is zero for a Gaussian, falls as ``1 / H``: it is ``3 Var(d^2)
# / (H (E d^2)^2)`` for differences ``d`` of one unit's output.

difference = h[1] - h[0]
square, fourth = ((difference**power * probability).sum() for power in (2, 4))
print(f"covariance of the two values in the limit: {limit[0, 1]:.3f}")
for n, (left, right) in pairs.items():
    product = (left - left.mean()) * (right - right.mean())
    error = product.std() / np.sqrt(len(product))
    z = (right - left) / np.std(right - left)
    excess, excess_error = (
        np.mean(z**4) - 3,
        np.std(z**4 - 2 * np.mean(z**4) * z**2),
    )
    excess_error /= np.sqrt(len(z))
    expected = 3 * (fourth - square**2) / (n * square**2)
    print(
        f"H = {n}: covariance {product.mean():.3f} ± {error:.3f}, "
        f"excess kurtosis {excess:.2f} ± {excess_error:.2f}, expected "
        f"{expected:.2f}"
    )
