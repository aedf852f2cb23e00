"""Combination of minima or models into one predictive distribution, and their shares in it."""

from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from skbayesnn.inference import OF_SIZE, Method, own_posterior, well_determined
from skbayesnn.posterior import (
    CensoredGaussian,
    CensoredStudentT,
    CorrelatedGaussian,
    NegativeBinomial,
    Poisson,
    StudentT,
)
from skbayesnn.predictive._counts import CountNoise
from skbayesnn.predictive._draws import Draws, GivenHidden
from skbayesnn.predictive._ensemble import Ensemble
from skbayesnn.predictive._leave_one_out import LeftOut, left_out
from skbayesnn.predictive._limits import CensoredNoise, CensoredStudentTNoise
from skbayesnn.predictive._members import Member
from skbayesnn.predictive._noise import CorrelatedNoise, GaussianNoise, NoiseNetworks
from skbayesnn.predictive._student_t import StudentTNoise, StudentTNoiseNetworks
from skbayesnn.predictive._variational import closest_gaussian

NEGLIGIBLE_MODEL = 0.002  # share of a sampled model below which it is left out
PSEUDO_COUNT = 0.5  # rows of a Dirichlet prior of the shares of sampled models
HOPELESS = 20.0  # nats below the best evidence at which a sampled model has no share
NEGLIGIBLE_WEIGHT = 1e-6  # share of a minimum below which it is left out of predictions
STACKING_STEPS, MIN_GAIN = 2000, 1e-10  # most steps; relative gain below which they end
TEMPERATURE = 0.05  # difference of log densities, in nats per row, that divides a weight by e
MIN_SHARE = 0.01  # of the largest weight; smaller tempered weights are zero

NOISE = {  # of every likelihood but independent Gaussian ones
    CensoredGaussian: CensoredNoise,
    CensoredStudentT: CensoredStudentTNoise,
    CorrelatedGaussian: CorrelatedNoise,
    NegativeBinomial: CountNoise,
    Poisson: CountNoise,
    StudentT: StudentTNoise,
}


class Combined(NamedTuple):
    """Combined predictions of minima."""

    fit: object  # `EvidenceFit` without the precision matrices of its minima
    gaussians: Ensemble  # Gaussian approximations of the minima that have a share, one for each
    shares: np.ndarray  # of the minima
    left_out: LeftOut  # leave-one-out predictions

    @property
    def minima(self):
        """List of all minima that were considered, those of the fit's own network first."""
        return [minimum for _, minimum in self.fit.pool[: len(self.shares)]]


def combined(fit, combine):
    """Combine the minima of an `EvidenceFit`, in the ways that estimators document.

    With ``"posterior"`` and ``"tempered"`` the minima of other networks and noise models take part.
    """
    settings = fit.posed.settings
    of_all_models = combine in ("posterior", "tempered")
    pool = fit.pool if of_all_models else fit.pool[: len(fit.minima)]
    minima = [minimum for _, minimum in pool]
    member = cache(lambda i: member_of(*pool[i], settings))
    left_out_of = cache(lambda i: _left_out(*pool[i], settings, member(i)))

    def densities(i):
        return left_out_of(i).log_density

    shares = _shares(combine, fit.posed.posterior, minima, densities)
    used = np.flatnonzero(shares)
    mixed = LeftOut.mixed([left_out_of(i) for i in used], shares[used])
    gaussians = Ensemble(tuple(map(member, used)), tuple(shares[[i]] for i in used))
    return Combined(fit.without_matrices(), gaussians, shares, mixed)


def member_of(posterior, minimum, settings):
    """Make the member of one minimum: its Gaussian, or the closest Gaussian for classes.

    The posterior is that of the network before pruning, with the training rows.
    """
    net, of_net = minimum.noise, ()
    if net is not None:
        of_net = net.theta[None], net.network, settings.free.beta_prior.log_range, net.precision
    noise = noise_of(minimum.likelihood, minimum.hyper.beta[None], *of_net)
    member = Member(minimum.network, minimum.theta, minimum.precision, noise)
    if noise is not None:
        return member
    own = own_posterior(posterior, minimum)
    with Method.choose(own, settings).threads():
        return closest_gaussian(member, own, settings, minimum.hyper)


def _left_out(posterior, minimum, settings, member):
    """Predict the left-out training rows for one minimum, see `left_out`."""
    own = own_posterior(posterior, minimum)
    method = Method.choose(own, settings)
    with method.threads():
        if member.shift is None and method.exact:
            determined = well_determined(own, method, minimum.theta, minimum.hyper)
            if determined is not None:
                member = replace(member, precision=determined.precision)
        return left_out(member, own, minimum.hyper.beta)


def _shares(combine, posterior, minima, densities):
    evidences = np.array([m.log_evidence for m in minima])
    known = ~np.isnan(evidences)
    if any(m.trouble in OF_SIZE for m in minima):
        # large networks may have no evidence, so that those of all minima are ignored
        known[:], evidences = True, np.full(len(minima), np.nan)
    leaves_noise = np.array([not m.fits_everything for m in minima])
    # the first of these sets that is not empty
    choices = known & leaves_noise, known, np.ones(len(minima), dtype=bool)
    eligible = next(np.flatnonzero(choice) for choice in choices if np.any(choice))
    weights = np.zeros(len(minima))
    if combine == "best" or len(eligible) == 1:
        weights[eligible[0]] = 1.0
        return weights
    weights[eligible] = combination_weights(
        combine,
        evidences[eligible],
        posterior.sample_weight,
        lambda: np.stack([densities(i) for i in eligible]),
        classes=not posterior.likelihood.n_levels,
    )
    return weights


def noise_of(likelihood, beta, state=None, network=None, log_range=None, precision=None):
    """Make the noise of networks; ``None`` for classifiers.

    ``beta`` ``(m, n_levels)`` are the noise precisions. ``state`` ``(m, ...)`` has the other
    parameters of the noise, see `JointPosterior.noise_state`; by default those of the likelihood.
    With a noise ``network``, they are its weights; see `NoiseNetworks`.
    """
    if likelihood.classes:
        return None
    if network is not None:
        variances = 1.0 / likelihood.precisions(beta)
        if isinstance(likelihood, StudentT):
            degrees = state[:, -1]
            return StudentTNoiseNetworks(
                variances, network, state[:, :-1], log_range, None, degrees
            )
        return NoiseNetworks(variances, network, state, log_range, precision)
    return NOISE.get(type(likelihood), GaussianNoise).of_networks(likelihood, beta, state)


def ensemble_of_models(fit):
    """Networks drawn from the posteriors of several models, weighted by stacking.

    The weights maximise the leave-one-out log density of the mixture. Posterior probabilities of
    the models would depend on errors of evidences by single nats (Yao et al. 2018). Wide networks
    and models without noise have their posterior probabilities, as networks that interpolate their
    rows do not show how well they predict others. The number of networks of a model is proportional
    to its weight. Models far behind in evidence are left out: their noise is wider, so that gross
    outliers alone would give them a weight.

    Returns the `Ensemble` of a `DrawnFit`, its leave-one-out predictions, and the shares of all
    models.
    """
    problem, of_models = fit.problem, np.ones(len(fit.drawn))
    if len(fit.drawn) == 1:
        (part,) = map(_networks_of, fit.drawn)
        return mixture_of_draws([part]), _left_out_of(fit.drawn[0], part, problem), of_models
    least = fit.drawn[0].log_evidence - HOPELESS
    near = np.array([model.log_evidence >= least for model in fit.drawn])
    drawn = [model for model, is_near in zip(fit.drawn, near, strict=True) if is_near]
    parts = [_networks_of(model) for model in drawn]
    left = [_left_out_of(model, part, problem) for part, model in zip(parts, drawn, strict=True)]
    log_densities = np.stack([predictions.log_density for predictions in left])
    stacked = np.array([model.by_stacking for model in drawn])
    log_odds = np.array([model.log_odds for model in drawn])
    # the stack competes as one model, with the log odds of its best member
    of_stack = log_odds[stacked].max(initial=-np.inf)
    probabilities = softmax(np.append(log_odds[~stacked], of_stack))
    shares = np.empty(len(drawn))
    shares[~stacked] = probabilities[:-1]
    if stacked.any():
        weights = stacking_weights(log_densities[stacked], problem.sample_weight, PSEUDO_COUNT)
        shares[stacked] = probabilities[-1] * weights
    kept = np.flatnonzero(shares >= NEGLIGIBLE_MODEL)
    shares = shares[kept] / shares[kept].sum()
    most = max(part.size for part in parts)
    kept_parts = [
        parts[i].first(int(np.ceil(share * most))) for i, share in zip(kept, shares, strict=True)
    ]
    of_models *= 0.0
    of_models[np.flatnonzero(near)[kept]] = shares
    left_out = LeftOut.mixed([left[i] for i in kept], shares)
    return mixture_of_draws(kept_parts, shares), left_out, of_models


def _left_out_of(drawn, part, problem):
    """Leave-one-out predictions of the networks of a `Drawn`."""
    given = None
    if drawn.position is not None:
        given = drawn.joint.left_out_outputs(drawn.position)
    return LeftOut.of_draws(part, problem.X, problem.y, problem.known, given)


def mixture_of_draws(parts, shares=(1.0,)):
    """Make an ensemble of `Draws` with given shares, equal ones of the networks of each."""
    pairs = zip(parts, shares, strict=True)
    return Ensemble(tuple(parts), tuple(np.full(p.size, share / p.size) for p, share in pairs))


def noise_of_drawn(drawn):
    """Noise of the networks of a `Drawn`."""
    return _draws_of(drawn.joint, drawn.theta, drawn.beta, drawn.state).noise


def _networks_of(drawn):
    """Networks of a `Drawn`, which may have a Gaussian posterior of their output layers."""
    joint, position = drawn.joint, drawn.position
    draws = _draws_of(joint, drawn.theta, drawn.beta, drawn.state)
    layers = joint.output_layers(position) if drawn.averaged else None
    if layers is None:
        return draws
    return GivenHidden(draws.network, joint.mean_weights(position), draws.noise, layers=layers)


def _draws_of(joint, theta, beta, state, best=0):
    likelihood, log_range = joint.posterior.likelihood, joint.free.beta_prior.log_range
    noise = noise_of(likelihood, beta, state, joint.noise_network, log_range)
    return Draws(joint.posterior.network, theta, noise, best)


def ensemble_of_draws(fit):
    """Make the ensemble of the networks that chains have drawn, one chain after the other."""
    draws = fit.draws
    arrays = (
        array.reshape(draws.energy.size, array.shape[-1])
        for array in (draws.theta, draws.beta, draws.noise)
    )
    best = int(np.argmin(draws.energy))
    return mixture_of_draws([_draws_of(fit.sampled.joint, *arrays, best)])


def combination_weights(combine, log_evidences, sample_weight, densities, classes):
    """Weights ``(m,)`` of members in predictions, in the ways that estimators document.

    ``densities()`` are leave-one-out log predictive densities ``(m, n)``. Densities of classes
    are far too high with many weights, and used for stacking only.
    """
    unknown = np.isnan(log_evidences).any()
    if combine == "stacking":
        weights = stacking_weights(densities(), sample_weight)
    elif combine == "equal" or (unknown and (classes or combine == "evidence")):
        weights = np.full(len(log_evidences), 1.0 / len(log_evidences))
    elif combine == "evidence":
        weights = softmax(log_evidences)  # of equal prior probability (MacKay 1992, section 2.2)
    else:
        logs = None if classes else densities()
        weights = tempered_weights(log_evidences, sample_weight, logs)
    weights[weights < NEGLIGIBLE_WEIGHT] = 0.0
    return weights / weights.sum()


def stacking_weights(log_densities, sample_weight, pseudo_count=0.0):
    """Maximise the mean log of mixed leave-one-out densities over the weights of members.

    The concave problem is solved by expectation maximisation (Yao et al. 2018 use the same
    criterion). ``log_densities`` ``(m, n)`` are leave-one-out log predictive densities of every
    member for every row. ``pseudo_count`` is a number of rows that is added to those of every
    member, as by a Dirichlet prior; it keeps members whose wide tails no training row needs.
    Returns weights ``(m,)`` that sum to 1.
    """
    n_members, total = len(log_densities), sample_weight.sum()
    weights = np.full(n_members, 1.0 / n_members)
    density = np.exp(log_densities - log_densities.max(axis=0))
    value = -np.inf
    for _ in range(STACKING_STEPS):
        mixed = weights @ density
        previous, value = value, sample_weight @ np.log(mixed)
        if pseudo_count:
            value += pseudo_count * np.log(weights).sum()
        if value - previous < MIN_GAIN * max(1.0, abs(value)):
            break
        counts = weights * (density @ (sample_weight / mixed)) + pseudo_count
        weights = counts / (total + n_members * pseudo_count)
    return weights / weights.sum()


def tempered_weights(log_evidences, sample_weight, log_densities=None):
    """Weights that fall slowly with the expected log predictive density per row.

    The evidence is a product of predictive densities, of every row given those before it. So the
    log evidence per row estimates how well a row is predicted, and so does the mean leave-one-out
    density. A weight is proportional to ``exp(s / 0.05)``, with the mean ``s`` of both estimates.
    Leave-one-out densities are too high for networks of many weights, so none counts for more than
    that of the member of highest evidence. Posterior probabilities differ far more between members
    than the accuracy of Laplace's approximation justifies.

    The arguments are log evidences ``(m,)`` and leave-one-out log predictive densities ``(m, n)``
    of every member for every row. Without these ``s`` is the log evidence per row. Without all
    evidences (``nan``) it is the mean density, so that poor local minima get small weights. Returns
    weights ``(m,)`` that sum to 1; those below 1 % of the largest are zero.
    """
    score = log_evidences / sample_weight.sum()
    if log_densities is not None:
        means = log_densities @ sample_weight / sample_weight.sum()
        if np.isnan(score).any():
            score = means
        else:
            score = 0.5 * (score + np.minimum(means, means[np.argmax(score)]))
    weights = np.exp((score - score.max()) / TEMPERATURE)
    weights[weights < MIN_SHARE] = 0.0
    return weights / weights.sum()
