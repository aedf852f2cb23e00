"""Priors of weights and precisions: their checks, conversion from the user's units, and bounds."""

from dataclasses import replace
from functools import partial

import numpy as np

from skbayesnn.estimators.inputs._parameters import fixed_values, floats
from skbayesnn.posterior import Gamma, LogUniform, WeightGroups, weight_groups

# shape of the prior of precisions of classes: it counts like half a weight
SHAPE_OF_CLASSES = 0.25
ROWS_PER_INPUT = 4  # below which `prior="ard"` expects few inputs to matter
WANTED = 0.5  # effective number of weights of a group that is not simply switched off
TOO_LITTLE = 0.1  # fraction of the spread of y below which X has practically no effect
AT_BOUND = 0.99  # fraction of the largest standard deviation that counts as being at the bound
SYMMETRIC = 1e-10  # largest relative asymmetry that rounding may cause
ORDER = "layer by layer, each as a matrix of shape (inputs + 1, units), the intercepts last"


def hyperpriors_of_groups(given, by_layer, n_rows, names, free):
    """Prior of the precision of every weight group, from a dict by name.

    Groups that ``given`` does not name have the prior ``by_layer`` unless every input has a
    precision; ``free``, of shape (n_groups,), marks the precisions that are inferred.
    """
    for name in given:
        if name not in names:
            raise ValueError(f"prior.hyperprior names {name!r}, but this model has {list(names)}.")
        if not free[list(names).index(name)]:
            raise ValueError(
                f"prior.hyperprior names {name!r}, whose precision is fixed. Leave it out, or do "
                "not fix the precision of this group."
            )
    inputs = [name for name in names if name.startswith("input_")]
    priors = dict.fromkeys(names, LogUniform() if inputs else by_layer)
    if n_rows < ROWS_PER_INPUT * len(inputs):
        # variances have a Lévy distribution, and so has their sum, whatever their number
        priors |= dict.fromkeys(inputs, Gamma(0.5, 0.05 / len(inputs) ** 2))
    return list((priors | given).values())


def hyperpriors_of_noise(noise, free):
    """Prior of every noise level, as a tuple; ``free``, (n_levels,), marks inferred levels."""
    priors = noise._hyperpriors
    if not priors:
        return (LogUniform(),) * len(free)
    if len(priors) not in (1, len(free)):
        raise ValueError(
            f"noise.hyperprior has {len(priors)} priors, but there are {len(free)} noise levels."
        )
    if not np.any(free):
        raise ValueError(
            "noise.hyperprior is given, but noise.std fixes all noise levels. Leave one of them "
            "out."
        )
    priors = priors * (len(free) // len(priors))
    return tuple(p if f else LogUniform() for p, f in zip(priors, free, strict=True))


def precision_factors(given, settled, names):
    """Find the groups whose precision is given, and its value, see `fixed_values`.

    Some groups, by name, may already have a precision. These have the factor 1 unless another one
    is given, or ``"inferred"``.
    """
    free, values = fixed_values(given, names, "prior.precision", inferred=("auto", "inferred"))
    if isinstance(given, str) and given == "inferred":
        return free, values
    return free & ~np.isin(names, settled), values


def given_prior(prior, units, feature_names):
    """Build the prior in standardised units, and name the groups of given precision.

    The `WeightUnits` convert weights from these units.
    """
    groups, k = weight_groups(units.network, prior.kind, feature_names), units.network.n_weights
    origin, change = units.weights(np.zeros(k)), units.deviations(np.eye(k)).T
    labels, names, settled, mean, shape = groups.labels, groups.names, (), np.zeros(k), np.ones(k)
    if prior.mean is not None:
        mean = _of_weights(prior.mean, "prior.mean", (k,))
        mean = np.linalg.solve(change, mean - origin)
    if prior.base_precision is not None:
        labels, names, settled = np.zeros(k, dtype=int), ["weights"], ("weights",)
        shape = _matrix(prior.base_precision, k)
        if not np.array_equal(change, np.eye(k)):  # to standardised units
            matrix = shape if shape.ndim == 2 else np.diag(shape)
            matrix = change.T @ matrix @ change
            shape = 0.5 * (matrix + matrix.T)
    groups = WeightGroups(labels, names, mean, shape)
    with np.errstate(all="ignore"):
        usable = np.all(np.isfinite(groups.white(groups.mean + 1.0)))
    if not usable:
        raise ValueError(
            "prior.base_precision is numerically singular in the units of the fit. Use a larger "
            "one, or other units of X and y."
        )
    return groups, settled


def _of_weights(given, name, *shapes):
    """Convert to finite numbers, one for all weights or an array of one of the shapes."""
    numbers = floats(given, name)
    if numbers.shape not in ((), *shapes):
        raise ValueError(
            f"{name} must be a number or an array of shape {' or '.join(map(str, shapes))}, for "
            f"{shapes[0][0]} weights ({ORDER}); got shape {numbers.shape}."
        )
    if not np.all(np.isfinite(numbers)):
        raise ValueError(f"{name} must be finite.")
    return numbers


def _matrix(given, k):
    """Convert to a precision of shape (k,) or (k, k); raise unless it is positive definite."""
    name = "prior.base_precision"
    precision = _of_weights(given, name, (k,), (k, k))
    if precision.ndim < 2:
        precision = np.broadcast_to(precision, k).copy()
        least = precision.min()
    else:
        if np.any(np.abs(precision - precision.T) > SYMMETRIC * np.max(np.abs(precision))):
            raise ValueError(f"{name} must be a symmetric matrix.")
        precision = 0.5 * (precision + precision.T)
        least = np.linalg.eigvalsh(precision)[0]
    if least <= 0.0:
        raise ValueError(f"{name} must be positive definite; its smallest eigenvalue is {least:g}.")
    return precision


def with_prior(estimator, problem, hidden_layer_sizes, units_of, earlier):
    """Add the prior of the weights to the problem: of groups, or as it is given or was learnt.

    ``units_of`` makes the `WeightUnits` of a network.
    """
    prior, n_rows, by_layer = estimator._prior, problem.sample_weight.sum(), LogUniform()
    factor, hyperprior, settled, is_open = prior.precision, prior.hyperprior, (), False
    is_named = isinstance(problem.prior, str)
    by_default = is_named and problem.prior in ("auto", "layer")
    nothing_given = not hyperprior and isinstance(factor, str) and factor == "auto"
    if by_default and not nothing_given:
        problem = replace(problem, prior="layer")  # whose groups are named
    if not is_named:
        _check_labels(prior.kind, problem.network(hidden_layer_sizes).n_weights)
        n_rows = np.inf
    if earlier is not None:
        factor, hyperprior, n_rows = earlier.factor, earlier.hyperprior, np.inf
        noise = _noise_after(estimator, problem, earlier.noise)
        problem = replace(problem, groups=earlier.groups, noise_hyperprior=noise)
        settled = tuple(problem.groups.names)
    elif prior.mean is not None or prior.base_precision is not None:
        units = units_of(problem.network(hidden_layer_sizes))
        groups, settled = given_prior(prior, units, problem.feature_names)
        problem = replace(problem, groups=groups)
    elif by_default and problem.likelihood.classes and estimator.standardize:
        # log odds of classes are of order 1, so that weights are of order n_inputs^(-1/2)
        by_layer = Gamma(SHAPE_OF_CLASSES, SHAPE_OF_CLASSES / problem.X.shape[1])
    else:
        is_open = is_named and problem.prior == "auto" and nothing_given and estimator.standardize
    _check_size(problem.groups, problem.limits.dense)
    return replace(
        problem,
        weight_precision=partial(precision_factors, factor, settled),
        hyperprior=partial(hyperpriors_of_groups, hyperprior or {}, by_layer, n_rows),
        open_prior=is_open,
    )


def _check_labels(labels, n_weights):
    """Raise ``ValueError`` unless there is one group label for every weight."""
    if np.shape(labels) != (n_weights,):
        raise ValueError(
            f"prior given as an array needs one group label for each of the {n_weights} weights; "
            f"got shape {np.shape(labels)}. For one precision of all weights give "
            "Prior(precision=...)."
        )


def _check_size(groups, most):
    """Raise ``ValueError`` if a prior that couples weights has more than the ``most`` of them."""
    if groups is not None and groups.coupled and len(groups.labels) > most:
        raise ValueError(
            f"prior.base_precision with elements off its diagonal, which standardize=True brings "
            f"about, needs whole matrices. They are formed for up to {most} weights; this "
            f"network has {len(groups.labels)}."
        )


def _noise_after(estimator, problem, learnt):
    """Prior of the inferred noise levels from earlier data."""
    own, constant = problem.noise_hyperprior, ("auto", "constant", "shared")
    known = learnt is not None and estimator._noise.kind in constant
    if not known or len(learnt) != problem.likelihood.n_levels:
        return own
    free = problem.noise_precision[0]
    return tuple(np.where(free, np.array(learnt, object), np.array(own, object)))


def out_of_bounds(estimator):
    """Warning about a bound of the precisions that restricts the fit, or ``None``.

    It may where data are not standardised.
    """
    if estimator.standardize:
        return None
    because = (
        ", because X and y are not standardised. Use standardize=True or other units, or other "
        "bounds by a hyperprior."
    )
    problem, (posterior, settings) = estimator._result.problem, estimator._result.posed
    free, gamma, inferred = settings.free, estimator._gamma, []
    if np.any(free.beta) and hasattr(estimator, "noise_std_"):
        levels = posterior.likelihood.levels
        for sd, level in zip(np.atleast_1d(estimator.noise_std_), levels, strict=True):
            if free.beta[level]:
                inferred.append(("the noise", sd, free.beta_prior[level], True))
    for group in np.flatnonzero(free.alpha):
        what, sd = posterior.groups.names[group], estimator.weight_precisions_[group] ** -0.5
        wanted = gamma is not None and gamma[group] > WANTED
        inferred.append((f"the prior of {what}", sd, free.alpha_prior[group], wanted))
    for what, sd, prior, wanted in inferred:
        bound = "upper" if sd >= AT_BOUND * prior.upper else "lower"
        if bound == "upper" or (wanted and sd <= prior.lower / AT_BOUND):
            value = getattr(prior, bound)
            return UserWarning(
                f"The standard deviation of {what} is at its {bound} bound of {value:g}{because}"
            )
    spread, needed = np.max(np.std(problem.X, axis=0)), 1.0
    if posterior.is_quadratic:
        needed = np.max(np.std(problem.y, axis=0))
    widest = np.max(free.alpha_prior.upper[free.alpha], initial=0.0)
    if np.any(free.alpha) and 0 < spread * widest < TOO_LITTLE * needed:
        return UserWarning(
            "The columns of X vary by so little that no weights within the bounds of their prior "
            f"make a difference{because}"
        )
    return None
