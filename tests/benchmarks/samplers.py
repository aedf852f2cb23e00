"""The samplers: how well chains mix, and how well their averages predict.

``linear``: R-hat and effective sample size (ESS) of outputs at the training rows of classifiers
without hidden layers, with the slice moves of the default sampler and with the rescalings that
other networks have in their place.

``robot``: the error of averaged predictions of 16 hidden units on the robot arm, beside
the evidence estimator's combination of minima, its single minima, and a Gaussian process.

Run with::

    python tests/benchmarks/samplers.py --parts linear --seeds 0 1 2
    python tests/benchmarks/samplers.py --parts robot --sets 10
"""

import argparse
from time import perf_counter, process_time
from unittest.mock import patch

import numpy as np
from inside import draws_of, parts_of, standardised
from problems import robot_arm_error, training_set
from reporting import counted_warnings, mean_and_error, print_table
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from skbayesnn import EvidenceMLPRegressor, HMCMLPClassifier, HMCMLPRegressor
from skbayesnn._threads import blas_threads
from skbayesnn.inference.sampling import _sampling
from skbayesnn.samplers import bulk_ess, r_hat

LINEAR = ("separable", "iris", "iris_60", "wine", "cancer")


def linear_rows(name):
    """Rows of a set to classify without hidden layers."""
    if name == "separable":
        rng = np.random.default_rng(1)
        X = rng.standard_normal((60, 5))
        return X, (X[:, 0] + 0.5 * X[:, 1] > 0.1).astype(int)
    loaders = {"iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer}
    X, y = loaders[name.split("_")[0]](return_X_y=True)
    if name == "iris_60":
        rows = np.random.default_rng(0).permutation(len(y))[:60]
        X, y = X[rows], y[rows]
    return X, y


def linear(name, seed, slices, n_draws):
    """Fit one linear classifier; a row of results."""
    X, y = linear_rows(name)
    model = HMCMLPClassifier((), n_draws=n_draws, measure_evidence=False, random_state=seed)
    served = _sampling.serves_slices if slices else (lambda *args: False)
    cpu = process_time()
    with counted_warnings(), patch.object(_sampling, "serves_slices", served):
        model.fit(X, y)
    cpu = process_time() - cpu
    f = parts_of(model)[0].outputs(standardised(model, X))
    f = f.reshape(model.n_chains, -1, *f.shape[1:])
    if f.shape[-1] > 1:
        f = f - f.mean(axis=-1, keepdims=True)
    alpha = np.log(draws_of(model).alpha)
    least = float(bulk_ess(f).min())
    return {
        "set": name,
        "slices": slices,
        "seed": seed,
        "CPU s": cpu,
        "R-hat": float(max(np.max(r_hat(f)), np.max(r_hat(alpha)))),
        "ESS min": least,
        "ESS alpha": float(bulk_ess(alpha).min()),
        "min/CPU s": least / cpu,
        "mean ln sd": float(-0.5 * alpha.mean()),
    }


def robot(index, width):
    """Errors of all methods on one training set."""
    X, y, X_test, y_test = training_set(index)
    kernel = RBF([1.0, 1.0], (1e-2, 1e3)) + WhiteKernel(1e-3, (1e-6, 1.0))
    models = {
        "sampling": HMCMLPRegressor((width,), measure_evidence=False, random_state=index),
        "evidence, combined": EvidenceMLPRegressor((width,), random_state=index),
        "evidence, best": EvidenceMLPRegressor((width,), combine="best", random_state=index),
        "Gaussian process": GaussianProcessRegressor(
            kernel, n_restarts_optimizer=4, normalize_y=True, random_state=index
        ),
    }
    errors = {"set": index}
    for name, model in models.items():
        start = perf_counter()
        with counted_warnings():
            model.fit(X, y)
        errors[name] = float(robot_arm_error(model.predict(X_test), y_test))
        errors[f"{name}, s"] = perf_counter() - start
    errors["R-hat"] = models["sampling"].diagnostics_.r_hat
    combined = models["evidence, combined"]
    singles = [network_error(network, X_test, y_test) for network in combined.networks_]
    errors["single networks, median"] = float(np.median(singles))
    return errors


def network_error(network, X, exact):
    """Error of one optimised network, from its weights."""
    z = X
    for W, b in zip(network.coefs[:-1], network.intercepts[:-1], strict=True):
        z = np.tanh(z @ W + b)
    return robot_arm_error(z @ network.coefs[-1] + network.intercepts[-1], exact)


def main():
    """Run the chosen parts."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--parts", nargs="+", default=["linear", "robot"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--sets", type=int, default=10)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--only", nargs="+", default=None, help="names of the sets to sample")
    args = parser.parse_args()
    if "linear" in args.parts:
        chosen = [name for name in LINEAR if args.only is None or name in args.only]
        rows = [
            linear(name, seed, slices, args.draws)
            for name in chosen
            for slices in (True, False)
            for seed in args.seeds
        ]
        print_table("How chains of linear classifiers mix", rows)
    if "robot" in args.parts:
        rows = []
        for index in range(args.sets):
            rows.append(robot(index, args.width))
            print({k: round(v, 5) for k, v in rows[-1].items()}, flush=True)
        names = [key for key in rows[0] if key != "set"]
        table = [{"quantity": n, "mean": mean_and_error([r[n] for r in rows], 5)} for n in names]
        print_table(f"Robot arm, {args.width} hidden units, {len(rows)} training sets", table)


if __name__ == "__main__":
    with blas_threads(1):
        main()
