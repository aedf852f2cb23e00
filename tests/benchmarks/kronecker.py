"""Approximations of the curvature of large networks beside the dense one.

Networks with two hidden layers are trained with dense Gauss-Newton curvature. At the minimum it is
compared with blocks that are Kronecker products of the second moments of a layer's inputs and of
the derivatives by its summed inputs (Martens & Grosse 2015; Ritter, Botev & Barber 2018), the prior
added exactly. The table holds log determinants less the dense one (nats), numbers of
well-determined weights, and error bars (due to the weights) of new rows over the dense ones, with
the standard deviation of the logarithm of that ratio.

    python tests/benchmarks/kronecker.py --rows 4000 --hidden 24
"""

import argparse

import _data  # noqa: F401, one thread
import numpy as np
from reporting import counted_warnings, print_table
from scipy.linalg import block_diag, cho_factor, cho_solve

from skbayesnn import EvidenceMLPRegressor
from skbayesnn.network import forward, jacobian
from skbayesnn.network._products import back_propagate
from skbayesnn.posterior import Gaussian, Posterior
from tests.tools import result_of, standardised

N_TEST = 500


def make_rows(n_rows, n_features=8):
    """A smooth function of some inputs with noise of standard deviation 0.3."""
    rng = np.random.default_rng(0)
    teacher = rng.standard_normal((n_features, 4)) / 2.0
    X = rng.standard_normal((n_rows, n_features))
    f = np.tanh(X @ teacher) @ np.array([1.0, -1.0, 0.7, 0.5])
    return X, f + 0.3 * rng.standard_normal(n_rows)


def trained(X, y, hidden):
    """Posterior, weights and precisions of the best minimum."""
    with counted_warnings():
        model = EvidenceMLPRegressor(
            hidden, noise="constant", solver="gauss_newton", n_restarts=1, random_state=0
        ).fit(X, y)
    best = result_of(model).minima[0]
    rows = standardised(model, X), model._y_scaling.transform(y[:, None])
    likelihood = Gaussian.per_output(1)
    posterior = Posterior(best.network, likelihood, best.groups, *rows, np.ones(len(X)))
    return posterior, best.theta, best.hyper, model._X_scaling


def curvatures(posterior, theta, hyper):
    """Name and matrix of every approximation, the dense one first."""
    prior = np.diag(posterior.groups.expand(hyper.alpha))
    dense = posterior.hessian(theta, hyper, exact=False)
    yield "dense", dense
    trace = forward(posterior.network, theta, posterior.X, order=1)
    deltas = back_propagate(trace, np.ones_like(trace.outputs))
    pairs = [
        (z.T @ z / len(z), hyper.beta[0] * delta.T @ delta)
        for z, delta in zip(trace.inputs, deltas, strict=True)
    ]
    yield "Kronecker factors", block_diag(*(np.kron(*pair) for pair in pairs)) + prior


def measured(n_rows, hidden):
    """Lines of the table for one network."""
    X, y = make_rows(n_rows + N_TEST)
    posterior, theta, hyper, scaling = trained(X[:n_rows], y[:n_rows], hidden)
    alpha = posterior.groups.expand(hyper.alpha)
    new = forward(posterior.network, theta, scaling.transform(X[n_rows:]), order=1)
    J = jacobian(new)[:, 0]
    rows, reference = [], None
    for name, A in curvatures(posterior, theta, hyper):
        factor = cho_factor(A)
        log_det = 2.0 * np.sum(np.log(np.diag(factor[0])))
        determined = len(theta) - np.sum(alpha * np.diag(cho_solve(factor, np.eye(len(theta)))))
        log_sd = 0.5 * np.log(np.sum(J * cho_solve(factor, J.T).T, axis=1))
        reference = reference or (log_det, log_sd)
        ratio = log_sd - reference[1]
        rows.append(
            {
                "rows": n_rows,
                "hidden": hidden,
                "weights": len(theta),
                "curvature": name,
                "log det": round(log_det - reference[0], 1),
                "well determined": round(determined, 1),
                "error bars": f"{np.exp(ratio.mean()):.2f}",
                "scatter of log": f"{ratio.std():.2f}",
            }
        )
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 4000])
    parser.add_argument("--hidden", type=int, nargs="+", default=[12, 24])
    args = parser.parse_args()
    rows = [row for n in args.rows for h in args.hidden for row in measured(n, (h, h))]
    print_table("Curvature of large networks", rows)


if __name__ == "__main__":
    main()
