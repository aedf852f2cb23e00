"""Which size of network, and which way to combine minima, predict best by default.

The data are bundled with scikit-learn or generated, and are no part of the published comparisons:
the defaults are chosen here and judged there. Networks with one layer of 16 units and networks that
choose their size (``hidden_layer_sizes="auto"``) are fitted once to each set, and their minima
predict together in all ways that ``combine`` offers. One table for regression, one for
classification: test log density per row in nats, sums over the sets last, and processor seconds of
the fit. With ``--noise`` the noise models instead: densities, root mean squared errors, and the p
values by which ``noise="auto"`` tells whether others are worth trying. Run with::

    python tests/benchmarks/defaults.py
    python tests/benchmarks/defaults.py --sets moons friedman_300
    python tests/benchmarks/defaults.py --noise
"""

import argparse
from functools import partial
from time import process_time

import _data  # noqa: F401, one thread
import numpy as np
from reporting import counted_warnings, print_table
from scipy.ndimage import gaussian_filter
from sklearn import datasets
from sklearn.base import is_classifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from skbayesnn import (
    EvidenceMLPClassifier,
    EvidenceMLPRegressor,
)

SIZES = {"16": (16,), "auto": "auto"}
COMBINATIONS = ("best", "evidence", "equal", "stacking", "tempered")
NOISES = "constant", "auto"
N_TEST = 2000  # rows of generated data that are not for training


# --- data -----------------------------------------------------------------------------------------


def bundled(loader, target=None, columns=slice(None)):
    """A data set of scikit-learn; one of its columns may be the target."""
    X, y = getattr(datasets, f"load_{loader}")(return_X_y=True)
    if target is not None:
        X, y = np.delete(X, target, axis=1), X[:, target[0]]
    return X[:, columns], y


def image():
    """Brightness of a blurred photograph at points of it."""
    rng = np.random.default_rng(3)
    picture = datasets.load_sample_image("china.jpg")[100:400, 150:450].mean(axis=2) / 255
    points = rng.integers(0, 300, (1000 + N_TEST, 2))
    y = gaussian_filter(picture, 6)[points[:, 0], points[:, 1]]
    return points.astype(float), y + 0.01 * rng.standard_normal(len(y))


def function_of_functions(seed, n):
    """What a network with two hidden layers of five units draws."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n + N_TEST, 6))
    first = np.tanh(1.2 * X @ rng.standard_normal((6, 5)) + rng.standard_normal(5))
    second = np.tanh(1.5 * first @ rng.standard_normal((5, 5)))
    return X, second @ rng.standard_normal(5) + 0.05 * rng.standard_normal(len(X))


def steps(n):
    """Kinks and jumps, which no smooth function has."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n + N_TEST, 5))
    y = np.abs(X[:, 0] + X[:, 1]) * np.sin(3 * X[:, 2]) + np.where(X[:, 3] > 0.2, X[:, 4], -X[:, 0])
    return X, y + 0.1 * rng.standard_normal(len(X))


def sine(n, noise, seed):
    """One input, few rows."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n + N_TEST, 1))
    return X, np.sin(1.5 * X[:, 0]) + noise * rng.standard_normal(len(X))


def spirals():
    """Three classes that wind around each other."""
    rng = np.random.default_rng(1)
    y, radius = rng.integers(0, 3, N_TEST), rng.uniform(0.3, 2.2, N_TEST)
    angle = 2.2 * radius + y * 2 * np.pi / 3
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    return X + 0.15 * rng.standard_normal((N_TEST, 2)), y


def generated(name, **options):
    """One of scikit-learn's generators."""
    return getattr(datasets, f"make_{name}")(random_state=1, **options)


def clusters(n, n_features, n_informative, flip_y, **options):
    """Classes of several Gaussian clusters."""
    given = {"n_features": n_features, "n_informative": n_informative, "flip_y": flip_y}
    return generated("classification", n_samples=n + N_TEST, **given, **options)


SHELLS = {"n_samples": 250 + N_TEST, "n_features": 4, "n_classes": 3}
REGRESSION = {  # name: data, training rows
    "sine_20": (partial(sine, 20, 0.1, 0), 20),
    "sine_40": (partial(sine, 40, 0.1, 2), 40),
    "friedman_60": (partial(generated, "friedman1", n_samples=60 + N_TEST, noise=1.0), 60),
    "friedman_300": (partial(generated, "friedman1", n_samples=300 + N_TEST, noise=1.0), 300),
    "friedman2_300": (partial(generated, "friedman2", n_samples=300 + N_TEST, noise=30.0), 300),
    "friedman3_600": (partial(generated, "friedman3", n_samples=600 + N_TEST, noise=0.05), 600),
    "diabetes": (partial(bundled, "diabetes"), 300),
    "area": (partial(bundled, "breast_cancer", [3, 13, 23], slice(10)), 400),
    "dimension": (partial(bundled, "breast_cancer", [9, 19, 29], slice(14)), 400),
    "proline": (partial(bundled, "wine", [12]), 120),
    "image": (image, 1000),
    "functions_500": (partial(function_of_functions, 0, 500), 500),
    "functions_1000": (partial(function_of_functions, 1, 1000), 1000),
    "steps": (partial(steps, 500), 500),
}
CLASSES = {
    "iris": (partial(bundled, "iris"), 75),
    "wine": (partial(bundled, "wine"), 90),
    "cancer": (partial(bundled, "breast_cancer"), 250),
    "cancer_6": (partial(bundled, "breast_cancer", None, slice(6)), 200),
    "digits": (partial(bundled, "digits", None, slice(8, 56, 2)), 400),
    "moons": (partial(generated, "moons", n_samples=200 + N_TEST, noise=0.3), 200),
    "spirals": (spirals, 250),
    "clusters_2": (partial(clusters, 200, 8, 4, 0.1, n_redundant=0, n_clusters_per_class=3), 200),
    "clusters_4": (partial(clusters, 300, 10, 5, 0.05, n_classes=4), 300),
    "shells": (partial(generated, "gaussian_quantiles", **SHELLS), 250),
}


# --- measurements ---------------------------------------------------------------------------------


class Remembering:
    """Searches for minima once, so that several ways to combine them can be compared."""

    def _infer(self, *given):
        if not hasattr(self, "found"):
            self.found = super()._infer(*given)
        return self.found


class RememberingRegressor(Remembering, EvidenceMLPRegressor):
    """For densities of targets."""

    __init__ = EvidenceMLPRegressor.__init__


class RememberingClassifier(Remembering, EvidenceMLPClassifier):
    """For probabilities of classes."""

    __init__ = EvidenceMLPClassifier.__init__


def quality(model, X, y):
    """Mean log density, or minus the log loss."""
    if is_classifier(model):
        return -float(log_loss(y, model.predict_proba(X), labels=model.classes_))
    return float(np.mean(model.log_predictive_density(X, y)))


def fitted(model, X, y):
    """The model and processor seconds of its fit."""
    start = process_time()
    with counted_warnings():
        model.fit(X, y)
    return model, process_time() - start


def combinations(estimator, X, y, X_test, y_test):
    """Sizes of networks, and ways to combine their minima."""
    row = {}
    for label, sizes in SIZES.items():
        model = estimator(sizes, random_state=0)
        for combine in COMBINATIONS:
            model, seconds = fitted(model.set_params(combine=combine), X, y)
            row.setdefault(f"{label} s", seconds)
            row[f"{label} {combine}"] = quality(model, X_test, y_test)
    return row | {"chosen": "x".join(map(str, model.hidden_layer_sizes_)) or "linear"}


def noise_models(estimator, X, y, X_test, y_test):
    """Noise that is constant, or the choice of the evidence."""
    row = {}
    for noise in NOISES:
        model, seconds = fitted(estimator(noise=noise, random_state=0), X, y)
        row[noise] = quality(model, X_test, y_test)
        row[f"{noise} RMSE"] = float(np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)))
        row[f"{noise} s"] = seconds
        if noise == "constant":
            row |= {f"p ({n})": p for n, p in model.evidence_report_.noise_p_values.items()}
    return row | {"chosen": model.noise_model_}


def rows_of(problems, names, compare, estimator):
    """A row for every set, and the sums."""
    rows = []
    for name in (n for n in problems if n in names):
        load, n_train = problems[name]
        X, y = load()
        X, X_test, y, y_test = train_test_split(
            X, y, train_size=n_train, random_state=0, stratify=y if problems is CLASSES else None
        )
        row = {"data": name, "rows": n_train} | compare(estimator, X, y, X_test, y_test)
        rows.append(row)
        print(row, flush=True)
    words = {"data": "sum", "chosen": ""}
    total = {key: sum(row[key] for row in rows) for key in rows[0] if key not in words}
    return [*rows, {key: words.get(key, total.get(key)) for key in rows[0]}]


def main():
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", nargs="+", choices=[*REGRESSION, *CLASSES])
    parser.add_argument("--noise", action="store_true", help="noise models, regression only")
    args = parser.parse_args()
    compare, regressor, classifier = combinations, RememberingRegressor, RememberingClassifier
    tables = [("regression", REGRESSION, regressor), ("classification", CLASSES, classifier)]
    if args.noise:
        compare, tables = noise_models, [("noise models", REGRESSION, EvidenceMLPRegressor)]
    for title, problems, estimator in tables:
        names = [name for name in problems if args.sets is None or name in args.sets]
        if names:
            print_table(title, rows_of(problems, names, compare, estimator))


if __name__ == "__main__":
    main()
