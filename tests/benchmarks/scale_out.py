"""Time of a search and of a fit: one process, two, two workers of Dask, two of Ray.

Every way must find the same to the last bit. Clusters are started before the clock is. Backends
that are not installed are left out::

    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python tests/benchmarks/scale_out.py
    python tests/benchmarks/scale_out.py --rows 100 --repeat 1   # quickly
"""

import argparse
import csv
import logging
import warnings
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter

import joblib
import numpy as np

from skbayesnn import EvidenceMLPRegressor
from skbayesnn.model_selection import EvidenceSearch

RESULTS = Path(__file__).parent / "results" / "scale_out.csv"
N_WORKERS = 2
GRID = {"hidden_layer_sizes": [(2,), (4,), (6,), (8,)], "prior": ["layer", "ard"]}


@contextmanager
def one_process():
    """As it is by default."""
    yield 1


@contextmanager
def processes():
    """Those of joblib."""
    with joblib.parallel_config("loky"):
        yield N_WORKERS


@contextmanager
def dask():
    """A cluster on this machine."""
    from distributed import Client, LocalCluster

    options = {"n_workers": N_WORKERS, "threads_per_worker": 1, "dashboard_address": None}
    with ExitStack() as stack:
        cluster = stack.enter_context(LocalCluster(silence_logs=logging.ERROR, **options))
        stack.enter_context(Client(cluster))
        stack.enter_context(joblib.parallel_config("dask"))
        yield N_WORKERS


@contextmanager
def ray():
    """The same."""
    import ray as library
    from ray.util.joblib import register_ray

    library.init(num_cpus=N_WORKERS, include_dashboard=False, log_to_driver=False)
    try:
        register_ray()
        with joblib.parallel_config("ray"):
            yield N_WORKERS
    finally:
        library.shutdown()


WAYS = {"one process": one_process, "two processes": processes}
WAYS |= {name: way for name, way in (("dask", dask), ("ray", ray)) if find_spec(name)}


def tasks(n_rows):
    """A search of eight candidates, a fit from eight starts, and their data."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (n_rows, 5))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2] + 0.2 * rng.standard_normal(n_rows)
    plain = {"noise": "constant", "measure_evidence": False, "random_state": 0}
    model = EvidenceMLPRegressor(n_restarts=4, n_jobs=1, **plain)  # a candidate is one task
    starts = EvidenceMLPRegressor((8,), n_restarts=8, **plain)
    return {"search": EvidenceSearch(model, GRID), "starts": starts}, X, y


def timed(model, X, y, n_jobs, repeat):
    """Seconds of every fit, and what must be the same everywhere; a first fit wakes the workers."""
    model.set_params(n_jobs=n_jobs)
    seconds = []
    for _ in range(repeat + 1):
        begun = perf_counter()
        model.fit(X, y)
        seconds.append(perf_counter() - begun)
    return seconds[1:], model.predict(X, return_std=True)


def main(n_rows, repeat, output):
    """Print a table, and write the rows."""
    models, X, y = tasks(n_rows)
    rows, first = [], {}
    for way, context in WAYS.items():
        with context() as n_jobs:
            for name, model in models.items():
                seconds, found = timed(model, X, y, n_jobs, repeat)
                same = np.array_equal(found, first.setdefault(name, found))
                rows.append((name, way, n_rows, median(seconds), same))
                print(f"{name:8} {way:14} {median(seconds):7.2f} s, same: {same}", flush=True)
    alone = {name: seconds for name, way, _, seconds, _ in rows if way == "one process"}
    print("\n| task | way | seconds | times as fast | same result |\n|---|---|---|---|---|")
    for name, way, _, seconds, same in rows:
        print(f"| {name} | {way} | {seconds:.1f} | {alone[name] / seconds:.2f} | {same} |")
    with open(output, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["task", "way", "rows", "seconds", "speed_up", "same"])
        for name, way, n, seconds, same in rows:
            speed_up = f"{alone[name] / seconds:.3f}"
            writer.writerow([name, way, n, f"{seconds:.3f}", speed_up, same])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--output", default=RESULTS)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    main(args.rows, args.repeat, args.output)
