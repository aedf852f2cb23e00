"""One thread of linear algebra in each process that runs tests: more would wait in turns."""

import os

for _name in ("OPENBLAS", "OMP", "MKL", "BLIS"):
    os.environ.setdefault(f"{_name}_NUM_THREADS", "1")  # before numpy is imported

import pytest  # noqa: E402

from skbayesnn.estimators import BayesianMLP  # noqa: E402
from skbayesnn.inference import Limits  # noqa: E402
from tests.tools import NOT_SAMPLED  # noqa: E402

collect_ignore = ["usage_of_types.py"]  # only mypy reads it


@pytest.fixture(params=range(3))
def seed(request):
    """Seeds of a statistical test, which holds for each of them within 4 standard errors."""
    return request.param


@pytest.fixture(scope="module")
def laplace():
    """Small data are fitted as large ones are, by Laplace's approximation alone.

    Modules ask for it whose tests are about this approximation, or about what does not depend on
    the engine: users' small fits are sampled, which takes seconds for each.
    """
    kept, BayesianMLP._limits = BayesianMLP._limits, Limits(**NOT_SAMPLED)
    yield
    BayesianMLP._limits = kept


@pytest.fixture
def as_users_fit(monkeypatch):
    """Limits of users in a single test of a module that asks for `laplace`."""
    monkeypatch.setattr(BayesianMLP, "_limits", Limits())
