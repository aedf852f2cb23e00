"""The noise covariance between outputs, re-estimated in turns with everything else.

Let ``S = sum_n s_n (e_n e_n^T + J_n A^-1 J_n^T)``, what the residuals of all rows and the error
bars of the outputs there add up to. The evidence has its maximum over the noise covariance at
``Sigma = S / N``: expectation maximisation (Dempster, Laird & Rubin 1977), whose fixed point for
one output is MacKay's ``beta = (N - gamma) / 2 E_D`` (1992, section 4.3 of the thesis has it for
full matrices).
"""

from dataclasses import replace

import numpy as np

from skbayesnn.inference._method import Method
from skbayesnn.inference._minimum import polish
from skbayesnn.inference._profile import integrated
from skbayesnn.inference._search import own_posterior, trained_further
from skbayesnn.network import forward, jacobian, row_blocks
from skbayesnn.posterior import correlation_coordinates, log_prior_of_correlations

ROUNDS, ROUNDS_OF_BATCHES = 40, 3
REFINING_ROUNDS = 4  # in which weight precisions are refined, too
SETTLED = 1e-6  # change of the coordinates of correlations that ends the rounds
WELL_APART = 1e-10  # smallest eigenvalue of a correlation matrix


def noise_covariance(posterior, theta, precision):
    """``S / N``, see above.

    Parameters
    ----------
    posterior : Posterior
    theta : ndarray of shape (k,)
    precision : Precision
        Of the weights.

    Returns
    -------
    ndarray of shape (n_outputs, n_outputs)

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import DensePrecision, Problem, noise_covariance
    >>> from skbayesnn.posterior import Gaussian
    >>> X, y = np.zeros((2, 1)), np.array([[1.0, 1.0], [-1.0, -1.0]])
    >>> posterior, _ = Problem(X, y, np.ones(2), Gaussian.per_output(2)).posed(())
    >>> noise_covariance(posterior, np.zeros(4), DensePrecision(np.eye(4)))
    array([[2., 1.],
           [1., 2.]])
    """
    n_outputs, total = posterior.network.n_outputs, 0.0
    for rows in row_blocks(len(posterior.X), n_outputs * posterior.network.n_weights):
        trace = forward(posterior.network, theta, posterior.X[rows], order=1)
        weight, residual = posterior.sample_weight[rows], trace.outputs - posterior.y[rows]
        total = total + (residual.T * weight) @ residual
        total = total + np.tensordot(weight, precision.project(jacobian(trace)), 1)
    return 0.5 * (total + total.T) / posterior.n_rows


def correlation_of(covariance):
    """Correlation matrix, kept from being singular."""
    sd = np.sqrt(np.diagonal(covariance))
    correlation = covariance / sd[:, None] / sd
    shrink = max(0.0, WELL_APART - np.linalg.eigvalsh(correlation)[0])
    return (1.0 - shrink) * correlation + shrink * np.eye(len(sd))


def log_occam_of_covariance(prior, correlation, degrees):
    """Log Occam factor of a noise covariance, Gaussian in log precisions and correlations.

    A priori the logarithm of every output's precision is uniform, and the correlation matrix is.
    The Fisher information of ``degrees`` rows in these coordinates has the determinant ``2^-p
    degrees^(p(p+1)/2) (det R)^-(p+1)``. For one output: `log_occam_gaussian`.

    Parameters
    ----------
    prior : Hyperpriors
        Log-uniform ones of the outputs' precisions.
    correlation : ndarray of shape (p, p)
    degrees : float
        Rows less what the weights have used up of each output.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import log_occam_gaussian, log_occam_of_covariance
    >>> from skbayesnn.posterior import Hyperpriors, LogUniform
    >>> one = log_occam_of_covariance(Hyperpriors.of([LogUniform()]), np.eye(1), 50.0)
    >>> bool(np.isclose(one, log_occam_gaussian(LogUniform(), 0.0, 50.0)))
    True
    """
    p = len(correlation)
    n_free = p * (p + 1) / 2
    log_det = n_free * np.log(max(degrees, 1e-3)) - p * np.log(2.0)
    log_det -= (p + 1) * np.linalg.slogdet(correlation)[1]
    density = log_prior_of_correlations(p) - np.sum(prior.log_width)
    return float(min(density + 0.5 * (n_free * np.log(2.0 * np.pi) - log_det), 0.0))


def with_correlations(posed, old, optional=False):
    """Where a minimum leads when the noise covariance is inferred with everything else.

    Parameters
    ----------
    posed : Posed
        With `CorrelatedGaussian` noise.
    old : Minimum
        Under that, or under constant noise.
    optional : bool, default=False
        Whether to return ``None`` if there is no time left.
    """
    posterior, settings = posed
    if optional and settings.deadline.passed:
        return None
    method = Method.choose(posterior, settings)
    with method.threads():
        start = getattr(old.likelihood, "correlation", posterior.likelihood.correlation)
        found = replace(old, likelihood=replace(posterior.likelihood, correlation=start))
        if found.precision is None:  # of an earlier fit
            found = _followed(own_posterior(posterior, found), found, settings, refine=False)
        z, moved = correlation_coordinates(start), np.inf
        for i in range(ROUNDS_OF_BATCHES if method.early else ROUNDS):
            if found.precision is None or (i and settings.deadline.passed):
                break
            own = own_posterior(posterior, found)
            covariance = noise_covariance(own, found.theta, found.precision)
            correlation = correlation_of(covariance)
            likelihood = replace(posterior.likelihood, correlation=correlation)
            beta = settings.free.beta_prior.clip(1.0 / np.diagonal(covariance))
            found = replace(found, hyper=found.hyper._replace(beta=beta))
            own = replace(own, likelihood=likelihood)
            before, z = z, correlation_coordinates(correlation)
            moved = np.max(np.abs(z - before))
            found = _followed(own, found, settings, refine=i < REFINING_ROUNDS)
            if moved < SETTLED:
                break
        found = _with_occam(own_posterior(posterior, found), found, settings)
        settled = found.converged and bool(moved < 100.0 * SETTLED)
        return replace(found, n_iter=old.n_iter, pruned=old.pruned, converged=settled)


def _followed(posterior, minimum, settings, refine):
    """The minimum of another posterior that is next to one, from its precisions on."""
    if Method.choose(posterior, settings).early:
        return trained_further(posterior, minimum, settings)
    return polish(posterior, minimum.theta, minimum.hyper, settings, refine)


def _with_occam(posterior, minimum, settings):
    """With the Occam factor of the whole covariance, and those of weight precisions integrated."""
    if minimum.trouble is not None:
        return minimum
    minimum = integrated(posterior, minimum, settings)
    correlation = minimum.likelihood.correlation
    degrees = posterior.n_rows - np.sum(minimum.gamma) / len(correlation)
    occam = log_occam_of_covariance(settings.free.beta_prior, correlation, degrees)
    return replace(minimum, terms=replace(minimum.terms, noise_occam=occam))
