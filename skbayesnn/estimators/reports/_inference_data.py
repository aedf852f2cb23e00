"""Conversion of draws to ArviZ: named, in the user's units, with the training rows."""

from inspect import signature

import numpy as np

from skbayesnn.network import row_blocks


def by_chain(values, shape):
    """Reshape values of all draws ``(n_chains * n_draws, ...)`` to have an axis for chains."""
    return values.reshape(*shape, *values.shape[1:])


def row_groups(estimator, kept, rng):
    """Log likelihoods and predictions of every draw at the training rows, as dict of dicts.

    ``kept``, of shape (n_rows,), holds the number of the distinct row of each of the user's rows.
    """
    draws, problem = estimator._draws, estimator._result.problem
    shape = estimator._result.draws.energy.shape
    parts = []
    for rows in row_blocks(len(kept), draws.doubles_per_row):
        X, y = problem.X[kept[rows]], problem.y[kept[rows]]
        parts.append(estimator._rows_to_inference_data(draws.outputs(X), X, y, rng))
    log_likelihood, predicted, observed = (
        {name: np.concatenate([part[name] for part in some], axis=-1) for name in some[0]}
        for some in zip(*parts, strict=True)
    )
    return {
        "log_likelihood": {n: by_chain(v, shape) for n, v in log_likelihood.items()},
        "posterior_predictive": {n: by_chain(v, shape) for n, v in predicted.items()},
        "observed_data": observed,
    }


def to_arviz(groups, coords, dims):
    """Make the container of the installed ArviZ version."""
    try:
        import arviz
    except ImportError as error:
        raise ImportError("to_inference_data needs ArviZ: pip install skbayesnn[arviz].") from error
    labels = {"coords": coords, "dims": dims}
    if "posterior" in signature(arviz.from_dict).parameters:  # ArviZ before 1.0
        return arviz.from_dict(**groups, **labels)
    return arviz.from_dict(groups, **labels)
