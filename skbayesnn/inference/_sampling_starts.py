"""Where chains start."""

from dataclasses import replace

import numpy as np
from joblib import effective_n_jobs

from skbayesnn._threads import blas_threads
from skbayesnn.inference._degrees_of_freedom import DEGREES_OF_FREEDOM
from skbayesnn.inference._noise_network import Pair, expected_noise_posterior, train_with_noise
from skbayesnn.inference._sampling import DENSE_LIMIT
from skbayesnn.inference._training import Trained, random_starts, train
from skbayesnn.posterior import (
    Hyperparameters,
    InputDependentJoint,
    JointPosterior,
    StudentTJoint,
)
from skbayesnn.samplers import Chains

TRAINING_STEPS = 60  # towards a minimum, from which a chain then starts
WIDEST = 30.0  # prior sds of starts lie between this and its inverse


def start_sampling(posterior, settings, seeds, minima=(), from_prior=False, n_jobs=None):
    """Chains at their starting points, not warmed up yet.

    Parameters
    ----------
    posterior : Posterior
    settings : SamplingSettings
    seeds : list of numpy.random.SeedSequence
        One per chain.
    minima : sequence of Minimum, optional
        Of an evidence fit: the first chains start from these. Each other chain is trained briefly
        from a random start of its own.
    from_prior : bool, default=False
        Start from draws from the prior instead.
    n_jobs : int, optional

    Returns
    -------
    joint : JointPosterior
    chains : list of Chains
        One batch per process.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import FreeHyperparameters, SamplingSettings, Settings
    >>> from skbayesnn.inference import start_sampling
    >>> from skbayesnn.network import Network
    >>> from skbayesnn.posterior import Gaussian, Hyperparameters, LogUniform
    >>> from skbayesnn.posterior import Posterior, weight_groups
    >>> from skbayesnn.samplers import Plan
    >>> network, X = Network((1, 3, 1)), np.linspace(-1, 1, 20)[:, None]
    >>> y = np.sin(3 * X) + 0.1 * np.random.default_rng(0).standard_normal((20, 1))
    >>> groups = weight_groups(network, "single")
    >>> posterior = Posterior(network, Gaussian.per_output(1), groups, X, y, np.ones(20))
    >>> free = FreeHyperparameters(np.array([True]), np.array([True]), LogUniform())
    >>> settings = Settings(free, fixed=Hyperparameters(np.ones(1), np.ones(1)))
    >>> sampling = SamplingSettings(settings, Plan(), n_warmup=20, n_draws=20)
    >>> seeds = np.random.SeedSequence(0).spawn(2)
    >>> joint, chains = start_sampling(posterior, sampling, seeds)
    >>> chains[0].phase.position.shape  # two chains; six hidden weights and two precisions
    (2, 8)
    """
    rngs = [np.random.default_rng(seed) for seed in seeds]
    minima = minima[: len(rngs)]
    with blas_threads(posterior.network.n_weights):
        theta, hyper = _trained_means(posterior, settings.search, rngs, minima, from_prior)
        if settings.search.noise_plan is not None:
            joint, theta, hyper = _with_noise_networks(
                posterior, settings, theta, hyper, seeds, minima, from_prior
            )
        else:
            joint = _joint_posterior(posterior, settings)
            known = _known(posterior, joint.n_sampled, theta, hyper)
            joint = _informed(joint, known, hyper, settings)
        position = joint.position(theta, _moderate(hyper, joint.free))
        if from_prior:
            position = np.stack([joint.draw_prior(rng) for rng in rngs])
        position = joint.renewed(position, rngs, keep_outputs=True)
        batches = np.array_split(np.arange(len(rngs)), min(effective_n_jobs(n_jobs), len(rngs)))
        return joint, [
            Chains.start(joint.energy, position[batch], [rngs[i] for i in batch], settings.plan)
            for batch in batches
        ]


def _trained_means(posterior, search, rngs, minima, from_prior):
    """Networks of the means after brief training, the first ones from minima."""
    theta, hyper = random_starts(posterior, rngs)
    hyper = search.with_fixed(hyper)
    if not from_prior:
        brief = search._replace(max_iter=TRAINING_STEPS)
        theta, hyper = train(posterior, theta, hyper, brief)[:2]
    for i, minimum in enumerate(minima):
        theta[i] = _embedded(minimum, posterior.network)
        hyper.alpha[i], hyper.beta[i] = minimum.hyper
    return theta, search.with_fixed(hyper)


def _joint_posterior(posterior, settings):
    """The joint posterior with the noise of the likelihood, in non-centred coordinates."""
    kind, own = JointPosterior, {}
    if not posterior.likelihood.linear:
        kind, own = StudentTJoint, {"degrees_of_freedom": DEGREES_OF_FREEDOM}
    search = settings.search
    information = np.zeros(len(posterior.groups.names))
    return kind(posterior, search.free, search.fixed, information, settings.tuned, **own)


def _with_noise_networks(posterior, settings, theta, hyper, seeds, minima, from_prior):
    """The joint posterior of both networks, and starting points with a noise network each.

    Returns
    -------
    joint : InputDependentJoint
    theta : ndarray of shape (n, n_sampled)
        Weights of both networks.
    hyper : Hyperparameters
        Precisions of the groups of both.
    """
    search = settings.search
    network, groups = plan = search.noise_plan
    brief = search._replace(max_iter=TRAINING_STEPS)
    v = np.empty((len(seeds), network.n_weights))
    alpha = np.empty((len(seeds), len(groups.names)))
    for i, seed in enumerate(seeds):
        noise = minima[i].noise if i < len(minima) else None
        if noise is not None:
            v[i], alpha[i] = _embedded(noise, network), noise.hyper.alpha
            continue
        trained = Trained(theta[i], hyper.select(i), 0, True)
        pair = Pair.start(posterior, trained, brief, seed)
        if not from_prior:
            pair = train_with_noise(pair)
        theta[i], hyper.alpha[i] = pair.mean.theta, pair.mean.hyper.alpha
        v[i], alpha[i] = pair.noise.theta, pair.noise.hyper.alpha
    beta = search.free.prior.clip(np.exp(v[:, -network.n_outputs :]))
    own = np.ones(len(groups.names) - 1)
    joint = InputDependentJoint(
        posterior,
        search.free._replace(alpha=np.append(search.free.alpha, own > 0)),
        search.fixed._replace(alpha=np.append(search.fixed.alpha, own)),
        np.zeros(len(search.free.alpha) + len(own)),
        settings.tuned,
        *plan,
    )
    noise_posterior = expected_noise_posterior(posterior, network, groups)
    noise_hyper = Hyperparameters(alpha, np.ones((len(seeds), 1)))
    known = [
        _known(posterior, joint.n_mean, theta, hyper),
        _known(noise_posterior, joint.n_noise, v, noise_hyper)[:, :-1],
    ]
    hyper = Hyperparameters(np.hstack([hyper.alpha, alpha[:, :-1]]), beta)
    joint = _informed(joint, np.hstack(known), hyper, settings)
    return joint, joint.merged(theta, v), hyper


def _embedded(minimum, network):
    """Weights of a minimum in the full layout: pruned units come back switched off."""
    theta = np.zeros(network.n_weights)
    small = minimum.network.layers(minimum.theta)
    for layer, part in zip(network.layers(theta), small, strict=True):
        layer[: part.shape[0] - 1, : part.shape[1]] = part[:-1]
        layer[-1, : part.shape[1]] = part[-1]
    return theta


def _moderate(hyper, free):
    """Precisions of free groups moved away from the extremes, where gradients vanish."""
    alpha = free.prior.clip(np.clip(hyper.alpha, WIDEST**-2, WIDEST**2))
    return hyper._replace(alpha=np.where(free.alpha, alpha, hyper.alpha))


def _informed(joint, known, hyper, settings):
    """The joint posterior in coordinates made for what the data tell.

    That is ``h_c``, the typical precision that the data alone give a weight of every group, the
    median of ``known`` over the starting points. For plain dynamics it is chosen such that the
    coordinates of groups of fixed precision are the weights.
    """
    information = np.median(known, axis=0)
    if not settings.tuned:
        fixed = ~joint.free.alpha
        information[fixed] = 1.0 - hyper.alpha[0, fixed]
    return replace(joint, information=information)


def _known(posterior, n_sampled, theta, hyper):
    """``h_c`` of ``Tr_c(A^-1) = k_c / (alpha_c + h_c)`` at every starting point."""
    if n_sampled == 0 or posterior.network.n_weights > DENSE_LIMIT:
        return np.zeros_like(hyper.alpha)
    matrix = posterior.hessian(theta, hyper, exact=False)
    variances = np.diagonal(np.linalg.inv(matrix), axis1=-2, axis2=-1)[:, :n_sampled]
    member = posterior.groups.membership[:n_sampled]
    sizes = member.sum(axis=0)
    return np.maximum(sizes / np.maximum(variances @ member, 1e-300) - hyper.alpha, 0.0) * (
        sizes > 0
    )
