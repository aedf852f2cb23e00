"""
Stochastic dynamics and its bias
================================

R. M. Neal sampled his first Bayesian networks ("Bayesian learning via
stochastic dynamics", *Advances in Neural Information Processing Systems* 5,
1992) without any rejection. The weights follow Hamiltonian dynamics in small
steps, and the momentum is partly refreshed after each step. The result has a
bias that depends on the step size. Hamiltonian Monte Carlo takes the same
steps, but accepts or rejects each trajectory at its end, so its distribution is
exact. A model with a known posterior shows both.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skbayesnn import HMCMLPRegressor, Prior, Sampler
from skbayesnn.samplers import bulk_ess

# short chains
warnings.simplefilter("ignore", ConvergenceWarning)

# %%
# A known posterior
# -----------------
# A model that is linear in its weights, with known noise and prior, has a
# Gaussian posterior. The Hessian ``A`` of its energy is the inverse of the
# covariance. Its largest eigenvalue belongs to the direction that the data
# determine best, and it limits the step size: a leapfrog step of size ``eps``
# is stable if ``eps < 2 / lambda^(1/2)``.

rng = np.random.default_rng(0)
ALPHA, NOISE = 1.0, 0.5
X = rng.uniform(-1, 1, (20, 1))
y = 0.8 * X[:, 0] - 0.3 + NOISE * rng.standard_normal(20)
features = np.column_stack([X, np.ones(20)])
A = ALPHA * np.eye(2) + features.T @ features / NOISE**2
eigenvalues, directions = np.linalg.eigh(A)
mean = np.linalg.solve(A, features.T @ y) / NOISE**2
largest = 2 / np.sqrt(eigenvalues[1])
print(
    f"sd of the posterior: {eigenvalues[1] ** -0.5:.3f} and "
    f"{eigenvalues[0] ** -0.5:.3f}"
)
print(f"steps are stable up to {largest:.3f}")


def sample(sampler, step_size, n_steps, n_draws, thin, persistence=None):
    """Weights in the directions of the eigenvectors, from their true mean; and
    the fit.
    """
    model = HMCMLPRegressor(
        (),
        prior=Prior("single", precision=ALPHA),
        noise=NOISE,
        standardize=False,
        sampler=Sampler(
            sampler,
            step_size=step_size,
            n_steps=n_steps,
            persistence=persistence,
            thin=thin,
        ),
        n_chains=16,
        n_warmup=100,
        n_draws=n_draws,
        measure_evidence=False,
        random_state=0,
    ).fit(X, y)
    drawn = [
        np.append(network.coefs[0], network.intercepts[0])
        for network in model.networks_
    ]
    return ((np.array(drawn) - mean) @ directions).reshape(
        16, n_draws, 2
    ), model


# %%
# Variance against step size
# --------------------------
# For a quadratic energy the bias is known too. The discretised dynamics does
# not conserve ``p^2 + lambda x^2`` but ``p^2 + lambda (1 - eps^2 lambda / 4)
# x^2``, so that the variance comes out too large by ``1 / (1 - eps^2 lambda /
# 4)``. Sixteen chains, which advance together, sample each step size.

FRACTIONS = np.array([0.15, 0.4, 0.6, 0.75, 0.85])  # of the largest stable step
SETTINGS = {
    "stochastic_dynamics": (1, 200, 8),
    "hmc": (10, 200, 1),
}  # steps, draws, thinning
ratios, errors, acceptance = {}, {}, {}
for name, setting in SETTINGS.items():
    runs = [sample(name, f * largest, *setting) for f in FRACTIONS]
    squares = [drawn[..., 1] ** 2 * eigenvalues[1] for drawn, _ in runs]
    ratios[name] = np.array([s.mean() for s in squares])
    errors[name] = np.array(
        [s.std() / np.sqrt(bulk_ess(s[..., None])[0]) for s in squares]
    )
    acceptance[name] = [model.diagnostics_.acceptance for _, model in runs]
expected = 1 / (1 - FRACTIONS**2)

# Okabe and Ito: safe for the colour-blind
BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"
LABELS = {
    "stochastic_dynamics": "stochastic dynamics",
    "hmc": "Hamiltonian Monte Carlo",
}
plt.rcParams.update(
    {"font.size": 8, "axes.linewidth": 0.6, "legend.fontsize": 7}
)
fig, (above, below) = plt.subplots(
    2,
    1,
    figsize=(3.54, 4.2),
    sharex=True,
    height_ratios=[1.6, 1],
    layout="constrained",
)
fine = np.linspace(0, 0.88, 100)
above.plot(fine, 1 / (1 - fine**2), color=ORANGE, lw=0.9, label="known bias")
above.axhline(1.0, color="0.6", lw=0.8)
for name, colour, marker in [
    ("stochastic_dynamics", ORANGE, "o"),
    ("hmc", BLUE, "s"),
]:
    style = {
        "color": colour,
        "marker": marker,
        "ms": 4,
        "capsize": 2,
        "lw": 0,
        "elinewidth": 1,
    }
    above.errorbar(
        FRACTIONS, ratios[name], 2 * errors[name], label=LABELS[name], **style
    )
below.plot(FRACTIONS, acceptance["hmc"], "s-", color=BLUE, ms=4, lw=1)
above.set(ylabel="variance of the draws / true", ylim=(0.6, 4.2))
below.set(
    xlabel="step size / largest stable one",
    ylabel="accepted (HMC)",
    ylim=(0, 1.05),
)
above.legend(frameon=False, loc="upper left")
for ax in (above, below):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Draws of stochastic dynamics lie on the curve of the known bias: with small
# steps a few per cent, near the limit several times the true variance.
# Hamiltonian Monte Carlo has the right variance at every step size, but it
# rejects some trajectories.

for f, *row in zip(
    FRACTIONS, *ratios.values(), expected, acceptance["hmc"], strict=True
):
    print(
        "step {:.2f} of the limit: variance ratio {:.2f} (stochastic "
        "dynamics), {:.2f} (HMC); "
        "known bias {:.2f}, HMC accepts {:.0%}".format(f, *row)
    )

# %%
# Beyond the limit the dynamics are unstable, and the fit warns.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", ConvergenceWarning)
    sample("stochastic_dynamics", 1.05 * largest, 1, 200, 1)
print(caught[0].message)

# %%
# Typical energies
# ----------------
# Draws do not lie at the most probable weights. With ``k`` weights their energy
# is above the minimum by ``k / 2`` on average (MacKay 2003, section 41.4),
# which is a test of any sampler. Here ``k`` is 2; the bias of stochastic
# dynamics adds its part.

print("mean energy above the minimum, in nats (k / 2 = 1):")
for name in LABELS:
    drawn = sample(name, 0.6 * largest, *SETTINGS[name])[0]
    energy = 0.5 * np.sum(eigenvalues * drawn**2, axis=-1)
    mean_energy, error = (
        energy.mean(),
        energy.std() / np.sqrt(bulk_ess(energy[..., None])[0]),
    )
    biased = 0.5 * np.sum(1 / (1 - (0.6 * largest) ** 2 * eigenvalues / 4))
    wanted = {"hmc": 1.0, "stochastic_dynamics": biased}[name]
    print(
        f"  {LABELS[name]}: {mean_energy:.3f} ± {error:.3f}, expected "
        f"{wanted:.3f}"
    )

# %%
# The value of the gradient
# -------------------------
# Inputs far from zero make the posterior long and narrow: slope and intercept
# can change together as long as the line passes through the data. Each sampler
# gets the same number of evaluations of the energy, 20 per kept draw. In the
# long direction a random walk moves by diffusion, and so does dynamics with a
# new momentum after each step. Long trajectories cross the distribution; so
# does dynamics that keeps most of its momentum.
# ``n_steps=(1, 39)`` draws the number of steps of each trajectory.

X = X + 3.0
features = np.column_stack([X, np.ones(20)])
A = ALPHA * np.eye(2) + features.T @ features / NOISE**2
eigenvalues, directions = np.linalg.eigh(A)
mean = np.linalg.solve(A, features.T @ y) / NOISE**2
short, long = eigenvalues[::-1] ** -0.5
print(f"sd of the posterior: {short:.3f} and {long:.3f}")

COMPARED = {  # sampler, number of steps, thinning, persistence
    "random walk": ("metropolis", None, 20, None),
    "Langevin": ("langevin", None, 20, None),
    "Langevin, persistent": ("langevin", None, 20, 0.95),
    "stochastic dynamics": ("stochastic_dynamics", None, 20, None),
    "Hamiltonian, 20 steps": ("hmc", 20, 1, None),
    "Hamiltonian, 1 to 39 steps": ("hmc", (1, 39), 1, None),
}
independent = {}
for name, (sampler, n_steps, thin, persistence) in COMPARED.items():
    drawn, model = sample(sampler, None, n_steps, 200, thin, persistence)
    along, found = drawn[..., :1] / long, model.diagnostics_
    independent[name] = 1000 * bulk_ess(along)[0] / found.n_gradients
    squares = along**2
    error = np.std(squares) / np.sqrt(bulk_ess(squares)[0])
    print(
        f"{name}: {independent[name]:.1f} independent draws in 1000 "
        f"evaluations, {found.acceptance:.0%} accepted, variance "
        f"{squares.mean():.2f} ± {error:.2f}"
    )

fig, ax = plt.subplots(figsize=(4.2, 2.2), layout="constrained")
colours = [GREEN, BLUE, BLUE, ORANGE, BLUE, BLUE]
ax.barh(list(independent), independent.values(), color=colours, height=0.6)
ax.set(xlabel="independent draws in 1000 evaluations", xlim=(0, None))
ax.invert_yaxis()
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# For the same work, Hamiltonian trajectories give an effective sample size
# several times that of diffusion. All have the right variance here: the bias of
# stochastic dynamics is in the short direction, where its steps are long.
