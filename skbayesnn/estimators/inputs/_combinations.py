"""Invalid combinations of two choices that are each valid alone."""

from sklearn.base import BaseEstimator

from skbayesnn.estimators.inputs._settings import COUNTS
from skbayesnn.posterior import INTERCEPT, Gamma


def noise_is(*kinds):
    """Choice of one of some kinds of noise."""
    return {f"noise={kind!r}" for kind in kinds}


# choices made by a call
MEASUREMENTS, CENSORED, PARTIAL_FIT = "measurement_std", "censored", "partial_fit"

PRIOR_MEAN, PRIOR_PRECISION = {"prior.mean"}, {"prior.base_precision"}
ARRAY, EARLIER = {"an array as prior"}, {"an estimator as prior"}
ONE_GROUP = {"prior.base_precision as a number or an array"}
INTERCEPT_GROUP = {f"prior={kind + INTERCEPT!r}" for kind in ("single", "layer", "ard")}
OWN_GROUPS = {"prior='ard'"} | INTERCEPT_GROUP | ARRAY
GROWN, MEASURED = {"hidden_layer_sizes='auto'"}, {"measure_evidence=True"}
NO_INTERCEPT = {"fit_intercept=False"}
FIXED_NOISE, GAMMA_NOISE = {"noise.std"}, {"A Gamma prior of the noise level"}
CORRELATED, COUNTED = noise_is("correlated"), noise_is(*COUNTS)
WITHOUT_LEVEL = noise_is("input_dependent", "student_t", "correlated")


def choices_of(estimator):
    """Choices of an estimator that exclude others."""
    prior, noise, sizes = estimator._prior, estimator._noise, estimator.hidden_layer_sizes
    named, learnt = isinstance(prior.kind, str), isinstance(prior.kind, BaseEstimator)
    base, levels = prior.base_precision, [] if noise is None else noise._hyperpriors
    made = {f"prior={prior.kind!r}"} if named else set()
    if noise is not None:
        made.add(f"noise={noise.kind!r}")
    for choice, is_made in (
        (EARLIER, learnt),
        (ARRAY, not named and not learnt),
        (PRIOR_MEAN, prior.mean is not None),
        (PRIOR_PRECISION, base is not None),
        (ONE_GROUP, base is not None and not isinstance(base, dict)),
        (GROWN, isinstance(sizes, str) and sizes == "auto"),
        (NO_INTERCEPT, not estimator.fit_intercept),
        (MEASURED, hasattr(estimator, "combine") and estimator.measure_evidence is True),
        (FIXED_NOISE, noise is not None and noise._is_known),
        (GAMMA_NOISE, Gamma in map(type, levels)),
    ):
        if is_made:
            made |= choice
    return made


LEVELS = "Use noise='constant' or 'shared'"
NOT_MEASURED = "Use measure_evidence='auto' or False"
INFORMED = (PRIOR_MEAN, PRIOR_PRECISION, EARLIER)

# Pairs of choices that cannot be combined, by the reason and what to do instead. Each is a set of
# alternatives, of which an estimator makes one at most.
REFUSALS = {
    "it is for outputs with intercepts. Use fit_intercept=True, or the same prior without "
    "'+intercept'": [(INTERCEPT_GROUP, NO_INTERCEPT)],
    "the array labels the weights of one network. Give hidden_layer_sizes, or one of the priors "
    "'single', 'layer' and 'ard'": [(GROWN, ARRAY)],
    # noise
    "it fixes one noise level for all inputs. Leave noise.std at 'auto'": [
        (FIXED_NOISE, noise_is("input_dependent"))
    ],
    "it fixes levels of single outputs, and this infers the whole covariance. Leave noise.std at "
    "'auto'": [(FIXED_NOISE, CORRELATED)],
    "there the noise has no level of its own. Use noise='constant', 'shared' or 'student_t', or a "
    "LogUniform prior": [(GAMMA_NOISE, noise_is("input_dependent", "correlated"))],
    f"it adds to Gaussian noise of a constant level. {LEVELS}, or leave measurement_std out": [
        ({MEASUREMENTS}, WITHOUT_LEVEL)
    ],
    "limits are for Gaussian or Student-t noise of a constant level. "
    f"{LEVELS}, or leave censored out": [
        ({CENSORED}, noise_is("input_dependent", "correlated") | COUNTED)
    ],
    "it adds to Gaussian noise. Leave measurement_std out": [({MEASUREMENTS}, COUNTED)],
    "counts vary about their mean by their own law. Leave noise.std at 'auto'": [
        (FIXED_NOISE, COUNTED)
    ],
    # priors
    "it holds numbers for the weights of one network. Give hidden_layer_sizes": [
        (GROWN, PRIOR_MEAN),
        (GROWN, PRIOR_PRECISION),
    ],
    f"sampling begins at a prior of mean zero. {NOT_MEASURED}": [
        (MEASURED, informed) for informed in INFORMED
    ],
    "it is for priors of mean zero. Use noise='constant'": [
        (CORRELATED, informed) for informed in INFORMED
    ],
    "the estimator has both. Leave it at None": [
        (PRIOR_MEAN, EARLIER),
        (PRIOR_PRECISION, EARLIER),
    ],
    "all weights are then one group. Give prior.base_precision as a dict by group, or "
    "prior='layer'": [(OWN_GROUPS, ONE_GROUP)],
    # ways to fit
    "the dispersion has no prior that earlier batches could give. Use noise='poisson'": [
        (noise_is("negative_binomial"), {PARTIAL_FIT})
    ],
    f"it needs constant noise levels. {LEVELS}": [(WITHOUT_LEVEL, {PARTIAL_FIT})],
    f"sampling does not include earlier batches. {NOT_MEASURED}": [(MEASURED, {PARTIAL_FIT})],
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
