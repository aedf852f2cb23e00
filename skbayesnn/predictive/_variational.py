"""The Gaussian closest to the posterior of a classifier's weights, for its predictions.

At the most probable weights the posterior of a classifier may be far from symmetric: where classes
can be separated, larger weights explain the targets just as well and smaller ones do not. A
Gaussian centred there puts half of its mass on weights that contradict the data, and outputs
moderated by it are far too unsure. Of all Gaussians, the one here has the least relative entropy to
the posterior of the network linearised at its most probable weights (Opper & Archambeau 2009; for
networks Immer, Korzepa & Bauer 2021, "Improving predictions of Bayesian neural nets via local
linearization").
"""

from dataclasses import dataclass, replace

import numpy as np

from skbayesnn.inference import gauss_newton_forms
from skbayesnn.predictive._moderation import activation_moments

TOLERANCE = 0.01  # last full step in standard deviations, root mean square over the weights
MAX_ITER = 40
FIRST_SHARE, LEAST_SHARE = 0.5, 0.05  # of a full step that is gone
LARGEST_STEP = 3e10  # rows times activations times squared weights up to which it is tried


def closest_gaussian(member, posterior, hyper):
    """Replace the Gaussian over a classifier's weights by the closest one to their posterior.

    With activations ``a_n ~ N(f_n + J_n d, J_n V J_n^T)`` the closest Gaussian, of mean ``w_MP +
    d`` and covariance ``V``, satisfies (Opper & Archambeau 2009, section 3)::

        V^-1 = diag(alpha) + sum_n s_n J_n^T E[dp_n/da_n] J_n
        0    = alpha (w_MP + d) + sum_n s_n J_n^T (E[p_n] - t_n)

    Natural-gradient steps lead there (Khan & Lin 2017), shortened after one that went too far.

    Parameters
    ----------
    member : Member
        With any Gaussian.
    posterior : Posterior
        Of the weights of a classifier, with its training rows.
    hyper : Hyperparameters

    Returns
    -------
    Member
        With a ``shift``; or as it was, where that is too much work or numerically singular.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import DenseGaussian
    >>> from skbayesnn.network import Network
    >>> from skbayesnn.posterior import Bernoulli, Hyperparameters, Posterior, weight_groups
    >>> from skbayesnn.predictive import Member, closest_gaussian
    >>> network, hyper = Network((1, 1)), Hyperparameters(np.array([0.1]), np.ones(1))
    >>> X, y = np.array([[-1.0], [1.0]]), np.array([[0.0], [1.0]])  # classes can be separated
    >>> groups = weight_groups(network, "single")
    >>> posterior = Posterior(network, Bernoulli(), groups, X, y, np.ones(2))
    >>> theta = np.array([2.1, 0.0])  # nearly the most probable weights
    >>> gaussian = DenseGaussian.from_precision(posterior.hessian(theta, hyper))
    >>> member = closest_gaussian(Member(network, theta, gaussian, np.zeros(1)), posterior, hyper)
    >>> bool(member.shift[0] > 0.5)  # larger weights explain the targets as well
    True
    """
    X, t, p = posterior.X, posterior.y, posterior.network.n_outputs
    if len(X) * p * posterior.network.n_weights**2 > LARGEST_STEP:
        return member
    alpha = posterior.groups.expand(hyper.alpha)
    probability, slopes = activation_moments(member.mean(X), np.zeros((len(X), p, p)))
    _, gaussian = _linear_model(posterior, member.theta, hyper, probability - t, slopes)
    if gaussian is None:
        return member
    shift, share, last, best = np.zeros_like(member.theta), FIRST_SHARE, np.inf, (np.inf, member)
    for _ in range(MAX_ITER):
        present = replace(member, gaussian=gaussian, shift=shift)
        mean, covariance = present.mean_and_covariance(X)
        probability, target = activation_moments(mean, covariance)
        turn = posterior.sample_weight @ _squared_norm((target - slopes) @ covariance)
        slopes = slopes + share * (target - slopes)
        gradient, gaussian = _linear_model(posterior, member.theta, hyper, probability - t, slopes)
        gradient += alpha * shift
        if gaussian is None:
            break
        step = gaussian.solve(gradient)
        length = np.sqrt((gradient @ step + 0.5 * turn) / len(step))
        if length < best[0]:
            best = length, present
        if length < TOLERANCE:
            break
        share = max(0.5 * share, LEAST_SHARE) if length > last else min(1.3 * share, 1.0)
        shift, last = shift - share * step, length
    return best[1]


def _linear_model(posterior, theta, hyper, residual, slopes):
    """Gradient at ``w_MP``, and the Gaussian with these slopes; ``None`` if it is singular."""
    columns = np.hstack([residual, slopes.reshape(len(slopes), -1)])
    sites = replace(posterior, likelihood=_Sites(residual.shape[1]), y=columns)
    gradient, (curvature,) = gauss_newton_forms(sites, theta[None], hyper.repeated(1))
    return gradient[0], curvature.gaussian()


@dataclass(frozen=True)
class _Sites:
    """Quadratic misfits with gradient and curvature of their own for every row.

    Both are found in the columns of ``y``.
    """

    n_outputs: int

    linear = True

    def derivatives(self, outputs, y, sample_weight, beta, exact=False):
        """Gradient ``(..., n, p)`` and curvature ``(..., n, p, p)``, as given."""
        p = self.n_outputs
        weighted = y * sample_weight[:, None]
        curvature = weighted[:, p:].reshape(-1, p, p)
        lead = outputs.shape[:-2]
        return (
            np.broadcast_to(weighted[:, :p], (*lead, *weighted[:, :p].shape)),
            np.broadcast_to(curvature, (*lead, *curvature.shape)),
        )

    def errors_and_gradient(self, outputs, y, sample_weight, beta):
        """No misfit is asked for."""
        return np.zeros((*outputs.shape[:-2], 1)), self.derivatives(
            outputs, y, sample_weight, beta
        )[0]


def _squared_norm(matrices):
    """``Tr(M M)`` of matrices ``(n, p, p)``."""
    return np.einsum("nij,nji->n", matrices, matrices)
