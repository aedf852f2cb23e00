"""Bayesian optimisation: simple regret after 30 evaluations of five standard functions.

`skbayesnn.active_learning.suggest` with a wide sampled network, beside a Gaussian process of
scikit-learn (Matern 5/2 with a length scale per input and free noise) with the same suggestions:
expected improvement, 1,024 quasi-random candidates, the best improved locally. The functions have
no noise: the Gaussian process infers its own, and the network is told to expect a ten-thousandth of
the spread of the targets, the least that the process may have. Each run starts with ``2 d + 1``
points of a Latin hypercube, the same for both::

    python tests/benchmarks/optimisation.py --repetitions 3 --functions branin step
"""

import argparse
import warnings
from time import process_time

import _data  # noqa: F401, one thread
import numpy as np
from reporting import print_table, write_csv
from scipy.stats import qmc
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from skbayesnn import EvidenceMLPRegressor
from skbayesnn.active_learning import log_expected_improvement, suggest

N_EVALUATIONS = 30
ALPHA = np.array([1.0, 1.2, 3.0, 3.2])
HARTMANN = {
    3: (
        [[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]],
        [
            [0.3689, 0.1170, 0.2673],
            [0.4699, 0.4387, 0.7470],
            [0.1091, 0.8732, 0.5547],
            [0.0381, 0.5743, 0.8828],
        ],
        3.86278,
    ),
    6: (
        [
            [10, 3, 17, 3.5, 1.7, 8],
            [0.05, 10, 17, 0.1, 8, 14],
            [3, 3.5, 1.7, 10, 17, 8],
            [17, 8, 0.05, 10, 0.1, 14],
        ],
        [
            [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
            [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
            [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
            [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
        ],
        3.32237,
    ),
}


def branin(X):
    """Minus Branin's function on the unit square; its maximum is -0.397887."""
    x, y = 15 * X[:, 0] - 5, 15 * X[:, 1]
    valley = y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6
    return -(valley**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10)


def hartmann(d):
    """Hartmann's function of 3 or 6 inputs."""
    widths, places, _ = HARTMANN[d]

    def function(X):
        distances = np.sum(np.array(widths) * (X[:, None] - np.array(places)) ** 2, axis=-1)
        return np.exp(-distances) @ ALPHA

    return function


def ackley(X):
    """Minus Ackley's function of 5 inputs within -10 and 10; the optimum is off the centre."""
    X = 20 * X - 13
    ripples = np.exp(np.mean(np.cos(2 * np.pi * X), axis=1))
    return 20 * np.exp(-0.2 * np.sqrt(np.mean(X**2, axis=1))) + ripples - 20 - np.e


def step(X):
    """A plateau of height 1 with a slope on it, in a third of the unit square."""
    high = X[:, 0] + 0.5 * X[:, 1] > 0.9
    return high * (1.0 + 0.3 * (1 - (X[:, 0] - 0.9) ** 2 - (X[:, 1] - 0.4) ** 2))


FUNCTIONS = {  # function, number of inputs, maximum
    "branin": (branin, 2, -0.397887),
    "hartmann 3": (hartmann(3), 3, HARTMANN[3][2]),
    "hartmann 6": (hartmann(6), 6, HARTMANN[6][2]),
    "ackley 5": (ackley, 5, 0.0),
    "step": (step, 2, 1.3),
}


def by_network(X, y, seed):
    """Next row by this library."""
    model = EvidenceMLPRegressor(prior="ard", noise=1e-4 * np.std(y), random_state=seed).fit(X, y)
    return suggest(model, [(0.0, 1.0)] * X.shape[1], random_state=seed)[0]


def by_process(X, y, seed):
    """Next row by a Gaussian process."""
    kernel = ConstantKernel(1.0) * Matern(np.full(X.shape[1], 0.3), nu=2.5)
    kernel = kernel + WhiteKernel(1e-4, (1e-8, 1.0))
    model = GaussianProcessRegressor(
        kernel, normalize_y=True, n_restarts_optimizer=2, random_state=seed
    ).fit(X, y)
    best = np.max(model.predict(X))

    def score(rows):
        mean, std = model.predict(rows, return_std=True)
        return log_expected_improvement(mean, std, best)

    pool = qmc.Sobol(X.shape[1], rng=np.random.default_rng(seed)).random_base2(10)
    x = pool[np.argmax(score(pool))]
    rng, width = np.random.default_rng(seed), 0.1
    for _ in range(6):  # shrinking clouds around the best candidate
        cloud = np.clip(x + width * rng.standard_normal((256, len(x))), 0.0, 1.0)
        cloud = np.vstack([x, cloud])
        x, width = cloud[np.argmax(score(cloud))], 0.4 * width
    return x


METHODS = {"network": by_network, "gaussian process": by_process}


def regret(function, d, maximum, method, seed):
    """Simple regret of one run, and its processor seconds."""
    X = qmc.LatinHypercube(d, rng=seed).random(2 * d + 1)
    y, begin = function(X), process_time()
    while len(y) < N_EVALUATIONS:
        X = np.vstack([X, method(X, y, seed)])
        y = np.append(y, function(X[-1:]))
    return maximum - y.max(), process_time() - begin


def main():
    """Print a table of regrets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--functions", nargs="+", default=list(FUNCTIONS), choices=FUNCTIONS)
    parser.add_argument("--csv", help="file for the regret of every run")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rows, single = [], []
    for name in args.functions:
        for label, method in METHODS.items():
            runs = [regret(*FUNCTIONS[name], method, seed) for seed in range(args.repetitions)]
            regrets, seconds = np.transpose(runs)
            single += [
                {"function": name, "model": label, "seed": seed, "regret": run[0], "cpu_s": run[1]}
                for seed, run in enumerate(runs)
            ]
            low, middle, high = np.quantile(regrets, [0.25, 0.5, 0.75])
            rows.append(
                {
                    "function": name,
                    "model": label,
                    "median regret": f"{middle:.4f}",
                    "quartiles": f"{low:.4f} to {high:.4f}",
                    "CPU s": f"{np.mean(seconds):.0f}",
                }
            )
    if args.csv:
        write_csv(args.csv, single)
    print_table(f"Simple regret after {N_EVALUATIONS} evaluations", rows)


if __name__ == "__main__":
    main()
