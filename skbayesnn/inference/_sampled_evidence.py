"""The evidence by sequential Monte Carlo, from two beginnings: the prior, and the minima.

From the prior all copies of all minima are within reach, and sharp ones are hardly ever hit; from
the minima these are certain, and what lies far from all of them is hardly ever reached. The mean
of either estimate is right, but a single one is too small where it has missed something. Where both
agree, neither has missed much that the other can reach.
"""

from typing import NamedTuple

import numpy as np

from skbayesnn._threads import blas_threads
from skbayesnn.inference._copies import MOST_STATES, Copies
from skbayesnn.inference._deadline import NEVER, Deadline, OutOfTime
from skbayesnn.inference._evidence import log_symmetry
from skbayesnn.inference._modes import Modes
from skbayesnn.inference._moves import moves_beside
from skbayesnn.inference._scale_moves import ScaleMoves
from skbayesnn.inference._tempered import NearPrecisions, Tempered
from skbayesnn.posterior import Hyperparameters
from skbayesnn.samplers import Stage, anneal, combine, log_sum_exp

N_POPULATIONS = 4  # of each path
DISAGREEMENT = 2.0  # standard errors between paths from which on the lower one is dropped
N_PARTICLES = 16  # of a population in the first round
N_ROUNDS, MORE = 3, 2  # of all paths, each with that many times as many particles as the last
MOST_PARTICLES = 32, 64  # of a population in the last round: many rows and few
PARTICLE_ROWS = 2**12  # particles times rows in the last round, within these
LITTLE = 0.25  # that a particle of a way counts, at most, if no more are sent that way
PRECISE = 0.15  # standard error, in nats, with which no further round is made
SHARED = 0.2  # nats that all populations miss alike; chosen on tests/benchmarks/evidence_truth.py
LIKENESSES = 256  # draws that tell what a minimum's units are like


class Annealing(NamedTuple):
    """What annealing has found.

    Attributes
    ----------
    log_evidence : float
        In nats, for targets in standardised units.
    spread : float
        Its standard error as the populations tell.
    position : ndarray of shape (m, d)
        Draws from the posterior.
    weights : ndarray of shape (m,)
        Of the draws; they sum to 1.
    estimates : list of tuple
        Log evidence and standard error by every path.
    """

    log_evidence: float
    spread: float
    position: np.ndarray
    weights: np.ndarray
    estimates: list

    @property
    def log_evidence_std(self):
        """The standard error, with what all populations miss if anything had to be moved."""
        return float(np.hypot(self.spread, SHARED if self.position.shape[1] else 0.0))


class _Path:
    """From a density to the posterior, by powers of the ratio of both."""

    log_share, log_copies, n_moves = None, 0.0, 2

    def __init__(self, joint, first, move):
        self.joint, self.first, self.move = joint, first, move

    def draw(self, rng, size):
        """Positions where annealing begins."""
        return self.first.draw(rng, size)

    def misfit(self, q):
        """Minus log of posterior over the density where annealing begins, up to the evidence."""
        return Tempered(self.joint, self.first, 1.0, -1.0).values(q)

    def stage(self, temperature, position, rngs):
        """The `Stage` of a temperature."""
        energy = Tempered.at_temperature(self.joint, self.first, temperature)
        return Stage(position, energy, self.move)


class _FromPrior(_Path):
    """From the prior but for precisions, which begin near those of the posterior.

    Parameters
    ----------
    joint : JointPosterior
    eta : ndarray of shape (n_draws, n_free)
        Coordinates of precisions from the posterior.
    """

    way = "prior"

    def __init__(self, joint, eta):
        super().__init__(joint, NearPrecisions.of(joint, eta), moves_beside(joint, 1))


class _FromPriorWithConditions(_FromPrior):
    """The same for energies that are conditional on factors of the rows' precisions.

    The likelihood whose power is taken is that of all weights, the factors integrated out. At every
    temperature it is a mixture over factors again, so that the output layer can be integrated out.
    """

    n_moves = 4  # what moves is held back by the conditions

    def misfit(self, q):
        """As before, of all weights."""
        moving = q[..., self.joint.n_sampled : self.joint.dimension]
        return self.joint.misfit(q) + self.first.change(moving)[0]

    def stage(self, temperature, position, rngs):
        """The `Stage` of a temperature, factors drawn anew."""
        energy = Tempered.at_temperature(self.joint, self.first, temperature)
        position = energy.joint.renewed(position, rngs, keep_outputs=True)
        return Stage(position, energy, moves_beside(energy.joint, 1))


class _FromMinima(_Path):
    """From Student-t distributions around modes of the posterior in the samplers' coordinates.

    Parameters
    ----------
    joint : JointPosterior
    modes : Modes
    rng : numpy.random.Generator
    """

    way = "minima"

    def __init__(self, joint, modes, rng):
        super().__init__(joint, modes, ScaleMoves(joint, reversible=True))
        likeness = [modes.draw(rng, LIKENESSES, only=i) for i in range(len(modes.position))]
        self.copies = Copies(joint, likeness, modes.shares)
        network, groups = joint.posterior.network, joint.posterior.groups
        self.log_copies = log_symmetry(network, groups)

    def log_share(self, q):
        """See `Copies`."""
        return self.copies.log_share(q)


class _Timed(NamedTuple):
    """A path that is left when time is up."""

    path: object
    deadline: Deadline

    def misfit(self, q):
        """That of the path."""
        return self.path.misfit(q)

    def stage(self, temperature, position, rngs):
        """That of the path, if there is time."""
        if self.deadline.passed:
            raise OutOfTime
        return self.path.stage(temperature, position, rngs)


def estimate_evidence(joint, draws, seed, deadline=NEVER):
    """``log P(D | H)`` by sequential Monte Carlo, with a standard error, after a run of chains.

    Parameters
    ----------
    joint : JointPosterior
    draws : Draws
        From the posterior: they tell where precisions are likely, and near which minima chains are.
    seed : numpy.random.SeedSequence
    deadline : Deadline

    Returns
    -------
    Annealing or None
        ``None`` if there was no time for it.
    """
    best = np.arange(len(draws.energy)), np.argmin(draws.energy, axis=1)
    starts = None
    if anneals_from_minima(joint):
        hyper = Hyperparameters(draws.alpha[best], draws.beta[best])
        starts = joint.position(draws.theta[best].astype(float), hyper)
    eta = np.concatenate(joint.drawn_coordinates(draws))
    return anneal_both_ways(joint, starts, seed, eta, deadline=deadline)


def anneals_from_minima(joint):
    """Whether positions hold the weights of one network, and precisions, but nothing else.

    `Copies` holds for priors that are the same for all copies of a network.
    """
    alone = joint.n_conditions == 0 and joint.n_sampled == joint.n_mean
    return alone and joint.posterior.groups.centred


def anneal_both_ways(joint, starts, seed, eta=None, deadline=NEVER):
    """The evidence by annealing from minima and from the prior, with a standard error.

    Independent populations of 16 particles give the spread of the estimate. If that is large, a
    second round has twice as many particles, and with up to 64 rows a third one four times as many,
    on the ways that tell anything beside the best one.

    Parameters
    ----------
    joint : JointPosterior
    starts : ndarray of shape (m, d), or None
        Positions near minima; with ``None`` annealing begins at the prior only.
    seed : numpy.random.SeedSequence
    eta : ndarray of shape (n_draws, n_free), optional
        Coordinates of precisions drawn from the posterior; by default those that annealing from
        the minima finds.
    deadline : Deadline
        After it the round that was begun does not count.

    Returns
    -------
    Annealing or None
        ``None`` if there are no ``eta``, and no minimum is usable, or if there was no time for it.
    """
    rng, size, most = np.random.default_rng(seed), N_PARTICLES, _most_particles(joint)
    found, lowest, result, ways = [], [], None, {"minima", "prior"}
    with blas_threads(joint.posterior.network.n_weights):
        for to_come in range(N_ROUNDS - 1, -1, -1):
            try:
                new = _round(joint, starts, lowest, eta, rng, size, ways, deadline)
            except OutOfTime:
                break
            found += new
            if not found:
                return None
            result = _together(found)
            if not (new and to_come and MORE * size <= most and result.spread > PRECISE):
                break
            kept, counts = _counting(new)
            ways = {run.way for run, count in zip(kept, counts, strict=True) if count > LITTLE}
            chosen = rng.choice(len(result.position), LIKENESSES, p=result.weights)
            eta = result.position[chosen][:, joint.n_sampled : joint.dimension]
            lowest = _lowest(joint, new)
            size = MORE * size
    return result


def _most_particles(joint):
    return np.clip(PARTICLE_ROWS // len(joint.posterior.X), *MOST_PARTICLES)


def _round(joint, starts, lowest, eta, rng, size, ways, deadline):
    """A `Run` by every way that is wanted and open."""
    runs = []
    modes = None
    if starts is not None and "minima" in ways:
        modes = Modes.near(joint, starts, lowest)
    if modes is not None:
        path = _FromMinima(joint, modes, rng)
        if np.isfinite(path.log_copies) and path.copies.n_states <= MOST_STATES:
            runs.append(Run.of(path, rng, size, deadline))
            if eta is None:
                eta = runs[0].position[:, joint.n_sampled : joint.dimension]
    if eta is not None and "prior" in ways:
        path = (_FromPriorWithConditions if joint.n_conditions else _FromPrior)(joint, eta)
        runs.append(Run.of(path, rng, size, deadline))
    return runs


class Run(NamedTuple):
    """Populations that have gone one way.

    Attributes
    ----------
    way : {"minima", "prior"}
    log_evidences : ndarray of shape (N_POPULATIONS,)
    position : ndarray of shape (N_POPULATIONS * n_particles, d)
        In the end, those of a population together.
    estimate : tuple of float
        Log evidence and standard error.
    """

    way: str
    log_evidences: np.ndarray
    position: np.ndarray
    estimate: tuple

    @classmethod
    def of(cls, path, rng, size, deadline):
        """Populations of a size that begin as the path says; `OutOfTime` after the deadline."""
        position, timed = path.draw(rng, size * N_POPULATIONS), _Timed(path, deadline)
        found = anneal(timed, position, rng, N_POPULATIONS, path.n_moves, path.log_share)
        log_evidences = found.log_evidences + path.log_copies
        return cls(path.way, log_evidences, found.position, combine(log_evidences))


def _counting(runs):
    """The runs that are not clearly below the best one, and how much a particle of each counts.

    What is missed lowers an estimate. Those that are clearly lower have missed something; one that
    is lower and less certain than the best counts by its precision, but one that is lower and more
    certain, no more than the best.

    Returns
    -------
    kept : list of Run
    counts : list of float
        At most 1.
    """
    best, error = max(run.estimate for run in runs)
    least = np.hypot(error, SHARED)
    kept = [
        run
        for run in runs
        if run.estimate[0] >= best - DISAGREEMENT * np.hypot(error, run.estimate[1])
    ]
    return kept, [min(1.0, least / np.hypot(run.estimate[1], SHARED)) ** 2 for run in kept]


def _lowest(joint, runs):
    """The position of lowest energy in every population."""
    best = []
    for run in runs:
        energies = joint.energy(run.position)[0].reshape(N_POPULATIONS, -1)
        first = energies.shape[1] * np.arange(N_POPULATIONS)
        best.append(run.position[first + np.argmin(energies, axis=1)])
    return np.concatenate(best)


def _together(runs):
    """One `Annealing` of several runs."""
    kept, counts = _counting(runs)
    log_evidences = np.concatenate([run.log_evidences for run in kept])
    sizes = np.repeat([len(run.position) // N_POPULATIONS for run in kept], N_POPULATIONS)
    counts = np.repeat(counts, N_POPULATIONS)
    totals = sizes * counts
    shares = counts * np.exp(log_evidences - log_sum_exp(log_evidences + np.log(totals), axis=0))
    position = np.concatenate([run.position for run in kept])
    estimates = [run.estimate for run in runs]
    found = combine(log_evidences, totals)
    return Annealing(*found, position, np.repeat(shares, sizes), estimates)
