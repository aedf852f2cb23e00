"""How well averages over drawn networks predict: 16 hidden units on the robot arm.

The error of the sampler's averages beside that of the evidence estimator's combination of minima,
of its best minimum, and of a Gaussian process. Run with::

    python tests/benchmarks/samplers.py --sets 10
"""

import argparse

import _data  # noqa: F401, one thread
from problems import robot_arm_error, training_set
from reporting import mean_and_error, print_table, timed_fit
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from skbayesnn import EvidenceMLPRegressor, HMCMLPRegressor


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
    errors = {}
    for name, model in models.items():
        _, seconds = timed_fit(model, X, y)
        errors[name] = float(robot_arm_error(model.predict(X_test), y_test))
        errors[f"{name}, CPU s"] = seconds
    return errors | {"R-hat": models["sampling"].diagnostics_.r_hat}


def main():
    """Print means over training sets."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", type=int, default=10)
    parser.add_argument("--width", type=int, default=16)
    args = parser.parse_args()
    rows = []
    for index in range(args.sets):
        rows.append(robot(index, args.width))
        print({k: round(v, 5) for k, v in rows[-1].items()}, flush=True)
    table = [{"quantity": n, "mean": mean_and_error([r[n] for r in rows], 5)} for n in rows[0]]
    print_table(f"Robot arm, {args.width} hidden units, {len(rows)} training sets", table)


if __name__ == "__main__":
    main()
