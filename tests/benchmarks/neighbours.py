"""Models that `side_by_side.py` compares: ours with their defaults, and their neighbours.

A model is ``fit(X, y)``, which returns a function from new inputs to a `Forecast` (regression) or
to class probabilities. Nothing is set per data set. Inputs are standardised by the training rows
wherever a method needs it. Methods without a noise level of their own (networks, forests and
boosting of scikit-learn) get a Gaussian with the root mean square of their residuals on training
rows that were held out (five folds, or out of bag).
"""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor, HMCMLPClassifier, HMCMLPRegressor

N_TREES = 500
BDE = {"hidden_layers": [16, 16], "n_members": 8, "epochs": 200, "patience": 10}
BDE |= {"warmup_steps": 5000, "n_samples": 2000, "n_thinning": 2, "seed": 0}
NUTS = {"hidden": 16, "chains": 4, "warmup": 500, "draws": 500, "max_tree_depth": 8}
LAPLACE = {"n_epochs": 10000, "marglik_frequency": 100, "hessian_structure": "full"}


class Forecast(NamedTuple):
    """Predictions of a regression.

    Attributes
    ----------
    mean : ndarray of shape (n_samples,)
    interval : ndarray of shape (n_samples, 2)
        That should hold 95 % of the targets.
    log_density : callable
        From targets to their log predictive density, both of shape (n_samples,).
    """

    mean: np.ndarray
    interval: np.ndarray
    log_density: callable


def gaussian(mean, std, interval=None):
    """Forecast by a Gaussian for every row."""
    if interval is None:
        interval = np.stack(norm.interval(0.95, mean, std), axis=1)
    return Forecast(mean, interval, lambda y: norm.logpdf(y, mean, std))


# --- ours -----------------------------------------------------------------------------------------


def our_regressor(estimator, **options):
    """Fit of one of our regressors."""

    def fit(X, y):
        model = estimator(random_state=0, **options).fit(X, y)
        return lambda X: Forecast(
            model.predict(X),
            model.predict_interval(X, 0.95),
            lambda y: model.log_predictive_density(X, y),
        )

    return fit


def classifier(make):
    """Fit of anything with `predict_proba`."""

    def fit(X, y):
        return make().fit(X, y).predict_proba

    return fit


def our_classifier(estimator, **options):
    """Fit of one of our classifiers."""
    return classifier(lambda: estimator(random_state=0, **options))


# --- scikit-learn ---------------------------------------------------------------------------------


def kernel(n_inputs):
    """Squared exponential with a length scale per input."""
    return ConstantKernel(1.0, (1e-3, 1e4)) * RBF(np.ones(n_inputs), (1e-2, 1e3))


def gaussian_process(X, y):
    """Squared exponential kernel, a length scale per input, white noise."""
    full = kernel(X.shape[1]) + WhiteKernel(0.1, (1e-8, 10.0))
    process = GaussianProcessRegressor(full, normalize_y=True, random_state=0)
    return with_own_std(make_pipeline(StandardScaler(), process).fit(X, y))


def gaussian_process_classifier(X, y):
    """Squared exponential kernel, a length scale per input; one process per class."""
    process = GaussianProcessClassifier(kernel(X.shape[1]), random_state=0)
    return make_pipeline(StandardScaler(), process).fit(X, y).predict_proba


def bayesian_ridge(X, y):
    """Linear regression."""
    return with_own_std(make_pipeline(StandardScaler(), BayesianRidge()).fit(X, y))


def with_own_std(model):
    """Forecast of a model that returns standard deviations."""
    return lambda X: gaussian(*model.predict(X, return_std=True))


def network_grid(prefix):
    """Widths and weight decay of scikit-learn's networks."""
    sizes, decays = [(16,), (50,), (16, 16)], [1e-3, 1e-2, 1e-1, 1.0]
    return {f"{prefix}hidden_layer_sizes": sizes, f"{prefix}alpha": decays}


def network(X, y):
    """scikit-learn's network; width, depth and weight decay by five-fold cross-validation."""
    net = MLPRegressor(activation="tanh", solver="lbfgs", max_iter=1000, random_state=0)
    model = make_pipeline(
        StandardScaler(), TransformedTargetRegressor(net, transformer=StandardScaler())
    )
    grid = network_grid("transformedtargetregressor__regressor__")
    search = GridSearchCV(model, grid, scoring="neg_mean_squared_error").fit(X, y)
    std = np.sqrt(-search.best_score_)
    return lambda X: gaussian(search.predict(X), std)


def network_classifier(X, y):
    """scikit-learn's network; width, depth and weight decay by five-fold cross-validation."""
    net = MLPClassifier(activation="tanh", solver="lbfgs", max_iter=1000, random_state=0)
    model = make_pipeline(StandardScaler(), net)
    search = GridSearchCV(model, network_grid("mlpclassifier__"), scoring="neg_log_loss")
    return search.fit(X, y).predict_proba


TREES = {"min_samples_leaf": [5, 20], "learning_rate": [0.03, 0.1]}


def boosting(X, y):
    """Mean by squared error, interval by quantiles, density with one noise level."""
    mean = HistGradientBoostingRegressor(random_state=0)
    search = GridSearchCV(mean, TREES, scoring="neg_mean_squared_error").fit(X, y)
    std = np.sqrt(-search.best_score_)
    low, high = (
        clone(search.best_estimator_).set_params(loss="quantile", quantile=q).fit(X, y)
        for q in (0.025, 0.975)
    )

    def forecast(X):
        interval = np.stack([low.predict(X), high.predict(X)], axis=1)
        return gaussian(search.predict(X), std, np.sort(interval, axis=1))

    return forecast


def boosting_classifier(X, y):
    """Boosted trees; leaf size and learning rate by five-fold cross-validation."""
    model = HistGradientBoostingClassifier(random_state=0)
    return GridSearchCV(model, TREES, scoring="neg_log_loss").fit(X, y).predict_proba


def forest(X, y):
    """Random forest; noise from the residuals out of bag."""
    model = RandomForestRegressor(N_TREES, oob_score=True, random_state=0).fit(X, y)
    std = np.sqrt(np.mean((y - model.oob_prediction_) ** 2))
    return lambda X: gaussian(model.predict(X), std)


def forest_classifier(X, y):
    """Random forest, with one more tree that finds all classes equally probable.

    Without that tree a single class that no tree voted for makes the log loss infinite.
    """
    model = RandomForestClassifier(N_TREES, random_state=0).fit(X, y)

    def probabilities(X):
        votes = N_TREES * model.predict_proba(X)
        return (votes + 1 / votes.shape[1]) / (N_TREES + 1)

    return probabilities


# --- other packages -------------------------------------------------------------------------------


def nuts(X, y):
    """NumPyro's NUTS on the network of `numpyro_peer.py`, regression or two classes.

    Trajectories have at most 255 steps, a quarter of NumPyro's default, to save time.
    """
    import jax
    import numpyro
    from numpyro.infer import MCMC
    from numpyro.infer import NUTS as Kernel
    from numpyro_peer import model, test_outputs

    numpyro.enable_x64()
    regression, hidden = y.dtype.kind == "f", NUTS["hidden"]
    centre, scale = (y.mean(), y.std()) if regression else (0.0, 1.0)
    shift, width = X.mean(axis=0), X.std(axis=0)
    targets = ((y - centre) / scale)[:, None] if regression else y
    mcmc = MCMC(
        Kernel(lambda X, y: model(X, y, hidden, regression), max_tree_depth=NUTS["max_tree_depth"]),
        num_warmup=NUTS["warmup"],
        num_samples=NUTS["draws"],
        num_chains=NUTS["chains"],
        chain_method="sequential",
        progress_bar=False,
    )
    mcmc.run(jax.random.PRNGKey(0), (X - shift) / width, targets)
    draws = jax.device_get(mcmc.get_samples(group_by_chain=True))

    def forecast(X):
        outputs = test_outputs(draws, (X - shift) / width, 1, hidden)
        outputs = outputs.reshape(-1, len(X))
        if not regression:
            p = np.mean(1 / (1 + np.exp(-outputs)), axis=0)
            return np.stack([1 - p, p], axis=1)
        noise = scale * np.exp(draws["ln_noise"].reshape(-1, 1))
        return mixture(centre + scale * outputs, noise)

    return forecast


def bde_regressor(X, y):
    """sklearn-contrib-bde: an ensemble of networks, each sampled, with the settings of its manual.

    The noise depends on the inputs.
    """
    from bde import BdeRegressor
    from bde.loss import GaussianNLL

    shift, width, centre, scale = X.mean(axis=0), X.std(axis=0), y.mean(), y.std()
    model = BdeRegressor(loss=GaussianNLL(), **BDE)
    model.fit(((X - shift) / width).astype("float32"), ((y - centre) / scale).astype("float32"))

    def forecast(X):
        raw = np.asarray(model.predict(((X - shift) / width).astype("float32"), raw=True), float)
        means, noise = raw.reshape(-1, len(X), 2).transpose(2, 0, 1)
        noise = np.logaddexp(0.0, noise) + 1e-6  # the package's own link
        return mixture(centre + scale * means, scale * noise)

    return forecast


def bde_classifier(X, y):
    """sklearn-contrib-bde for classes, with the same settings."""
    from bde import BdeClassifier
    from bde.loss import CategoricalCrossEntropy

    shift, width = X.mean(axis=0), X.std(axis=0)
    model = BdeClassifier(loss=CategoricalCrossEntropy(), **BDE)
    model.fit(((X - shift) / width).astype("float32"), y)
    return lambda X: model.predict_proba(((X - shift) / width).astype("float32"))


def laplace(X, y):
    """laplace-torch: a network of 50 tanh units and its training by the marginal likelihood.

    One precision per array of weights and the noise are optimised every 100 steps of Adam, with the
    curvature of all weights; predictions are those of the linearised network, with the probit
    approximation for classes.
    """
    import torch
    from laplace import marglik_training
    from laplace.curvature import BackPackGGN
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    regression, classes = y.dtype.kind == "f", np.unique(y)
    centre, scale = (y.mean(), y.std()) if regression else (0.0, 1.0)
    shift, width = X.mean(axis=0), X.std(axis=0)
    targets = ((y - centre) / scale)[:, None] if regression else np.searchsorted(classes, y)
    rows = TensorDataset(torch.tensor((X - shift) / width), torch.tensor(targets))
    hidden, n_outputs = torch.nn.Linear(X.shape[1], 50), 1 if regression else len(classes)
    net = torch.nn.Sequential(hidden, torch.nn.Tanh(), torch.nn.Linear(50, n_outputs)).double()
    posterior, *_ = marglik_training(
        net,
        DataLoader(rows, batch_size=None, sampler=[slice(None)]),  # all rows at once
        "regression" if regression else "classification",
        backend=BackPackGGN,
        optimizer_kwargs={"lr": 1e-2},
        scheduler_cls=torch.optim.lr_scheduler.CosineAnnealingLR,
        scheduler_kwargs={"T_max": LAPLACE["n_epochs"]},
        **LAPLACE,
    )

    def forecast(X):
        X = torch.tensor((X - shift) / width)
        if not regression:
            return posterior(X, pred_type="glm", link_approx="probit").numpy()
        mean, variance = (a.numpy().reshape(len(X)) for a in posterior(X, pred_type="glm"))
        std = np.sqrt(variance + posterior.sigma_noise.item() ** 2)
        return gaussian(centre + scale * mean, scale * std)

    return forecast


def mixture(means, stds):
    """Forecast by an equal mixture of Gaussians; arrays of shape (n_draws, n_samples)."""

    def log_density(y):
        return logsumexp(norm.logpdf(y, means, stds), axis=0) - np.log(len(means))

    noise = np.random.default_rng(0).standard_normal((20, *means.shape))
    interval = np.quantile(means + stds * noise, [0.025, 0.975], axis=(0, 1)).T
    return Forecast(means.mean(axis=0), interval, log_density)


REGRESSORS = {
    "evidence": our_regressor(EvidenceMLPRegressor),
    "hmc": our_regressor(HMCMLPRegressor),
    "gaussian process": gaussian_process,
    "mlp grid": network,
    "boosting": boosting,
    "forest": forest,
    "linear": bayesian_ridge,
    "nuts": nuts,
    "bde": bde_regressor,
    "laplace": laplace,
}

CLASSIFIERS = {
    "evidence": our_classifier(EvidenceMLPClassifier),
    "hmc": our_classifier(HMCMLPClassifier),
    "gaussian process": gaussian_process_classifier,
    "mlp grid": network_classifier,
    "boosting": boosting_classifier,
    "forest": forest_classifier,
    "linear": classifier(lambda: make_pipeline(StandardScaler(), LogisticRegression())),
    "nuts": nuts,
    "bde": bde_classifier,
    "laplace": laplace,
}

PACKAGES = {
    "nuts": ("numpyro", "jax"),
    "bde": ("bde", "jax"),
    "laplace": ("laplace", "torch"),
}  # what a model needs besides scikit-learn
