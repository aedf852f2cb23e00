"""Speed and memory of our estimators and of the peers, on one thread (BLAS too), in one run.

Repetitions of all methods take turns, so that a machine that slows down slows all of them; times
are medians. Run with::

    python tests/benchmarks/speed.py
    python tests/benchmarks/speed.py --parts robot --match ours --repetitions 3

Parts: ``robot`` (robot arm, 16 hidden units), ``hessian`` (2,000 weights on 10,000 rows against
``J.T @ J``), ``digits`` and ``memory``. laplace-torch takes part where it can be imported.
"""

import os

for _name in ("OPENBLAS", "OMP", "MKL", "BLIS", "NUMEXPR"):
    os.environ[f"{_name}_NUM_THREADS"] = "1"  # before numpy is imported
os.environ["VECLIB_MAXIMUM_THREADS"] = "1"

import argparse
import subprocess
import sys
from importlib.util import find_spec
from statistics import median
from time import perf_counter

import numpy as np
from problems import robot_arm
from reporting import counted_warnings, print_table
from robot_arm import gaussian_process, grid_search

HIDDEN = 16


def race(jobs, args):
    """Time jobs in turns.

    Parameters
    ----------
    jobs : dict
        Name to a function of the repetition's number that does the work and returns a remark.
        Names that end with ``*`` are slow ones, repeated less.

    Returns
    -------
    list of dict
    """
    chosen = {name: job for name, job in jobs.items() if args.match in name}
    times, remarks = {name: [] for name in chosen}, {}
    for repetition in range(args.repetitions):
        for name, job in chosen.items():
            if name.endswith("*") and repetition >= args.slow_repetitions:
                continue
            with counted_warnings():
                start = perf_counter()
                remarks[name] = job(repetition)
                times[name].append(perf_counter() - start)
    return [
        {
            "method": name.rstrip(" *"),
            "median s": median(values),
            "fastest s": min(values),
            "slowest s": max(values),
            "repetitions": len(values),
            "remark": remarks[name],
        }
        for name, values in times.items()
        if values
    ]


def robot_jobs():
    """Fits of the robot arm's 200 rows; the remark is the test error on 1000 noisy rows."""
    from sklearn.neural_network import MLPRegressor

    rng = np.random.default_rng(0)
    X, y = robot_arm(200, rng)
    X_test, y_test = robot_arm(1000, rng)

    def fit(make):
        def job(repetition):
            predicted = make(repetition).fit(X, y).predict(X_test)
            error = np.mean(np.sum((predicted - y_test) ** 2, axis=1))
            return f"error {error:.5f}"

        return job

    def ours(n_restarts):
        def make(seed):
            from skbayesnn import EvidenceMLPRegressor

            return EvidenceMLPRegressor((HIDDEN,), n_restarts=n_restarts, random_state=seed)

        return make

    def mlp(activation):
        return lambda seed: MLPRegressor(
            hidden_layer_sizes=(HIDDEN,),
            activation=activation,
            solver="lbfgs",
            max_iter=2000,
            random_state=seed,
        )

    jobs = {
        "ours, 1 start": fit(ours(1)),
        "MLPRegressor relu": fit(mlp("relu")),
        "MLPRegressor tanh": fit(mlp("tanh")),
        "ours, 10 starts": fit(ours(10)),
        "GP, 5 starts": fit(gaussian_process),
        "MLPRegressor relu, grid search *": fit(grid_search("relu")),
    }
    if find_spec("laplace") and find_spec("torch"):
        jobs["laplace-torch marglik_training *"] = fit(LaplaceTorch)
    else:
        print("laplace-torch cannot be imported: left out")
    return jobs


class LaplaceTorch:
    """laplace-torch's evidence training of the same network: full matrix, layerwise prior."""

    def __init__(self, seed, n_epochs=500):
        self.seed = seed
        self.n_epochs = n_epochs

    def fit(self, X, y):
        """Train the network, its prior precisions and its noise level."""
        import torch
        from laplace import marglik_training

        torch.set_num_threads(1)
        torch.manual_seed(self.seed)
        data = torch.utils.data.TensorDataset(
            torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(y, dtype=torch.float32)
        )
        network = torch.nn.Sequential(
            torch.nn.Linear(X.shape[1], HIDDEN),
            torch.nn.Tanh(),
            torch.nn.Linear(HIDDEN, y.shape[1]),
        )
        self.posterior_, self.network_, _, _ = marglik_training(
            network,
            torch.utils.data.DataLoader(data, batch_size=len(X)),
            likelihood="regression",
            hessian_structure="full",
            optimizer_kwargs={"lr": 1e-2},
            n_epochs=self.n_epochs,
        )
        return self

    def predict(self, X):
        """Mean prediction."""
        import torch

        with torch.no_grad():
            return self.network_(torch.as_tensor(X, dtype=torch.float32)).numpy()


def hessian_jobs():
    """Exact Hessian of the energy, and ``J.T @ J`` with the Jacobian already at hand."""
    from skbayesnn.network import Network, forward, jacobian
    from skbayesnn.posterior import Gaussian, Hyperparameters, Posterior, weight_groups

    jobs = {}
    rng = np.random.default_rng(0)
    for sizes in [(38, 50, 1), (20, 35, 35, 1)]:
        network = Network(sizes)
        X = rng.standard_normal((10_000, sizes[0]))
        y = rng.standard_normal((10_000, 1))
        theta = 0.3 * rng.standard_normal(network.n_weights)
        groups = weight_groups(network, "single")
        posterior = Posterior(network, Gaussian.per_output(1), groups, X, y, np.ones(len(X)))
        J = jacobian(forward(network, theta, X, 1))[:, 0]
        hyper = Hyperparameters(np.ones(1), np.ones(1))

        def exact(_, posterior=posterior, theta=theta, hyper=hyper):
            posterior.hessian(theta, hyper)
            return f"{len(theta)} weights"

        def outer(_, J=J):
            J.T @ J
            return f"{J.shape[1]} weights"

        jobs[f"exact Hessian {sizes}"] = exact
        jobs[f"J.T @ J alone {sizes}"] = outer
    return jobs


def digits_jobs():
    """Ten classes, 64 inputs, 1437 rows; the remark is the test accuracy."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPClassifier

    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X / 16.0, y, test_size=0.2, random_state=0)

    def fit(make):
        return lambda seed: f"accuracy {make(seed).fit(X, y).score(X_test, y_test):.4f}"

    def ours(seed):
        from skbayesnn import EvidenceMLPClassifier

        return EvidenceMLPClassifier((32,), n_restarts=1, random_state=seed)

    def mlp(seed):
        return MLPClassifier(hidden_layer_sizes=(32,), random_state=seed)

    return {"MLPClassifier, defaults": fit(mlp), "ours, 1 start *": fit(ours)}


def memory_rows(args):
    """Peak memory and time of fits in processes of their own."""
    rows = []
    for n_rows in args.memory_rows:
        command = [sys.executable, __file__, "--memory-child", str(n_rows)]
        command += ["--memory-max-iter", str(args.memory_max_iter)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(done.stderr)
            continue
        fit_s, predict_s, before, peak = map(float, done.stdout.split()[-4:])
        rows.append(
            {
                "rows": n_rows,
                "fit s": fit_s,
                "predict with std s": predict_s,
                "s per 1000 rows": 1e3 * fit_s / n_rows,
                "MB with the data, before": before,
                "peak MB": peak,
            }
        )
    return rows


def memory_child(n_rows, max_iter):
    """Fit 20 inputs and 50 hidden units; print seconds and megabytes."""
    from skbayesnn import EvidenceMLPRegressor, Solver

    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 20))
    y = np.sin(X[:, 0]) * X[:, 1] + np.tanh(X[:, 2] + X[:, 3]) + 0.1 * rng.standard_normal(n_rows)
    before = peak_megabytes()
    with counted_warnings():
        start = perf_counter()
        model = EvidenceMLPRegressor(
            (50,), n_restarts=1, solver=Solver(max_iter=max_iter), random_state=0
        )
        model.fit(X, y)
        middle = perf_counter()
        model.predict(X, return_std=True)
    print(middle - start, perf_counter() - middle, before, peak_megabytes())


def peak_megabytes():
    """Largest resident memory of this process so far."""
    import resource

    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kilobytes on Linux
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


PARTS = {
    "robot": ("Robot arm, 200 rows, 16 hidden units", robot_jobs),
    "hessian": ("Hessian of some 2,000 weights on 10,000 rows", hessian_jobs),
    "digits": ("Digits, 1437 rows, 64 inputs, 10 classes, 32 hidden units", digits_jobs),
}


def main():
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--parts", nargs="+", choices=[*PARTS, "memory"], default=None)
    parser.add_argument("--match", default="", help="only methods whose name contains this")
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--slow-repetitions", type=int, default=3)
    parser.add_argument("--memory-rows", type=int, nargs="+", default=[25_000, 50_000, 100_000])
    parser.add_argument("--memory-max-iter", type=int, default=20)
    parser.add_argument("--memory-child", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.memory_child:
        memory_child(args.memory_child, args.memory_max_iter)
        return
    parts = args.parts or [*PARTS, "memory"]
    for part in parts:
        if part == "memory":
            print_table("Memory: 20 inputs, 50 hidden units", memory_rows(args))
        else:
            title, jobs = PARTS[part]
            print_table(title, race(jobs(), args))


if __name__ == "__main__":
    main()
