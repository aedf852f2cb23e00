"""Priors of precisions that users give by the names of weight groups."""

import numpy as np
from sklearn.base import is_classifier

from skbayesnn.posterior import Gamma, Hyperprior, LogUniform

NOISE = "noise"  # key of the prior of all noise levels


def check_hyperprior(estimator):
    """Raise ``ValueError`` or ``TypeError`` unless ``hyperprior`` is valid."""
    given = estimator.hyperprior
    if given is None:
        return
    if not isinstance(given, dict):
        raise TypeError(
            "hyperprior must be None, or a dict from names of weight groups, or 'noise', to "
            f"LogUniform or Gamma; got {given!r}."
        )
    for name, prior in given.items():
        several = name == NOISE and isinstance(prior, list | tuple)
        if not all(isinstance(one, LogUniform | Gamma) for one in (prior if several else [prior])):
            raise TypeError(
                f"hyperprior must hold LogUniform or Gamma of skbayesnn.posterior, got {prior!r} "
                f"for {name!r}."
            )
    if NOISE in given and is_classifier(estimator):
        raise ValueError("hyperprior names 'noise', but classes have no noise level.")


def has_gamma_noise(given):
    """Return True if the noise has a Gamma prior."""
    prior = (given or {}).get(NOISE, ())
    return any(isinstance(one, Gamma) for one in _as_list(prior))


def _as_list(prior):
    return [prior] if isinstance(prior, Hyperprior) else list(prior)


def hyperpriors_of_groups(given, names, free):
    """Prior of the precision of every weight group.

    Parameters
    ----------
    given : dict
        Priors by name.
    names : list of str
        Names of the weight groups.
    free : ndarray of bool, shape (n_groups,)
        True for the precisions that are inferred.
    """
    for name in given:
        if name != NOISE and name not in names:
            raise ValueError(f"hyperprior names {name!r}, but this model has {list(names)}.")
        if name in names and not free[list(names).index(name)]:
            raise ValueError(
                f"hyperprior names {name!r}, whose precision is fixed. Leave it out, or do not fix "
                "the precision of this group."
            )
    return [given.get(name, LogUniform()) for name in names]


def hyperpriors_of_noise(given, free):
    """Prior of every noise level, as a tuple.

    Parameters
    ----------
    given : dict
        Dict with one prior, or a sequence of one for each level, or none.
    free : ndarray of bool, shape (n_levels,)
        True for the levels that are inferred.
    """
    if NOISE not in given:
        return (LogUniform(),) * len(free)
    priors = _as_list(given[NOISE])
    if len(priors) not in (1, len(free)):
        raise ValueError(
            f"hyperprior has {len(priors)} priors of the noise, but there are {len(free)} noise "
            "levels."
        )
    if not np.any(free):
        raise ValueError(
            "hyperprior names 'noise', but noise_std fixes all noise levels. Leave one of them out."
        )
    priors = priors * (len(free) // len(priors))
    return tuple(p if f else LogUniform() for p, f in zip(priors, free, strict=True))
