# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# cython: cdivision=True
"""Compiled twin of `lower` with damped steps: see `_steps.py`.

The functions have the names of their twins in `_damped.py`, `_steps.py` and `_reestimation.py`,
which describe methods and reasons. Before a step that these loops cannot make, `Loop.run` returns
the search as it is.
"""

from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from libc.math cimport INFINITY, NAN, exp, fabs, fmax, fmin, isfinite, log, sqrt
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
    CModel, Kernels, Model, doubles, integers, kernels_in_use, product)

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
cdef double MAX_CHANGE = _reestimation.MAX_CHANGE, MAX_TAU = _reestimation.MAX_TAU
cdef double NOTHING = _reestimation.NOTHING, LEAST_FREE = _reestimation.LEAST_FREE
cdef double LEAST_GAMMA = _reestimation.LEAST_GAMMA
cdef double STEP = _reestimation.STEP, LONGEST = _reestimation.LONGEST
cdef int TAU_EVERY = _reestimation.TAU_EVERY, CALM_STEPS = _reestimation.CALM_STEPS


cdef struct Task:  # what stays as it is
    const CModel *model
    const CModel *part  # with the rows from which tau is evaluated
    const Kernels *kernels
    int k, n_groups, n_levels, bends, solves_outputs, is_quadratic
    const int *label  # group of every weight
    const double *sizes  # weights of every group
    const double *counts  # targets of every noise level
    const double *more  # counts of the priors of groups, then of noise levels
    const double *rate  # of these priors
    const int *free  # groups, then noise levels
    const double *low  # bounds of the precisions
    const double *high
    int exact, confined, reestimates, by_rounding
    double tol
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


cdef struct Way:  # `Search`, less its point, and `Calm`
    double damping, growth
    long n_iter, small, accepted
    int done, converged
    double *tau_factor


cdef struct Step:  # `Step`
    double *theta
    double *weights
    double *errors
    double misfit, promise, gain


cdef struct Space:  # for results on the way
    double *damped
    double *inverse
    double *metric
    double *alpha  # of every weight
    double *step
    double *force
    double *moves  # of every group
    double *end
    double *gamma
    double *tau_factor


# --- matrices -------------------------------------------------------------------------------------


cdef int factorised(int k, const double *matrix, double *factor) noexcept nogil:
    """`DensePrecision.factor`: whether there is one."""
    cdef int info = 0, i
    cdef long at
    memcpy(factor, matrix, sizeof(double) * k * k)
    dpotrf(b"L", &k, factor, &k, &info)
    if info != 0:
        return 0
    for i in range(k):
        at = <long>i * k + i
        if not factor[at] * factor[at] > LEAST_PIVOT * k * matrix[at]:
            return 0
        memset(factor + <long>i * k, 0, sizeof(double) * i)
    return 1


cdef void solve(int k, double *factor, double *x) noexcept nogil:
    cdef int one = 1, info = 0
    dpotrs(b"L", &k, &one, factor, &k, x, &k, &info)


cdef void invert(int k, const double *factor, double *inverse) noexcept nogil:
    """The whole symmetric inverse."""
    cdef int info = 0
    cdef long i, j
    memcpy(inverse, factor, sizeof(double) * k * k)
    dpotri(b"L", &k, inverse, &k, &info)
    for i in range(k):
        for j in range(i):
            inverse[i * k + j] = inverse[j * k + i]


# --- the energy -----------------------------------------------------------------------------------


cdef double energies(const Task *task, const double *theta, const double *precisions, int exact,
                     double *weights, double *errors, double *misfit, double *gradient,
                     double *matrix) noexcept nogil:
    """`Posterior.expansion`; gradient and matrix may be NULL. Returns the energy."""
    cdef const double *beta = precisions + task.n_groups
    cdef double total
    cdef long i, k = task.k
    total = task.kernels.evaluate(
        task.model, theta, beta, exact, errors, gradient, matrix, task.work)
    memset(weights, 0, sizeof(double) * task.n_groups)
    for i in range(k):
        weights[task.label[i]] += 0.5 * theta[i] * theta[i]
        if gradient != NULL:
            gradient[i] += precisions[task.label[i]] * theta[i]
        if matrix != NULL:
            matrix[i * k + i] += precisions[task.label[i]]
    misfit[0] = total
    return total + product(task.n_groups, precisions, weights)


cdef int expand(const Task *task, Place *at) noexcept nogil:
    """`Method.point`: whether the matrix is definite."""
    at.energy = energies(task, at.theta, at.precisions, task.exact, at.weights, at.errors,
                         &at.misfit, at.gradient, at.matrix)
    at.definite = factorised(task.k, at.matrix, at.factor)
    return at.definite


# --- damped steps ---------------------------------------------------------------------------------


cdef void try_step(const Task *task, Place *at, double damping, Space *space,
                   Step *trial) noexcept nogil:
    """`DampedSteps.trial`."""
    cdef long i, j, k = task.k
    cdef double *factor = at.factor
    cdef double *step = space.step
    cdef double energy
    for i in range(k):
        space.alpha[i] = at.precisions[task.label[i]]
        space.metric[i] = fmax(fabs(at.matrix[i * k + i]), space.alpha[i])
    trial.promise, trial.gain = NAN, -INFINITY
    if damping != 0.0:
        memcpy(space.inverse, at.matrix, sizeof(double) * k * k)
        for i in range(k):
            space.inverse[i * k + i] += damping * space.metric[i]
        factor = space.damped
        if not factorised(task.k, space.inverse, factor):
            return
    elif not at.definite:
        return
    for i in range(k):
        step[i] = -at.gradient[i]
    solve(task.k, factor, step)
    trial.promise = -product(k, at.gradient, step)
    for i in range(k):
        trial.promise -= 0.5 * step[i] * product(k, at.matrix + i * k, step)
    if task.bends:
        bend(task, at, factor, space)
    for i in range(k):
        trial.theta[i] = at.theta[i] + step[i]
    if task.solves_outputs:
        task.kernels.best_outputs(task.model, trial.theta, space.alpha,
                                  at.precisions + task.n_groups, task.work)
    energy = energies(task, trial.theta, at.precisions, 0, trial.weights, trial.errors,
                      &trial.misfit, NULL, NULL)
    if isfinite(at.energy - energy):
        trial.gain = at.energy - energy


cdef void bend(const Task *task, Place *at, double *factor, Space *space) noexcept nogil:
    """`_accelerated`."""
    cdef long i
    cdef double *force = space.force
    cdef double *step = space.step
    cdef double bent = 0.0, straight = 0.0
    task.kernels.bend(task.model, at.theta, at.precisions + task.n_groups, step, force, task.work)
    solve(task.k, factor, force)
    for i in range(task.k):
        force[i] *= -0.5
        bent += space.metric[i] * force[i] * force[i]
        straight += space.metric[i] * step[i] * step[i]
    if not 4.0 * bent > MOST_BENT * MOST_BENT * straight:
        for i in range(task.k):
            step[i] += force[i]


cdef void accept(Way *way, const Step *trial, int definite) noexcept nogil:
    """`Search.accepted`."""
    cdef double ratio = 1.0, off
    if not trial.gain >= trial.promise:
        ratio = fmax(trial.gain, 0.0) / fmax(trial.promise, TINY)
    off = 2.0 * ratio - 1.0
    way.damping *= fmax(LEAST_CUT if definite else CUT_OUTSIDE, 1.0 - off * off * off)
    if way.damping != 0.0:
        way.damping = fmax(way.damping, LEAST_DAMPING)
    way.growth = 2.0
    way.n_iter += 1


cdef void reject(Way *way, const Step *trial) noexcept nogil:
    """`Search.rejected`."""
    way.damping *= way.growth
    if way.damping == 0.0:
        way.damping = FIRST_DAMPING
    way.growth *= 2.0
    way.n_iter += 1
    if 0.0 <= trial.promise < NO_WAY_DOWN or way.damping > MOST_DAMPING:
        way.done, way.converged = 1, trial.promise < NO_WAY_DOWN


# --- rules ----------------------------------------------------------------------------------------


cdef int fixed_precisions(const Task *task, const Place *before, Place *after, Way *way,
                          const Step *trial, Space *space) noexcept nogil:
    """`FixedPrecisions.after`. Returns 0 at a matrix spoilt by rounding."""
    cdef long size = task.n_groups + task.n_levels
    cdef double ending = task.tol
    memcpy(after.precisions, before.precisions, sizeof(double) * size)
    if not expand(task, after) and task.by_rounding:
        return 0
    if task.exact:
        ending = SLACK * fabs(after.energy)
    accept(way, trial, after.definite)
    way.done = trial.promise < ending
    if not after.definite:
        way.done |= task.confined
        return 1
    way.done |= decrement(task, after, space) < fmax(task.tol, ROUNDING * fabs(after.energy))
    way.converged = way.done
    return 1


cdef int reestimation(const Task *task, Place *before, Place *after, Way *way, const Step *trial,
                      Space *space) noexcept nogil:
    """`Reestimation.after`. Returns 0 at a matrix spoilt by rounding."""
    cdef double gain = 0.0, change
    cdef int c
    cdef long i, k = task.k
    invert(task.k, before.factor, space.inverse)
    for c in range(task.n_groups):
        space.gamma[c] = task.sizes[c]
    for i in range(k):
        c = task.label[i]
        space.gamma[c] -= before.precisions[c] * space.inverse[i * k + i]
    memcpy(space.tau_factor, way.tau_factor, sizeof(double) * task.n_groups)
    if way.accepted % TAU_EVERY == 0 and not task.is_quadratic:
        find_tau_factor(task, before, space)
    reestimate(task, before, trial, space.gamma, space.tau_factor, after.precisions)
    if not expand(task, after):
        return 0
    memcpy(way.tau_factor, space.tau_factor, sizeof(double) * task.n_groups)
    for i in range(task.n_groups + task.n_levels):
        change = log(after.precisions[i] / before.precisions[i])
        c = i - task.n_groups
        gain += ((space.gamma[i] if c < 0 else task.counts[c]) + task.more[i]) * change * change
    accept(way, trial, after.definite)
    way.small = way.small + 1 if fabs(trial.gain) < task.tol and 0.25 * gain < task.tol else 0
    way.accepted += 1
    way.done = way.converged = way.small >= CALM_STEPS
    return 1


cdef void find_tau_factor(const Task *task, Place *before, Space *space) noexcept nogil:
    """`Reestimation._tau_factor`; the inverse and `gamma` are those of the place before."""
    cdef long i, c, k = task.k
    cdef double size = (1.0 + sqrt(product(k, before.theta, before.theta))) / sqrt(k), eps, tau
    cdef double *move
    cdef double *ignored = space.force
    cdef double trace = k
    cdef Task of_part = task[0]
    of_part.model = task.part
    if task.part != task.model:
        energies(&of_part, before.theta, before.precisions, 0, ignored, ignored + task.n_groups,
                 &tau, space.step, space.damped)
        trace = product(k * k, space.damped, space.inverse)
    memset(space.moves, 0, sizeof(double) * k * task.n_groups)
    for i in range(k):
        c = task.label[i]
        space.moves[c * k + i] = -before.precisions[c] * before.theta[i]
    for c in range(task.n_groups):
        move, tau = space.moves + c * k, 0.0
        solve(task.k, before.factor, move)
        eps = fmin(STEP * size / fmax(sqrt(product(k, move, move)), 1e-300), LONGEST)
        for i in range(k):
            space.end[i] = before.theta[i] + eps * move[i]
        energies(&of_part, space.end, before.precisions, 0, ignored, ignored + task.n_groups,
                 &tau, space.step, space.damped)
        tau = -0.5 * (product(k * k, space.damped, space.inverse) - trace) / eps
        tau = 1.0 + 2.0 * tau / fmax(space.gamma[c], LEAST_GAMMA)
        tau = fmin(fmax(tau, 1.0 / MAX_TAU), MAX_TAU)
        space.tau_factor[c] = sqrt(tau * space.tau_factor[c])


cdef void reestimate(const Task *task, const Place *before, const Step *trial, const double *gamma,
                     const double *tau_factor, double *precisions) noexcept nogil:
    """`reestimate`."""
    cdef double total = 0.0, targets = 0.0, well, left
    cdef int c, i, G = task.n_groups
    for c in range(G):
        well = fmax(gamma[c], 0.0) * tau_factor[c]
        total += well
        precisions[c] = before.precisions[c]
        if well + task.more[c] > NOTHING:
            precisions[c] = precision_of(task, c, well, trial.weights[c])
    for c in range(task.n_levels):
        targets += task.counts[c]
    for c in range(task.n_levels):
        left = task.counts[c]
        left = fmax(left - total * left / fmax(targets, TINY), LEAST_FREE * left)
        precisions[G + c] = precision_of(task, G + c, left, trial.errors[c])
    for i in range(G + task.n_levels):
        left = fmin(fmax(precisions[i], task.low[i]), task.high[i])
        left = fmin(fmax(log(left / before.precisions[i]), -MAX_CHANGE), MAX_CHANGE)
        precisions[i] = before.precisions[i] * exp(left) if task.free[i] else before.precisions[i]


cdef double precision_of(const Task *task, int i, double counts, double energy) noexcept nogil:
    """`precision_of`."""
    cdef double twice = 2.0 * (energy + task.rate[i])
    counts += task.more[i]
    return counts / twice if counts < task.high[i] * twice else task.high[i]


cdef double decrement(const Task *task, const Place *at, Space *space) noexcept nogil:
    """`decrement`."""
    memcpy(space.force, at.gradient, sizeof(double) * task.k)
    solve(task.k, at.factor, space.force)
    return 0.5 * product(task.k, at.gradient, space.force)


# --- the loop -------------------------------------------------------------------------------------


cdef int lower(const Task *task, Place *places, int at, Way *way, long until, Space *space,
               Step *trial) noexcept nogil:
    """`lower`: the index of the place where it ends, less 2 if the next step is to be left."""
    cdef Place *here
    cdef Place *there
    cdef int good
    while not way.done and way.n_iter < until:
        here, there = &places[at], &places[1 - at]
        try_step(task, here, way.damping, space, trial)
        if trial.gain > LEAST_KEPT * trial.promise - SLACK * fabs(here.energy):
            memcpy(there.theta, trial.theta, sizeof(double) * task.k)
            if task.reestimates:
                good = reestimation(task, here, there, way, trial, space)
            else:
                good = fixed_precisions(task, here, there, way, trial, space)
            if not good:
                return at - 2
            at = 1 - at
            continue
        reject(way, trial)
        way.converged &= here.definite or task.reestimates
    return at


cdef class Loop:
    """The loop for one posterior and one rule."""

    cdef Model model, part
    cdef Task task
    cdef long room
    cdef list kept

    def __init__(self, posterior, rule):
        cdef Task *task = &self.task
        groups, likelihood, free = posterior.groups, posterior.likelihood, rule.free
        hidden = len(posterior.network.hidden_layer_sizes) > 0
        k, G, L = len(groups.labels), len(groups.names), likelihood.n_levels
        self.model = self.part = posterior.compiled
        self.kept = []
        if free is not None:
            if rule.method.early:
                self.part = rule.part.compiled
            task.more = doubles(self.kept, 2.0 * free.prior.shape)
            task.rate = doubles(self.kept, free.prior.rate)
            task.free = integers(self.kept, free.mask)
            task.low = doubles(self.kept, np.exp(free.prior.low))
            task.high = doubles(self.kept, np.exp(free.prior.high))
        task.model, task.kernels = &self.model.c, kernels_in_use()
        task.part = &self.part.c
        task.k, task.n_groups, task.n_levels = k, G, L
        task.bends, task.solves_outputs = hidden, hidden and L > 0
        task.is_quadratic = posterior.is_quadratic
        task.exact, task.reestimates = rule.exact, free is not None
        task.by_rounding = Method.loses_definiteness(posterior, rule.exact)
        task.tol, task.confined = rule.tol, rule.confined
        task.label = integers(self.kept, groups.labels)
        task.sizes = doubles(self.kept, groups.sizes)
        task.counts = doubles(self.kept, posterior.level_counts)
        self.room = 2 * k * k + (6 + G) * k + 4 * G + 2 * L + self.model.room(1)

    def run(self, search, long until):
        """Continue a `Search` up to a number of steps in all.

        Also returns whether the next step is left to be made in NumPy.
        """
        cdef long k = self.task.k, G = self.task.n_groups, L = self.task.n_levels
        point, calm = search.point, search.memory
        precision = point.precision
        dense = isinstance(precision, DensePrecision)
        if not dense or (self.task.by_rounding and not precision.definite):
            return search, True
        given = [point.theta, np.concatenate(point.hyper), point.energies.weights,
                 point.energies.errors, point.gradient, precision.matrix]
        given.append(precision.factor.T if precision.definite else precision.matrix)
        arrays = [np.array([np.ravel(values)] * 2) for values in given]
        cdef double[:, ::1] theta = arrays[0], precisions = arrays[1], weights = arrays[2]
        cdef double[:, ::1] errors = arrays[3], gradient = arrays[4], matrix = arrays[5]
        cdef double[:, ::1] factor = arrays[6]
        tau_factor = np.ones(G) if calm is None else calm.tau_factor.copy()
        cdef double[::1] tau = tau_factor, memory = np.empty(self.room)
        cdef Place places[2]
        cdef Way way
        cdef Step trial
        cdef Space space = shared_out(&self.task, &memory[0], &trial)
        cdef int i, at
        for i in range(2):
            places[i].theta, places[i].precisions = &theta[i, 0], &precisions[i, 0]
            places[i].weights, places[i].errors = &weights[i, 0], &errors[i, 0]
            places[i].gradient = &gradient[i, 0]
            places[i].matrix, places[i].factor = &matrix[i, 0], &factor[i, 0]
            places[i].misfit, places[i].energy = point.energies.misfit, point.energy
            places[i].definite = precision.definite
        way.damping, way.growth, way.n_iter = search.damping, search.growth, search.n_iter
        way.small, way.accepted = (0, 0) if calm is None else (calm.small, calm.accepted)
        way.done, way.converged, way.tau_factor = search.done, search.converged, &tau[0]
        with nogil:
            at = lower(&self.task, places, 0, &way, until, &space, &trial)
        left = at < 0
        at += 2 * left
        if way.n_iter == search.n_iter:
            return search, left
        theta_, hyper, weights_, errors_, gradient_ = (array[at].copy() for array in arrays[:5])
        found = DensePrecision(arrays[5][at].reshape(k, k).copy())
        if places[at].definite:
            found.factor = arrays[6][at].reshape(k, k).T.copy(order="F")
        energies = Energies(weights_, np.asarray(places[at].misfit), errors_)
        point = Point(theta_, Hyperparameters(hyper[:G], hyper[G:]), energies, gradient_, found)
        if self.task.reestimates:
            calm = Calm(way.small, way.accepted, tau_factor)
        done, converged = bool(way.done), bool(way.converged)
        return Search(point, way.damping, way.growth, way.n_iter, done, converged, calm), left


cdef Space shared_out(Task *task, double *memory, Step *trial) noexcept:
    """Working memory."""
    cdef Space space
    cdef long k = task.k, G = task.n_groups, L = task.n_levels
    space.damped = memory
    space.inverse = space.damped + k * k
    space.metric = space.inverse + k * k
    space.alpha = space.metric + k
    space.step = space.alpha + k
    space.end = space.step + k
    space.moves = space.end + k
    space.gamma = space.moves + G * k
    space.tau_factor = space.gamma + G
    space.force = space.tau_factor + G
    trial.theta = space.force + k + G + L
    trial.weights = trial.theta + k
    trial.errors = trial.weights + G
    task.work = trial.errors + L
    return space
