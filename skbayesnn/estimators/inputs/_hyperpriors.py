"""Priors of precisions that users give by the names of weight groups."""

import numpy as np

from skbayesnn.posterior import Gamma, LogUniform

ROWS_PER_INPUT = 4  # below which `prior="ard"` expects few inputs to matter


def check_hyperpriors(prior, noise=None):
    """Raise ``TypeError`` unless every ``hyperprior`` of a `Prior` and a `Noise` is valid."""
    given = prior.hyperprior
    if not (given is None or isinstance(given, dict)):
        raise TypeError(
            "prior.hyperprior must be None, or a dict from names of weight groups to LogUniform or "
            f"Gamma; got {given!r}."
        )
    named = [(f"prior.hyperprior[{name!r}]", one) for name, one in (given or {}).items()]
    named += [("noise.hyperprior", one) for one in of_levels(noise)]
    for name, one in named:
        if not isinstance(one, LogUniform | Gamma):
            raise TypeError(
                f"{name} must be a LogUniform or Gamma of skbayesnn.posterior, got {one!r}."
            )


def of_levels(noise):
    """List the priors of noise levels that a `Noise` has."""
    given = None if noise is None else noise.hyperprior
    if given is None:
        return []
    return list(given) if isinstance(given, list | tuple) else [given]


def hyperpriors_of_groups(given, n_rows, names, free):
    """Prior of the precision of every weight group, from a dict by name.

    ``n_rows`` is infinite unless every input has a precision; ``free``, of shape (n_groups,), marks
    the precisions that are inferred.
    """
    for name in given:
        if name not in names:
            raise ValueError(f"prior.hyperprior names {name!r}, but this model has {list(names)}.")
        if not free[list(names).index(name)]:
            raise ValueError(
                f"prior.hyperprior names {name!r}, whose precision is fixed. Leave it out, or do "
                "not fix the precision of this group."
            )
    default = dict.fromkeys(names, LogUniform())
    inputs = [name for name in names if name.startswith("input_")]
    if n_rows < ROWS_PER_INPUT * len(inputs):
        # variances have a Lévy distribution, and so has their sum, whatever the number of inputs
        default |= dict.fromkeys(inputs, Gamma(0.5, 0.05 / len(inputs) ** 2))
    return [given.get(name, default[name]) for name in names]


def hyperpriors_of_noise(noise, free):
    """Prior of every noise level, as a tuple; ``free``, (n_levels,), marks inferred levels."""
    priors = of_levels(noise)
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
