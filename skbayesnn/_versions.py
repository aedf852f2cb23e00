"""Version information for bug reports."""

import platform
import sys
from importlib.metadata import version

from skbayesnn.posterior import instructions

PACKAGES = "skbayesnn", "numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl"


def show_versions() -> None:
    """Print versions of Python and packages, and whether the compiled core is in use.

    Examples
    --------
    >>> import skbayesnn
    >>> skbayesnn.show_versions()
    python         ...
    compiled core  ...
    """
    core = instructions()
    rows = [("python", sys.version.split()[0]), ("platform", platform.platform())]
    rows += [(name, version(name)) for name in PACKAGES]
    rows += [("compiled core", f"in use ({core})" if core else "not in use: NumPy instead")]
    for name, value in rows:
        print(f"{name:15}{value}")
