"""Effective draws of the sampler between seeds, so that regions that all chains miss count.

Posterior variance of the outputs at the training rows, over the variance of their means between
fits with different seeds; with R-hat and effective sample size of each fit, and CPU seconds, of
`HMCMLPClassifier` with defaults. Run with::

    SKBAYESNN_DATA=folder python tests/benchmarks/between_seeds.py --sets iris wine --seeds 6

The folder holds ``ripley_synth.npz``, ``ripley_pima.npz`` and ``cls_seeds.npz``.
"""

import argparse

import _data  # before numpy
import numpy as np
from reporting import print_table, timed_fit
from sklearn.datasets import load_iris, load_wine

from skbayesnn import HMCMLPClassifier
from skbayesnn.network import outputs

FILES = {"synth": "ripley_synth", "pima": "ripley_pima", "seeds": "cls_seeds"}


def load(name):
    """Rows of a set; of Ripley's sets the training rows."""
    if name in ("iris", "wine"):
        return (load_iris if name == "iris" else load_wine)(return_X_y=True)
    X, y, X_test, y_test = _data.split(FILES[name])
    if name == "seeds":  # all rows
        X, y = np.concatenate([X, X_test]), np.concatenate([y, y_test])
    return X, y


def main():
    """Print a table with a row for each set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=["iris", "wine", *FILES])
    parser.add_argument("--seeds", type=int, default=6)
    args = parser.parse_args()
    rows = []
    for name in args.sets:
        X, y = load(name)
        means, variances, seconds, found = [], [], [], []
        for seed in range(args.seeds):
            model, took = timed_fit(HMCMLPClassifier(random_state=seed), X, y)
            seconds.append(took)
            result, posterior = model._result, model._result.posed.posterior
            theta = result.draws.theta.reshape(-1, posterior.network.n_weights)
            f = outputs(posterior.network, theta, posterior.X)
            means.append(f.mean(axis=0))
            variances.append(f.var(axis=0))
            found.append((model.diagnostics_.r_hat, model.diagnostics_.bulk_ess))
        between, r_hat = np.var(means, axis=0, ddof=1), np.median(found, axis=0)
        total = np.mean(variances, axis=0) + np.var(means, axis=0)
        rows.append(
            {
                "set": name,
                "effective draws": f"{1 / np.mean(between / total):.0f}",
                "R-hat, median": f"{r_hat[0]:.3f}",
                "ESS, median": f"{r_hat[1]:.0f}",
                "CPU s": f"{np.mean(seconds):.1f}",
            }
        )
    print_table(f"{args.seeds} seeds", rows)


if __name__ == "__main__":
    main()
