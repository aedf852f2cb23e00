"""One thread of linear algebra, `tests.tools`, and the sets in the folder `SKBAYESNN_DATA`."""

import os
import sys

for _name in ("OPENBLAS", "OMP", "MKL", "BLIS", "NUMEXPR"):
    os.environ[f"{_name}_NUM_THREADS"] = "1"  # before numpy is imported
os.environ["VECLIB_MAXIMUM_THREADS"] = "1"

from itertools import islice
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))  # for ``tests.tools``
FOLDER = Path(os.environ.get("SKBAYESNN_DATA", "."))


def table(name, X="X", y="y", column=None):
    """Inputs, targets, and all arrays of a set.

    Their names in its file may differ, and targets may be a column of an array.
    """
    with np.load(FOLDER / f"{name}.npz", allow_pickle=True) as file:
        data = dict(file)
    targets = data[y] if column is None else data[y][:, column]
    return data[X].astype(float), targets, data


def splits(name, **keys):
    """Training and test rows of each split of a set: ``X, y, X_test, y_test``.

    A file holds ``X`` and ``y``, or what the keys of `table` name, with rows of splits
    (``train_idx``, ``test_idx``, or numbered ``kfold_train_0``), masks of test rows, or the fold of
    each row. Of sets without splits a fifth at random tests.
    """
    X, y, data = table(name, **keys)
    for train, test in _parts(data, len(y)):
        yield X[train], y[train], X[test], y[test]


def split(name, index=0, **keys):
    """Training and test rows of one split."""
    return next(islice(splits(name, **keys), index, None))


def _parts(data, n):
    """Numbers of the training and test rows of each split."""
    if "fold" in data:
        tests = [data["fold"] == k for k in np.unique(data["fold"])]
        return [np.nonzero(~test) + np.nonzero(test) for test in tests]
    if "test_mask" in data:
        tests = data["test_mask"].astype(bool).T
        return [np.nonzero(~test) + np.nonzero(test) for test in tests]
    if "train_idx" in data:
        both = np.atleast_2d(data["train_idx"]), np.atleast_2d(data["test_idx"])
        return zip(*both, strict=True)
    if "kfold_train_0" in data:
        numbers = [key.rpartition("_")[2] for key in data if key.startswith("kfold_train_")]
        return [(data[f"kfold_train_{k}"], data[f"kfold_test_{k}"]) for k in numbers]
    orders = [np.random.default_rng(i).permutation(n) for i in range(10)]
    return [np.split(order, [int(0.8 * n)]) for order in orders]
