"""Noise models of regressors: how minima under each are found, and tests that suggest it.

A model is one class and one line of `NOISE_MODELS`.
"""

from dataclasses import fields, replace
from typing import NamedTuple

import numpy as np

from skbayesnn.inference._correlations import correlation_of, with_correlations
from skbayesnn.inference._degrees_of_freedom import (
    DEGREES_OF_FREEDOM,
    FIRST,
    best_degrees_of_freedom,
)
from skbayesnn.inference._method import Method
from skbayesnn.inference._minimum import polish
from skbayesnn.inference._noise_network import (
    NoisePlan,
    Pair,
    expected_noise_posterior,
    settle,
    train_with_noise,
)
from skbayesnn.inference._noisy_inputs import with_noisy_inputs
from skbayesnn.inference._profile import integrated
from skbayesnn.inference._residual_tests import correlated_outputs, heavy_tails, noise_trend
from skbayesnn.inference._search import (
    ALONE,
    distinct,
    find_minima,
    fits,
    own_posterior,
    trained_further,
)
from skbayesnn.inference._training import Trained
from skbayesnn.inference._widening import embedded, widened
from skbayesnn.network import outputs
from skbayesnn.posterior import (
    CorrelatedGaussian,
    CorrelatedJoint,
    Hyperparameters,
    InputDependentJoint,
    JointPosterior,
    LogUniform,
    MeasuredGaussian,
    MeasuredJoint,
    NoisyInputGaussian,
    NoisyInputsGaussian,
    NoisyInputsJoint,
    StudentT,
    StudentTJoint,
    at_slopes,
    correlation_coordinates,
    with_input_noise,
)

NOISE_MINIMA = 3  # under constant noise, from which searches under other noise begin
NOISE_NETWORKS = 5  # the same where they are trained on batches, and do not differ in evidence
FARTHEST = 3.0  # coordinate of a correlation, a priori standard normal, of starts
JOINTS = {
    MeasuredGaussian: MeasuredJoint,
    NoisyInputGaussian: NoisyInputsJoint,
    NoisyInputsGaussian: NoisyInputsJoint,
}  # of likelihoods that need one of their own
IMPROBABLE = 10.0  # nats below the best at which minima with Student-t noise are dropped


def noise_minima(posed):
    """From how many minima under constant noise searches under other noise begin."""
    return NOISE_NETWORKS if Method.choose(*posed).by_batches else NOISE_MINIMA


class ConstantNoise:
    """Gaussian noise of one level for each output, or shared by some; or classes, without noise."""

    by_name = True  # whether users may ask for it by its name
    tried_below = 0.0  # the p value of its test below which it is tried
    plain = True  # whether minima under constant noise are its own
    hides = False  # whether under constant noise it hides what larger networks could learn
    measurable = True  # whether annealing can begin at its minima

    def p_value(self, posed, residuals):
        """Of a test for this noise; ``None`` where it is not to be chosen.

        Parameters
        ----------
        posed : Posed
            Under constant noise.
        residuals : Residuals
        """
        return None

    def hidden_layer_sizes(self, problem):
        """Of a network of its own: there is none."""
        return ()

    def pose(self, problem, posed):
        """Posterior and settings of a search under this noise, from those under constant noise."""
        return posed

    def search(self, problem, posed, previous, workers=ALONE):
        """Minima that are reached from others.

        What the network of the means has not learnt yet would be taken for noise; so there are no
        random starts.

        Parameters
        ----------
        problem : Problem
        posed : Posed
            As `pose` makes it.
        previous : list of Minimum
            Best first: some under this noise, from an earlier fit, then some under constant noise.
        workers : Workers
        """
        return find_minima(*posed, (), previous, workers=workers)

    def continues(self, problem, posed, old):
        """Whether a minimum of an earlier fit is one under this noise, of a network that fits."""
        same = type(old.likelihood) is type(posed.posterior.likelihood) and old.noise is None
        return same and fits(old, posed.posterior.network, posed.posterior.groups)

    def joint(self, posed, tuned):
        """The posterior that samplers move in, in non-centred coordinates."""
        posterior, search = posed
        information = np.zeros(len(posterior.groups.names))
        kind = JOINTS.get(type(posterior.likelihood), JointPosterior)
        return kind(posterior, search.free, search.fixed, information, tuned)

    def positions(self, problem, posed, tuned, starts, minima, seeds, from_prior):
        """Where chains start under this noise.

        Parameters
        ----------
        problem : Problem
        posed : Posed
            As `pose` makes it.
        tuned : bool
            See `SamplingSettings`.
        starts : list of Trained
            A network of the means for each chain.
        minima : sequence of Minimum
            Those at which the first of them are.
        seeds : list of numpy.random.SeedSequence
            One per chain.
        from_prior : bool
            Whether the weights will be drawn from the prior.
        """
        joint, (theta, hyper) = self.joint(posed, tuned), _stacked(starts)
        known = _known(posed.posterior, posed.settings, joint.n_mean, theta, hyper)
        return Positions(joint, theta, hyper, known)


class Residuals(NamedTuple):
    """Residuals under constant noise.

    Attributes
    ----------
    values : ndarray of shape (n, n_outputs)
        Each divided by its expected standard deviation.
    weight : ndarray of shape (n,)
        Repetitions of the rows.
    degrees : float
        Rows less the weights of each output that they determine.
    """

    values: np.ndarray
    weight: np.ndarray
    degrees: float


class Positions(NamedTuple):
    """Where chains start.

    Attributes
    ----------
    joint : JointPosterior
    theta : ndarray of shape (n_chains, m)
        Weights of all its networks.
    hyper : Hyperparameters
        Precisions of all its groups.
    known : ndarray of shape (n_chains, n_groups)
        What the data alone tell about a weight of every group, ``h_c``.
    """

    joint: JointPosterior
    theta: np.ndarray
    hyper: Hyperparameters
    known: np.ndarray


def _stacked(starts):
    """Weights and hyperparameters of several networks, with a leading axis."""
    hyper = zip(*(start.hyper for start in starts), strict=True)
    return np.stack([start.theta for start in starts]), Hyperparameters(*map(np.stack, hyper))


def _known(posterior, settings, n_sampled, theta, hyper):
    """``h_c`` of ``Tr_c(A^-1) = k_c / (alpha_c + h_c)`` at every starting point."""
    if n_sampled == 0 or posterior.network.n_weights > settings.limits.dense:
        return np.zeros_like(hyper.alpha)
    matrix = posterior.groups.white_matrix(posterior.hessian(theta, hyper, exact=False))
    variances = np.diagonal(np.linalg.inv(matrix), axis1=-2, axis2=-1)[:, :n_sampled]
    member = posterior.groups.membership[:n_sampled]
    sizes = member.sum(axis=0)
    return np.maximum(sizes / np.maximum(variances @ member, 1e-300) - hyper.alpha, 0.0) * (
        sizes > 0
    )


class StudentTNoise(ConstantNoise):
    """Student-t noise, whose degrees of freedom are chosen by the evidence.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import NOISE_MODELS, Residuals
    >>> values = np.random.default_rng(0).standard_t(2, (100, 1))
    >>> residuals = Residuals(values, np.ones(100), degrees=98.0)
    >>> bool(NOISE_MODELS["student_t"].p_value(None, residuals) < 0.001)
    True
    """

    tried_below = 0.5  # it costs little, and networks that have fitted outliers hide them
    hides = True
    plain = False
    measurable = False

    def p_value(self, posed, residuals):
        """Of a test for this noise: `heavy_tails`."""
        return heavy_tails(residuals.values, residuals.weight)

    def pose(self, problem, posed):
        """As `ConstantNoise.pose`; fixed noise levels are those of the noise, not of its scale."""
        posterior, settings = posed
        old = posterior.likelihood
        likelihood = StudentT(old.levels, old.relative, DEGREES_OF_FREEDOM[FIRST])
        beta = settings.fixed.beta * np.where(settings.free.beta, 1, likelihood.variance_factor)
        settings = settings._replace(fixed=settings.fixed._replace(beta=beta))
        return posed._replace(
            posterior=replace(posterior, likelihood=likelihood), settings=settings
        )

    def search(self, problem, posed, previous, workers=ALONE):
        """As `ConstantNoise.search`."""
        minima = super().search(problem, posed, previous, workers)
        # in a mixture for the sake of its wide tails it would spoil means and noise levels
        minima = [m for m in minima if not m.log_evidence < minima[0].log_evidence - IMPROBABLE]
        return distinct(workers.run(_over_degrees_of_freedom, [(posed, m) for m in minima]), posed)

    def joint(self, posed, tuned):
        """As `ConstantNoise.joint`, with a factor of every row's precision."""
        plain = super().joint(posed, tuned)
        given = {field.name: getattr(plain, field.name) for field in fields(plain)}
        return StudentTJoint(**given, degrees_of_freedom=DEGREES_OF_FREEDOM)


def _over_degrees_of_freedom(posed, minimum):
    """The minimum of Student-t noise at the best degrees of freedom."""
    posterior, settings = posed

    def at(degrees_of_freedom, start):
        likelihood = replace(posterior.likelihood, degrees_of_freedom=degrees_of_freedom)
        own = replace(own_posterior(posterior, start), likelihood=likelihood)
        ratio = likelihood.variance_factor / posterior.likelihood.variance_factor
        fixed = settings.fixed._replace(beta=settings.fixed.beta * ratio)
        there = settings._replace(fixed=fixed)
        if Method.choose(own, there).by_batches:
            return trained_further(own, start, there)
        found = polish(own, start.theta, there.with_fixed(start.hyper), there, refine=True)
        return replace(found, n_iter=start.n_iter, pruned=start.pruned)

    with Method.choose(posterior, settings).threads():
        found = best_degrees_of_freedom(minimum, at)
        return integrated(own_posterior(posterior, found), found, settings)


class InputDependentNoise(ConstantNoise):
    """Gaussian noise whose level is a function of the inputs, which a second network learns."""

    tried_below = 0.01
    plain = False
    measurable = False

    def p_value(self, posed, residuals):
        """Of a test for this noise: `noise_trend`."""
        return noise_trend(posed.posterior.X, residuals.values, residuals.weight)

    def hidden_layer_sizes(self, problem):
        """Of the noise network."""
        return problem.noise_hidden_layer_sizes

    def plan(self, problem):
        """The noise network."""
        prior = problem.prior if isinstance(problem.prior, str) else "layer"
        return NoisePlan.build(
            problem.network(()), problem.noise_hidden_layer_sizes, prior, problem.feature_names
        )

    def search(self, problem, posed, previous, workers=ALONE):
        """As `ConstantNoise.search`; minima under constant noise get a noise network each."""
        pairs = [old for old in previous if old.noise is not None]
        plain = distinct([old for old in previous if old.noise is None], posed)
        starts = [*pairs, *plain[: max(0, noise_minima(posed) - len(pairs))]]
        plan = self.plan(problem)
        workers.announced(*posed, len(starts))
        tasks = [(posed, plan, old, i > 0) for i, old in enumerate(starts)]
        with workers.searching(*posed, len(starts)) as told:
            found = workers.told_of(lambda some: told(some and some[0]), _with_noise, tasks)
        return distinct([minimum for some in found for minimum in some], posed)

    def continues(self, problem, posed, old):
        """As of `ConstantNoise`, with a noise network that fits, too."""
        means = fits(old, posed.posterior.network, posed.posterior.groups)
        return means and fits(old.noise, *self.plan(problem))

    def positions(self, problem, posed, tuned, starts, minima, seeds, from_prior):
        """As `ConstantNoise.positions`, each with a noise network."""
        posterior, search = posed
        plan = self.plan(problem)
        network, groups = plan
        noises = [minimum.noise for minimum in minima]
        noises = [noise if fits(noise, *plan) else None for noise in noises]
        v = np.empty((len(seeds), network.n_weights))
        alpha = np.empty((len(seeds), len(groups.names)))
        for i, seed in enumerate(seeds):
            noise = noises[i] if i < len(noises) else None
            if noise is not None:
                v[i], alpha[i] = embedded(noise, network), noise.hyper.alpha
                continue
            pair = Pair.start(posterior, starts[i], search, plan, seed)
            if not from_prior:
                pair = train_with_noise(pair)
            hyper = starts[i].hyper._replace(alpha=pair.mean.hyper.alpha)
            starts[i] = starts[i]._replace(theta=pair.mean.theta, hyper=hyper)
            v[i], alpha[i] = pair.noise.theta, pair.noise.hyper.alpha
        theta, hyper = _stacked(starts)
        beta = search.free.beta_prior.clip(np.exp(v[:, -network.n_outputs :]))
        own = np.ones(len(groups.names) - 1)
        joint = InputDependentJoint(
            posterior,
            search.free.with_groups(own > 0, LogUniform()),
            search.fixed._replace(alpha=np.append(search.fixed.alpha, own)),
            np.zeros(len(search.free.alpha) + len(own)),
            tuned,
            *plan,
        )
        expected = expected_noise_posterior(posterior, plan)
        noise_hyper = Hyperparameters(alpha, np.ones((len(seeds), 0)))
        known = [
            _known(posterior, search, joint.n_mean, theta, hyper),
            _known(expected, search, joint.n_noise, v, noise_hyper)[:, :-1],
        ]
        hyper = Hyperparameters(np.hstack([hyper.alpha, alpha[:, :-1]]), beta)
        return Positions(joint, joint.merged(theta, v), hyper, np.hstack(known))


def _with_noise(posed, plan, old, optional):
    """Take a minimum and its noise network, a new one if there is none yet, to their minima.

    Where a new one finds little noise the means may tell more of the function. So units that were
    pruned under constant noise begin anew, besides a start without them. ``None`` if there is no
    time for what is optional.
    """
    posterior, settings = posed
    if optional and settings.deadline.passed:
        return None
    with Method.choose(posterior, settings).threads():
        own = own_posterior(posterior, old)
        if old.noise is not None:
            return [settle(Pair.resume(own, old, settings, plan))]
        seed = np.random.SeedSequence(0)  # starts differ enough in the means
        starts = [(own, old.theta, old.pruned)]
        if old.network != posterior.network and not Method.choose(own, settings).by_batches:
            wide = widened(old, posterior.network, np.random.default_rng(seed))
            starts.append((posterior, wide, ()))
        found = []
        for there, theta, pruned in starts:
            if found and settings.deadline.passed:
                break
            trained = Trained(theta, old.hyper, old.n_iter, old.converged)
            pair = train_with_noise(Pair.start(there, trained, settings, plan, seed))
            minimum = settle(pair)
            found.append(replace(minimum, pruned=pruned + minimum.pruned))
        return found


class CorrelatedNoise(ConstantNoise):
    """Gaussian noise with one covariance matrix between the outputs for all rows."""

    tried_below = 0.01
    plain = False
    measurable = False

    def p_value(self, posed, residuals):
        """Of a test for this noise: `correlated_outputs`.

        It is not chosen where the prior has a mean or a matrix, or tells the outputs of a unit
        apart: samplers integrate output weights out, of all outputs together.
        """
        network, groups = posed.posterior.network, posed.posterior.groups
        last = network.layers(groups.labels)[-1]
        if network.n_outputs == 1 or not groups.centred or np.any(last != last[:, :1]):
            return None
        return correlated_outputs(*residuals)

    def pose(self, problem, posed):
        """As `ConstantNoise.pose`; searches begin without correlations."""
        old = posed.posterior.likelihood
        likelihood = CorrelatedGaussian(old.levels, old.relative, np.eye(len(old.levels)))
        return posed._replace(posterior=replace(posed.posterior, likelihood=likelihood))

    def search(self, problem, posed, previous, workers=ALONE):
        """As `ConstantNoise.search`; see `with_correlations`."""
        workers.announced(*posed, len(previous))
        tasks = [(posed, old, i > 0) for i, old in enumerate(previous)]
        with workers.searching(*posed, len(previous)) as told:
            return distinct(workers.told_of(told, with_correlations, tasks), posed)

    def joint(self, posed, tuned):
        """As `ConstantNoise.joint`, with coordinates of the correlations."""
        plain = super().joint(posed, tuned)
        return CorrelatedJoint(
            plain.posterior,
            plain.free.with_groups(np.zeros(1, dtype=bool), LogUniform()),
            plain.fixed._replace(alpha=np.append(plain.fixed.alpha, 1.0)),
            np.append(plain.information, 0.0),
            tuned,
        )

    def positions(self, problem, posed, tuned, starts, minima, seeds, from_prior):
        """As `ConstantNoise.positions`, each with the correlations of its residuals."""
        there = super().positions(problem, posed, tuned, starts, minima, seeds, from_prior)
        posterior = posed.posterior
        residuals = outputs(posterior.network, there.theta, posterior.X) - posterior.y
        weighted = posterior.sample_weight[:, None] * residuals
        moments = np.swapaxes(residuals, -1, -2) @ weighted / posterior.n_rows
        floor = np.diag(np.exp(-posed.settings.free.beta_prior.high))
        z = np.stack([correlation_coordinates(correlation_of(m + floor)) for m in moments])
        ones = np.ones((len(z), 1))
        return there._replace(
            theta=there.joint.merged(there.theta, np.clip(z, -FARTHEST, FARTHEST)),
            hyper=there.hyper._replace(alpha=np.hstack([there.hyper.alpha, ones])),
            known=np.hstack([there.known, 0.0 * ones]),
        )


class NoisyInputs(ConstantNoise):
    """Gaussian noise of constant level beside that which known noise of the inputs makes."""

    by_name = False
    plain = False
    measurable = False

    def pose(self, problem, posed):
        """As `ConstantNoise.pose`."""
        likelihood = with_input_noise(posed.posterior.likelihood, problem.input_variances)
        return posed._replace(posterior=replace(posed.posterior, likelihood=likelihood))

    def search(self, problem, posed, previous, workers=ALONE):
        """As `ConstantNoise.search`; see `with_noisy_inputs`."""
        workers.announced(*posed, len(previous))
        tasks = [(posed, old, i > 0) for i, old in enumerate(previous)]
        with workers.searching(*posed, len(previous)) as told:
            return distinct(workers.told_of(told, with_noisy_inputs, tasks), posed)

    def positions(self, problem, posed, tuned, starts, minima, seeds, from_prior):
        """As `ConstantNoise.positions`, each with the noise at its slopes."""
        there = super().positions(problem, posed, tuned, starts, minima, seeds, from_prior)
        known = []
        for i, theta in enumerate(there.theta):
            own = at_slopes(posed.posterior, theta)
            given = len(theta), theta[None], there.hyper.select([i])
            known.append(_known(own, posed.settings, *given))
        return there._replace(known=np.concatenate(known))


NOISE_MODELS = {
    "constant": ConstantNoise(),
    "shared": ConstantNoise(),
    "input_dependent": InputDependentNoise(),
    "student_t": StudentTNoise(),
    "correlated": CorrelatedNoise(),
    "noisy_inputs": NoisyInputs(),
}
