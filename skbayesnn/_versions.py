"""Versions of everything that a fit depends on, for reports of bugs."""

import platform
import sys
from importlib.metadata import version

from joblib import cpu_count
from threadpoolctl import threadpool_info

from skbayesnn.posterior import instructions

PACKAGES = "skbayesnn", "numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl"
NO_CORE = "none: fits take several times as long. Install again with a C compiler."


def show_versions() -> None:
    """Print the versions of packages, the compiled core in use, and the linear algebra.

    Examples
    --------
    >>> import skbayesnn
    >>> skbayesnn.show_versions()  # doctest: +ELLIPSIS
    python: ...
    """
    lines = {"python": sys.version.replace("\n", " "), "platform": platform.platform()}
    lines |= {"processors": cpu_count()} | {name: version(name) for name in PACKAGES}
    lines["compiled core"] = instructions() or NO_CORE
    for name, value in lines.items():
        print(f"{name}: {value}")
    for pool in threadpool_info():
        facts = pool["version"], pool.get("architecture"), f"{pool['num_threads']} threads"
        print(f"{pool['internal_api']}: {', '.join(filter(None, facts))}")
