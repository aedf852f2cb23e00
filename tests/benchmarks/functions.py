"""Functions and files of the package that a default fit of 30 rows runs through.

Frames of comprehensions and lambdas, which Python 3.12 no longer has for comprehensions, are
counted apart. Run with::

    python tests/benchmarks/functions.py
"""

import sys
import warnings
from collections import defaultdict

import numpy as np

from skbayesnn import EvidenceMLPRegressor


def main():
    """Print the number of functions by file, and the totals."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (30, 1))
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(30)
    model, seen = EvidenceMLPRegressor(random_state=0), defaultdict(set)

    def note(frame, event, _):
        place = frame.f_code.co_filename.rpartition("skbayesnn/")
        if event == "call" and place[1]:
            seen[place[2]].add(frame.f_code.co_qualname)

    sys.setprofile(note)
    model.fit(X, y)
    sys.setprofile(None)
    for file, names in sorted(seen.items()):
        print(f"{len(names):4d} {file}")
    names = [name for some in seen.values() for name in some]
    unnamed = sum("<" in name.rpartition(".<locals>.")[2] for name in names)
    print(f"{len(names) - unnamed} functions and {unnamed} other frames in {len(seen)} files")


if __name__ == "__main__":
    main()
