"""Single mechanisms of the samplers switched off, on ten small problems and three public sets.

Every fit draws a population, which estimates the evidence, and then runs chains from its draws. A
mechanism earns its lines if without it the evidence or its error changes by a nat, or if chains
have fewer effective draws per CPU second, by a fifth. Effective draws between seeds are the
variance of outputs over that of their means, so that regions that all chains miss count. Run with::

    python tests/benchmarks/ablation_sampling.py --without nothing UnitMoves --seeds 0 1 2
    SKBAYESNN_DATA=folder python tests/benchmarks/ablation_sampling.py --without nothing --only pima

The folder holds the `FILES`; of Ripley's sets the training rows are fitted.
"""

import argparse
from contextlib import ExitStack
from unittest.mock import patch

import _data  # before numpy
import numpy as np
from reporting import print_table, timed_fit
from sklearn.datasets import load_iris, load_wine, make_friedman1

from skbayesnn import HMCMLPClassifier, HMCMLPRegressor, samplers
from skbayesnn._threads import blas_threads
from skbayesnn.inference.sampling import _moves, _sampling
from skbayesnn.posterior.kernels import _core
from skbayesnn.samplers import bulk_ess, r_hat
from tests.tools import parts_of, standardised


def absent(*args, **kwargs):
    """Transition that does nothing."""
    return lambda energy, phase, rngs: phase


def without_curvature(joint, chains, plan, n_transitions, curvature, *rest):
    """Warm up without a metric."""
    return samplers.warm_up(joint, chains, plan, n_transitions, None, *rest)


SWITCHES = {
    "nothing": (),
    "metric": ((_sampling, "warm_up", without_curvature),),
    "ScaleMoves": ((_moves, "ScaleMoves", absent),),
    "UnitMoves": ((_moves, "UnitMoves", absent),),
    "all moves": tuple((_moves, f"{some}Moves", absent) for some in ("Scale", "Unit")),
    "single precision": ((_core, "SINGLE", 0.0),),
}


FILES = {"synth": "ripley_synth", "pima": "ripley_pima", "seeds": "cls_seeds"}


def rows(name):
    """Inputs, targets and estimator of a problem."""
    if name in FILES:
        return *_data.split(FILES[name])[:2], HMCMLPClassifier()
    rng = np.random.default_rng(0)
    x, X = rng.uniform(-2, 2, (100, 1)), rng.standard_normal((80, 2))
    if name == "regression":
        y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.2 * rng.standard_normal(80)
        return X, y, HMCMLPRegressor((8,), noise="constant")
    if name == "iris":
        return *load_iris(return_X_y=True), HMCMLPClassifier((8,))
    if name in ("linear wine", "linear iris"):
        X, y = (load_wine if name == "linear wine" else load_iris)(return_X_y=True)
        some = rng.permutation(len(y))[: 60 if name == "linear iris" else None]
        return X[some], y[some], HMCMLPClassifier(())
    if name == "friedman":
        model = HMCMLPRegressor((8,), noise="constant")
        return *make_friedman1(200, 5, noise=1.0, random_state=0), model
    if name == "student_t":
        y = np.sin(2 * x[:, 0]) + 0.1 * rng.standard_t(2.5, 100)
        return x, y, HMCMLPRegressor((8,), noise="student_t")
    if name == "thirty":
        y = np.sin(2 * x[:30, 0]) + 0.2 * rng.standard_normal(30)
        return x[:30], y, HMCMLPRegressor((8,), noise="constant")
    if name == "binary":
        y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.5 * rng.standard_normal(80) > 1
        return X, y, HMCMLPClassifier((8,))
    if name == "noisy":
        y = np.sin(2 * x[:, 0]) + np.exp(0.8 * x[:, 0] - 2) * rng.standard_normal(100)
        return x, y, HMCMLPRegressor((8,), noise="input_dependent")
    X = rng.standard_normal((60, 5))  # separable: a cone of weights without end
    return X, X[:, 0] + 0.5 * X[:, 1] > 0.1, HMCMLPClassifier(())


TEXTS = "problem", "without"
NAMES = ("regression", "iris", "friedman", "student_t", "thirty", "binary", "noisy", "separable")
NAMES += ("linear wine", "linear iris")


def fitted(name, seed):
    """Fit one sampler; a row of results."""
    X, y, model = rows(name)
    model, cpu = timed_fit(model.set_params(random_state=seed), X, y)
    f = parts_of(model)[0].outputs(standardised(model, X))
    f = f.reshape(model.n_chains, -1, *f.shape[1:])
    if f.shape[-1] > 1 and isinstance(model, HMCMLPClassifier):
        f = f - f.mean(axis=-1, keepdims=True)
    spread = np.mean(np.var(f, axis=(0, 1)))
    return {
        "log evidence": model.log_evidence_,
        "std": model.log_evidence_std_,
        "CPU s": cpu,
        "R-hat": float(np.max(r_hat(f))),
        "ESS min": float(np.min(bulk_ess(f))),
        "means": f.mean(axis=(0, 1)).ravel(),
        "variance": spread,
    }


def compared(name, without, seeds):
    """Mean results of several seeds."""
    with ExitStack() as stack:
        for module, attribute, other in SWITCHES[without]:
            stack.enter_context(patch.object(module, attribute, other))
        found = [fitted(name, seed) for seed in seeds]
    evidences = [some["log evidence"] for some in found]
    cpu = np.mean([some["CPU s"] for some in found])
    between = np.mean(np.var([some["means"] for some in found], axis=0, ddof=1))
    return {
        "problem": name,
        "without": without,
        "log evidence": np.mean(evidences),
        "between seeds": np.std(evidences, ddof=1),
        "own error": np.mean([some["std"] for some in found]),
        "CPU s": cpu,
        "R-hat": max(some["R-hat"] for some in found),
        "ESS min": min(some["ESS min"] for some in found),
        "ESS min / CPU s": min(some["ESS min"] for some in found) / cpu,
        "by seeds": np.mean([some["variance"] for some in found]) / between,
    }


def main():
    """Compare the mechanisms chosen."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--without", nargs="+", default=list(SWITCHES), choices=SWITCHES)
    parser.add_argument("--only", nargs="+", default=NAMES, choices=[*NAMES, *FILES])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    args = parser.parse_args()
    found = []
    for name in args.only:
        for without in args.without:
            found.append(compared(name, without, args.seeds))
            print(
                {k: v if k in TEXTS else round(float(v), 3) for k, v in found[-1].items()},
                flush=True,
            )
    print_table("Samplers without single mechanisms", found)


if __name__ == "__main__":
    with blas_threads(1):
        main()
