"""Invalid combinations of two choices that are each valid alone."""

from collections.abc import Callable
from typing import NamedTuple

from sklearn.base import BaseEstimator

from skbayesnn.estimators.inputs._prior import of_levels
from skbayesnn.estimators.inputs._settings import COUNTS
from skbayesnn.posterior import INTERCEPT, Gamma


class Choice(NamedTuple):
    """Choice of some values of a parameter, of a method or of an argument.

    Its words in messages may hold ``{estimator}``; ``made`` tells if an estimator makes the choice.
    """

    words: str
    made: Callable = lambda estimator: False


class Refusal(NamedTuple):
    """Two choices that cannot be combined, the reason, and what to do instead."""

    one: Choice
    other: Choice
    why: str
    instead: str


def _noise_is(*kinds):
    """Choice of one of some kinds of noise."""
    return Choice(
        "noise={estimator._noise.kind!r}",
        lambda estimator: estimator._noise is not None and estimator._noise.kind in kinds,
    )


def _prior_has(name):
    """Choice of any value but ``None`` for a parameter of the prior."""
    return Choice(f"prior.{name}", lambda e: getattr(e._prior, name) is not None)


def _makes_one_group(estimator):
    given = estimator._prior.base_precision
    return given is not None and not isinstance(given, dict)


def _has_intercept_group(estimator):
    kind = estimator._prior.kind
    return isinstance(kind, str) and kind.endswith(INTERCEPT)


def _has_labels(estimator):
    kind = estimator._prior.kind
    return not isinstance(kind, str | BaseEstimator)


# choices made by a call
MEASUREMENTS = Choice("measurement_std")
CENSORED = Choice("censored")
PARTIAL_FIT = Choice("partial_fit")

PRIOR_MEAN, PRIOR_PRECISION = _prior_has("mean"), _prior_has("base_precision")
EARLIER = Choice(
    "an estimator as prior", lambda estimator: isinstance(estimator._prior.kind, BaseEstimator)
)
MEASURED = Choice(
    "measure_evidence=True",
    lambda estimator: hasattr(estimator, "combine") and estimator.measure_evidence is True,
)
GROWN = Choice(
    "hidden_layer_sizes='auto'",
    lambda e: isinstance(e.hidden_layer_sizes, str) and e.hidden_layer_sizes == "auto",
)
FIXED_NOISE = Choice("noise.std", lambda e: e._noise is not None and e._noise._is_known)
GAMMA_NOISE = Choice(
    "A Gamma prior of the noise level",
    lambda estimator: any(isinstance(prior, Gamma) for prior in of_levels(estimator._noise)),
)
CORRELATED = _noise_is("correlated")
COUNTED = _noise_is(*COUNTS)
WITHOUT_LEVEL = _noise_is("input_dependent", "student_t", "correlated")
ARRAY = Choice("an array as prior", _has_labels)
ONE_GROUP = Choice("prior.base_precision as a number or an array", _makes_one_group)
OWN_GROUPS = Choice(
    "prior={estimator._prior.kind!r}",
    lambda e: _has_labels(e) or e._prior.kind not in ("layer", "single"),
)

LEVELS = "Use noise='constant' or 'shared'"
NOT_MEASURED = "Use measure_evidence='auto' or False"

REFUSALS = (
    Refusal(
        Choice("prior={estimator._prior.kind!r}", _has_intercept_group),
        Choice("fit_intercept=False", lambda estimator: not estimator.fit_intercept),
        "it is for outputs with intercepts",
        "Use fit_intercept=True, or the same prior without '+intercept'",
    ),
    Refusal(
        GROWN,
        ARRAY,
        "the array labels the weights of one network",
        "Give hidden_layer_sizes, or one of the priors 'single', 'layer' and 'ard'",
    ),
    # noise
    Refusal(
        FIXED_NOISE,
        _noise_is("input_dependent"),
        "it fixes one noise level for all inputs",
        "Leave noise.std at 'auto'",
    ),
    Refusal(
        FIXED_NOISE,
        CORRELATED,
        "it fixes levels of single outputs, and this infers the whole covariance",
        "Leave noise.std at 'auto'",
    ),
    Refusal(
        GAMMA_NOISE,
        _noise_is("input_dependent", "correlated"),
        "there the noise has no level of its own",
        "Use noise='constant', 'shared' or 'student_t', or a LogUniform prior",
    ),
    Refusal(
        MEASUREMENTS,
        WITHOUT_LEVEL,
        "it adds to Gaussian noise of a constant level",
        f"{LEVELS}, or leave measurement_std out",
    ),
    *(
        Refusal(
            CENSORED,
            others,
            "limits are for Gaussian or Student-t noise of a constant level",
            f"{LEVELS}, or leave censored out",
        )
        for others in (_noise_is("input_dependent", "correlated"), COUNTED)
    ),
    Refusal(
        MEASUREMENTS,
        COUNTED,
        "it adds to Gaussian noise",
        "Leave measurement_std out",
    ),
    Refusal(
        FIXED_NOISE,
        COUNTED,
        "counts vary about their mean by their own law",
        "Leave noise.std at 'auto'",
    ),
    # priors
    *(
        Refusal(
            GROWN,
            numbers,
            "it holds numbers for the weights of one network",
            "Give hidden_layer_sizes",
        )
        for numbers in (PRIOR_MEAN, PRIOR_PRECISION)
    ),
    *(
        Refusal(one, informed, why, instead)
        for informed in (PRIOR_MEAN, PRIOR_PRECISION, EARLIER)
        for one, why, instead in (
            (MEASURED, "sampling begins at a prior of mean zero", NOT_MEASURED),
            (CORRELATED, "it is for priors of mean zero", "Use noise='constant'"),
        )
    ),
    *(
        Refusal(given, EARLIER, "the estimator has both", "Leave it at None")
        for given in (PRIOR_MEAN, PRIOR_PRECISION)
    ),
    Refusal(
        OWN_GROUPS,
        ONE_GROUP,
        "all weights are then one group",
        "Give prior.base_precision as a dict by group, or prior='layer'",
    ),
    # ways to fit
    Refusal(
        _noise_is("negative_binomial"),
        PARTIAL_FIT,
        "the dispersion has no prior that earlier batches could give",
        "Use noise='poisson'",
    ),
    Refusal(WITHOUT_LEVEL, PARTIAL_FIT, "it needs constant noise levels", LEVELS),
    Refusal(MEASURED, PARTIAL_FIT, "sampling does not include earlier batches", NOT_MEASURED),
)


def refusal(estimator, asked=None):
    """Message for an invalid combination of choices; ``None`` if all are compatible.

    With a choice ``asked`` by a call, only its combinations are checked.
    """
    for row in REFUSALS:
        pair = row.one, row.other
        meant = asked is None or any(choice is asked for choice in pair)
        if meant and all(choice is asked or choice.made(estimator) for choice in pair):
            words = f"{row.one.words} is not possible with {row.other.words}"
            return f"{words.format(estimator=estimator)}: {row.why}. {row.instead}."
    return None


def check_combinations(estimator, asked=None):
    """Raise ``ValueError`` if choices cannot be combined, see `refusal`."""
    words = refusal(estimator, asked)
    if words is not None:
        raise ValueError(words)
