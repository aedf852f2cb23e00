"""Evidences of populations from wide and from narrow first densities.

Populations are drawn from precisions of all orders of magnitude (wide) and from a narrow density at
the precisions of the best of 16 briefly trained networks, for the small regressions and classes of
`evidence_truth.py`, and for sets with heavy tails and outliers under Student-t noise, whose
references are rounded means of runs with four times the particles. The table shows the error of the
log evidence by larger populations after each of the two pilots, and after the pilot that a fit
takes::

    python tests/benchmarks/narrow_densities.py
"""

import argparse

import evidence_truth  # before numpy
import numpy as np
import small_sets

from skbayesnn.inference import Problem, _fit
from skbayesnn.inference._trials import trial_of
from skbayesnn.inference.sampling import _population
from skbayesnn.posterior import Gaussian

TAILS = {("heavy tails", 0): -60.0, ("heavy tails", 1): -57.5, ("outliers", 0): -23.0}
WAYS = {"wide": np.inf, "narrow": -np.inf, "chosen": _population.NEEDED}  # nats for a narrow pilot


class Caught(Exception):
    """Carries the arguments with which a fit would draw networks."""


def problem_of(name):
    """Problem, hidden layers, noise and reference of a problem of `evidence_truth.py`."""

    def caught(problem, hidden_layer_sizes, noise, sizes, entropy, workers):
        raise Caught(problem, sizes, noise)

    model, X, y = evidence_truth.estimator(name)
    original, _fit.fit_by_population = _fit.fit_by_population, caught
    try:
        model.fit(X, y)
    except Caught as found:
        problem, sizes, noise = found.args
        return problem, sizes, noise, evidence_truth.references()[name][0] - problem.log_scale
    finally:
        _fit.fit_by_population = original
    return None  # Laplace's approximation is exact


def with_tails():
    """As `problem_of`, of standardised sets with Student-t noise."""
    for name, seed, (X, y), _ in small_sets.heavy_tails(1, None):
        if (name, seed) in TAILS:
            X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
            problem = Problem(X, y[:, None], np.ones(len(y)), Gaussian.per_output(1))
            yield f"{name} {seed}", (problem, (16,), "student_t", TAILS[name, seed])


def main():
    """Print the errors of both ways, and their means."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1)
    n_seeds = parser.parse_args().seeds
    found = [(name, problem_of(name)) for name in evidence_truth.PROBLEMS]
    errors = []
    for name, posed in [*found, *with_tails()]:
        if posed is None:
            continue
        problem, sizes, noise, truth = posed
        for seed in range(n_seeds):
            row = []
            for needed in WAYS.values():
                _population.NEEDED = needed
                trial = trial_of(problem, noise, sizes, np.random.SeedSequence(seed))
                trial.run_pilot()
                trial.sample()
                row.append(trial.particles.log_evidence - truth)
            errors.append(row)
            print(f"{name:28s}", *(f"{way} {e:7.2f}" for way, e in zip(WAYS, row, strict=True)))
    print("mean absolute error", dict(zip(WAYS, np.abs(errors).mean(axis=0).round(2), strict=True)))


if __name__ == "__main__":
    main()
