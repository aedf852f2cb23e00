"""Validation of constructor parameters and their combinations, with messages of what to do."""

from __future__ import annotations

import numbers

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator

from skbayesnn._typing import Array
from skbayesnn.estimators.inputs._settings import COUNTS
from skbayesnn.inference import FLEXIBLE, NOISE_MODELS
from skbayesnn.network import ACTIVATIONS
from skbayesnn.posterior import INTERCEPT, Gamma, LogUniform
from skbayesnn.samplers import Plan, random_walk


def noise_is(*kinds):
    """Choice of one of some kinds of noise."""
    return {f"noise={kind!r}" for kind in kinds}


# choices made by a call
MEASUREMENTS, CENSORED, PARTIAL_FIT = "measurement_std", "censored", "partial_fit"

PRIOR_MEAN, PRIOR_PRECISION = {"prior.mean"}, {"prior.base_precision"}
ARRAY, EARLIER = {"an array as prior"}, {"an estimator as prior"}
INTERCEPT_GROUP = {f"prior={kind + INTERCEPT!r}" for kind in ("single", "layer", "ard")}
OWN_GROUPS = {"prior='ard'"} | INTERCEPT_GROUP | ARRAY
GROWN, DRAWN = {"hidden_layer_sizes='auto'"}, {"method='population'", "method='chains'"}
NO_INTERCEPT = {"fit_intercept=False"}
FIXED_NOISE, GAMMA_NOISE = {"noise.std"}, {"A Gamma prior of the noise level"}
CORRELATED, COUNTED = noise_is("correlated"), noise_is(*COUNTS)
VARYING, DRAWN_ONLY = noise_is("input_dependent", FLEXIBLE), noise_is(FLEXIBLE)
WITHOUT_LEVEL = noise_is("student_t") | VARYING | CORRELATED
WITHOUT_DRAWS = {"method='laplace'", "method='early_stopping'"}


def choices_of(estimator):
    """Choices of an estimator that exclude others."""
    prior, noise, sizes = estimator._prior, estimator._noise, estimator.hidden_layer_sizes
    named, learnt = isinstance(prior.kind, str), isinstance(prior.kind, BaseEstimator)
    made = {f"noise={noise.kind!r}", f"method={getattr(estimator, 'method', None)!r}"}
    if named:
        made.add(f"prior={prior.kind!r}")
    for choice, is_made in (
        (EARLIER, learnt),
        (ARRAY, not named and not learnt),
        (PRIOR_MEAN, prior.mean is not None),
        (PRIOR_PRECISION, prior.base_precision is not None),
        (GROWN, isinstance(sizes, str) and sizes == "auto"),
        (NO_INTERCEPT, not estimator.fit_intercept),
        (FIXED_NOISE, not (isinstance(noise.std, str) and noise.std == "auto")),
        (GAMMA_NOISE, Gamma in map(type, noise._hyperpriors)),
    ):
        if is_made:
            made |= choice
    return made


LEVELS = "Use noise='constant' or 'shared'"
NOT_DRAWN = "Use method='auto' or 'laplace'"
INFORMED = (PRIOR_MEAN, PRIOR_PRECISION, EARLIER)

# Pairs of choices that cannot be combined, by the reason and what to do instead. Each is a set of
# alternatives, of which an estimator makes one at most.
REFUSALS = {
    "it is for outputs with intercepts. Use fit_intercept=True, or the same prior without "
    "'+intercept'": [(INTERCEPT_GROUP, NO_INTERCEPT)],
    "the array labels the weights of one network. Give hidden_layer_sizes, or one of the priors "
    "'single', 'layer' and 'ard'": [(GROWN, ARRAY)],
    # noise
    "it fixes one noise level for all inputs. Leave noise.std at 'auto'": [(FIXED_NOISE, VARYING)],
    "it fixes levels of single outputs, and this infers the whole covariance. Leave noise.std at "
    "'auto'": [(FIXED_NOISE, CORRELATED)],
    "there the noise has no level of its own. Use noise='constant', 'shared' or 'student_t', or a "
    "LogUniform prior": [(GAMMA_NOISE, VARYING | CORRELATED)],
    f"it adds to Gaussian noise of a constant level. {LEVELS}, or leave measurement_std out": [
        ({MEASUREMENTS}, WITHOUT_LEVEL)
    ],
    "limits are for Gaussian or Student-t noise of a constant level. Use noise='constant', "
    "'shared' or 'student_t', or leave censored out": [
        ({CENSORED}, VARYING | CORRELATED | COUNTED)
    ],
    "it adds to Gaussian noise. Leave measurement_std out": [({MEASUREMENTS}, COUNTED)],
    "its posterior is sampled, without an approximation around minima. Use method='auto'": [
        (DRAWN_ONLY, WITHOUT_DRAWS)
    ],
    "counts vary about their mean by their own law. Leave noise.std at 'auto'": [
        (FIXED_NOISE, COUNTED)
    ],
    # priors
    "it holds numbers for the weights of one network. Give hidden_layer_sizes": [
        (GROWN, PRIOR_MEAN),
        (GROWN, PRIOR_PRECISION),
    ],
    f"sampling begins at a prior of mean zero. {NOT_DRAWN}": [
        (DRAWN, informed) for informed in INFORMED
    ],
    f"the correlations of the noise are not sampled. {NOT_DRAWN}": [(DRAWN, CORRELATED)],
    "it is for priors of mean zero. Use noise='constant'": [
        (CORRELATED, informed) for informed in INFORMED
    ],
    "the estimator has both. Leave it at None": [(PRIOR_MEAN, EARLIER), (PRIOR_PRECISION, EARLIER)],
    "all weights are then one group. Use prior='layer'": [(OWN_GROUPS, PRIOR_PRECISION)],
    # ways to fit
    "the dispersion has no prior that earlier batches could give. Use noise='poisson'": [
        (noise_is("negative_binomial"), {PARTIAL_FIT})
    ],
    f"it needs constant noise levels. {LEVELS}": [(WITHOUT_LEVEL, {PARTIAL_FIT})],
    f"sampling does not include earlier batches. {NOT_DRAWN}": [(DRAWN, {PARTIAL_FIT})],
}


def refusal(estimator, asked=None):
    """Message for an invalid combination of choices; ``None`` if all are compatible.

    With a choice ``asked`` by a call, only its combinations are checked.
    """
    made = choices_of(estimator) | {asked}
    for reason, pairs in REFUSALS.items():
        for one, other in ((made & one, made & other) for one, other in pairs):
            if one and other and (asked is None or asked in one | other):
                return f"{one.pop()} is not possible with {other.pop()}: {reason}."
    return None


def check_combinations(estimator, asked=None):
    """Raise ``ValueError`` if choices cannot be combined, see `refusal`."""
    words = refusal(estimator, asked)
    if words is not None:
        raise ValueError(words)


KINDS_OF_PRIOR = ("single", "layer", "ard")
PRIORS = ("auto", *KINDS_OF_PRIOR, *(kind + INTERCEPT for kind in KINDS_OF_PRIOR))
CLASSICS = {
    "hmc": Plan(n_steps=20),
    "langevin": Plan(n_steps=1),
    "stochastic_dynamics": Plan(n_steps=1, persistence=0.95, metropolis=False),
    "metropolis": Plan(n_steps=1, kernel=random_walk, target=0.25),
}
EXACT_TARGETS = (
    " For targets without noise, give a small one, such as 0.001 times the spread of the targets."
)
OF_THE_DYNAMICS = ("n_steps", "persistence")  # parameters that a random walk does not have


def thawed(estimator):
    """Remove the wrapper that keeps `sklearn.base.clone` from unfitting an estimator."""
    return estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator


def check_hyperpriors(prior, noise):
    """Raise ``TypeError`` unless every ``hyperprior`` of a `Prior` and a `Noise` is valid."""
    given = prior.hyperprior
    if not (given is None or isinstance(given, dict)):
        raise TypeError(
            "prior.hyperprior must be None, or a dict from names of weight groups to LogUniform or "
            f"Gamma; got {given!r}."
        )
    named = [(f"prior.hyperprior[{name!r}]", one) for name, one in (given or {}).items()]
    named += [("noise.hyperprior", one) for one in noise._hyperpriors]
    for name, one in named:
        if not isinstance(one, LogUniform | Gamma):
            raise TypeError(
                f"{name} must be a LogUniform or Gamma of skbayesnn.posterior, got {one!r}."
            )


def check_parameters(estimator):
    """Return the hidden layer sizes, or ``"auto"``; raise for invalid parameters."""
    check_hyperpriors(estimator._prior, estimator._noise)
    check(estimator, activation=tuple(ACTIVATIONS))
    if isinstance(estimator._prior.kind, str):
        check(estimator._prior, kind=PRIORS)
    check(estimator._noise, kind=(*NOISE_MODELS, "auto"))
    layer_sizes(estimator._noise)
    estimator._check_engine_parameters()
    check(estimator, max_time=float, fit_intercept=bool, standardize=bool, warm_start=bool)
    if estimator.n_jobs is not None and not (_is_integer(estimator.n_jobs) and estimator.n_jobs):
        raise ValueError(
            f"n_jobs must be None or an integer other than 0 (-1 for all processors), got "
            f"{estimator.n_jobs!r}."
        )
    sizes = estimator.hidden_layer_sizes
    sizes = "auto" if isinstance(sizes, str) and sizes == "auto" else layer_sizes(estimator)
    check_combinations(estimator)
    return sizes


def check_transitions(sampler):
    """Raise ``ValueError`` or ``TypeError`` for an invalid parameter of a `Sampler`."""
    check(sampler, kind=("auto", *CLASSICS), step_size=float)
    if isinstance(sampler.n_steps, tuple | list):
        if len(sampler.n_steps) != 2:
            raise ValueError(
                "sampler.n_steps must be an integer or a pair (low, high) of the fewest and the "
                f"most steps, got {sampler.n_steps!r}."
            )
        low, high = sampler.n_steps
        count(high, "sampler.n_steps", count(low, "sampler.n_steps"))
    else:
        check(sampler, n_steps=1)
    given = sampler.persistence
    if given is not None and not (isinstance(given, numbers.Real) and 0 <= given < 1):
        raise ValueError(
            "sampler.persistence must be None, or a number from 0 (fresh momenta) to less than 1; "
            f"got {given!r}."
        )
    if sampler.thin != "auto":
        check(sampler, thin=1)
    if sampler.dtype not in ("float32", "float64", np.float32, np.float64):
        raise ValueError(f"sampler.dtype must be float32 or float64, got {sampler.dtype!r}.")
    unused = {"auto": ("step_size", *OF_THE_DYNAMICS), "metropolis": OF_THE_DYNAMICS}
    if _given(sampler).keys() & set(unused.get(sampler.kind, ())):
        raise ValueError(
            "step_size, n_steps and persistence belong to the samplers 'hmc', 'langevin' and "
            "'stochastic_dynamics', step_size also to 'metropolis'; sampler='auto' tunes its own. "
            "For more steps between draws raise sampler.thin."
        )


def _given(sampler):
    given = {}
    for name in ("step_size", *OF_THE_DYNAMICS):
        value = getattr(sampler, name)
        if value is not None:
            given[name] = tuple(map(int, value)) if isinstance(value, tuple | list) else value
    return given


def classic_plan(sampler):
    """Plan of the transitions of a classic sampler; ``None`` for the default one."""
    if sampler.kind == "auto":
        return None
    return CLASSICS[sampler.kind]._replace(**_given(sampler))


def fixed_values(given, names, what, may_be_zero=False, inferred=("auto",)):
    """Masks of the free quantities, and the values of the others (1 where free), by ``names``.

    ``given`` is one positive number, one for each name, a dict, which leaves other names free, or
    one of the words ``inferred``, which leave all free. Messages call it ``what``.
    """
    free, values = np.ones(len(names), dtype=bool), np.ones(len(names))
    if given is None or isinstance(given, str):
        if given not in inferred:
            raise ValueError(f"{what} must be 'auto', a positive number or a dict, got {given!r}.")
        return free, values
    one_for_all = not isinstance(given, dict) and np.ndim(given) == 0
    if not isinstance(given, dict):
        numbers_given = floats(given, what)
        if numbers_given.ndim > 1 or numbers_given.size not in (1, len(names)):
            several = f" or {len(names)} numbers (for {list(names)})" if len(names) > 1 else ""
            raise ValueError(
                f"{what} must be one number{several}, got an array of shape {numbers_given.shape}."
            )
        given = dict(zip(names, np.broadcast_to(numbers_given, len(names)).tolist(), strict=True))
    for name, value in given.items():
        if name not in names:
            raise ValueError(f"{what} names {name!r}, but this model has {list(names)}.")
        finite = isinstance(value, numbers.Real) and np.isfinite(value)
        if not (finite and (value > 0 or (may_be_zero and value == 0))):
            place = "" if one_for_all else f" for {name!r}"
            hint = EXACT_TARGETS if what == "noise.std" and value == 0 else ""
            raise ValueError(f"{what} must be positive and finite, got {value!r}{place}.{hint}")
        position = list(names).index(name)
        free[position], values[position] = False, float(value)
    return free, values


def label(owner, name):
    """Name of a parameter in messages: ``noise.std`` of a `Noise`, but ``noise`` for its kind."""
    role = getattr(owner, "_role", None)
    if role is None:
        return name
    return role if name == "kind" else f"{role}.{name}"


def layer_sizes(owner):
    """Convert ``hidden_layer_sizes`` to a tuple; raise unless it is valid."""
    given, name = owner.hidden_layer_sizes, label(owner, "hidden_layer_sizes")
    sizes = given.tolist() if isinstance(given, np.ndarray) else given
    sizes = sizes if isinstance(sizes, tuple | list) else (sizes,)
    if not all(_is_integer(size) and size > 0 for size in sizes):
        auto = ", or 'auto'" if name == "hidden_layer_sizes" else ""
        raise ValueError(
            f"{name} must be a tuple of positive integers, one per hidden layer (() for none)"
            f"{auto}. Got {given!r}."
        )
    return tuple(map(int, sizes))


def check(owner, **rules):
    """Raise for the first parameter that breaks its rule.

    A rule is a tuple of the allowed values, ``bool`` for True or False, ``float`` for a positive
    finite number, or an integer for integers that are not less. Parameters may also have the
    default ``None``.
    """
    for parameter, rule in rules.items():
        value, name = getattr(owner, parameter), label(owner, parameter)
        if value is None and getattr(type(owner), parameter, ()) is None:
            continue
        if isinstance(rule, tuple):
            one_of(value, name, rule)
        elif rule is bool:
            if not isinstance(value, bool | np.bool_):
                raise TypeError(f"{name} must be True or False, got {value!r}.")
        elif rule is float:
            if not (isinstance(value, numbers.Real) and np.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be a positive number, got {value!r}.")
        else:
            count(value, name, rule)


def one_of(value, name, options):
    """Raise ``ValueError`` unless a value is one of some strings, or of True and False."""
    if not (isinstance(value, str | bool | np.bool_) and value in options):
        options = ", ".join(map(repr, options))
        raise ValueError(f"{name} must be one of {options}; got {value!r}.")


def _is_integer(value):
    return isinstance(value, numbers.Integral) and not isinstance(value, bool | np.bool_)


def count(value, name, least=1):
    """Return a parameter as an integer; raise unless it is at least ``least``."""
    if not _is_integer(value):
        raise TypeError(f"{name} must be an integer, got {value!r}.")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value!r}.")
    return int(value)


def floats(given, name):
    """Convert a parameter or argument to an array of floats."""
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold numbers, got {given!r}.") from error


def probabilities(given: ArrayLike, name: str, ends: bool = False) -> Array:
    """Convert to an array of numbers between 0 and 1, ``ends`` included or not, or raise."""
    values = np.asarray(given)
    if values.dtype.kind in "fiu" and values.size:
        inside = (values >= 0) & (values <= 1) if ends else (values > 0) & (values < 1)
        if np.all(inside):
            return values.astype(float)
    raise ValueError(f"{name} must lie between 0 and 1, got {given!r}.")


def tails(coverage: ArrayLike) -> Array:
    """Lower-tail probabilities ``(..., 2)`` of the ends of central intervals of coverages."""
    inside = probabilities(coverage, "coverage")
    return np.stack([0.5 * (1.0 - inside), 0.5 * (1.0 + inside)], axis=-1)
