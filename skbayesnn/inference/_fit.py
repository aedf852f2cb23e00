"""Choice of the engine that represents the posterior: the only file that knows all of them."""

from dataclasses import replace

from skbayesnn.inference._chains_fit import fit_by_chains, is_drawn_by_chains
from skbayesnn.inference._laplace_fit import fit_by_laplace
from skbayesnn.inference._many_rows_fit import fit_to_many_rows, has_many_rows
from skbayesnn.inference._population_fit import fit_by_population, sampled_sizes
from skbayesnn.inference.minima._search import ALONE

METHODS = "auto", "population", "chains", "early_stopping", "laplace"
# share of the time limit in which networks are drawn; without success, they are trained then
MAX_BY_SAMPLING = 0.7
NO_TIME = "There was no time to measure it."
MISSED = "Networks drawn to measure it missed what training found."


def fit_evidence(
    problem,
    hidden_layer_sizes,
    entropy,
    n_restarts=5,
    noise="constant",
    previous=None,
    workers=ALONE,
    method="laplace",
    with_chains=True,
):
    """Draw networks from the posterior of a problem, or find its minima.

    ``hidden_layer_sizes`` and ``noise``, one of `NOISE_MODELS`, may be ``"auto"``. ``entropy`` is
    that of the seeds of random numbers. The ``method`` is one of `METHODS`; ``"auto"`` is the first
    of these that is possible and takes seconds to minutes: a population, which also measures the
    evidence; independent chains, if ``with_chains``; early stopping; Laplace's approximation around
    minima. Minima of the fit ``previous`` replace random starts. Returns a `DrawnFit` or an
    `EvidenceFit`.
    """
    model, unmeasured = (hidden_layer_sizes, noise), ""
    limit = problem.deadline.part(MAX_BY_SAMPLING)
    sizes = None
    if method in ("auto", "population"):
        sizes = sampled_sizes(problem, *model, wanted=method == "population" or "auto")
    if sizes is not None:
        limited = replace(problem, deadline=limit)
        drawn = fit_by_population(limited, *model, sizes, entropy, workers)
        if drawn is not None:
            return replace(drawn, problem=problem)
        unmeasured = NO_TIME if limit.passed else MISSED
    if method == "auto" and with_chains and not limit.passed:
        method = "chains" if is_drawn_by_chains(problem, *model) else method
    if method == "chains":
        return fit_by_chains(problem, *model, entropy, workers)
    early = method == "early_stopping" or has_many_rows(problem, *model)
    engine = fit_to_many_rows if early else fit_by_laplace
    fit = engine(problem, *model, entropy, n_restarts, previous, workers)
    return replace(fit, unmeasured=unmeasured)
