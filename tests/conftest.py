"""One thread of linear algebra in each process that runs tests: more would wait in turns."""

import os

for _name in ("OPENBLAS", "OMP", "MKL", "BLIS"):
    os.environ.setdefault(f"{_name}_NUM_THREADS", "1")  # before numpy is imported

import pytest  # noqa: E402

from skbayesnn.estimators import BayesianMLP  # noqa: E402
from skbayesnn.inference import Limits  # noqa: E402

collect_ignore = ["usage_of_types.py"]  # only mypy reads it


@pytest.fixture(autouse=True, scope="module")
def unmeasured():
    """No networks are drawn, which takes seconds for each fit, unless a test asks for it."""
    kept = BayesianMLP._limits
    BayesianMLP._limits = Limits(sampled_seconds=0.0, checked_seconds=0.0)
    yield kept
    BayesianMLP._limits = kept


@pytest.fixture(autouse=True)
def measured_if_asked(request, unmeasured, monkeypatch):
    """Tests marked ``measured`` have the limits of a user."""
    if "measured" in request.keywords:
        monkeypatch.setattr(BayesianMLP, "_limits", unmeasured)
