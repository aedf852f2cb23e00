"""The evidence of small problems against long sampling.

Thirty-four problems of 20 to 80 rows. For each the reference is the evidence by sequential Monte
Carlo with many particles. ``results/evidence_truth.csv`` keeps two numbers of each. For regressions
they are of two ways, from the prior and from the minima, which miss different things; the second
way is no longer in the library. For classes they are of two large populations of different seeds.
Where both agree the reference is their mean, weighted by their precision, else the higher one, as
what is missed lowers an estimate. ``--references`` prints new ones by large populations::

    python tests/benchmarks/evidence_truth.py --seeds 0 1
    python tests/benchmarks/evidence_truth.py --references
"""

import argparse
import csv
from pathlib import Path

import _data  # noqa: F401, one thread
import numpy as np
from reporting import timed_fit
from scipy.special import expit

from skbayesnn import EvidenceMLPClassifier, EvidenceMLPRegressor
from skbayesnn.inference.sampling._population import PathFromPrior
from skbayesnn.samplers import Schedule, anneal

KEPT = Path(__file__).parent / "results" / "evidence_truth.csv"


def inputs(rng, n, d=2):
    return rng.uniform(-2, 2, (n, d))


def regression(truth, n=60, d=2, sd=0.3, outputs=1, outliers=0.0):
    """Rows of a function with Gaussian noise, perhaps some with ten times as much."""

    def make(rng):
        X = inputs(rng, n, d)
        noise = sd * rng.standard_normal((n, outputs))
        noise *= np.where(rng.random((n, 1)) < outliers, 10.0, 1.0)
        y = np.reshape(truth(X).T, (outputs, n)).T + noise
        return X, y[:, 0] if outputs == 1 else y

    return make


def binary(activation, n=80, d=2):
    """Two classes with given log odds."""

    def make(rng):
        X = inputs(rng, n, d)
        return X, (rng.random(n) < expit(activation(X))).astype(int)

    return make


def clusters(n=80, n_classes=3, sd=0.5, per_class=1):
    """Round classes about centres on a circle, some of them several."""

    def make(rng):
        places = n_classes * per_class
        place = rng.integers(places, size=n)
        angle = 2 * np.pi * place / places
        X = 1.5 * np.column_stack([np.cos(angle), np.sin(angle)])
        return X + sd * rng.standard_normal((n, 2)), place % n_classes

    return make


def linear(X):
    return X @ np.resize([1.0, -0.7, 0.4], X.shape[1])


def wave(X):
    return np.sin(2 * X[:, 0])


def saddle(X):
    return np.sin(2 * X[:, 0]) * X[:, 1]


def step(X):
    return np.tanh(4 * X[:, 0])


def bump(X):
    return np.exp(-2 * np.sum(X[:, :2] ** 2, axis=1))


def arm(X):
    return np.column_stack([np.cos(X[:, 0]), np.sin(X[:, 0] + X[:, 1])])


def wavy_odds(X):
    return 3 * np.sin(1.5 * X[:, 0]) + 2 * X[:, 1]


def nothing(X):
    return np.zeros(len(X))


# name: (rows, hidden layers, options)
PROBLEMS = {
    "linear, no units": (regression(linear), (), {}),
    "linear, 4 units": (regression(linear), (4,), {}),
    "linear, 8 units": (regression(linear, n=40), (8,), {}),
    "linear, ARD": (regression(linear, d=3), (3,), {"prior": "ard"}),
    "noise only": (regression(nothing, n=40, sd=1.0), (3,), {}),
    "wave, 3 units": (regression(wave, n=30, d=1, sd=0.2), (3,), {}),
    "wave, 6 units": (regression(wave, n=50, d=1, sd=0.1), (6,), {}),
    "wave, 16 units": (regression(wave, n=40, d=1, sd=0.2), (16,), {}),
    "wave among 3 inputs": (regression(wave, n=60, d=3), (3,), {}),
    "wave among 3 inputs, ARD": (regression(wave, n=60, d=3), (3,), {"prior": "ard"}),
    "saddle, 4 units": (regression(saddle, n=80), (4,), {}),
    "saddle, 8 units": (regression(saddle, n=80, sd=0.2), (8,), {}),
    "saddle, single": (regression(saddle, n=60), (4,), {"prior": "single"}),
    "step, 2 units": (regression(step, n=40, d=1), (2,), {}),
    "step, 10 units": (regression(step, n=60), (10,), {}),
    "bump, 5 units": (regression(bump, n=70, sd=0.1), (5,), {}),
    "20 rows": (regression(wave, n=20, d=1), (4,), {}),
    "two layers": (regression(wave, n=60, d=1, sd=0.2), (3, 3), {}),
    "two layers, 2 inputs": (regression(saddle, n=60), (4, 2), {}),
    "two outputs": (regression(arm, n=50, sd=0.1, outputs=2), (4,), {}),
    "two outputs, shared noise": (
        regression(arm, n=40, sd=0.2, outputs=2),
        (3,),
        {"noise": "shared"},
    ),
    "outliers": (regression(wave, n=60, d=1, sd=0.1, outliers=0.1), (4,), {}),
    "relu": (regression(step, n=50, d=1, sd=0.2), (4,), {"activation": "relu"}),
    "binary, no units": (binary(linear, n=50), (), {}),
    "binary, linear truth": (binary(linear, n=60), (3,), {}),
    "binary, waves": (binary(wavy_odds), (3,), {}),
    "binary, waves, 6 units": (binary(wavy_odds), (6,), {}),
    "binary, noise": (binary(nothing, n=50), (2,), {}),
    "binary, saddle": (binary(lambda X: 4 * saddle(X)), (4,), {}),
    "binary, separable": (binary(lambda X: 20 * linear(X), n=40), (2,), {}),
    "three classes": (clusters(), (3,), {}),
    "three classes, no units": (clusters(n=60, sd=0.9), (), {}),
    "three classes, far apart": (clusters(n=80, sd=0.3), (3,), {}),
    "six clusters": (clusters(n=80, n_classes=2, per_class=3, sd=0.5), (4,), {}),
}


def estimator(name, seed=0, **options):
    """The estimator of a problem, and its rows."""
    make, hidden, own = PROBLEMS[name]
    X, y = make(np.random.default_rng(sum(map(ord, name))))
    classes = y.dtype.kind == "i"
    kind = EvidenceMLPClassifier if classes else EvidenceMLPRegressor
    options = ({} if classes else {"noise": "constant"}) | own | options
    return kind(hidden, random_state=seed, **options), X, y


def print_references():
    """Evidences by large populations, beside the kept ones."""
    schedule = Schedule(n_chains=1024, n_moves=8, effective=0.9, n_last_chains=1024)
    for name, (truth, error) in references().items():
        model, _ = timed_fit(*estimator(name, method="population"))
        fit, rng = model._result, np.random.default_rng(1)
        joint = fit.drawn[0].joint
        eta = fit.drawn[0].position[:, joint.n_sampled : joint.dimension]
        path = PathFromPrior.about(joint, eta.mean(axis=0), eta.std(axis=0))
        found = anneal(path, rng, schedule)
        log_evidence = found.log_evidence + fit.problem.log_scale
        its_error = found.log_evidence_std
        print(
            f"{name:28s}{truth:9.2f} +-{error:4.2f}{log_evidence:9.2f} +-{its_error:4.2f}",
            flush=True,
        )


def references():
    """By problem: log evidence and standard error."""
    found = {}
    with KEPT.open() as file:
        for name, *numbers in list(csv.reader(file))[1:]:
            a, its, b, other = map(float, numbers)
            its, other = max(its, 0.02), max(other, 0.02)  # errors of so few are uncertain
            if abs(a - b) < 3.0 * np.hypot(its, other):
                precisions = np.array([its**-2, other**-2])
                found[name] = precisions @ [a, b] / precisions.sum(), precisions.sum() ** -0.5
            else:
                found[name] = max((a, its), (b, other))
    return found


def against_references(seeds):
    """Every problem: measured evidence, Laplace's approximation, verdict."""
    known, rows = references(), []
    print(
        f"{'problem':28s}{'reference':>16s}{'measured':>16s}{'Laplace':>9s}{'CPU s':>7s}  verdict"
    )
    for name in PROBLEMS:
        for seed in seeds:
            model, took = timed_fit(*estimator(name, seed))
            report = model.evidence_report_
            (truth, error), std = known[name], report.log_evidence_std
            gap, laplace = report.log_evidence - truth, report.laplace_log_evidence - truth
            far = bool(abs(gap) > 1.0 + error)
            beyond = bool(abs(gap) > 3.0 * np.hypot(std, error))
            trusted = report.minima[0].verdict == "trusted"  # of the evidence, not of predictions
            rows.append((far, beyond, trusted, abs(laplace) > 1.0 + error))
            print(
                f"{name:28s}{truth:9.2f} +-{error:4.2f}{report.log_evidence:9.2f} +-{std:4.2f}"
                f"{report.laplace_log_evidence:9.2f}{took:7.1f}  {report.minima[0].verdict}"
                f"{' WRONG' * far}{' BEYOND ITS ERROR' * beyond}",
                flush=True,
            )
    far, beyond, trusted, laplace = np.array(rows).T
    print(f"right to within a nat and three standard errors: {np.mean(~far & ~beyond):.0%}")
    print(f"right to within a nat: {np.mean(~far):.0%}, by Laplace's approximation: ", end="")
    print(f"{np.mean(~laplace):.0%}")
    if far.any():
        print(f"wrong and called doubtful: {np.mean(~trusted[far]):.0%} of {far.sum()}")
    print(f"right and called doubtful: {np.mean(~trusted[~far]):.0%} of {np.sum(~far)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--references", action="store_true")
    arguments = parser.parse_args()
    if arguments.references:
        print_references()
    else:
        against_references(arguments.seeds)


if __name__ == "__main__":
    main()
