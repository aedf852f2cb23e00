"""Width and depth of a network, grown as long as the evidence does."""

from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from joblib import effective_n_jobs

from skbayesnn.inference._forecast import seconds_of_start
from skbayesnn.inference._search import ALONE, find_minima


class Ladder(NamedTuple):
    """Which networks are tried in which order.

    Attributes
    ----------
    widths : tuple of int
        Of one layer, tried whatever is found.
    narrow : int
        Units per layer with which depths are compared; one of the widths.
    deepest : int
        Hidden layers at most.
    least_gain : float
        What counts as an improvement, in the units of what is compared.
    """

    widths: tuple
    narrow: int
    deepest: int
    least_gain: float

    @property
    def first(self):
        """Hidden layers that are tried in any case, in this order."""
        return [(), *((width,) for width in self.widths), (self.narrow, self.narrow)]


BY_EVIDENCE = Ladder(widths=(2, 4, 8, 16), narrow=4, deepest=2, least_gain=1.0)
OF_MANY_ROWS = Ladder(widths=(4, 8, 16), narrow=16, deepest=3, least_gain=0.01)


class Candidate(NamedTuple):
    """An architecture that was tried.

    Attributes
    ----------
    hidden_layer_sizes : tuple of int
    log_evidence : float
        Of its best minimum, in nats, targets in their own units; ``nan`` if not available, or if
        training was given up far below other networks.
    n_weights : int
        Before pruning.
    held_out_log_density : float
        Where there are many rows: mean log density of those held out (nats per row), by which
        networks are compared there; else ``nan``.
    """

    hidden_layer_sizes: tuple
    log_evidence: float
    n_weights: int
    held_out_log_density: float = np.nan

    def __str__(self):
        known = not np.isnan(self.log_evidence)
        found = f"log evidence {self.log_evidence:.2f}" if known else "no evidence"
        if not np.isnan(self.held_out_log_density):
            found = f"log density of rows held out {self.held_out_log_density:.4f} per row"
        return f"hidden layers {self.hidden_layer_sizes}: {found}"

    @property
    def value(self):
        """What is compared; minus infinity if it is not available."""
        known = [v for v in (self.held_out_log_density, self.log_evidence) if not np.isnan(v)]
        return known[0] if known else -np.inf


def grow(attempt, allowed, ladder=BY_EVIDENCE):
    """Try one narrow layer, and deeper or wider networks as long as these are better.

    Two layers are compared with one at a width where this costs little. Then the better depth is
    widened, all layers equally, until twice as many units bring no improvement. If two layers are
    better than one, further layers of the best width are tried.

    Parameters
    ----------
    attempt : callable
        From hidden layer sizes and those of the narrower network of the same depth tried before
        (or ``None``) to a `Candidate`.
    allowed : callable
        Whether hidden layer sizes may be tried.
    ladder : Ladder

    Returns
    -------
    list of Candidate
        In the order in which they were tried.
    """
    path = [attempt((), None)]

    def widen(tried, sizes):
        """Try a network, if that is allowed; it joins the narrower ones of its depth."""
        if not allowed(sizes):
            return False
        tried.append(attempt(sizes, tried[-1].hidden_layer_sizes if tried else None))
        path.append(tried[-1])
        return True

    def rises(tried):
        """Whether the last of some networks is the best."""
        best = max((candidate.value for candidate in tried[:-1]), default=-np.inf)
        return tried[-1].value > best + ladder.least_gain

    shallow, deep = [], []
    for width in ladder.widths:
        widen(shallow, (width,))
    narrow = (ladder.narrow,)
    rivals = [candidate for candidate in shallow if candidate.hidden_layer_sizes == narrow]
    is_better = widen(deep, 2 * narrow) and rises([*rivals, *deep])
    tried = deep if is_better else shallow
    while tried and rises(tried):
        if not widen(tried, tuple(2 * size for size in tried[-1].hidden_layer_sizes)):
            break
    for depth in range(3, ladder.deepest + 1):
        best = best_of(path)
        deeper = [best]
        sizes = depth * best.hidden_layer_sizes[:1]
        if len(best.hidden_layer_sizes) < depth - 1 or not widen(deeper, sizes):
            break
    return path


def best_of(path, margin=0.0):
    """The candidate of highest evidence or density; the first one if none has any.

    Parameters
    ----------
    path : sequence of Candidate
    margin : float, default=0.0
        One with fewer weights is preferred that is worse by no more than this.
    """
    best = max(path, key=lambda candidate: candidate.value)
    good = [candidate for candidate in path if candidate.value >= best.value - margin]
    return min(good, key=lambda candidate: candidate.n_weights) if margin else best


def grown(problem, seeds, workers=ALONE):
    """`grow` the network of a problem, under constant noise.

    Parameters
    ----------
    problem : Problem
    seeds : list of numpy.random.SeedSequence
        Of the starts of every network with hidden layers; the last one but for the first network of
        its depth is the narrower network with random units added.
    workers : Workers

    Returns
    -------
    path : tuple of Candidate
    tried : dict
        From hidden layer sizes to the posterior and its minima.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import Problem, grown
    >>> from skbayesnn.posterior import Gaussian
    >>> X = np.linspace(-1, 1, 6)[:, None]
    >>> problem = Problem(X, X, np.ones(6), Gaussian.per_output(1))
    >>> path, tried = grown(problem, np.random.SeedSequence(0).spawn(1))
    >>> [candidate.hidden_layer_sizes for candidate in path]  # no more weights than targets
    [()]
    """
    tried, limits, rival = {}, problem.limits, -np.inf

    def attempt(sizes, narrower):
        nonlocal rival
        posterior, settings = problem.posed(sizes)
        start = next(iter(tried[narrower][1]), None) if narrower else None
        some = seeds if sizes else seeds[:1]
        minima = find_minima(posterior, settings, some, (), start, workers, rival)
        tried[sizes] = posterior, minima
        evidence = minima[0].log_evidence if minima else np.nan
        rival = np.fmax(rival, evidence)
        return Candidate(sizes, evidence + problem.log_scale, posterior.network.n_weights)

    def allowed(sizes):
        usual = len(sizes) == 1 and sizes[0] in BY_EVIDENCE.widths
        return _supported(problem, sizes, np.inf if usual else limits.growth_work)

    with growing(problem, allowed, BY_EVIDENCE, len(seeds), workers) as told:
        return tuple(grow(told(attempt), allowed)), tried


def grown_with_many_rows(held, seeds, workers=ALONE):
    """`grow` a network by the likelihood of rows that are held out.

    Parameters
    ----------
    held : HeldOut
    seeds : list of numpy.random.SeedSequence
        Of the starts of every network with hidden layers.
    workers : Workers

    Returns
    -------
    path : tuple of Candidate
    tried : dict
        From hidden layer sizes to the minima, on the rows that were kept.
    """
    tried, limits = {}, held.kept.limits

    def attempt(sizes, narrower):
        posed = held.kept.posed(sizes)
        same_depth = narrower and len(narrower) == len(sizes)
        start = tried[narrower][0] if same_depth else None
        some = seeds if sizes else seeds[:1]
        tried[sizes] = find_minima(*posed, some, narrower=start, workers=workers)
        density = held.log_density(tried[sizes])
        n_weights = posed.posterior.network.n_weights
        return Candidate(sizes, np.nan, n_weights, density)

    def allowed(sizes):
        few = held.kept.network(sizes).n_weights <= limits.growth_weights
        return few and _supported(held.kept, sizes, np.inf)

    with growing(held.kept, allowed, OF_MANY_ROWS, len(seeds), workers) as told:
        return tuple(grow(told(attempt), allowed, OF_MANY_ROWS)), tried


@contextmanager
def growing(problem, allowed, ladder, n_starts, workers):
    """A stage of `Progress`; yields what makes a function tell of the candidates it returns."""
    works = []
    if workers.progress.listens:
        n_rounds = np.ceil(n_starts / min(effective_n_jobs(workers.n_jobs), n_starts))
        sizes = [some for some in ladder.first if not some or allowed(some)]
        works = [n_rounds * seconds_of_start(*problem.posed(some)) for some in sizes]
    with workers.progress.over("hidden layers", works, True, float(np.sum(works))) as step:

        def told(attempt):
            def telling(sizes, narrower):
                candidate = attempt(sizes, narrower)
                step(str(candidate))
                return candidate

            return telling

        yield told


def _supported(problem, sizes, most_work):
    """Whether a network has no more weights than targets, and work and time allow to try it."""
    k, n_outputs = problem.network(sizes).n_weights, problem.y.shape[1]
    n_targets = problem.sample_weight.sum() * problem.likelihood.n_independent(n_outputs)
    allowed = k <= n_targets and n_targets * k**2 <= most_work
    return allowed and not problem.deadline.passed
