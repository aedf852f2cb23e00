# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# cython: cdivision=True
"""Compiled twin of `lower` with damped steps: see `_steps.py`.

The functions have the names of their twins in `_damped.py`, `_steps.py` and `_reestimation.py`,
which describe methods and reasons. `Loop.run` evaluates tau in NumPy, between accepted steps, and
returns the search as it is before a step that these loops cannot make.
"""

from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from libc.math cimport INFINITY, NAN, exp, fabs, fmax, fmin, isfinite, log
from libc.string cimport memcpy, memset

import numpy as np
from scipy.linalg import cython_lapack

from skbayesnn.inference.curvature import _precision
from skbayesnn.inference.curvature._method import Method, Point
from skbayesnn.inference.curvature._precision import DensePrecision
from skbayesnn.inference.optimise import _damped, _reestimation
from skbayesnn.inference.optimise._damped import Search
from skbayesnn.inference.optimise._reestimation import Calm
from skbayesnn.posterior import Energies, Hyperparameters
from skbayesnn.posterior.kernels._core cimport (
    CModel, Kernels, Model, doubles, integers, kernels_in_use)

ctypedef void (*OfTriangle)(char *, int *, double *, int *, int *) noexcept nogil
ctypedef void (*Solver)(char *, int *, int *, double *, int *, double *, int *, int *) noexcept nogil


cdef void *routine(str name) except NULL:
    """A routine of SciPy's LAPACK."""
    capsule = cython_lapack.__pyx_capi__[name]
    return PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule))


cdef OfTriangle dpotrf = <OfTriangle>routine("dpotrf"), dpotri = <OfTriangle>routine("dpotri")
cdef Solver dpotrs = <Solver>routine("dpotrs")

cdef double LEAST_PIVOT = _precision.LEAST_PIVOT
cdef double SLACK = _damped.SLACK, NO_WAY_DOWN = _damped.NO_WAY_DOWN
cdef double LEAST_KEPT = _damped.LEAST_KEPT, MOST_BENT = _damped.MOST_BENT
cdef double MOST_DAMPING = _damped.MOST_DAMPING, LEAST_DAMPING = _damped.LEAST_DAMPING
cdef double FIRST_DAMPING = _damped.FIRST_DAMPING
cdef double LEAST_CUT = _damped.LEAST_CUT, CUT_OUTSIDE = _damped.CUT_OUTSIDE
cdef double TINY = _damped.TINY, ROUNDING = _damped.ROUNDING
cdef double MAX_CHANGE = _reestimation.MAX_CHANGE
cdef double NOTHING = _reestimation.NOTHING, LEAST_FREE = _reestimation.LEAST_FREE
cdef int TAU_EVERY = _reestimation.TAU_EVERY, CALM_STEPS = _reestimation.CALM_STEPS


cdef struct Prior:  # of a precision: counts ``2 a`` and rate, bounds, and 1 if it is free, else 0
    double counts, rate, low, high, free


cdef struct Task:  # constants of a search
    const CModel *model
    const Kernels *kernels
    int k, n_groups, n_levels, bends, solves_outputs
    const int *label  # group of every weight
    const double *sizes  # weights of every group
    const double *counts  # targets of every noise level
    const Prior *priors  # of groups, then of noise levels
    int exact, confined, reestimates, by_rounding
    double tol
    double *alpha  # working memory: prior precision of every weight
    double *metric
    double *step
    double *force
    double *gamma
    double *factor  # of the damped matrix, or the inverse of the undamped one
    double *work  # of the kernels


cdef struct Place:  # `Point`
    double *theta
    double *precisions  # of groups, then of noise levels
    double *weights  # E_W of every group
    double *errors  # E_D of every noise level
    double *gradient
    double *matrix
    double *factor
    double misfit, energy
    int definite


cdef struct Way:  # `Search` less its point, with `Calm`, and the promise and gain of a `Step`
    double damping, growth, promise, gain
    long n_iter, small, accepted
    int done, converged
    const double *tau_factor


# --- matrices -------------------------------------------------------------------------------------


cdef double product(long n, const double *a, const double *b) noexcept nogil:
    """Sum of products."""
    cdef double total = 0.0
    cdef long i
    for i in range(n):
        total += a[i] * b[i]
    return total


cdef int factorised(int k, const double *matrix, double damping, const double *metric,
                    double *factor) noexcept nogil:
    """`DensePrecision.factor` of ``A + damping diag(metric)``: whether there is one."""
    cdef int info = 0, i
    cdef long at
    cdef double entry
    memcpy(factor, matrix, sizeof(double) * k * k)
    for i in range(k if damping != 0.0 else 0):
        factor[<long>i * k + i] += damping * metric[i]
    dpotrf(b"L", &k, factor, &k, &info)
    if info != 0:
        return 0
    for i in range(k):
        at = <long>i * k + i
        entry = matrix[at] + (damping * metric[i] if damping != 0.0 else 0.0)
        if not factor[at] * factor[at] > LEAST_PIVOT * k * entry:
            return 0
        memset(factor + <long>i * k, 0, sizeof(double) * i)
    return 1


cdef void solve(int k, double *factor, double *x) noexcept nogil:
    """Solve ``L L^T x = b`` in place."""
    cdef int one = 1, info = 0
    dpotrs(b"L", &k, &one, factor, &k, x, &k, &info)


# --- the energy -----------------------------------------------------------------------------------


cdef double energies(const Task *task, Place *at, int exact, double *gradient,
                     double *matrix) noexcept nogil:
    """`Posterior.expansion`; gradient and matrix may be NULL. Returns the energy."""
    cdef long i, k = task.k
    at.misfit = task.kernels.evaluate(task.model, at.theta, at.precisions + task.n_groups, exact,
                                      at.errors, gradient, matrix, task.work)
    memset(at.weights, 0, sizeof(double) * task.n_groups)
    for i in range(k):
        at.weights[task.label[i]] += 0.5 * at.theta[i] * at.theta[i]
        if gradient != NULL:
            gradient[i] += at.precisions[task.label[i]] * at.theta[i]
        if matrix != NULL:
            matrix[i * k + i] += at.precisions[task.label[i]]
    return at.misfit + product(task.n_groups, at.precisions, at.weights)


cdef int expand(const Task *task, Place *at) noexcept nogil:
    """`Method.point`: whether the matrix is definite."""
    at.energy = energies(task, at, task.exact, at.gradient, at.matrix)
    at.definite = factorised(task.k, at.matrix, 0.0, NULL, at.factor)
    return at.definite


# --- damped steps ---------------------------------------------------------------------------------


cdef void try_step(const Task *task, Place *at, Place *there, Way *way) noexcept nogil:
    """`DampedSteps.trial`: weights, with their energies, at the precisions of the place before."""
    cdef long i, k = task.k
    cdef double *factor = at.factor
    cdef double *step = task.step
    cdef double gain
    for i in range(k):
        task.alpha[i] = at.precisions[task.label[i]]
        task.metric[i] = fmax(fabs(at.matrix[i * k + i]), task.alpha[i])
    way.promise, way.gain = NAN, -INFINITY
    if way.damping != 0.0:
        factor = task.factor
        if not factorised(task.k, at.matrix, way.damping, task.metric, factor):
            return
    elif not at.definite:
        return
    for i in range(k):
        step[i] = -at.gradient[i]
    solve(task.k, factor, step)
    way.promise = 0.0
    for i in range(k):
        way.promise += 0.5 * step[i] * (way.damping * task.metric[i] * step[i] - at.gradient[i])
    if task.bends:
        bend(task, at, factor)
    for i in range(k):
        there.theta[i] = at.theta[i] + step[i]
    memcpy(there.precisions, at.precisions, sizeof(double) * (task.n_groups + task.n_levels))
    if task.solves_outputs:
        task.kernels.best_outputs(task.model, there.theta, task.alpha,
                                  at.precisions + task.n_groups, task.work)
    gain = at.energy - energies(task, there, 0, NULL, NULL)
    if isfinite(gain):
        way.gain = gain


cdef void bend(const Task *task, const Place *at, double *factor) noexcept nogil:
    """`_accelerated`."""
    cdef long i
    cdef double *force = task.force
    cdef double *step = task.step
    cdef double bent = 0.0, straight = 0.0
    task.kernels.bend(task.model, at.theta, at.precisions + task.n_groups, step, force, task.work)
    solve(task.k, factor, force)
    for i in range(task.k):
        force[i] *= -0.5
        bent += task.metric[i] * force[i] * force[i]
        straight += task.metric[i] * step[i] * step[i]
    if not 4.0 * bent > MOST_BENT * MOST_BENT * straight:
        for i in range(task.k):
            step[i] += force[i]


cdef void accept(Way *way, int definite) noexcept nogil:
    """`Search.accepted`."""
    cdef double ratio = 1.0, off
    if not way.gain >= way.promise:
        ratio = fmax(way.gain, 0.0) / fmax(way.promise, TINY)
    off = 2.0 * ratio - 1.0
    way.damping *= fmax(LEAST_CUT if definite else CUT_OUTSIDE, 1.0 - off * off * off)
    if way.damping != 0.0:
        way.damping = fmax(way.damping, LEAST_DAMPING)
    way.growth = 2.0
    way.n_iter += 1


cdef void reject(Way *way) noexcept nogil:
    """`Search.rejected`."""
    way.damping *= way.growth
    if way.damping == 0.0:
        way.damping = FIRST_DAMPING
    way.growth *= 2.0
    way.n_iter += 1
    if 0.0 <= way.promise < NO_WAY_DOWN or way.damping > MOST_DAMPING:
        way.done, way.converged = 1, way.promise < NO_WAY_DOWN


# --- rules ----------------------------------------------------------------------------------------


cdef int fixed_precisions(const Task *task, Place *after, Way *way) noexcept nogil:
    """`FixedPrecisions.after`. Returns 0 at a matrix spoilt by rounding."""
    cdef double ending = task.tol, decrement
    if not expand(task, after) and task.by_rounding:
        return 0
    if task.exact:
        ending = SLACK * fabs(after.energy)
    accept(way, after.definite)
    way.done = way.promise < ending
    if not after.definite:
        way.done |= task.confined
        return 1
    memcpy(task.force, after.gradient, sizeof(double) * task.k)
    solve(task.k, after.factor, task.force)
    decrement = 0.5 * product(task.k, after.gradient, task.force)
    way.done |= decrement < fmax(task.tol, ROUNDING * fabs(after.energy))
    way.converged = way.done
    return 1


cdef int reestimation(const Task *task, const Place *before, Place *after,
                      Way *way) noexcept nogil:
    """`Reestimation.after`. Returns 0 at a matrix spoilt by rounding."""
    cdef double gain = 0.0, change
    cdef int i, info = 0, k = task.k
    memcpy(task.factor, before.factor, sizeof(double) * k * k)
    dpotri(b"L", &k, task.factor, &k, &info)
    memcpy(task.gamma, task.sizes, sizeof(double) * task.n_groups)
    for i in range(k):
        task.gamma[task.label[i]] -= task.alpha[i] * task.factor[<long>i * k + i]
    reestimate(task, before, way.tau_factor, after)
    if not expand(task, after):
        return 0
    for i in range(task.n_groups + task.n_levels):
        change = log(after.precisions[i] / before.precisions[i])
        gain += change * change * (task.priors[i].counts + (
            task.gamma[i] if i < task.n_groups else task.counts[i - task.n_groups]))
    accept(way, after.definite)
    way.small = way.small + 1 if fabs(way.gain) < task.tol and 0.25 * gain < task.tol else 0
    way.accepted += 1
    way.done = way.converged = way.small >= CALM_STEPS
    return 1


cdef void reestimate(const Task *task, const Place *before, const double *tau_factor,
                     Place *after) noexcept nogil:
    """`reestimate`: new precisions from the energies of the weights after a step."""
    cdef double total = 0.0, targets = 0.0, well, left, old
    cdef int c, i, G = task.n_groups
    cdef double *precisions = after.precisions
    for c in range(G):
        well = fmax(task.gamma[c], 0.0) * tau_factor[c]
        total += well
        if well + task.priors[c].counts > NOTHING:
            precisions[c] = precision_of(&task.priors[c], well, after.weights[c])
    for c in range(task.n_levels):
        targets += task.counts[c]
    for c in range(task.n_levels):
        left = task.counts[c]
        left = fmax(left - total * left / fmax(targets, TINY), LEAST_FREE * left)
        precisions[G + c] = precision_of(&task.priors[G + c], left, after.errors[c])
    for i in range(G + task.n_levels):
        old = before.precisions[i]
        left = log(fmin(fmax(precisions[i], task.priors[i].low), task.priors[i].high) / old)
        left = fmin(fmax(left, -MAX_CHANGE), MAX_CHANGE)
        precisions[i] = old * exp(left) if task.priors[i].free != 0.0 else old


cdef double precision_of(const Prior *prior, double counts, double energy) noexcept nogil:
    """`precision_of`."""
    cdef double twice = 2.0 * (energy + prior.rate)
    counts += prior.counts
    return counts / twice if counts < prior.high * twice else prior.high


# --- the loop -------------------------------------------------------------------------------------


cdef int lower(const Task *task, Place *places, Way *way, long until) noexcept nogil:
    """`lower`: the index of the place where it ends, less 2 if the next step is to be left.

    It also ends after an accepted step that makes a new evaluation of tau due.
    """
    cdef int at = 0, good
    cdef Place *here
    cdef Place *there
    while not way.done and way.n_iter < until:
        here, there = &places[at], &places[1 - at]
        try_step(task, here, there, way)
        if not way.gain > LEAST_KEPT * way.promise - SLACK * fabs(here.energy):
            reject(way)
            way.converged &= here.definite or task.reestimates
            continue
        if task.reestimates:
            good = reestimation(task, here, there, way)
        else:
            good = fixed_precisions(task, there, way)
        if not good:
            return at - 2
        at = 1 - at
        if task.reestimates and way.accepted % TAU_EVERY == 0:
            break
    return at


cdef double *taken(double **memory, long count) noexcept:
    """The next numbers of some memory."""
    memory[0] += count
    return memory[0] - count


cdef class Loop:
    """The loop for one posterior and one rule."""

    cdef Model model
    cdef Task task
    cdef long room
    cdef list kept
    cdef object rule, ends

    def __init__(self, posterior, rule):
        cdef Task *task = &self.task
        groups, likelihood, free = posterior.groups, posterior.likelihood, rule.free
        hidden = len(posterior.network.hidden_layer_sizes) > 0
        k, G, L = len(groups.labels), len(groups.names), likelihood.n_levels
        self.model, self.rule, self.kept = posterior.compiled, rule, []
        if free is not None:
            prior, bounds = free.prior, np.exp([free.prior.low, free.prior.high])
            columns = np.column_stack([2.0 * prior.shape, prior.rate, *bounds, free.mask])
            task.priors = <const Prior *>doubles(self.kept, columns)
        task.model, task.kernels = &self.model.c, kernels_in_use()
        task.k, task.n_groups, task.n_levels = k, G, L
        task.bends, task.solves_outputs = hidden, hidden and L > 0
        task.exact, task.reestimates = rule.exact, free is not None
        task.by_rounding = Method.loses_definiteness(posterior, rule.exact)
        task.tol, task.confined = rule.tol, rule.confined
        task.label = integers(self.kept, groups.labels)
        task.sizes = doubles(self.kept, groups.sizes)
        task.counts = doubles(self.kept, posterior.level_counts)
        self.ends = np.cumsum([k, G, L, G, L, k, k * k])  # of the parts of a `Place`
        self.room = k * k + 4 * k + G + self.model.room(1)

    def run(self, search, long until):
        """Continue a `Search` up to a number of steps in all.

        Also returns whether the next step is left to be made in NumPy.
        """
        cdef long k = self.task.k, G = self.task.n_groups, L = self.task.n_levels
        point, calm = search.point, None
        precision, energies = point.precision, point.energies
        dense = isinstance(precision, DensePrecision)
        if not dense or (self.task.by_rounding and not precision.definite):
            return search, True
        if self.task.reestimates:
            calm = self.rule.calm(search)
        factor = precision.factor.T if precision.definite else precision.matrix
        start = point.theta, *point.hyper, energies.weights, energies.errors, point.gradient
        start = np.concatenate([np.ravel(one) for one in (*start, precision.matrix, factor)])
        cdef double[:, ::1] memory = np.array([start, start])
        cdef double[::1] work = np.empty(self.room), tau = np.ones(1)
        cdef Place places[2]
        cdef Way way
        cdef double *next = &work[0]
        cdef int i, at
        self.task.factor, self.task.alpha = taken(&next, k * k), taken(&next, k)
        self.task.metric, self.task.step = taken(&next, k), taken(&next, k)
        self.task.force, self.task.gamma = taken(&next, k), taken(&next, G)
        self.task.work = next
        for i in range(2):
            next = &memory[i, 0]
            places[i].theta, places[i].precisions = taken(&next, k), taken(&next, G + L)
            places[i].weights, places[i].errors = taken(&next, G), taken(&next, L)
            places[i].gradient, places[i].matrix = taken(&next, k), taken(&next, k * k)
            places[i].factor = next
            places[i].misfit, places[i].energy = energies.misfit, point.energy
            places[i].definite = precision.definite
        way.damping, way.growth, way.n_iter = search.damping, search.growth, search.n_iter
        way.done, way.converged = search.done, search.converged
        if self.task.reestimates:
            tau = calm.tau_factor
            way.small, way.accepted, way.tau_factor = calm.small, calm.accepted, &tau[0]
        with nogil:
            at = lower(&self.task, places, &way, until)
        left = at < 0
        at += 2 * left
        if way.n_iter == search.n_iter:
            return search, left
        found = [part.copy() for part in np.split(np.asarray(memory[at]), self.ends)]
        precision = DensePrecision(found[6].reshape(k, k))
        if places[at].definite:
            precision.factor = found[7].reshape(k, k).T
        energies = Energies(found[3], np.asarray(places[at].misfit), found[4])
        point = Point(found[0], Hyperparameters(found[1], found[2]), energies, found[5], precision)
        memory_of_rule = search.memory
        if self.task.reestimates and way.accepted > calm.accepted:
            memory_of_rule = Calm(way.small, way.accepted, calm.tau_factor)
        done, converged = bool(way.done), bool(way.converged)
        return Search(
            point, way.damping, way.growth, way.n_iter, done, converged, memory_of_rule), left
