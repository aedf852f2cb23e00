"""Combination of the minima of a fit into one predictive distribution."""

from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np

from skbayesnn.inference import OF_SIZE, Method, own_posterior, well_determined
from skbayesnn.predictive._ensemble import Ensemble
from skbayesnn.predictive._leave_one_out import LeftOut, left_out
from skbayesnn.predictive._members import Draws, Member
from skbayesnn.predictive._mixture import evidence_weights, stacking_weights, tempered_weights
from skbayesnn.predictive._noise import noise_of_draws, noise_of_minimum
from skbayesnn.predictive._pooling import Pooled
from skbayesnn.predictive._variational import closest_gaussian

NEGLIGIBLE_WEIGHT = 1e-6  # share of a minimum below which it is left out of predictions
NEGLIGIBLE_MODEL = 0.005  # share of a sampled model below which it is left out


class Combined(NamedTuple):
    """Combined predictions of minima.

    Attributes
    ----------
    gaussians : Ensemble
        Gaussian approximations of the minima that have a share, one for each.
    minima : list of Minimum
        All minima that were considered, those of the fit's own network first.
    shares : ndarray of shape (len(minima),)
    left_out : LeftOut
        Leave-one-out predictions.
    """

    gaussians: Ensemble
    minima: list
    shares: np.ndarray
    left_out: LeftOut


def combined(fit, combine):
    """Combine the minima of a fit.

    Parameters
    ----------
    fit : EvidenceFit
    combine : {"posterior", "best", "evidence", "equal", "stacking", "tempered"}
        With ``"posterior"`` and ``"tempered"`` the minima of other networks and noise models take
        part.
    """
    settings = fit.posed.settings
    pool = fit.pool if combine in ("posterior", "tempered") else fit.pool[: len(fit.minima)]
    minima = [minimum for _, minimum in pool]
    member = cache(lambda i: member_of(*pool[i], settings))
    left = cache(lambda i: _left_out(*pool[i], settings, member(i)))

    def densities(i):
        return left(i).log_density

    shares = _shares(combine, fit.posed.posterior, minima, densities)
    used = np.flatnonzero(shares)
    mixed = LeftOut.mixed([left(i) for i in used], shares[used])
    parts = _pooled(fit, minima, used, member, densities)
    gaussians = Ensemble(parts, tuple(shares[[i]] for i in used))
    return Combined(gaussians, minima, shares, mixed)


def _pooled(fit, minima, used, member, densities):
    """Make members for the minima that are used; means under input-dependent noise are pooled.

    They are pooled with the means of all minima under constant noise, if there are any.
    """
    plain = [i for i, minimum in enumerate(minima) if _is_plain(fit, minimum)]
    if not plain or all(minima[i].noise is None for i in used):
        return tuple(map(member, used))
    some = [minima[i] for i in plain]
    shares = _shares("tempered", fit.posed.posterior, some, lambda j: densities(plain[j]))
    kept = np.flatnonzero(shares)
    others = Ensemble(tuple(member(plain[j]) for j in kept), tuple(shares[[j]] for j in kept))
    return tuple(
        member(i) if minima[i].noise is None else Pooled(**vars(member(i)), others=others)
        for i in used
    )


def member_of(posterior, minimum, settings):
    """Make the member of one minimum: its Gaussian, or the closest Gaussian for classes.

    Parameters
    ----------
    posterior : Posterior
        Posterior of the network before pruning, with the training rows.
    minimum : Minimum
    settings : Settings
    """
    noise = noise_of_minimum(minimum, settings.free.beta_prior.log_range)
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
        if member.shift is None:
            determined = well_determined(own, method, minimum.theta, minimum.hyper)
            if determined is not None:
                member = replace(member, precision=determined.precision)
        return left_out(member, own, minimum.hyper.beta)


def _shares(combine, posterior, minima, densities):
    """Shares of the minima in the predictions."""
    evidences = np.array([m.log_evidence for m in minima])
    known = ~np.isnan(evidences)
    if any(m.trouble in OF_SIZE for m in minima):
        known[:], evidences = True, np.full(len(minima), np.nan)  # large ones may lack it
    free = np.array([not m.fits_everything for m in minima])
    for choice in (known & free, known, np.ones(len(minima), dtype=bool)):
        if np.any(choice):
            eligible = np.flatnonzero(choice)
            break
    weights, chosen = np.zeros(len(minima)), evidences[eligible]

    def stacked():
        return np.stack([densities(i) for i in eligible])

    if combine == "best" or len(eligible) == 1:
        weights[eligible[0]] = 1.0
    elif combine == "stacking":
        weights[eligible] = stacking_weights(stacked(), posterior.sample_weight)
    elif combine == "equal" or np.isnan(chosen).any():
        weights[eligible] = 1.0 / len(eligible)
    elif combine == "evidence":
        weights[eligible] = evidence_weights(chosen)
    else:  # leave-one-out densities of classes are far too high with many weights
        logs = stacked() if posterior.likelihood.n_levels else None
        weights[eligible] = tempered_weights(chosen, posterior.sample_weight, logs)
    weights[weights < NEGLIGIBLE_WEIGHT] = 0.0
    return weights / weights.sum()


def ensemble_of_models(fit):
    """Networks drawn from the posteriors of several models, weighted by their evidences.

    Parameters
    ----------
    fit : DrawnFit

    Returns
    -------
    ensemble : Ensemble
    left_out : LeftOut
        Leave-one-out predictions.
    """
    kept = [some for some in fit.drawn if some.share >= NEGLIGIBLE_MODEL]
    shares = np.array([some.share for some in kept])
    shares = shares / shares.sum()
    parts = tuple(
        _draws_of(some.noise, some.joint, some.theta, some.beta, some.state) for some in kept
    )
    weights = [
        np.full(part.size, share / part.size) for part, share in zip(parts, shares, strict=True)
    ]
    problem = fit.problem
    left = [LeftOut.of_draws(part, problem.X, problem.y, problem.known) for part in parts]
    return Ensemble(parts, tuple(weights)), LeftOut.mixed(left, shares)


def _draws_of(noise, joint, theta, beta, state, best=0):
    """Networks drawn from the posterior of one model."""
    law = noise_of_draws(noise, joint, beta, state)
    return Draws(joint.posterior.network, theta, law, best)


def _is_plain(fit, minimum):
    """Return True if a minimum has constant noise, or belongs to a classifier."""
    return minimum.noise is None and type(minimum.likelihood) is type(fit.problem.likelihood)


def ensemble_of_draws(fit):
    """Make the ensemble of the drawn networks."""
    draws, joint = fit.draws, fit.sampled.joint
    theta, beta, state = (
        some.reshape(draws.energy.size, some.shape[-1])
        for some in (draws.theta, draws.beta, draws.noise)
    )
    best = int(np.argmin(draws.energy))
    return Ensemble.of_draws(_draws_of(fit.noise, joint, theta, beta, state, best))
