"""From data to the distinct minima of a model, each with its evidence."""

from dataclasses import replace

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from skbayesnn._threads import blas_threads, one_blas_thread
from skbayesnn.inference._degrees_of_freedom import best_degrees_of_freedom
from skbayesnn.inference._descent import by_descent, train_by_descent
from skbayesnn.inference._linear import linear_start, scannable
from skbayesnn.inference._minimum import complete, evaluate, polish
from skbayesnn.inference._newton import find_mode
from skbayesnn.inference._noise_network import Pair, settle, train_with_noise, with_rows
from skbayesnn.inference._polish import Settled
from skbayesnn.inference._redundancy import same_minimum
from skbayesnn.inference._subsample import subsample
from skbayesnn.inference._training import Trained, random_starts, train
from skbayesnn.inference._widening import widened
from skbayesnn.network import outputs
from skbayesnn.posterior import Hyperparameters

BATCH_DOUBLES = 2**22  # numbers that the Hessians of networks trained together may hold
NOISE_MINIMA = 3  # from which noise networks are trained
IMPROBABLE = 10.0  # nats below the best at which minima with Student-t noise are dropped


def find_minima(posterior, settings, seeds, previous=(), narrower=None, n_jobs=None, progress=None):
    """Train from several starts and return the distinct minima, best evidence first.

    Parameters
    ----------
    posterior : Posterior
    settings : Settings
    seeds : list of numpy.random.SeedSequence
        One per random start.
    previous : sequence of Minimum
        Minima of an earlier fit to continue from, besides the random starts. For input-dependent
        noise they may be under constant noise. Of these and of what the random starts find the best
        get a noise network, as many as are needed to go on from three.
    narrower : Minimum, optional
        Of a network of the same depth, no layer of which is wider: the start from the last seed is
        this network with random units added.
    n_jobs : int, optional
        Processes of joblib.
    progress : callable, optional
        Called with lines of text.

    Returns
    -------
    list of Minimum

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import FreeHyperparameters, Settings, find_minima
    >>> from skbayesnn.network import Network
    >>> from skbayesnn.posterior import Gaussian, Hyperparameters, LogUniform
    >>> from skbayesnn.posterior import Posterior, weight_groups
    >>> network, X = Network((1, 3, 1)), np.linspace(-1, 1, 20)[:, None]
    >>> y = np.sin(3 * X) + 0.1 * np.random.default_rng(0).standard_normal((20, 1))
    >>> groups = weight_groups(network, "single")
    >>> posterior = Posterior(network, Gaussian.per_output(1), groups, X, y, np.ones(20))
    >>> free = FreeHyperparameters(np.array([True]), np.array([True]), LogUniform())
    >>> settings = Settings(free, fixed=Hyperparameters(np.ones(1), np.ones(1)))
    >>> minima = find_minima(posterior, settings, np.random.SeedSequence(0).spawn(2))
    >>> print((minima[0].hyper.beta ** -0.5).round(1))  # the noise level
    [0.1]
    """
    if settings.noise_plan is not None:
        pairs = [old for old in previous if old.noise is not None]
        plain = [old for old in previous if old.noise is None]
        if seeds:
            constant = settings._replace(noise_plan=None)
            plain += find_minima(posterior, constant, seeds, (), narrower, n_jobs, progress)
        n_new = max(0, NOISE_MINIMA - len(pairs))
        previous, seeds = [*pairs, *distinct(plain)[:n_new]], ()
    tasks = [delayed(_continued)(posterior, old, settings, progress) for old in previous]
    if seeds:
        rngs = [np.random.default_rng(seed) for seed in seeds]
        theta, hyper = random_starts(posterior, rngs)
        if narrower is not None:
            theta[-1] = widened(narrower, posterior.network, rngs[-1])
            hyper.alpha[-1], hyper.beta[-1] = narrower.hyper
        together = trained_together(posterior.network.n_weights, len(seeds), n_jobs)
        slices = [slice(i, i + together) for i in range(0, len(seeds), together)]
        data = posterior, subsample(posterior, rngs[0])
        chunks = [(*data, theta[s], hyper.select(s), settings, progress) for s in slices]
        tasks += [delayed(_trained)(*chunk) for chunk in chunks]
    found = Parallel(n_jobs=n_jobs)(tasks)
    minima = distinct([minimum for some in found for minimum in some])
    if not posterior.likelihood.linear:
        # in a mixture for the sake of its wide tails it would spoil means and noise levels
        minima = [m for m in minima if not m.log_evidence < minima[0].log_evidence - IMPROBABLE]
        tasks = [delayed(_over_degrees_of_freedom)(posterior, m, settings) for m in minima]
        minima = distinct(Parallel(n_jobs=n_jobs)(tasks))
    return minima


def trained_together(n_weights, n_starts, n_jobs=None):
    """How many of the networks are trained at once by one process."""
    together = max(1, BATCH_DOUBLES // n_weights**2)
    return max(1, min(together, -(-n_starts // effective_n_jobs(n_jobs))))


def distinct(minima):
    """Drop minima that repeat a better one up to symmetry; best evidence first, ``nan`` last.

    Examples
    --------
    >>> from skbayesnn.inference import distinct
    >>> distinct([])
    []
    """
    ranked = sorted(
        minima, key=lambda m: (np.isnan(m.log_evidence), -np.nan_to_num(m.log_evidence))
    )
    kept = []
    for minimum in ranked:
        if not is_repeated(minimum, kept):
            kept.append(minimum)
    return kept


def is_repeated(minimum, others):
    """Whether a minimum is one of some others up to symmetry, with an evidence like it or without.

    Examples
    --------
    >>> from skbayesnn.inference import is_repeated
    >>> is_repeated(None, [])
    False
    """
    return any(
        np.isnan(minimum.log_evidence) == np.isnan(other.log_evidence) and _same(minimum, other)
        for other in others
    )


def _same(minimum, other):
    """Whether two minima are one up to symmetry, those of their noise networks included."""
    if minimum is None or other is None:
        return minimum is other
    same = minimum.network == other.network
    same = same and same_minimum(minimum.network, minimum.theta, other.theta)
    return same and _same(minimum.noise, other.noise)


def _trained(posterior, part, theta, hyper, settings, progress):
    """Train some networks together, then complete each."""
    with one_blas_thread() if by_descent(posterior) else blas_threads(theta.shape[1]):
        minima = []
        if scannable(posterior):
            hyper = linear_start(posterior, settings).repeated(len(theta))
            theta = np.zeros_like(theta)  # no random numbers: the weights' minimum is unique
        hyper = settings.with_fixed(hyper)
        for trained in _training(posterior, part, theta, hyper, settings, progress):
            minimum = complete(posterior, trained.theta, trained.hyper, settings)
            minima.append(replace(minimum, n_iter=int(trained.n_iter)))
            _tell(progress, minima[-1])
    return minima


def _training(posterior, part, theta, hyper, settings, progress):
    """Networks one by one after training, by the method that suits their size.

    With ``part``, the posterior of some of the rows, the training begins there.
    """
    tau_factor = 1.0
    if part is not None:
        _say(progress, f"training on {len(part.X)} rows chosen at random, then on all")
        begun = list(_training(part, None, theta, hyper, settings, progress))
        theta = np.stack([network.theta for network in begun])
        hyper = Hyperparameters(*map(np.stack, zip(*(n.hyper for n in begun), strict=True)))
        tau_factor = np.stack(
            [network.tau_factor * np.ones_like(network.hyper.alpha) for network in begun]
        )
    if by_descent(posterior):
        for i in range(len(theta)):
            yield train_by_descent(posterior, theta[i], hyper.select(i), settings, progress)
    else:
        yield from train(posterior, theta, hyper, settings, progress, tau_factor).networks()


def _over_degrees_of_freedom(posterior, minimum, settings):
    """The minimum of Student-t noise at the best degrees of freedom."""

    def at(degrees_of_freedom, start):
        likelihood = replace(posterior.likelihood, degrees_of_freedom=degrees_of_freedom)
        own = replace(own_posterior(posterior, start), likelihood=likelihood)
        # user's noise levels are standard deviations, their precisions those of the scale
        ratio = likelihood.variance_factor / posterior.likelihood.variance_factor
        fixed = settings.fixed._replace(beta=settings.fixed.beta * ratio)
        there = settings._replace(fixed=fixed)
        found = polish(own, start.theta, there.with_fixed(start.hyper), there, refine=True)
        return replace(found, n_iter=start.n_iter, pruned=start.pruned)

    with blas_threads(minimum.network.n_weights):
        return best_degrees_of_freedom(minimum, at)


def _continued(posterior, old, settings, progress):
    """Take the minimum of an earlier fit to the nearest one for the present data.

    The old precisions are kept if their evidence is higher than that of the re-estimated ones.
    """
    if settings.noise_plan is not None:
        found = _with_noise(posterior, old, settings)
        for minimum in found:
            _tell(progress, minimum)
        return found
    posterior = posterior.with_network(old.network, old.groups.labels)
    hyper = settings.with_fixed(old.hyper)
    with blas_threads(old.network.n_weights):
        moved = complete(posterior, old.theta, hyper, settings)
        mode = find_mode(posterior, old.theta, hyper, exact=settings.exact)
        stayed = evaluate(posterior, Settled(hyper, mode, mode.converged), settings, ())
    best = distinct([moved, stayed])[:1]
    _tell(progress, best[0])
    return best


def _with_noise(posterior, old, settings):
    """Take a minimum and its noise network, a new one if there is none yet, to their minima.

    Where a new one finds little noise the means may tell more of the function. So units that were
    pruned under constant noise begin anew, besides a start without them.
    """
    with blas_threads(posterior.network.n_weights):
        own = own_posterior(posterior, old)
        if old.noise is not None:
            return [settle(Pair.resume(own, old, settings), complete, polish)]
        seed = np.random.SeedSequence(0)  # starts differ enough in the means
        starts = [(own, old.theta, old.pruned)]
        if old.network != posterior.network:
            wide = widened(old, posterior.network, np.random.default_rng(seed))
            starts.append((posterior, wide, ()))
        found = []
        for there, theta, pruned in starts:
            trained = Trained(theta, old.hyper, old.n_iter, old.converged)
            pair = train_with_noise(Pair.start(there, trained, settings, seed))
            minimum = settle(pair, complete, polish)
            found.append(replace(minimum, pruned=pruned + minimum.pruned))
        return found


def own_posterior(posterior, minimum):
    """The posterior with the layout, the degrees of freedom and the noise of a minimum.

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import FreeHyperparameters, Settings, find_minima, own_posterior
    >>> from skbayesnn.network import Network
    >>> from skbayesnn.posterior import Gaussian, Hyperparameters, LogUniform
    >>> from skbayesnn.posterior import Posterior, weight_groups
    >>> network, X = Network((1, 3, 1)), np.linspace(-1, 1, 20)[:, None]
    >>> y = np.sin(3 * X) + 0.1 * np.random.default_rng(0).standard_normal((20, 1))
    >>> groups = weight_groups(network, "single")
    >>> posterior = Posterior(network, Gaussian.per_output(1), groups, X, y, np.ones(20))
    >>> free = FreeHyperparameters(np.array([True]), np.array([True]), LogUniform())
    >>> settings = Settings(free, fixed=Hyperparameters(np.ones(1), np.ones(1)))
    >>> minimum = find_minima(posterior, settings, np.random.SeedSequence(0).spawn(1))[0]
    >>> own = own_posterior(posterior, minimum)
    >>> bool(np.max(np.abs(own.gradient(minimum.theta, minimum.hyper))) < 1e-5)
    True
    """
    own = posterior.with_network(minimum.network, minimum.groups.labels)
    if minimum.noise is None:
        return replace(own, likelihood=minimum.likelihood)
    log_precision = outputs(minimum.noise.network, minimum.noise.theta, posterior.X)
    return with_rows(own, log_precision)[0]


def _tell(progress, minimum):
    _say(
        progress,
        f"start completed: log evidence {minimum.log_evidence:.2f} (standardised targets), "
        f"{minimum.n_iter} iterations, {len(minimum.pruned)} units pruned",
    )


def _say(progress, line):
    if progress is not None:
        progress(line)
