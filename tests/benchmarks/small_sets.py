"""Default fits of small sets beside sampled networks of fixed size and models of scikit-learn.

Classes: the first splits of the sets in the folder `SKBAYESNN_DATA` whose names begin with
``cls_``, and of ``immer_glass``. Regression: those of ``yacht``, ``boston``, ``energy`` and
``wilson_*``. ``weak`` are twelve simulated sets of 60 rows with linear log odds; ``tails`` are five
of 100 rows with noise of two degrees of freedom, and five of 60 rows with a tenth of outliers;
``exact`` are functions of one to three inputs at 6 to 12 rows without noise, ``few`` a smooth one
of one to three inputs at 21 to 100 rows with noise. The tables show the log loss or log density of
the test rows, errors (share of wrong classes, or root mean squared error), and processor seconds of
the fit::

    SKBAYESNN_DATA=folder python tests/benchmarks/small_sets.py --models default sampler
    SKBAYESNN_DATA=folder python tests/benchmarks/small_sets.py --kinds weak --models default linear
"""

import argparse
import warnings
from itertools import islice
from time import process_time

import _data  # before numpy
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor, HMCMLPClassifier, HMCMLPRegressor
from skbayesnn.predictive import _combination
from skbayesnn.predictive._combination import stacking_weights

N_SETS, N_ROWS, N_TEST = 12, 60, 3000  # of weak signals
N_TAILS = 5  # sets of each kind with heavy tails
REGRESSIONS = (
    "yacht",
    "boston",
    "energy",
    "wilson_servo",
    "wilson_autompg",
    "wilson_concreteslump",
)
CLASSIFIERS = {
    "default": lambda: EvidenceMLPClassifier(random_state=0),
    "fixed": lambda: EvidenceMLPClassifier((8,), random_state=0),
    "ard": lambda: EvidenceMLPClassifier(prior="ard", random_state=0),
    "linear": lambda: EvidenceMLPClassifier((), random_state=0),
    "sampler": lambda: HMCMLPClassifier((8,), measure_evidence=False, random_state=0),
    "sampler_default": lambda: HMCMLPClassifier(random_state=0),
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "forest": lambda: RandomForestClassifier(min_samples_leaf=2, random_state=0),
}
REGRESSORS = {
    "default": lambda: EvidenceMLPRegressor(random_state=0),
    "fixed": lambda: EvidenceMLPRegressor((8,), random_state=0),
    "ard": lambda: EvidenceMLPRegressor(prior="ard", random_state=0),
    "linear": lambda: EvidenceMLPRegressor((), random_state=0),
    "sampler": lambda: HMCMLPRegressor(
        (8,), noise="constant", measure_evidence=False, random_state=0
    ),
    "sampler_default": lambda: HMCMLPRegressor(random_state=0),
}


def classes(n_splits, names):
    """Name, number of the split, training and test rows of the sets of classes.

    Of sets ``cls_*`` the first 80 % of permutations of ``default_rng(0)`` train.
    """
    for name in sorted(path.stem for path in _data.FOLDER.glob("cls_*.npz")):
        if names and name not in names:
            continue
        data, rng = np.load(_data.FOLDER / f"{name}.npz"), np.random.default_rng(0)
        X, y = data["X"].astype(float), data["y"]
        for i in range(n_splits):
            train, test = np.split(rng.permutation(len(y)), [int(0.8 * len(y))])
            yield name, i, (X[train], y[train]), (X[test], y[test])
    yield from rows_of(["immer_glass"], n_splits, names)


def rows_of(sets, n_splits, names):
    """Name, number of the split, training and test rows of the chosen sets."""
    for name in sets:
        if not names or name in names:
            for i, rows in enumerate(islice(_data.splits(name), n_splits)):
                yield name, i, rows[:2], rows[2:]


def regressions(n_splits, names):
    """As `classes`, of regression sets."""
    return rows_of(REGRESSIONS, n_splits, names)


def weak_signals(n_splits, names):
    """As `classes`, of linear log odds of two of five inputs."""
    for seed in range(N_SETS):
        rng = np.random.default_rng(seed)

        def drawn(n, rng=rng):
            X = rng.normal(size=(n, 5))
            return X, (rng.random(n) < 1 / (1 + np.exp(0.8 * X[:, 1] - X[:, 0]))).astype(int)

        yield "weak", seed, drawn(N_ROWS), drawn(N_TEST)


def heavy_tails(n_splits, names):
    """As `regressions`, of simulated sets with heavy tails and with outliers."""

    def with_tails(n, rng):
        X = rng.uniform(-2, 2, (n, 3))
        f = np.sin(2 * X[:, 0]) * X[:, 1] + 0.5 * X[:, 2]
        return X, f + 0.1 * rng.standard_t(2, n)

    def with_outliers(n, rng):
        X = rng.uniform(-2, 2, (n, 1))
        y = np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(n)
        return X, y + (rng.random(n) < 0.1) * rng.standard_normal(n) * 2

    for name, make, n in (("heavy tails", with_tails, 100), ("outliers", with_outliers, 60)):
        for seed in range(N_TAILS) if not names or name in names else ():
            rng = np.random.default_rng(seed)
            yield name, seed, make(n, rng), make(1000, rng)


FUNCTIONS = {  # number of inputs, and function, on [-1, 1]
    "sine": (1, lambda X: np.sin(3 * X[:, 0])),
    "quadratic": (1, lambda X: X[:, 0] ** 2 - X[:, 0]),
    "exponential": (1, lambda X: np.exp(1.5 * X[:, 0])),
    "step": (1, lambda X: np.tanh(8 * X[:, 0])),
    "bowl": (2, lambda X: X[:, 0] ** 2 + X[:, 1] ** 2),
    "saddle": (2, lambda X: X[:, 0] * X[:, 1] + X[:, 0]),
    "wave": (2, lambda X: np.sin(2 * X[:, 0]) + 0.5 * np.cos(2 * X[:, 1])),
    "plane": (3, lambda X: X @ [1.0, -2.0, 0.5]),
    "mixed": (3, lambda X: X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2])),
}


def exact_rows(n_splits, names):
    """As `regressions`, of few rows without noise."""
    for name, (d, function) in FUNCTIONS.items():
        for n in ((6, 9) if d == 1 else (8, 12)) if not names or name in names else ():
            rng = np.random.default_rng(7 * n + d)
            X, X_test = rng.uniform(-1, 1, (n, d)), rng.uniform(-1, 1, (2000, d))
            yield name, n, (X, function(X)), (X_test, function(X_test))


def few_rows(n_splits, names):
    """As `regressions`, of a sine along the first input and a slope along the last, with noise."""
    for n, d in ((21, 2), (30, 3), (40, 1), (60, 2), (100, 3)):
        rng = np.random.default_rng(0)

        def drawn(n, d=d, rng=rng):
            X = rng.uniform(-2, 2, (n, d))
            noise = 0.2 * rng.standard_normal(n)
            return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, -1] + noise

        yield f"{n} x {d}", 0, drawn(n), drawn(1000)


def class_scores(model, X, y):
    """Log loss and share of wrong classes; a class that did not train has probability 1e-6."""
    n_classes = 1 + int(max(y.max(), model.classes_.max()))
    found = np.full((len(y), n_classes), 1e-6)
    found[:, model.classes_] = np.maximum(model.predict_proba(X), 1e-6)
    return -np.mean(np.log(found[np.arange(len(y)), y])), np.mean(model.predict(X) != y)


def regression_scores(model, X, y):
    """Log density per row and root mean squared error."""
    error = np.sqrt(np.mean((model.predict(X) - y) ** 2))
    return np.mean(model.log_predictive_density(X, y)), error


KINDS = {
    "classes": (classes, CLASSIFIERS, class_scores),
    "weak": (weak_signals, CLASSIFIERS, class_scores),
    "regression": (regressions, REGRESSORS, regression_scores),
    "tails": (heavy_tails, REGRESSORS, regression_scores),
    "exact": (exact_rows, REGRESSORS, regression_scores),
    "few": (few_rows, REGRESSORS, regression_scores),
}


def by_evidence(log_densities, sample_weight, pseudo_count):
    """Refuse stacking: the first model, that of highest evidence, predicts alone."""
    return np.eye(len(log_densities))[0]


def without_pseudo_count(log_densities, sample_weight, pseudo_count):
    """Stack without a pseudo-count."""
    return stacking_weights(log_densities, sample_weight)


SHARES = {"stacking": stacking_weights, "best": by_evidence, "bare": without_pseudo_count}


def scored(make, train, test, scores):
    """Scores on the test rows, processor seconds, and what was chosen."""
    model, begin = make(), process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(*train)
        seconds = process_time() - begin
        first, second = scores(model, *test)
    chosen = f"{getattr(model, 'hidden_layer_sizes_', '')} {getattr(model, 'noise_model_', '')}"
    chosen += f" {getattr(model, 'log_evidence_', np.nan):.1f}"
    if isinstance(model, HMCMLPRegressor | HMCMLPClassifier):
        chosen += f", R-hat {model.diagnostics_.r_hat:.3f}"
    if hasattr(model, "predict_interval"):
        low, high = model.predict_interval(test[0]).T
        chosen += f", {np.mean((low <= test[1]) & (test[1] <= high)):.1%} in 95 % intervals"
    return first, second, seconds, chosen


def main():
    """Print a line for each fit, and means by set and over sets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--models", nargs="+", default=["default", "sampler"])
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--sets", nargs="+", default=())
    parser.add_argument("--shares", choices=SHARES, default="stacking", help="of drawn models")
    options = parser.parse_args()
    _combination.stacking_weights = SHARES[options.shares]
    for kind in options.kinds:
        sets, models, scores = KINDS[kind]
        for name in [name for name in options.models if name in models]:
            found = {}
            for where, i, train, test in sets(options.splits, options.sets):
                *row, chosen = scored(models[name], train, test, scores)
                found.setdefault(where, []).append(row)
                print(
                    f"{name:16s}{where:24s}{i:3d}{row[0]:8.3f}{row[1]:8.3f}{row[2]:7.1f}  {chosen}"
                )
            means = {where: np.mean(rows, axis=0) for where, rows in found.items()}
            for where, row in [*means.items(), ("mean", np.mean(list(means.values()), axis=0))]:
                print(
                    f"{name:16s}{where:24s}   {row[0]:8.3f}{row[1]:8.3f}{row[2]:7.1f}", flush=True
                )


if __name__ == "__main__":
    main()
