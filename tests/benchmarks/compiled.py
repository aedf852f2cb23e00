"""What the compiled core is worth: single calls and whole fits, with it and in NumPy.

Calls are timed in one process, the best of five rounds; fits in processes of their own, one after
the other, in processor seconds of one thread, the median of ``--repeat`` runs. Beside the fits of
one network stands scikit-learn's network on the same rows::

    python tests/benchmarks/compiled.py --calls
    python tests/benchmarks/compiled.py --fits --repeat 3
    SKBAYESNN_DATA=folder python tests/benchmarks/compiled.py --fits concrete airfoil
"""

import argparse
import os
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path
from time import perf_counter, process_time

for name in ("OPENBLAS", "OMP"):
    os.environ.setdefault(f"{name}_NUM_THREADS", "1")

import numpy as np
from reporting import print_table
from robot_arm import training_set
from sklearn.datasets import load_digits, load_iris, make_friedman1, make_moons
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skbayesnn
from skbayesnn.inference import Problem
from skbayesnn.model_selection import EvidenceSearch
from skbayesnn.posterior import Categorical, Gaussian, Hyperparameters

CALLS = [(100, 5, 8, 1), (1000, 8, 16, 1), (1000, 5, 16, 1), (150, 4, 8, 3), (1000, 20, 20, 5)]


def seconds(call, number):
    """Of one call."""
    call()
    rounds = []
    for _ in range(5):
        began = perf_counter()
        for _ in range(number):
            call()
        rounds.append((perf_counter() - began) / number)
    return min(rounds)


def calls():
    """Gradient, Hessian and force of one network in microseconds, in NumPy and compiled."""
    rows = []
    for n, d, width, n_outputs in CALLS:
        rng = np.random.default_rng(0)
        X, y = rng.standard_normal((n, d)), rng.standard_normal((n, n_outputs))
        likelihood = Gaussian.per_output(n_outputs)
        if n_outputs > 1:
            y, likelihood = np.eye(n_outputs)[y.argmax(axis=1)], Categorical()
        problem = Problem(X, y, np.ones(n), likelihood, prior="single")
        row = {"network": f"{n} x {d}, {width} units, {n_outputs} outputs"}
        for way in ("NumPy", "core"):
            posterior = problem.posed((width,)).posterior
            if way == "NumPy":
                vars(posterior)["compiled"] = None
            theta = np.random.default_rng(1).standard_normal(posterior.network.n_weights)
            hyper = Hyperparameters(np.ones(1), np.ones(likelihood.n_levels))
            timed = {
                "gradient": partial(posterior.gradient, theta, hyper),
                "Hessian": partial(posterior.hessian, theta, hyper),
                "force": partial(posterior.bending_force, theta, hyper, theta),
            }
            for what, call in timed.items():
                row[f"{what}, {way}"] = round(1e6 * seconds(call, 20_000 // n))
        rows.append(row)
    print_table("microseconds of one call", rows)


def friedman(n, d):
    """Rows of a smooth function of five of its inputs."""
    return make_friedman1(n, n_features=d, noise=1.0, random_state=0)


def benchmark(name):
    """A data set of the folder that SKBAYESNN_DATA names: training rows of its first split."""
    data = np.load(Path(os.environ["SKBAYESNN_DATA"]) / f"{name}.npz", allow_pickle=True)
    X, y = data["X"], np.ravel(data["y"])
    chosen = np.random.default_rng(0).permutation(len(X))[: int(0.9 * len(X))]
    return X[chosen], y[chosen]


def digits():
    """Handwritten digits, four fifths of them."""
    X, y = load_digits(return_X_y=True)
    return X[:1437], y[:1437]


def plain_network(X, y):
    """One fit of scikit-learn's network."""
    X, y = StandardScaler().fit_transform(X), StandardScaler().fit_transform(y)
    network = MLPRegressor(
        hidden_layer_sizes=(16,), activation="tanh", solver="lbfgs", max_iter=2000, random_state=0
    )
    return network.fit(X, y)


def one_network(n_restarts):
    """The robot arm at constant noise from some starts."""
    model = skbayesnn.EvidenceMLPRegressor(
        (16,), noise="constant", n_restarts=n_restarts, measure_evidence=False, random_state=0
    )
    return model.fit(*training_set(0)[:2])


def sampled_student_t(n, d):
    """Draws and evidence under Student-t noise, of rows that have it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    y = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.standard_t(3, n)
    return skbayesnn.HMCMLPRegressor(noise="student_t", random_state=0).fit(X, y)


def search():
    """Eight widths and two priors by the evidence."""
    widths = [(width,) for width in (2, 3, 4, 6, 8, 10, 12, 16)]
    grid = {"hidden_layer_sizes": widths, "prior": ["layer", "ard"]}
    return EvidenceSearch(REGRESSOR, grid).fit(*friedman(200, 5))


def plain_search():
    """Four widths and four penalties of scikit-learn's network by five-fold cross-validation."""
    network = MLPRegressor(activation="tanh", solver="lbfgs", max_iter=1000, random_state=0)
    grid = {
        "mlpregressor__hidden_layer_sizes": [(4,), (8,), (16,), (32,)],
        "mlpregressor__alpha": [0.01, 0.1, 1.0, 10.0],
    }
    return GridSearchCV(make_pipeline(StandardScaler(), network), grid).fit(*friedman(200, 5))


REGRESSOR = skbayesnn.EvidenceMLPRegressor(random_state=0)
FITS = {
    "arm: scikit-learn": lambda: plain_network(*training_set(0)[:2]),
    "arm, one start": lambda: one_network(1),
    "arm, ten starts": lambda: one_network(10),
    "default, 100 x 5": lambda: REGRESSOR.fit(*friedman(100, 5)),
    "default, 100 x 5, not measured": lambda: REGRESSOR.set_params(measure_evidence=False).fit(
        *friedman(100, 5)
    ),
    "default, 1000 x 8": lambda: REGRESSOR.fit(*friedman(1000, 8)),
    "default, iris": lambda: skbayesnn.EvidenceMLPClassifier(random_state=0).fit(
        *load_iris(return_X_y=True)
    ),
    "sampling, regression, 200 x 5": lambda: skbayesnn.HMCMLPRegressor(random_state=0).fit(
        *friedman(200, 5)
    ),
    "sampling, regression, without evidence": lambda: skbayesnn.HMCMLPRegressor(
        measure_evidence=False, random_state=0
    ).fit(*friedman(200, 5)),
    "sampling, Student-t noise, 21 x 2": lambda: sampled_student_t(21, 2),
    "sampling, Student-t noise, 200 x 5": lambda: sampled_student_t(200, 5),
    "sampling, classes, 250 x 2": lambda: skbayesnn.HMCMLPClassifier(random_state=0).fit(
        *make_moons(250, noise=0.3, random_state=0)
    ),
    "sampling, classes, without evidence": lambda: skbayesnn.HMCMLPClassifier(
        measure_evidence=False, random_state=0
    ).fit(*make_moons(250, noise=0.3, random_state=0)),
    "search, 200 x 5": search,
    "search, 200 x 5: scikit-learn": plain_search,
    "digits": lambda: skbayesnn.EvidenceMLPClassifier(random_state=0).fit(*digits()),
    "concrete": lambda: REGRESSOR.fit(*benchmark("concrete")),
    "airfoil": lambda: REGRESSOR.fit(*benchmark("airfoil")),
}
SLOW = "digits", "concrete", "airfoil"


def fits(names, repeat):
    """Processor seconds of whole fits."""
    rows = []
    for name in names or [name for name in FITS if name not in SLOW]:
        row = {"fit": name}
        for way, setting in (("NumPy", "0"), ("core", "")):
            environment = os.environ | {"SKBAYESNN_COMPILED": setting}
            command = [sys.executable, __file__, "--one", name]
            times = []
            for _ in range(repeat):
                done = subprocess.run(command, env=environment, capture_output=True, check=True)
                times.append(float(done.stdout))
            row[way] = round(np.median(times), 2)
        print(row, flush=True)
        rows.append(row)
    print_table("processor seconds", rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", action="store_true")
    parser.add_argument("--fits", nargs="*", metavar="NAME")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        began = process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            FITS[arguments.one]()
        print(process_time() - began)
        return
    skbayesnn.show_versions()
    if arguments.calls:
        calls()
    if arguments.fits is not None:
        fits(arguments.fits, arguments.repeat)


if __name__ == "__main__":
    main()
