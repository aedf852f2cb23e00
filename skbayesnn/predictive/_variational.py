"""Variational Gaussian approximation of the posterior of a classifier's weights.

At the most probable weights the posterior of a classifier may be far from symmetric: where classes
can be separated, larger weights explain the targets just as well and smaller ones do not. A
Gaussian centred there puts half of its mass on weights of low likelihood, and outputs moderated
by it are far too uncertain. Of all Gaussians, the one here has the least relative entropy to
the posterior of the network linearised at its most probable weights (Opper & Archambeau 2009; for
networks Immer, Korzepa & Bauer 2021, "Improving predictions of Bayesian neural nets via local
linearization").
"""

from dataclasses import dataclass, replace

import numpy as np

from skbayesnn.inference import Method
from skbayesnn.network import Network, forward
from skbayesnn.posterior import Likelihood, Misfit, Posterior
from skbayesnn.predictive._moderation import activation_moments

TOLERANCE = 0.01  # RMS of the last full step over the weights, in standard deviations
MAX_ITER = 16
MANY = 2e7  # rows times squared classes beyond which the Gaussian is not improved (two minutes)
FIRST_SHARE, MIN_SHARE = 0.5, 0.05  # fractions of a full step


def closest_gaussian(member, posterior, settings, hyper):
    """Replace the Gaussian over a classifier's weights by the closest one to their posterior.

    With activations ``a_n ~ N(f_n + J_n d, J_n V J_n^T)`` the closest Gaussian, of mean ``w_MP +
    d`` and covariance ``V``, satisfies (Opper & Archambeau 2009, section 3)::

        V^-1 = diag(alpha) + sum_n s_n J_n^T E[dp_n/da_n] J_n
        0    = alpha (w_MP + d) + sum_n s_n J_n^T (E[p_n] - t_n)

    Natural-gradient steps converge to it (Khan & Lin 2017); a step is shortened after an overshoot.
    In large networks (`Limits.moderation_work`) only the output weights get a Gaussian.

    The member that is returned has a ``shift``; it is unchanged after training on batches, where
    the Gaussian at the most probable weights predicts as well, and if the curvature is numerically
    singular, there are too many rows and classes, or the deadline has passed. So it is in large
    networks with an informative prior.
    """
    network, n = posterior.network, len(posterior.X)
    many = posterior.y.size * network.n_outputs > MANY
    if many or Method.choose(posterior, settings).by_batches or settings.deadline.passed:
        return member
    work = n * network.n_outputs * network.n_weights**2
    if work <= settings.limits.moderation_work or not network.hidden_layer_sizes:
        return _closest(member, posterior, settings, hyper)
    if not posterior.groups.centred:
        return member
    part = network.slices[-1]
    width = network.hidden_layer_sizes[-1]
    z = forward(network, member.theta, posterior.X).inputs[-1][:, :width]
    groups = posterior.groups.relabelled(posterior.groups.labels[part])
    layer = Network((width, network.n_outputs), output_bias=network.output_bias)
    weight = posterior.sample_weight
    above = Posterior(layer, posterior.likelihood, groups, z, posterior.y, weight)
    own = replace(member, network=layer, theta=member.theta[part])
    closest = _closest(own, above, settings, hyper)
    if closest is own:
        return member
    return replace(member, precision=closest.precision, shift=closest.shift, free=part)


def _closest(member, posterior, settings, hyper):
    """Compute `closest_gaussian` over all weights."""
    X, t, p = posterior.X, posterior.y, posterior.network.n_outputs
    groups, method = posterior.groups, Method.choose(posterior, settings)

    def linear_model(residual, slopes):
        """Gradient at ``w_MP``, and the precision with these slopes."""
        sites = replace(posterior, likelihood=_Sites(), y=residual, factors=slopes)
        point = method.point(sites, member.theta, hyper)
        return point.gradient, point.precision

    shift = np.zeros_like(member.theta)
    probability, slopes = activation_moments(member.outputs(X)[0], np.zeros((len(X), p, p)))
    _, precision = linear_model(probability - t, slopes)
    if not precision.definite:
        return member
    share, last, best = FIRST_SHARE, np.inf, (np.inf, member)
    for _ in range(MAX_ITER):
        if settings.deadline.passed:
            break
        present = replace(member, precision=precision, shift=shift)
        (mean,), (covariance,) = present.moments(X, rough=True)
        probability, target = activation_moments(mean, covariance)
        turned = (target - slopes) @ covariance
        turn = posterior.sample_weight @ np.einsum("nij,nji->n", turned, turned)
        slopes = slopes + share * (target - slopes)
        gradient, precision = linear_model(probability - t, slopes)
        gradient = gradient + groups.product(shift, hyper.alpha)
        if not precision.definite:
            break
        step = precision.solve(gradient)
        length = np.sqrt((gradient @ step + 0.5 * turn) / len(step))
        if length < best[0]:
            best = length, present
        if length < TOLERANCE:
            break
        share = max(0.5 * share, MIN_SHARE) if length > last else min(1.3 * share, 1.0)
        shift, last = shift - share * step, length
    final = best[1]
    return final if final is member else replace(final, precision=final.precision.condensed())


@dataclass(frozen=True)
class _Sites(Likelihood):
    """Quadratic misfits whose gradients are the targets, and whose curvatures are their factors."""

    def misfit(self, outputs, targets, beta):
        """Misfit of zero, not used by the iteration."""
        lead = outputs.shape[:-2]
        return Misfit(np.zeros(lead), np.zeros((*lead, 0)))

    def derivatives(self, outputs, targets, beta, exact=False):
        """Gradient ``(..., n, p)`` and curvature ``(..., n, p, p)``, as given."""
        lead, weight = outputs.shape[:-2], targets.weight[:, None]
        gradient, curvature = targets.y * weight, targets.factors * weight[..., None]
        return tuple(np.broadcast_to(a, (*lead, *a.shape)) for a in (gradient, curvature))
