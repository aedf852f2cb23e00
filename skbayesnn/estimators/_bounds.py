"""Precisions at the bounds of their prior, where data are not standardised."""

import numpy as np

WANTED = 0.5  # well-determined weights of a group that is not simply switched off
TOO_LITTLE = 0.1  # of what y varies by: the most that inputs may explain
AT_BOUND = 0.99  # share of the largest standard deviation from which one is said to be there


def out_of_bounds(estimator):
    """What the bounds of the precisions keep from being as the data want it, or ``None``."""
    problem, (posterior, settings) = estimator._result.problem, estimator._result.posed
    free = settings.free
    sd = estimator.weight_precisions_[: len(free.alpha)] ** -0.5  # those of the noise come last
    noise = np.atleast_1d(estimator.noise_std_) if np.any(free.beta) else np.ones(1)
    upper, lower = AT_BOUND * free.prior.upper, free.prior.lower / AT_BOUND
    if max(np.max(sd[free.alpha], initial=0.0), np.max(noise)) >= upper:
        return (
            "The standard deviation of the noise or of the prior of some weights is at its "
            f"bound of {free.prior.upper:g}"
        )
    at_lower = f"at its lower bound of {free.prior.lower:g}"
    if np.min(noise) <= lower:
        return f"The standard deviation of the noise is {at_lower}"
    wanted = free.alpha & (sd <= lower) & (estimator._gamma[: len(sd)] > WANTED)
    if np.any(wanted):
        names = [posterior.groups.names[c] for c in np.flatnonzero(wanted)]
        return f"The prior standard deviation of {names} is {at_lower}"
    spread, needed = np.max(np.std(problem.X, axis=0)), 1.0
    if posterior.is_quadratic:
        needed = np.max(np.std(problem.y, axis=0))
    if np.any(free.alpha) and 0 < spread * free.prior.upper < TOO_LITTLE * needed:
        return (
            "The columns of X vary by so little that no weights within the bounds of their "
            "prior make a difference"
        )
    return None
