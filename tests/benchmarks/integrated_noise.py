"""What to integrate out of the energy of a regression: the output layer, or the noise levels.

Neal (1996, chapter 3) can integrate the noise levels out: with the prior of the library, ``ln
sigma`` uniform over an interval, the likelihood of the weights alone is ``E^(-N/2)`` times a
difference of incomplete gamma functions, ``E`` half the sum of squares. Neither this nor the
likelihood with the output layer integrated out is left in closed form by the other, so it is one of
them. Here the same chains (defaults, 150 + ``--draws`` transitions, scale moves included) run in
three energies:

``output layer``: integrated out, noise levels are coordinates (what the library does);
``nothing``: all weights and noise levels are coordinates;
``noise``: integrated out and drawn exactly afterwards, all weights are coordinates.

The smallest effective sample size (ESS) is that over the outputs at 50 training rows and that over
the log noise levels, for all draws of four chains. CPU seconds include the warm-up. Run with::

    python tests/benchmarks/integrated_noise.py --seeds 0 1
"""

import argparse
from dataclasses import dataclass
from time import process_time
from unittest.mock import patch

import numpy as np
from inside import result_of
from problems import robot_arm
from reporting import counted_warnings, print_table
from scipy.special import gammainc
from sklearn.datasets import load_diabetes

from skbayesnn import HMCMLPRegressor
from skbayesnn._threads import blas_threads
from skbayesnn.inference import NOISE_MODELS
from skbayesnn.inference.sampling._moves import moves_beside
from skbayesnn.inference.sampling._sampling_starts import start_sampling
from skbayesnn.network import forward, outputs, vector_jacobian
from skbayesnn.posterior import JointPosterior
from skbayesnn.posterior.joint._joint import Derivatives
from skbayesnn.samplers import bulk_ess, r_hat, sample, warm_up


class NoiseIntegrated(JointPosterior):
    """The joint posterior of weights and their precisions, noise levels integrated out.

    With ``a = N/2`` and the interval ``[l, h]`` of ``beta``, ``ln beta`` uniform, the likelihood is
    ``Gamma(a) E^(-a) [P(a, h E) - P(a, l E)]`` up to a constant, ``P`` the regularised incomplete
    gamma function. The gradient is that of ``E`` times the mean of ``beta`` given the weights.
    """

    def _mass(self, errors, shape):
        low, high = np.exp(self.free.beta_prior.log_range)
        return gammainc(shape, high * errors) - gammainc(shape, low * errors)

    def mean_beta(self, errors):
        """``<beta>`` given ``E``, of every level."""
        shape = 0.5 * self._counts
        return shape / errors * self._mass(errors, shape + 1.0) / self._mass(errors, shape)

    def draw_beta(self, theta, rng):
        """Noise precisions of all networks from their conditional distribution."""
        return self.free.beta_prior.clip(rng.gamma(0.5 * self._counts, 1.0 / self._errors(theta)))

    def _errors(self, theta):
        any_beta = np.ones((*theta.shape[:-1], self.posterior.likelihood.n_levels))
        return self.posterior.energies(theta, any_beta).errors

    def _complete(self, theta, hyper):
        posterior, shape = self.posterior, 0.5 * self._counts
        likelihood = posterior.likelihood
        trace = forward(posterior.network, theta, posterior.X, 1)
        given = trace.outputs, posterior.targets(), hyper.beta
        (_, errors), residual = likelihood.misfit_and_gradient(*given)
        mass, mean = self._mass(errors, shape), self.mean_beta(errors)
        factor = likelihood.precisions(mean) / likelihood.precisions(hyper.beta)
        gradient = vector_jacobian(trace, residual * factor[..., None, :])
        value = (shape * np.log(errors) - np.log(mass)).sum(axis=-1)
        return Derivatives(value, gradient, np.zeros_like(hyper.alpha), np.zeros_like(errors))

    def _data_hessian(self, theta, place):
        beta = self.mean_beta(self._errors(theta))
        return self.posterior.data_hessian(theta, beta, exact=False)


@dataclass(frozen=True)
class Energy(type(NOISE_MODELS["constant"])):
    """Constant noise, sampled with an output layer that is not integrated out.

    Parameters
    ----------
    make : type
        `JointPosterior` or `NoiseIntegrated`.
    """

    make: type

    def joint(self, posed, tuned):
        """The joint posterior before anything is known of its coordinates."""
        posterior, (free, fixed, *_) = posed
        if self.make is NoiseIntegrated:
            free = free._replace(beta=np.zeros_like(free.beta))
        information = np.zeros(len(posterior.groups.names))
        return self.make(posterior, free, fixed, information, False)


ENERGIES = {
    "output layer": NOISE_MODELS["constant"],
    "nothing": Energy(JointPosterior),
    "noise": Energy(NoiseIntegrated),
}


def data_sets():
    """Inputs, targets and hidden units by name."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3.0, 3.0, (60, 1))
    y = np.sin(1.5 * X[:, 0]) + 0.1 * rng.standard_normal(60)
    diabetes, progression = load_diabetes(return_X_y=True)
    rows = rng.permutation(len(progression))[:120]
    return {
        "sine, 60 rows": (X, y, 6),
        "robot arm, 100 rows": (*robot_arm(100, rng), 6),
        "diabetes, 120 rows": (diabetes[rows][:, [2, 3, 6, 8]], progression[rows], 4),
    }


def chains_in(kind, model, seed):
    """The joint posterior of this kind, and four chains at the same starting points."""
    fit, seeds = result_of(model), np.random.SeedSequence(seed).spawn(4)
    with patch.dict(NOISE_MODELS, ENERGIES):
        joint, (chains,) = start_sampling(fit.problem, fit.posed, fit.settings, seeds, kind)
    return joint, chains


def run(name, kind, seed, n_draws):
    """Sample in one energy; a row of results."""
    X, y, width = data_sets()[name]
    model = HMCMLPRegressor(
        (width,),
        noise="constant",
        n_chains=1,
        n_warmup=0,
        n_draws=8,
        measure_evidence=False,
        random_state=seed,
    )
    with counted_warnings():
        model.fit(X, y)
    joint, chains = chains_in(kind, model, seed)
    plan, move = result_of(model).settings.plan, moves_beside(joint, 3)
    theta, log_noise, n_steps, rng = [], [], [], np.random.default_rng(seed)

    def keep(chains, info):
        position = chains.phase.position
        theta.append(joint.complete_weights(position, chains.rngs))
        if kind == "noise":
            beta = joint.draw_beta(theta[-1], rng)
        else:
            beta = joint.place(position).hyper.beta
        log_noise.append(-0.5 * np.log(beta))
        n_steps.append(info.n_steps)

    cpu = process_time()
    chains = warm_up(joint.energy, chains, plan, 150, joint.curvature, move)
    step = np.mean(chains.steps.log_average)
    chains = chains._replace(steps=chains.steps.averaging(step))
    sample(joint.energy, chains, plan, n_draws, keep, move)
    cpu = process_time() - cpu
    network, rows = joint.posterior.network, joint.posterior.X[:50]
    f, s = outputs(network, np.stack(theta, axis=1), rows), np.stack(log_noise, axis=1)
    of_f, of_noise = float(bulk_ess(f).min()), float(bulk_ess(s).min())
    return {
        "set": name,
        "integrated out": kind,
        "seed": seed,
        "R-hat": float(max(r_hat(f).max(), r_hat(s).max())),
        "ESS outputs": of_f,
        "ESS noise": of_noise,
        "min/CPU s": min(of_f, of_noise) / cpu,
        "min/1000 gradients": 1000.0 * min(of_f, of_noise) / float(np.sum(n_steps)),
        "step": float(np.exp(step)),
        "ln noise": float(s.mean()),
    }


def main():
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--only", nargs="+", default=list(data_sets()), help="names of data sets")
    args = parser.parse_args()
    rows = []
    for name in args.only:
        for kind in ("output layer", "nothing", "noise"):
            for seed in args.seeds:
                rows.append(run(name, kind, seed, args.draws))
                print(rows[-1], flush=True)
    print_table("What is integrated out", rows)


if __name__ == "__main__":
    with blas_threads(1):
        main()
