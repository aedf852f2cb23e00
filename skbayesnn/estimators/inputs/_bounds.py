"""Detection of precisions at the bounds of their prior, for data that are not standardised."""

import numpy as np

WANTED = 0.5  # effective number of weights of a group that is not simply switched off
TOO_LITTLE = 0.1  # fraction of the spread of y below which X has practically no effect
AT_BOUND = 0.99  # fraction of the largest standard deviation that counts as being at the bound


def out_of_bounds(estimator):
    """Describe a bound of the precisions that restricts the fit; ``None`` if no bound does."""
    problem, (posterior, settings) = estimator._result.problem, estimator._result.posed
    free = settings.free
    sd = estimator.weight_precisions_[: len(free.alpha)] ** -0.5  # noise network last
    noise, levels = np.empty(0), free.beta_prior[:0]
    if np.any(free.beta) and hasattr(estimator, "noise_std_"):
        of_output = posterior.likelihood.levels
        inferred = free.beta[of_output]
        noise = np.atleast_1d(estimator.noise_std_)[inferred]
        levels = free.beta_prior[of_output[inferred]]
    own = free.alpha_prior
    reached = [*own.upper[free.alpha & (sd >= AT_BOUND * own.upper)]]
    reached += [*levels.upper[noise >= AT_BOUND * levels.upper]]
    if reached:
        return (
            "The standard deviation of the noise or of the prior of some weights is at its "
            f"bound of {reached[0]:g}"
        )
    lowest = levels.lower[noise <= levels.lower / AT_BOUND]
    if len(lowest):
        return f"The standard deviation of the noise is at its lower bound of {lowest[0]:g}"
    wanted = free.alpha & (sd <= own.lower / AT_BOUND) & (estimator._gamma[: len(sd)] > WANTED)
    if np.any(wanted):
        names = [posterior.groups.names[c] for c in np.flatnonzero(wanted)]
        least = own.lower[wanted][0]
        return f"The prior standard deviation of {names} is at its lower bound of {least:g}"
    spread, needed = np.max(np.std(problem.X, axis=0)), 1.0
    if posterior.is_quadratic:
        needed = np.max(np.std(problem.y, axis=0))
    widest = np.max(own.upper[free.alpha], initial=0.0)
    if np.any(free.alpha) and 0 < spread * widest < TOO_LITTLE * needed:
        return (
            "The columns of X vary by so little that no weights within the bounds of their "
            "prior make a difference"
        )
    return None
