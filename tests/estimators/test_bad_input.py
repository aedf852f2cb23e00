"""Every mistake gets a message that says what is wrong; no interruption leaves half a fit."""

from datetime import date

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayesnn import (
    EvidenceMLPClassifier,
    EvidenceMLPRegressor,
    HMCMLPClassifier,
    HMCMLPRegressor,
    Noise,
    Prior,
    Sampler,
    Solver,
)
from skbayesnn.estimators.inputs._rows import warning_of_weights
from skbayesnn.samplers import advance
from tests.tools import BRIEF

pytestmark = [
    pytest.mark.usefixtures("laplace"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 2))
Y = X[:, 0] + 0.1 * RNG.standard_normal(30)
LABELS = np.where(Y > 0, "yes", "no")
EVIDENCE = [EvidenceMLPRegressor, EvidenceMLPClassifier]
SAMPLERS = [HMCMLPRegressor, HMCMLPClassifier]
ESTIMATORS = [*EVIDENCE, *SAMPLERS]
REGRESSORS = [EvidenceMLPRegressor, HMCMLPRegressor]
CLASSIFIERS = [EvidenceMLPClassifier, HMCMLPClassifier]


def targets(estimator):
    return Y if estimator in REGRESSORS else LABELS


def replaced(array, index, value):
    array = array.copy()
    array[index] = value
    return array


def make(estimator=EvidenceMLPRegressor, **options):
    few = {"n_restarts": 1}
    if estimator in SAMPLERS:
        few = BRIEF | {"sampler": "langevin"}
    return estimator(**({"hidden_layer_sizes": (2,), "random_state": 0} | few | options))


PARAMETERS = [  # what is raised is a ValueError, or a TypeError where a type is named
    ({"hidden_layer_sizes": (0,)}, r"positive integers.*Got \(0,\)"),
    ({"hidden_layer_sizes": (2.5,)}, "hidden_layer_sizes must be a tuple of positive"),
    ({"hidden_layer_sizes": "Auto"}, r"none\), or 'auto'. Got 'Auto'"),
    ({"n_jobs": "2"}, "n_jobs must be None or an integer .* got '2'"),
    ({"n_jobs": 0}, "n_jobs must be None or an integer other than 0"),
    ({"activation": "sine"}, "activation must be one of .*'tanh'.* got 'sine'"),
    ({"prior": "flat"}, "prior must be one of 'auto', 'single', 'layer', 'ard', .*; got 'flat'"),
    ({"prior": [0, 1, 2]}, r"label for each of the 9 weights; got shape \(3,\)"),
    ({"standardize": "yes"}, "standardize must be True or False, got 'yes'"),
    ({"warm_start": 1}, "warm_start must be True or False, got 1"),
    ({"random_state": "seed"}, "'seed' cannot be used to seed"),
    *(
        ({"max_time": value}, "max_time must be a positive number")
        for value in (0, -1.0, np.nan, "long", np.inf)
    ),
    ({"prior": Prior(precision="fixed")}, "prior.precision must be 'auto', a positive"),
    ({"prior": Prior(precision=-1.0)}, "prior.precision must be positive and finite, got -1"),
    ({"prior": Prior(precision=[1.0, 2.0])}, "prior.precision must be one number or 3 numbers"),
    ({"prior": Prior(precision={"outputs": 1.0})}, "names 'outputs', but this model has"),
    ({"prior": Prior(precision={"output": 0.0})}, "got 0.0 for 'output'"),
    ({"prior": Prior(precision={"output": "auto"})}, "got 'auto' for 'output'"),
]
EVIDENCE_PARAMETERS = [
    ({"method": "always"}, "must be one of 'auto', 'population', 'chains', .*; got 'always'"),
    ({"method": 3}, "must be one of 'auto', 'population', 'chains', .*; got 3"),
    ({"combine": "vote"}, "combine must be one of .*'tempered'; got 'vote'"),
    ({"solver": "diagonal"}, "hessian must be one of .* got 'diagonal'"),
    ({"n_restarts": 0}, "n_restarts must be at least 1, got 0"),
    ({"n_restarts": True}, "n_restarts must be an integer, got True"),
    ({"solver": Solver(max_iter=0)}, "max_iter must be at least 1, got 0"),
    ({"solver": Solver(tol=0.0)}, "tol must be a positive number, got 0.0"),
    ({"solver": Solver(tol=np.nan)}, "tol must be a positive number, got nan"),
]
SAMPLER_PARAMETERS = [
    ({"n_chains": 0}, "n_chains must be at least 1, got 0"),
    ({"n_draws": 0}, "n_draws must be at least 1, got 0"),
    ({"n_warmup": -1}, "n_warmup must be at least 0, got -1"),
    ({"sampler": Sampler(thin=0)}, "thin must be at least 1, got 0"),
    ({"sampler": "nuts"}, "sampler must be one of 'auto', .* got 'nuts'"),
    ({"sampler": Sampler(step_size=0.0)}, "step_size must be a positive number, got 0"),
    ({"sampler": Sampler(n_steps=0)}, "n_steps must be at least 1, got 0"),
    ({"sampler": Sampler(n_steps=1.5)}, "n_steps must be an integer, got 1.5"),
    ({"sampler": Sampler("hmc", n_steps=(5, 2))}, "n_steps must be at least 5, got 2"),
    ({"sampler": Sampler("hmc", n_steps=(1, 2, 3))}, "or a pair"),
    ({"sampler": Sampler("hmc", persistence=1.0)}, "persistence must be None, or a number"),
    ({"sampler": Sampler("auto", persistence=0.5)}, "sampler='auto' tunes its own"),
    ({"sampler": Sampler("metropolis", n_steps=3)}, r"raise sampler\.thin"),
    ({"sampler": Sampler("auto", step_size=0.1)}, "sampler='auto' tunes its own"),
    ({"sampler": Sampler(dtype="int")}, "dtype must be float32 or float64, got 'int'"),
    ({"measure_evidence": "yes"}, "measure_evidence must be True or False, got 'yes'"),
    ({"sampler": Sampler(init="best")}, "'modes', 'prior' or a fitted .* got 'best'"),
    ({"sampler": Sampler(init=EvidenceMLPRegressor())}, "'modes', 'prior' or a fitted"),
]
REGRESSOR_PARAMETERS = [
    ({"noise": "gaussian"}, "noise must be one of 'constant', 'shared'.* got 'gaussian'"),
    ({"noise": None}, "^noise must be one of 'constant', 'shared'.* got None"),
    ({"noise": True}, "noise must be one of 'constant', 'shared'.* got True"),
    ({"noise": Noise(std="small")}, "noise.std must be 'auto', a positive"),
    ({"noise": Noise(std=None)}, "noise.std must be 'auto', .* got None"),
    ({"noise": 0.0}, "noise.std .* finite, got 0.0. .* without noise, give a small .* 0.001 times"),
    ({"noise": np.nan}, "noise.std must be positive and finite, got nan"),
    ({"noise": [0.1, 0.2]}, "noise.std must be one number, got an array"),
    ({"noise": {1: 0.1}}, r"noise.std names 1, but this model has \[0\]"),
    ({"noise": {0: -0.1}}, "got -0.1 for 0"),
    ({"noise": Noise(hidden_layer_sizes=(0,))}, "noise.hidden_layer_sizes must be a tuple"),
]


# Both tasks share these checks: each engine is asked once, the other two estimators in part.
CHECKED = [
    *((EvidenceMLPRegressor, *row) for row in PARAMETERS + EVIDENCE_PARAMETERS),
    *((HMCMLPRegressor, *row) for row in PARAMETERS + SAMPLER_PARAMETERS),
    *((EvidenceMLPClassifier, *row) for row in [*PARAMETERS[::5], EVIDENCE_PARAMETERS[0]]),
    *((HMCMLPClassifier, *row) for row in [*PARAMETERS[::5], SAMPLER_PARAMETERS[0]]),
    *((kind, *row) for kind in REGRESSORS for row in REGRESSOR_PARAMETERS),
]


@pytest.mark.parametrize(("estimator", "options", "message"), CHECKED, ids=str)
def test_parameters(estimator, options, message):
    wrong_types = "an integer, got", "True or False"
    kind = TypeError if any(words in message for words in wrong_types) else ValueError
    with pytest.raises(kind, match=message):
        make(estimator, **options).fit(X, targets(estimator))


DATA = [  # beside what `check_estimator` asks for
    ("X", X[:-1], "inconsistent numbers of samples"),
    ("X", np.full(X.shape, "text"), "X holds .* such as .*text.* in these columns: 0, 1"),
    (
        "X",
        [[1.0, date(2026, 1, 1 + i)] for i in range(30)],
        r"X holds .*date\(2026, 1, 1\), in these columns: 1",
    ),
    (
        "X",
        pd.DataFrame({"day": pd.date_range("2026-01-01", periods=30), "x": X[:, 0]}),
        "X holds .* in these columns: 'day'",
    ),
    ("X", 1e200 * X, "X has values up to .*e\\+200.* other units"),
    ("weight", np.full(30, 1e300), "sample_weight adds up to more than 1e\\+15 rows"),
    ("weight", replaced(np.ones(30), 0, np.nan), "sample_weight contains NaN"),
    ("weight", replaced(np.ones(30), 0, np.inf), "sample_weight contains infinity"),
    ("weight", replaced(np.ones(30), 0, -1.0), "sample_weight must not be negative"),
    ("weight", np.zeros(30), "nor zero for all rows"),
    ("weight", np.ones(29), r"sample_weight must have shape \(30,\), .* got \(29,\)"),
    ("weight", np.ones((30, 1)), r"sample_weight must have shape \(30,\), .* got \(30, 1\)"),
    ("weight", replaced(np.zeros(30), 4, 1.0), "(?i)at least 2|only one class"),
]


@pytest.mark.parametrize("estimator", [EvidenceMLPRegressor, HMCMLPClassifier])
@pytest.mark.parametrize(("what", "value", "message"), DATA)
def test_data(estimator, what, value, message):
    arguments = {"X": X, "y": targets(estimator), "sample_weight": None}
    arguments |= {"X": value} if what == "X" else {"sample_weight": value}
    model = make(estimator)
    with pytest.raises(ValueError, match=message):
        model.fit(**arguments)
    assert vars(model) == vars(make(estimator))


TARGETS_OF_REGRESSORS = [
    (replaced(Y, 3, np.nan), "Input y contains NaN. Leave out the rows"),
    (replaced(Y, 3, -np.inf), "Input y contains infinity.* Leave out the rows"),
    (replaced(np.column_stack([Y, Y]), (3, 1), np.nan), "y contains NaN"),
    (LABELS, "y must hold numbers; .* EvidenceMLPClassifier"),
    (LABELS.astype(object), "y must hold numbers; .* EvidenceMLPClassifier"),
    (Y[:-1], "inconsistent numbers of samples"),
    (Y[:, None, None], "dim 3"),
    (np.empty((30, 0)), "y|output|target"),
    (None, "requires y to be passed"),
    (1e200 * Y, "y has values up to .*e\\+200.* other units"),
]
TARGETS_OF_CLASSIFIERS = [
    (np.full(30, "yes"), "only one class: 'yes'"),
    (np.zeros(30, dtype=int), "only one class: 0"),
    (Y, "Unknown label type: continuous"),
    (replaced((Y > 0).astype(float), 3, np.nan), "Input y contains NaN. Leave out the rows"),
    (replaced(LABELS.astype(object), 3, np.nan), "Input y contains NaN. Leave out the rows"),
    (replaced(LABELS.astype(object), 3, None), "all strings or all numbers. Leave out rows"),
    (np.column_stack([Y > 0, Y > 1]), "must hold class probabilities"),
    (LABELS[:-1], "inconsistent numbers of samples"),
    (None, "requires y to be passed"),
]


@pytest.mark.parametrize(("y", "message"), TARGETS_OF_REGRESSORS)
def test_targets_of_regressors(y, message):
    with pytest.raises(ValueError, match=message):
        make().fit(X, y)


@pytest.mark.parametrize(("y", "message"), TARGETS_OF_CLASSIFIERS)
def test_targets_of_classifiers(y, message):
    with pytest.raises(ValueError, match=message):
        make(HMCMLPClassifier).fit(X, y)


@pytest.mark.parametrize("estimator", REGRESSORS)
@pytest.mark.parametrize("hidden", [(), (2,)], ids=str)
def test_one_row(estimator, hidden):
    with pytest.raises(ValueError, match=r"1 sample .* at least 2"):
        make(estimator, hidden_layer_sizes=hidden).fit(X[:1], Y[:1])
    with pytest.raises(ValueError, match=r"1 sample .* at least 2"):
        make(estimator, hidden_layer_sizes=hidden).fit(X[[0, 0]], Y[[0, 0]])


@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_one_class_of_positive_weight(estimator):
    with pytest.raises(ValueError, match="only one class"):
        make(estimator).fit(X[:1], LABELS[:1])
    with pytest.raises(ValueError, match=r"positive sample_weight.*only one class.*no"):
        make(estimator).fit(X, LABELS, sample_weight=(LABELS == "no").astype(float))


@pytest.fixture(scope="module", params=ESTIMATORS, ids=lambda estimator: estimator.__name__)
def fitted(request):
    return make(request.param).fit(X, targets(request.param))


BOTH = ("predict", "predict_std", "sample_prior")
METHODS = {
    "Regressor": (*BOTH, "predict_output_cov", "predict_interval", "sample_y"),
    "Classifier": (*BOTH, "predict_proba", "predict_log_proba", "decision_function"),
}


def methods(estimator):
    return METHODS["Regressor" if estimator in REGRESSORS else "Classifier"]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_not_fitted(estimator):
    for method in methods(estimator):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(make(estimator), method)(X)
    for method in ("log_predictive_density", "score"):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(make(estimator), method)(X, targets(estimator))
    for name in ("noise_std_", "networks_", "diagnostics_", "coefs_", "log_evidence_"):
        assert not hasattr(make(estimator), name)  # though some are properties
    with pytest.raises(NotFittedError):
        HMCMLPRegressor.from_evidence(EvidenceMLPRegressor())


def test_sampler_from_another_task_or_a_pipeline():
    classifier = make(EvidenceMLPClassifier).fit(X, LABELS)
    with pytest.raises(TypeError, match="of the same task, got EvidenceMLPClassifier"):
        HMCMLPRegressor.from_evidence(classifier)
    with pytest.raises(TypeError, match="got Pipeline"):
        HMCMLPClassifier.from_evidence(make_pipeline(StandardScaler(), classifier))


def test_rows_to_predict(fitted):
    for method in methods(type(fitted)):
        with pytest.raises(ValueError, match=r"3 features, but .* expecting 2 features"):
            getattr(fitted, method)(np.column_stack([X, Y]))
        with pytest.raises(ValueError, match="Input X contains NaN"):
            getattr(fitted, method)(replaced(X, (0, 0), np.nan))
        with pytest.raises(ValueError, match="Expected 2D array"):
            getattr(fitted, method)(X[0])


def test_gaps_in_a_table():
    table = pd.DataFrame(X, columns=["height", "width"])
    table.loc[3, "width"] = np.nan
    advice = r"in these columns: 'width'\. Impute values .* SimpleImputer"
    with pytest.raises(ValueError, match=advice):
        EvidenceMLPRegressor().fit(table, Y)
    with pytest.raises(ValueError, match=advice):  # pandas.NA
        EvidenceMLPRegressor().fit(table.convert_dtypes(), Y)
    with pytest.raises(ValueError, match="in these columns: 0, 1"):
        EvidenceMLPRegressor().fit(np.full((4, 2), np.nan), Y[:4])
    with pytest.raises(ValueError, match="contains infinity"):
        EvidenceMLPRegressor().fit(replaced(X, (0, 0), np.inf), Y)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_strings_in_a_table(estimator):
    table = pd.DataFrame(X, columns=["height", "width"])
    table["town"], table["kind"] = ["York", "Ely"] * 15, pd.Categorical(["a", "b", "c"] * 10)
    y = targets(estimator)
    with pytest.raises(ValueError, match=r"as 'York', in .*: 'town', 'kind'\. .*OneHot"):
        make(estimator).fit(table, y)
    with pytest.raises(ValueError, match=r"such as 'York', in these columns: 1\."):
        make(estimator).fit(table[["width", "town"]].to_numpy(), y)
    numbers = table[["height", "width"]]
    model = make(estimator).fit(numbers.astype(str), y)  # strings that are numbers
    with pytest.raises(ValueError, match=r"such as 'wide', in these columns: 'width'\."):
        model.predict(numbers.assign(width="wide"))


@pytest.mark.parametrize("pair", [EVIDENCE, SAMPLERS], ids=["evidence", "samplers"])
def test_options_of_predictions(pair):
    regressor, classifier = make(pair[0]).fit(X, Y), make(pair[1]).fit(X, LABELS)
    with pytest.raises(RuntimeError, match="At most one of return_std and return_cov"):
        regressor.predict(X, return_std=True, return_cov=True)
    for method in (regressor.predict_std, regressor.predict_output_cov):
        with pytest.raises(ValueError, match=r"kind must be one of 'total', .* got 'noise'"):
            method(X, kind="noise")
    for coverage in (0.0, 1.0, 95, -0.1, np.nan, "0.9"):
        with pytest.raises(ValueError, match="coverage must lie between 0 and 1, got"):
            regressor.predict_interval(X, coverage=coverage)
    for q in ([0.5, 1.1], 95, [0.5, -0.1], np.nan, "0.9", [], [True]):
        with pytest.raises(ValueError, match="q must lie between 0 and 1, got"):
            regressor.predict_quantiles(X, q=q)
    with pytest.raises(ValueError, match="n_samples must be at least 1, got -1"):
        regressor.sample_prior(X, -1)
    gaussian = make(pair[0], noise="constant").fit(X, Y)
    for function in (np.sum, lambda y: np.full(len(y), np.nan)):
        with pytest.raises(ValueError, match="function must return finite numbers"):
            gaussian.predict_distribution(X).expect(function)
    with pytest.raises(ValueError, match="moderated must be True"):
        classifier.predict_proba(X, moderated="quadrature")
    with pytest.raises(ValueError, match=r"classes that were not in the training data: .*maybe"):
        classifier.log_predictive_density(X[:2], ["yes", "maybe"])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        classifier.log_predictive_density(X, LABELS[:3])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        regressor.log_predictive_density(X, Y[:3])
    with pytest.raises(ValueError, match="y has 2 outputs, the model was fitted with 1"):
        regressor.log_predictive_density(X, np.column_stack([Y, Y]))
    with pytest.raises(ValueError, match="y contains NaN"):
        regressor.log_predictive_density(X, replaced(Y, 0, np.nan))


SEARCH = "skbayesnn.inference.minima._search."
TRANSITION = "skbayesnn.samplers._chains.advance"
INTERRUPTED = [  # the place, and at which of its calls
    (EvidenceMLPRegressor, SEARCH + "train", 1),
    (EvidenceMLPRegressor, SEARCH + "distinct", 1),
    (EvidenceMLPRegressor, "skbayesnn.estimators.EvidenceMLPRegressor._warn", 1),  # at the end
    (HMCMLPRegressor, TRANSITION, 1),
    (HMCMLPRegressor, TRANSITION, 10),
    (HMCMLPRegressor, TRANSITION, 10 + 3),  # a few draws say nothing
]


@pytest.mark.parametrize(("kind", "place", "at"), INTERRUPTED)
@pytest.mark.parametrize("warm_start", [False, True])
def test_interrupted_fits(monkeypatch, kind, place, at, warm_start):
    """The first one leaves nothing, a later one what was there."""
    first = make(kind)
    later = make(kind, warm_start=warm_start).fit(X, Y)
    before, predicted = vars(later).copy(), later.predict(X)
    for model in (first, later):
        calls = []

        def press(*args, calls=calls, **kwargs):
            calls.append(args)
            if len(calls) == at:
                raise KeyboardInterrupt
            return advance(*args, **kwargs)

        monkeypatch.setattr(place, press)
        with pytest.raises(KeyboardInterrupt):
            model.fit(np.column_stack([X, Y])[:9], np.column_stack([Y, Y])[:9])
        monkeypatch.undo()
    assert vars(first) == vars(make(kind))
    assert vars(later).keys() == before.keys()
    assert all(vars(later)[name] is value for name, value in before.items())
    assert_array_equal(later.predict(X), predicted)


def test_values_beyond_what_can_be_squared_without_standardisation():
    with pytest.raises(ValueError, match=r"X has values .*standardize=True"):
        make(standardize=False).fit(1e60 * X, Y)


@pytest.mark.parametrize("noise_std", [1e-20, 1e20])
def test_noise_in_other_units_than_the_targets(noise_std):
    with pytest.raises(ValueError, match=r"orders of magnitude.* in the units of y"):
        EvidenceMLPRegressor((), noise=noise_std).fit([[0.0], [1.0], [2.0]], [0.0, 1.5, 2.0])


@pytest.mark.parametrize("kind", [EvidenceMLPRegressor, HMCMLPRegressor, EvidenceMLPClassifier])
def test_weights_that_sum_to_one_give_the_factor(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1))
    y = X[:, 0] > 0 if kind is EvidenceMLPClassifier else X[:, 0] + 0.1 * rng.normal(size=40)
    options = {"n_chains": 2, "n_warmup": 5, "n_draws": 10} if kind is HMCMLPRegressor else {}
    model = kind((), random_state=0, **options)
    with pytest.warns(UserWarning, match=r"adds up to 1 for 40 rows.* multiply them by 40\."):
        model.fit(X, y, sample_weight=np.full(40, 1 / 40))
    with pytest.warns(UserWarning, match=r"adds up to 400 .* too small.* multiply them by 0\.1\."):
        model.fit(X, y, sample_weight=np.full(40, 10.0))


def test_large_weights_that_are_counts_give_no_warning():
    counts, classes = np.array([40.0, 3.0, 17.0, 20.0]), np.array([[0.0], [1.0], [0.0], [1.0]])
    assert warning_of_weights(counts, classes, 4) is None
    assert warning_of_weights(counts + 0.5, classes, 4) is not None
    assert warning_of_weights(np.full(4, 9.0), classes, 4) is None
    means = np.array([[0.3], [0.8], [0.4], [0.6]])  # no rows that were observed several times
    assert warning_of_weights(counts, means, 4) is not None
    assert warning_of_weights(counts / 10.0, means, 4) is None


def test_copies_give_a_warning():
    X = np.random.default_rng(0).normal(size=(20, 1))
    copies = np.repeat(np.arange(20), [2, 4] * 10)
    with pytest.warns(UserWarning, match=r"Only 20 of 60 rows are different\..* too small"):
        EvidenceMLPRegressor((), random_state=0).fit(X[copies], np.sin(X[copies, 0]))
    labels = X[:, 0] > 0  # groups of equal observations are no copies
    EvidenceMLPClassifier((), random_state=0).fit(X[copies].round(), labels[copies])
