"""Minima where the inputs have noise, found in turns with the noise that it makes of the targets.

The covariance ``J S J^T`` that noise of the inputs gives a target depends on the weights through
the slopes ``J = df/dx``. It is taken at the minimum, the minimum found under it, and so on until
neither changes: as in the effective variance method (Clutton-Brock 1967, "Likelihood distributions
for estimating functions when both variables are subject to error", Technometrics 9), and in
Gaussian processes with input noise (McHutchon & Rasmussen 2011). The evidence is that of the fixed
point. So the likelihood is the first-order one, but its change with the weights through ``J S J^T``
enters neither the gradient nor the Hessian: a network cannot explain a large residual by being
steep there.
"""

from dataclasses import replace

import numpy as np

from skbayesnn.inference._method import Method
from skbayesnn.inference._minimum import complete, polish
from skbayesnn.inference._profile import integrated
from skbayesnn.inference._search import own_posterior, trained_further

ROUNDS, ROUNDS_OF_BATCHES = 40, 3
PRUNING_ROUNDS = 3  # in which units may turn out to be redundant
SETTLED = 1e-5  # change of the noise of any row, relative to its variance, that ends the rounds
SLOW = 0.5  # of the last change: if there is more left, the next step is half as long


def with_noisy_inputs(posed, old, optional=False):
    """Where a minimum leads when the inputs have noise.

    ``None`` if there is no time for what is optional.

    Parameters
    ----------
    posed : Posed
        With the likelihood of `with_input_noise`.
    old : Minimum
        Under that, or under noise without that of the inputs.
    optional : bool, default=False
    """
    posterior, settings = posed
    if optional and settings.deadline.passed:
        return None
    by_batches = Method.choose(posterior, settings).early
    with Method.choose(posterior, settings).threads():
        found, pruned = replace(old, likelihood=posterior.likelihood), old.pruned
        own, moved, step = _at_minimum(posterior, found), np.inf, 1.0
        for i in range(ROUNDS_OF_BATCHES if by_batches else ROUNDS):
            if i and settings.deadline.passed:
                break
            if by_batches:
                found = trained_further(own, found, settings)
            elif i < PRUNING_ROUNDS:
                found = complete(own, found.theta, found.hyper, settings)
            else:
                found = polish(own, found.theta, found.hyper, settings, refine=True)
            pruned += found.pruned
            before, last, own = own, moved, _at_minimum(posterior, found)
            moved = _change(before, own, found.hyper.beta)
            if moved < SETTLED:
                break
            if moved > SLOW * last:
                step *= 0.5
            by_inputs = before.by_inputs + step * (own.by_inputs - before.by_inputs)
            own = replace(own, by_inputs=by_inputs)
        found = integrated(before, found, settings)
        settled = found.converged and bool(moved < 100.0 * SETTLED)
        return replace(found, n_iter=old.n_iter, pruned=pruned, converged=settled)


def _at_minimum(posterior, minimum):
    """The posterior of a minimum at its slopes, with the typical variance there."""
    own = own_posterior(posterior, minimum)
    variances = np.diagonal(own.by_inputs, axis1=1, axis2=2)
    if own.variances is not None:
        variances = variances + own.variances
    typical = own.sample_weight @ variances / own.n_rows
    return replace(own, likelihood=replace(own.likelihood, typical=typical))


def _change(before, after, beta):
    """Largest change of the noise that inputs make, relative to the variance of the target."""
    old, new = (np.diagonal(p.by_inputs, axis1=1, axis2=2) for p in (before, after))
    total = 1.0 / after.likelihood.precisions(beta) + new
    return float(np.max(np.abs(new - old) / total))
