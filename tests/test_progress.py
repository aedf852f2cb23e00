"""Progress: what is told, when, and by whom."""

import numpy as np
import pytest

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor, HMCMLPRegressor, Sampler
from skbayesnn.inference import Problem, Progress
from skbayesnn.inference._evidence_fit import fit_evidence
from skbayesnn.inference.choice._growth import AFTER, HeldOut
from skbayesnn.inference.choice._noise_choice import SECONDS_OF_NOISE
from skbayesnn.inference.minima._search import Workers, seconds_of_start
from skbayesnn.inference.minima._training import EARLY, LEAST
from skbayesnn.inference.sampling._sampling import run_chains
from skbayesnn.inference.task._problem import Limits
from skbayesnn.posterior import Gaussian
from skbayesnn.predictive._moderation import SOFTMAX_POINTS
from tests.tools import BRIEF

pytestmark = pytest.mark.usefixtures("laplace")

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (60, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.standard_normal(60)
EARLY_LIMITS = Limits(batch_rows=50)  # so that growth is by held-out rows


class Clock:
    """A clock that is set by hand."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr("skbayesnn._progress.monotonic", lambda: self.now)


def lines(capsys):
    return capsys.readouterr().out.splitlines()


# --- stages --------------------------------------------------------------------------------------


def test_lines_tell_time_so_far_and_left(monkeypatch, capsys):
    clock, progress = Clock(monkeypatch), Progress(1)
    with progress.stage("starts", [1.0] * 3) as step:
        clock.now += 2.0
        step("first")
        clock.now += 1.0
        step()
        step("third")
    with progress.stage("noise models", [1.0]) as step:
        step("one more")
    expected = ["first; 2 s so far, about 4 s left for starts", "third; 3 s so far"]
    assert lines(capsys) == [*expected, "one more; 3 s so far"]


def test_first_steps_and_the_forecast_are_averaged(monkeypatch, capsys):
    """The first step takes half of the time, but is a fortieth of the work."""
    clock, progress = Clock(monkeypatch), Progress(1)
    with progress.stage("hidden layers", [1.0, 19.0, 20.0], seconds=10.0) as step:
        clock.now += 5.0
        step("()")
        clock.now += 5.0
        step("(2,)")
    assert lines(capsys) == [
        "hidden layers: this will take about 10 s",
        "(); 5 s so far, about 30 s left for hidden layers",
        "(2,); 10 s so far, about 9 s left for hidden layers",
    ]


def test_only_long_stages_are_announced_and_only_once(monkeypatch, capsys):
    clock, progress = Clock(monkeypatch), Progress(1)
    with progress.stage("short", [1.0, 1.0], seconds=2.0):
        pass
    with progress.stage("starts", [1.0] * 4, seconds=61.0) as step:
        clock.now += 20.0
        step()
    with progress.stage("hidden layers", [1.0, 1.0], is_open=True, seconds=240.0):
        pass
    with progress.stage("sampling", [1.0] * 100) as step:  # nobody knew how long it would take
        clock.now += 0.5
        step()
        assert "sampling" not in capsys.readouterr().out.splitlines()[-1]
        clock.now += 3.5
        step()
        step()
    assert lines(capsys) == ["sampling: this will take about 3 minutes"]


def test_silent_fits_log_one_forecast(monkeypatch, capsys, caplog):
    Clock(monkeypatch)
    progress = Progress(0)
    with progress.stage("short", [1.0], seconds=5.0) as step:
        step("one")
    with progress.stage("hidden layers", [1.0], seconds=41.0) as step:
        step("two")
    with progress.stage("noise models", [1.0], seconds=50.0):
        pass
    assert lines(capsys) == []
    (message,) = caplog.messages
    assert message.startswith("fit: this will take about 41 s (verbose=1 ")


def test_forecasts_count_what_was_before_and_what_follows(monkeypatch, caplog):
    clock, progress = Clock(monkeypatch), Progress(0)
    with progress.stage("hidden layers", [1.0], seconds=3.0) as step:
        clock.now += 3.0
        step()
    with progress.before(lambda: 4.0), progress.before(lambda: 2.0):
        with progress.stage("noise models", [1.0], seconds=0.9):
            clock.now += 3.0
        assert caplog.messages == []
        with progress.stage("starts", [1.0], seconds=8.0):
            pass
    (message,) = caplog.messages
    assert message.startswith("fit: this will take about 20 s (")


def test_silent_fits_wait_ten_seconds_for_the_choice_of_a_size(monkeypatch, caplog):
    clock, progress = Clock(monkeypatch), Progress(0)
    works = [1.0, 1.0, 2.0], True, 60.0
    with progress.before(lambda: 6.0), progress.stage("hidden layers", *works) as step:
        for seconds in (2.0, 3.0, 4.0, 3.0):
            assert caplog.messages == []
            with progress.stage("starts", [1.0], seconds=20.0):
                clock.now += seconds
            step()
    (message,) = caplog.messages
    assert message.startswith("fit: this will take about 21 s (")


@pytest.mark.parametrize(("verbose", "expected"), [(1, ["outer"]), (2, ["inner", "said", "outer"])])
def test_verbosity_is_depth(capsys, verbose, expected):
    progress = Progress(verbose)
    with progress.stage("candidates", [1.0]) as step:
        with progress.stage("starts", [1.0]) as inner:
            inner("inner")
        progress.say("said")
        step("outer")
    assert [line.split(";")[0] for line in lines(capsys)] == expected


# --- fits ----------------------------------------------------------------------------------------


def test_growth_has_a_line_for_every_network(capsys):
    options = {"n_restarts": 1, "noise": "constant", "method": "laplace", "random_state": 0}
    silent = EvidenceMLPRegressor(**options).fit(X, Y)
    assert lines(capsys) == []
    model = EvidenceMLPRegressor(verbose=1, **options).fit(X, Y)
    found = [line for line in lines(capsys) if line.startswith("hidden layers (")]
    assert len(found) == len(model.candidates_)
    for line, candidate in zip(found, model._result.growth, strict=True):
        assert line.startswith(f"{candidate}; ")
    np.testing.assert_array_equal(model.predict(X), silent.predict(X))
    EvidenceMLPRegressor(verbose=2, **options).fit(X, Y)
    more = lines(capsys)
    assert sum(line.startswith("start 1 of ") for line in more) == len(model.candidates_)
    assert sum(" weights: training by " in line for line in more) >= len(model.candidates_)


@pytest.mark.usefixtures("as_users_fit")
def test_noise_and_evidence_have_lines(capsys):
    heavy = (Y + 0.3 * np.random.default_rng(1).standard_t(1.5, 60))[:24]
    model = EvidenceMLPRegressor((1,), n_restarts=1, random_state=0, verbose=1).fit(X[:24], heavy)
    found = lines(capsys)
    value = model.evidence_report_.noise_log_evidences["student_t"]
    words = f"hidden layers (1,), student_t noise: log evidence {value:.2f} +- "
    assert any(line.startswith(words) for line in found)
    plain = EvidenceMLPRegressor((1,), n_restarts=1, noise="constant", random_state=0, verbose=1)
    plain.fit(X[:24], Y[:24])
    value, error = plain.log_evidence_, plain.log_evidence_std_
    words = f"hidden layers (1,), constant noise: log evidence {value:.2f} +- {error:.2f}"
    assert lines(capsys)[-1].startswith(words)


@pytest.mark.filterwarnings("ignore:The chains have not converged")
def test_other_processes_are_heard(capsys):
    """In this process, which notebooks show, whatever the others print."""
    options = {"n_restarts": 3, "noise": "constant", "random_state": 0, "n_jobs": 2}
    EvidenceMLPRegressor((2,), verbose=1, **options).fit(X, Y)
    found = [line for line in lines(capsys) if line.startswith("start ")]
    assert [line[:12] for line in found] == [f"start {i} of 3" for i in (1, 2, 3)]
    chains = BRIEF | {"sampler": Sampler(thin=1)}
    HMCMLPRegressor((2,), verbose=1, n_jobs=2, **chains).fit(X, Y)
    found = [line.split(";")[0] for line in lines(capsys)]
    assert found[-2:] == [f"chains drawn by process {i} of 2" for i in (1, 2)]


# --- forecasts -----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The chains have not converged")
@pytest.mark.parametrize("given", [{"measure_evidence": False}, {"sampler": Sampler(init="prior")}])
def test_long_sampling_is_announced_at_its_start(monkeypatch, caplog, given):
    monkeypatch.setattr("skbayesnn.inference._trials.SECONDS_OF_CHAINS", 1.0)
    begun = []
    monkeypatch.setattr(
        "skbayesnn.inference._sampled_fit.run_chains",
        lambda *args: begun.append(list(caplog.messages)) or run_chains(*args),
    )
    HMCMLPRegressor((2,), **(BRIEF | given)).fit(X, Y)
    ((message,),) = begun
    assert message.startswith("fit: this will take about ")
    assert caplog.messages == [message]


@pytest.mark.parametrize("sizes", [(), (4,), (16,)])
@pytest.mark.parametrize("limits", [{}, {"dense": 0}, {"batch_rows": 50, "dense": 0}])
def test_forecasts_in_every_regime(sizes, limits):
    problem = Problem(X, Y[:, None], np.ones(60), Gaussian.per_output(1))
    posterior, settings = problem.posed(sizes)
    limits = settings.limits._replace(batch_steps=300, **limits)
    seconds = seconds_of_start(posterior, settings._replace(limits=limits, max_iter=5))
    assert 0.0 < seconds < 600.0


def test_training_that_may_end_early_is_forecast_at_the_mean_of_its_bounds(monkeypatch):
    """On a logarithmic scale, so that the forecast is within a factor of two of both bounds."""
    monkeypatch.setattr("skbayesnn.inference.minima._search._seconds", lambda function: 1.0)
    problem = Problem(X, Y[:, None], np.ones(60), Gaussian.per_output(1), limits=EARLY_LIMITS)
    held = HeldOut.of(problem)
    all_steps = seconds_of_start(*held.kept.posed((16,)))
    share = seconds_of_start(*held.posed((16,))) / all_steps
    assert 0.5 <= share <= 2.0 * LEAST / EARLY
    assert seconds_of_start(*problem.posed(())) < LEAST


def test_fits_of_many_rows_are_forecast_when_their_size_is_known(monkeypatch, caplog):
    Clock(monkeypatch)
    monkeypatch.setattr("skbayesnn.inference.choice._growth.seconds_of_start", lambda *_: 4.0)
    limits = EARLY_LIMITS._replace(sampled_seconds=0.0, checked_seconds=0.0, chain_work=0.0)
    problem = Problem(X, Y[:, None], np.ones(60), Gaussian.per_output(1), limits=limits)
    options = {"workers": Workers(progress=Progress(0)), "method": "auto"}
    fit_evidence(problem, "auto", 0, 1, "auto", **options)
    (message,) = caplog.messages
    assert message.startswith(f"fit: this will take about {4.0 * AFTER:.0f} s (")


def test_noise_models_are_forecast_by_the_time_before_them(monkeypatch, caplog):
    clock, progress = Clock(monkeypatch), Progress(0)
    clock.now += 9.0
    rows = X[:30], X[:30, :1] ** 5, np.ones(30), Gaussian.per_output(1)
    problem = Problem(*rows, laws=("student_t",))
    fit = fit_evidence(problem, (), 0, 1, "auto", workers=Workers(progress=progress))
    seconds = 9.0 * (1.0 + SECONDS_OF_NOISE * (len(fit.noise_log_evidences) - 1))
    (message,) = caplog.messages
    assert message.startswith(f"fit: this will take about {seconds:.0f} s (")


def test_predictions_of_classes_are_forecast(monkeypatch, caplog):
    monkeypatch.setattr("skbayesnn.predictive._variational.SECONDS", 1.0 / SOFTMAX_POINTS)
    EvidenceMLPClassifier((), random_state=0).fit(X, np.digitize(Y, [-1.0, 1.0]))
    (message,) = caplog.messages
    assert message.startswith(f"fit: this will take about {60 * 3**2 / 60:.0f} minutes (")
