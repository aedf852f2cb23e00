"""Annealing with a factor of the density that has no gradient, and sums of exponentials."""

import numpy as np
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import log_expit, logsumexp
from scipy.stats import norm

from skbayesnn.samplers import Stage, anneal, combine, log_sum_exp


class OneMeasurement:
    """Of 1, noise and prior standard normal."""

    def misfit(self, q):
        return -norm.logpdf(q[:, 0], 1.0)

    def stage(self, temperature, q, rngs):
        def energy(q):
            value = 0.5 * q[:, 0] ** 2 + temperature * self.misfit(q)
            return value, q + temperature * (q - 1)

        def walk(energy, phase, rngs):  # reversible, by the energy alone
            step = rngs[0].standard_normal(phase.position.shape)
            value, gradient = energy(phase.position + step)
            accepted = np.log(rngs[0].random(len(value))) < phase.value - value
            there = phase._replace(position=phase.position + step, value=value, gradient=gradient)
            return phase.replaced(accepted, there.select(accepted))

        return Stage(q, energy, walk)


def log_share(q):
    return log_expit(3.0 * q[:, 0])


def test_a_factor_without_gradient_counts_in_all_transitions():
    rng = np.random.default_rng(0)
    start = rng.standard_normal((8 * 500, 1))
    found = anneal(OneMeasurement(), start, rng, 8, log_share=log_share)
    estimate, error = combine(found.log_evidences)

    def density(q):
        q = np.array([[q]])
        return float(np.exp(norm.logpdf(q[0, 0]) - OneMeasurement().misfit(q) + log_share(q))[0])

    exact, mean = (quad(lambda q, p=p: q**p * density(q), -8, 9)[0] for p in (0, 1))
    assert error < 0.03
    assert_allclose(estimate, np.log(exact), atol=4 * error)
    assert_allclose(found.position.mean(), mean / exact, atol=4 * 0.7 / np.sqrt(1000))


def test_log_sum_exp_is_that_of_scipy():
    values = np.random.default_rng(1).normal(0.0, 300.0, (4, 5, 6))
    values[0, 1] = -np.inf
    for axis in (0, 1, 2):
        assert_allclose(log_sum_exp(values, axis), logsumexp(values, axis=axis), rtol=1e-13)
