"""Training on batches of rows, and choices by rows held out."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor, HMCMLPRegressor, Prior
from skbayesnn.inference import Limits, Problem, Trouble, own_posterior
from skbayesnn.inference._growth import HeldOut, ranked
from skbayesnn.inference._laplace_fit import seeds_of
from skbayesnn.inference._many_rows_fit import MAX_BEHIND, with_affordable_noise_network
from skbayesnn.inference.minima._search import find_minima
from skbayesnn.posterior import Categorical, Gaussian, LogUniform
from tests.tools import result_of, set_limits

pytestmark = pytest.mark.usefixtures("laplace")

NOISE = 0.2
MANY = Limits(batch_rows=100, batch_rows_per_weight=10**6, early_work=0, batch_steps=3000)


def make_rows(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    y = np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1]
    return X, (y + NOISE * rng.standard_normal(n))[:, None]


def make_problem(n=600, limits=MANY, **options):
    X, y = make_rows(n)
    return Problem(X, y, np.ones(n), Gaussian.per_output(1), limits=limits, **options)


def test_noise_level_and_precisions_are_found():
    problem = make_problem(2000)
    minimum = find_minima(*problem.posed((8,)), seeds_of(1, (8,), 1))[0]
    assert minimum.trouble is Trouble.EARLY
    assert minimum.hyper.beta[0] ** -0.5 == pytest.approx(NOISE, rel=0.05)
    dense = find_minima(*replace(problem, limits=Limits()).posed((8,)), seeds_of(0, (8,), 2))[0]
    assert dense.trouble is None
    # another minimum, and training takes gamma from Kronecker factors as they are
    assert minimum.gamma.sum() == pytest.approx(dense.gamma.sum(), rel=0.4)
    X, y = make_rows(2000, seed=1)
    test = replace(problem, X=X, y=y).posed((8,)).posterior
    errors = [
        own_posterior(test, m).energies(m.theta, np.ones(1)).errors[0] for m in (minimum, dense)
    ]
    assert errors[0] < 1.2 * errors[1]


def test_noise_is_not_fitted_where_weights_outnumber_rows():
    """From a weak prior all noise was fitted, and re-estimation lowered its level without end."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 80))
    y = X @ rng.standard_normal((80, 1)) / 80**0.5 + 0.7 * rng.standard_normal((400, 1))
    problem = Problem(X, y, np.ones(400), Gaussian.per_output(1), limits=MANY)
    minimum = find_minima(*problem.posed((10,)), seeds_of(0, (10,), 1))[0]
    assert minimum.hyper.beta[0] ** -0.5 == pytest.approx(0.7, rel=0.15)  # 4 errors of 400


class TestHeldOut:
    @pytest.mark.parametrize("noise", ["constant", "input_dependent", "student_t"])
    def test_log_density_is_that_of_the_most_probable_weights(self, noise):
        X, y = make_rows(400)
        model = EvidenceMLPRegressor((3,), noise=noise, n_restarts=1, random_state=0)
        model.fit(X, y[:, 0])
        problem, best = result_of(model).problem, result_of(model).best
        held = HeldOut(problem, problem, problem)
        none = model._ensemble.parts[0]
        mean, noise_sd = none.outputs(problem.X)[0], np.sqrt(none.noise.variances(problem.X)[0])
        residual = (problem.y - mean) / noise_sd
        if noise == "student_t":
            nu = best.likelihood.degrees_of_freedom
            scale = np.sqrt((nu - 2) / nu)
            expected = stats.t.logpdf(residual / scale, nu) - np.log(scale * noise_sd)
        else:
            expected = -0.5 * residual**2 - 0.5 * np.log(2 * np.pi * noise_sd**2)
        expected = expected.mean() + problem.log_scale / 400
        assert held.log_density([best, best]) == pytest.approx(expected, abs=2e-3)

    @pytest.mark.parametrize(("n", "n_features"), [(1000, 60), (1033, 60), (1001, 200), (5000, 3)])
    def test_training_rows_are_trained_as_all_rows(self, n, n_features):
        X, y = np.zeros((n, n_features)), np.eye(3)[np.arange(n) % 3]
        problem = Problem(X, y, np.ones(n), Categorical())
        kept = HeldOut.of(problem).kept
        assert len(kept.X) < n
        assert problem.limits.many_rows(problem.likelihood, n, n_features, 3)
        assert kept.limits.many_rows(problem.likelihood, *kept.X.shape, 3)
        own, all_rows = kept.limits.batch_rows, problem.limits.batch_rows
        assert (len(kept.X) >= own) == (n >= all_rows)

    def test_training_ends_where_held_out_rows_are_fitted_best(self):
        rng = np.random.default_rng(0)
        X, y = rng.standard_normal((400, 20)), rng.standard_normal((400, 1))
        y += np.sin(X[:, :1])
        problem = Problem(X, y, np.ones(400), Gaussian.per_output(1), limits=Limits(batch_rows=100))
        held, seeds = HeldOut.of(problem), seeds_of(1, (8,), 1)
        posterior, settings = held.kept.posed((8,))
        rest = held.rest.posed((8,)).posterior

        def trained(**options):
            return find_minima(posterior, settings._replace(**options), seeds)[0]

        best, usual = trained(held_out=rest), trained()
        assert best.n_iter < usual.n_iter
        assert np.all(best.theta == trained(max_iter=best.n_iter).theta)
        highest = held.log_density([best])
        assert highest > held.log_density([usual]) + 0.1
        others = [trained(max_iter=n) for n in range(1, best.n_iter)]
        assert highest >= max(held.log_density([other]) for other in others)


@pytest.mark.parametrize(("n_features", "sizes"), [(2, (8,)), (100, ())])
def test_noise_network_has_fewer_weights_than_rows(n_features, sizes):
    """With 817 weights for 600 squared residuals it would fit their noise."""
    problem = replace(make_problem(600), X=np.zeros((600, n_features)))
    assert with_affordable_noise_network(problem).noise_hidden_layer_sizes == sizes


class TestEstimators:
    @pytest.fixture(
        autouse=True,
        params=[0.0, pytest.param(5e9, marks=pytest.mark.slow)],
        ids=["batches", "damped"],
    )
    def _limits(self, monkeypatch, request):
        few = {"batch_rows_per_weight": 60, "batch_steps": 3000, "early_work": request.param}
        set_limits(monkeypatch, batch_rows=300, **few)

    @pytest.mark.filterwarnings("ignore:log_evidence_ is nan")
    def test_defaults_choose_size_and_noise(self, capsys):
        rng = np.random.default_rng(0)
        X = rng.uniform(-2, 2, (800, 2))
        noise = np.where(X[:, 0] > 0, 0.4, 0.05)
        y = np.sin(2 * X[:, 0]) + noise * rng.standard_normal(800)
        model = EvidenceMLPRegressor(n_restarts=1, random_state=0, verbose=1).fit(X, y)
        out = capsys.readouterr().out
        assert out.count("hidden layers (") == len(model.candidates_)
        assert "input_dependent noise: log density of rows held out" in out
        assert model.noise_model_ == "input_dependent"
        assert all(np.isfinite(c.held_out_log_density) for c in model.candidates_)
        # one start of the best network, and the second-best one
        assert len(model.networks_) == 2
        std = model.predict_std(np.array([[-1.0, 0.0], [1.0, 0.0]]))
        assert std[0] < 0.12
        assert 0.3 < std[1] < 0.5
        assert set(model.evidence_report_.noise_p_values) == {"input_dependent", "student_t"}

    def test_shares_of_networks_without_evidence(self):
        X, y = make_rows(400)
        options = {"n_restarts": 3, "random_state": 0, "noise": "constant"}
        model = EvidenceMLPRegressor((6,), **options).fit(X, y[:, 0])
        shares = np.array([network.weight for network in model.networks_])
        assert len(shares) == 3
        # left-out densities differ by some 0.02 nats per row (of eight seeds at most 0.04)
        assert 0.0 < np.ptp(np.log(shares)) < 2.0
        model.set_params(combine="equal").fit(X, y[:, 0])
        assert [network.weight for network in model.networks_] == pytest.approx([1 / 3] * 3)
        assert np.isnan(model.log_evidence_)
        assert "many rows" in model.evidence_report_.minima[0].verdict

    def test_classes(self):
        X, y = make_rows(600)
        labels = np.digitize(y[:, 0], [-0.5, 0.5])
        model = EvidenceMLPClassifier(n_restarts=1, random_state=0).fit(X, labels)
        assert model.score(X, labels) > 0.8
        best, second, *_ = ranked(model._result.growth)
        assert model.hidden_layer_sizes_ == best.hidden_layer_sizes
        # one start of each of the best networks, if they are near
        is_near = second.merit >= best.merit - MAX_BEHIND
        assert len(model.networks_) == 1 + is_near

    @pytest.mark.parametrize("n_relevant", [2, 20])
    def test_inputs_get_precisions_where_they_differ_in_relevance(self, n_relevant):
        rng = np.random.default_rng(1)
        X = rng.standard_normal((600, 20))
        y = np.sin(X[:, :n_relevant].sum(axis=1) / np.sqrt(n_relevant) * 2)
        y += 0.5 * rng.standard_normal(600)
        model = EvidenceMLPRegressor((6,), n_restarts=1, random_state=0).fit(X, y)
        assert hasattr(model, "input_prior_std_") == (n_relevant == 2)
        assert ("input_x0" in model.weight_group_names_) == (n_relevant == 2)
        given = Prior(hyperprior={"output": LogUniform()})  # of a group of this layout
        of_layers = clone(model).set_params(prior=given).fit(X, y)
        assert "hidden1_weights" in of_layers.weight_group_names_
        kind = Prior._of(HMCMLPRegressor.from_evidence(model).prior).kind
        assert kind == ("ard" if n_relevant == 2 else "auto")
