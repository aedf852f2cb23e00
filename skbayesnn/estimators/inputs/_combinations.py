"""Invalid combinations of two choices that are each valid alone."""

from collections.abc import Callable
from typing import NamedTuple

from skbayesnn.estimators.inputs._hyperpriors import has_gamma_noise
from skbayesnn.estimators.inputs._parameters import is_estimator
from skbayesnn.posterior import INTERCEPT


class Choice(NamedTuple):
    """Choice of some values of a parameter, or of a method or argument.

    Attributes
    ----------
    words : str
        Name of the choice in messages; parameter names in braces stand for their values.
    made : callable
        Function that returns True if the parameters of an estimator make this choice.
    """

    words: str
    made: Callable = lambda estimator: False


class Refusal(NamedTuple):
    """Pair of choices that cannot be combined.

    Attributes
    ----------
    one, other : Choice
    why : str
    instead : str
        What to do.
    """

    one: Choice
    other: Choice
    why: str
    instead: str


def _is(name, *values):
    """Choice of one of some strings."""

    def made(estimator):
        given = getattr(estimator, name, None)
        return isinstance(given, str) and given in values

    return Choice(f"{name}={{{name}!r}}", made)


def _given(name):
    """Choice of any value but ``None``."""
    return Choice(name, lambda estimator: getattr(estimator, name, None) is not None)


def _fixes_noise(estimator):
    given = getattr(estimator, "noise_std", "auto")
    return not (isinstance(given, str) and given == "auto")


def _makes_one_group(estimator):
    given = estimator.prior_precision
    return given is not None and not isinstance(given, dict)


def _has_intercept_group(estimator):
    return isinstance(estimator.prior, str) and estimator.prior.endswith(INTERCEPT)


def _is_array(prior):
    return not (isinstance(prior, str) or is_estimator(prior))


# choices made by a call
MEASUREMENTS = Choice("measurement_std")
PARTIAL_FIT = Choice("partial_fit")

PRIOR_MEAN, PRIOR_PRECISION = _given("prior_mean"), _given("prior_precision")
EARLIER = Choice("an estimator as prior", lambda estimator: is_estimator(estimator.prior))
MEASURED = Choice(
    "measure_evidence=True",
    lambda estimator: getattr(estimator, "measure_evidence", False) is True,
)
GROWN = _is("hidden_layer_sizes", "auto")
FIXED_NOISE = Choice("noise_std", _fixes_noise)
GAMMA_NOISE = Choice(
    "A Gamma prior of the noise level", lambda estimator: has_gamma_noise(estimator.hyperprior)
)
CORRELATED = _is("noise", "correlated")
WITHOUT_LEVEL = _is("noise", "input_dependent", "student_t", "correlated")
ARRAY = Choice("an array as prior", lambda estimator: _is_array(estimator.prior))
ONE_GROUP = Choice("prior_precision as a number or an array", _makes_one_group)
OWN_GROUPS = Choice(
    "prior={prior!r}", lambda e: _is_array(e.prior) or not _is("prior", "layer", "single").made(e)
)

LEVELS = "Use noise='constant' or 'shared'"
NOT_MEASURED = "Use measure_evidence='auto' or False"

REFUSALS = (
    Refusal(
        Choice("prior={prior!r}", _has_intercept_group),
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
        _is("noise", "input_dependent"),
        "it fixes one noise level for all inputs",
        "Leave noise_std at 'auto'",
    ),
    Refusal(
        FIXED_NOISE,
        CORRELATED,
        "it fixes levels of single outputs, and this infers the whole covariance",
        "Leave noise_std at 'auto'",
    ),
    Refusal(
        GAMMA_NOISE,
        _is("noise", "input_dependent", "correlated"),
        "there the noise has no level of its own",
        "Use noise='constant', 'shared' or 'student_t', or a LogUniform prior",
    ),
    Refusal(
        MEASUREMENTS,
        WITHOUT_LEVEL,
        "it adds to Gaussian noise of a constant level",
        f"{LEVELS}, or leave measurement_std out",
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
        "Give prior_precision as a dict by group, or prior='layer'",
    ),
    # ways to fit
    Refusal(WITHOUT_LEVEL, PARTIAL_FIT, "it needs constant noise levels", LEVELS),
    Refusal(MEASURED, PARTIAL_FIT, "sampling does not include earlier batches", NOT_MEASURED),
)


def refusal(estimator, asked=None):
    """Message for an invalid combination of choices; ``None`` if all are compatible.

    Parameters
    ----------
    estimator : BayesianMLP
    asked : Choice, optional
        Choice made by a call, besides the parameters; only its combinations are then checked.
    """
    for row in REFUSALS:
        pair = row.one, row.other
        meant = asked is None or any(choice is asked for choice in pair)
        if meant and all(choice is asked or choice.made(estimator) for choice in pair):
            words = f"{row.one.words} is not possible with {row.other.words}"
            return f"{words.format(**vars(estimator))}: {row.why}. {row.instead}."
    return None


def check_combinations(estimator, asked=None):
    """Raise ``ValueError`` if choices cannot be combined, see `refusal`."""
    words = refusal(estimator, asked)
    if words is not None:
        raise ValueError(words)
