# cython: language_level=3, boundscheck=False, initializedcheck=False
"""Compiled twins of methods of `Posterior` and `JointPosterior`: see `core.h` and `_compiled.py`."""

from libc.stdlib cimport free, malloc

import numpy as np

from skbayesnn.posterior.likelihoods._output_layer import least_pivot

cdef const Kernels *kernels


cdef const Kernels *kernels_in_use() noexcept:
    return kernels


def instructions():
    """Sets of instructions that can be used here, the fastest first."""
    cdef int i = 0
    names = []
    while kernels_at(i) != NULL:
        names.append(kernels_at(i).name.decode())
        i += 1
    return names


def use(name):
    """Use a set of instructions."""
    global kernels
    kernels = kernels_at(instructions().index(name))


def in_use():
    """The set of instructions that is."""
    return kernels.name.decode()


use(instructions()[0])

DEEPEST = MOST_LAYERS
SINGLE = 1e6  # largest inputs whose products are summed in single precision
ACTIVATIONS = {
    "identity": IDENTITY, "tanh": TANH, "logistic": LOGISTIC, "relu": RELU, "silu": SILU,
}
LIKELIHOODS = {
    "gaussian": GAUSSIAN, "student_t": STUDENT_T, "squared_residuals": SQUARED_RESIDUALS,
    "bernoulli": BERNOULLI, "categorical": CATEGORICAL, "poisson": POISSON,
}


def rows_of(array, shape, long width):
    """Rows `(m, width)` of an array that has, or is repeated to have, the leading axes of a shape."""
    if array.shape[:-1] != shape[:-1]:
        array = np.broadcast_to(array, (*shape[:-1], width))
    size = 1
    for length in shape[:-1]:
        size *= length
    return np.ascontiguousarray(array).reshape(size, width)


cdef inline const double *row(const double[:, ::1] array, long i) noexcept nogil:
    return NULL if array.shape[1] == 0 else &array[i, 0]


cdef inline const double *at(const double[::1] array, long i) noexcept nogil:
    return NULL if array.shape[0] == 0 else &array[i]


cdef inline double *out(double[::1] array, long i) noexcept nogil:
    return NULL if array.shape[0] == 0 else &array[i]


cdef double product(long n, const double *a, const double *b) noexcept nogil:
    """Sum of products: four sums at once, as each addition waits for the one before."""
    cdef double t0 = 0.0, t1 = 0.0, t2 = 0.0, t3 = 0.0
    cdef long i, whole = n - n % 4
    for i in range(0, whole, 4):
        t0 += a[i] * b[i]
        t1 += a[i + 1] * b[i + 1]
        t2 += a[i + 2] * b[i + 2]
        t3 += a[i + 3] * b[i + 3]
    for i in range(whole, n):
        t0 += a[i] * b[i]
    return (t0 + t1) + (t2 + t3)


cdef double *memory(long doubles) except NULL:
    cdef double *work = <double *>malloc(doubles * sizeof(double))
    if work == NULL:
        raise MemoryError(f"{8 * doubles} bytes for temporary arrays")
    return work


def _rows_last(array, n):
    """Columns one after the other, padded with zeros to `n` rows."""
    padded = np.zeros((array.shape[1], n))
    padded[:, : len(array)] = array.T
    return padded


def softmax_moments(mean, root, points):
    """Means of probabilities and of their products at points `(r, n_points)`."""
    first, second = np.empty(mean.shape), np.empty((*mean.shape, mean.shape[1]))
    cdef const double[:, ::1] m = np.ascontiguousarray(mean), p = np.ascontiguousarray(points)
    cdef const double[:, :, ::1] r = np.ascontiguousarray(root)
    cdef double[:, ::1] f = first
    cdef double[:, :, ::1] s = second
    if len(mean):
        with nogil:
            kernels.softmax_moments(
                m.shape[1], r.shape[2], m.shape[0], &m[0, 0], &r[0, 0, 0], p.shape[1], &p[0, 0],
                &f[0, 0], &s[0, 0, 0])
    return first, second


cdef class Model:
    """A network, a likelihood and the data.

    Parameters
    ----------
    network : Network
    likelihood : Likelihood
    targets : Targets
    X : ndarray of shape (n, n_features)
    """

    def __init__(self, network, likelihood, targets, X):
        n = -(-len(X) // PADDING) * PADDING
        self.size = np.array(network.layer_sizes, dtype=np.intc)
        levels = getattr(likelihood, "levels", np.zeros(1))
        self.level = np.append(levels, 0).astype(np.intc)  # none is empty
        self.relative = np.append(getattr(likelihood, "relative", 1.0), 1.0)
        inputs = _rows_last(np.column_stack([X, np.ones(len(X))]), n)
        inputs[-1] = 1.0
        self.inputs = inputs
        self.targets = _rows_last(targets.y, n)
        self.counts = _rows_last(targets.counts, n)
        self.n_weights = network.n_weights
        self.c.n_layers = len(network.layer_sizes) - 1
        self.c.size = &self.size[0]
        self.c.output_bias = network.output_bias
        self.c.activation = ACTIVATIONS[network.activation]
        self.c.likelihood = LIKELIHOODS[likelihood.compiled]
        self.c.n_levels = likelihood.n_levels
        self.c.degrees_of_freedom = getattr(likelihood, "degrees_of_freedom", 0.0)
        self.c.level = &self.level[0]
        self.c.relative = &self.relative[0]
        self.c.n = n
        self.c.inputs = &self.inputs[0, 0]
        self.c.targets = &self.targets[0, 0]
        self.c.n_counts = len(self.counts)
        self.c.counts = &self.counts[0, 0]
        self.single_inputs = inputs.astype(np.float32)
        self.single_targets = np.asarray(self.targets).astype(np.float32)
        self.single_counts = np.asarray(self.counts).astype(np.float32)
        self.c.single_inputs = &self.single_inputs[0, 0]
        self.c.single_targets = &self.single_targets[0, 0]
        self.c.single_counts = &self.single_counts[0, 0]
        self.c.n_counted = np.sum(targets.weight)
        self.c.least_pivot = least_pivot(network.layer_sizes[-2] + 1, len(X))

    cdef long room(self, int hessian) noexcept:
        """`work_doubles`."""
        return work_doubles(&self.c, hessian)

    def serves_single(self, bint integrated):
        """Whether forces in single precision are there, and inputs moderate."""
        no_level = self.c.likelihood in (BERNOULLI, CATEGORICAL, POISSON)
        return (integrated or no_level) and np.max(np.abs(self.inputs)) < SINGLE

    @property
    def is_small(self):
        """Whether matrices are so small that their loops are faster here than in LAPACK."""
        return self.n_weights <= kernels.most_weights

    def evaluate(self, theta, beta, int order, bint exact=False):
        """Misfits, errors of noise levels, and as many derivatives as `order` says."""
        cdef long k = self.n_weights, n_levels = self.c.n_levels, i
        cdef const double[:, ::1] w = rows_of(theta, theta.shape, k)
        cdef const double[:, ::1] b = rows_of(beta, theta.shape, n_levels)
        lead = theta.shape[:-1]
        value, errors = np.empty(lead), np.empty((*lead, n_levels))
        gradient = np.empty((*lead, k)) if order > 0 else None
        hessian = np.empty((*lead, k, k)) if order > 1 else None
        cdef double[::1] v = value.reshape(-1), e = errors.reshape(-1), g = None, h = None
        if order > 0:
            g = gradient.reshape(-1)
        if order > 1:
            h = hessian.reshape(-1)
        cdef double *work = memory(work_doubles(&self.c, order > 1))
        with nogil:
            for i in range(w.shape[0]):
                v[i] = kernels.evaluate(
                    &self.c, &w[i, 0], row(b, i), exact, out(e, i * n_levels),
                    &g[i * k] if order > 0 else NULL, &h[i * k * k] if order > 1 else NULL, work)
            free(work)
        return value, errors, gradient, hessian

    def traces(self, ends, beta, matrix, bint exact):
        """The part of the data in `Posterior.traces`."""
        cdef long k = self.n_weights, i, j
        cdef const double[:, ::1] w = np.ascontiguousarray(ends), B = np.ascontiguousarray(matrix)
        cdef const double[:, ::1] b = rows_of(beta, ends.shape, self.c.n_levels)
        found, hessian = np.zeros(len(ends)), np.empty(k * k)
        cdef double[::1] total = found, h = hessian, errors = np.empty(self.c.n_levels)
        cdef double *work = memory(work_doubles(&self.c, True) + k)
        with nogil:
            for i in range(w.shape[0]):
                kernels.evaluate(
                    &self.c, &w[i, 0], row(b, i), exact, out(errors, 0), work, &h[0], work + k)
                for j in range(k):
                    total[i] += product(k, &h[j * k], &B[j, 0])
            free(work)
        return found

    def bending_force(self, theta, beta, step):
        """`Posterior.bending_force`."""
        cdef long k = self.n_weights, n_levels = self.c.n_levels, i
        cdef const double[:, ::1] w = rows_of(theta, theta.shape, k)
        cdef const double[:, ::1] s = rows_of(step, theta.shape, k)
        cdef const double[:, ::1] b = rows_of(beta, theta.shape, n_levels)
        force = np.empty(theta.shape)
        cdef double[:, ::1] f = force.reshape(-1, k)
        cdef double *work = memory(work_doubles(&self.c, False))
        with nogil:
            for i in range(w.shape[0]):
                kernels.bend(&self.c, &w[i, 0], row(b, i), &s[i, 0], &f[i, 0], work)
            free(work)
        return force

    def best_outputs(self, theta, alpha, beta):
        """`Posterior.with_best_outputs`; `None` where it needs eigenvalues."""
        cdef long k = self.n_weights, i
        cdef const double[:, ::1] a = rows_of(alpha, theta.shape, k)
        cdef const double[:, ::1] b = rows_of(beta, theta.shape, self.c.n_levels)
        result = np.array(theta, order="C")
        cdef double[:, ::1] w = result.reshape(-1, k)
        cdef double *work = memory(work_doubles(&self.c, False))
        cdef int good = 1
        with nogil:
            for i in range(w.shape[0]):
                good = good and kernels.best_outputs(&self.c, &w[i, 0], &a[i, 0], row(b, i), work)
            free(work)
        return result if good else None


cdef class Joint:
    """Positions of samplers, see `JointPosterior`."""

    cdef CJoint c
    cdef Model model
    cdef long dimension, stride
    cdef int[::1] label, which
    cdef double[::1] information, fixed, centre, fine, coarse, low, high, sizes
    cdef double[::1] shape, rate, log_normaliser, lowest, highest
    cdef double[:, ::1] variances
    cdef float[:, ::1] single_variances
    cdef Model noise
    cdef CTempering tempering
    cdef list kept

    def __init__(self, Model model, joint, precision_map, Model noise=None, variances=None):
        free = joint.free.mask
        self.model = model
        self.dimension = joint.dimension
        self.stride = joint.dimension + joint.n_conditions
        self.label = joint.groups.labels.astype(np.intc)
        self.which = np.append(np.flatnonzero(free), 0).astype(np.intc)  # none is empty
        self.information = np.append(joint.information, 0.0).astype(float)
        self.fixed = np.concatenate([*joint.fixed, [1.0]]).astype(float)
        self.centre, self.fine, self.coarse, self.low, self.high = (
            np.append(field, 1.0) for field in precision_map)
        priors = joint.free.priors
        self.shape, self.rate, self.log_normaliser = (
            np.append(field, 0.0) for field in (priors.shape, priors.rate, priors.log_normaliser))
        self.sizes = np.append(joint.sizes, 0.0)
        self.c.model = &model.c
        self.c.n_groups = len(joint.free.alpha)
        self.c.n_sampled = joint.n_sampled
        self.c.n_free = joint.n_free
        self.c.n_free_alpha = joint.n_alpha
        self.c.integrated = joint.integrated
        self.c.n_factors = len(joint.posterior.X) if joint.n_conditions else 0
        self.c.single = model.serves_single(joint.integrated)
        self.c.label = &self.label[0]
        self.c.information = &self.information[0]
        self.c.fixed = &self.fixed[0]
        self.c.which = &self.which[0]
        self.c.centre = &self.centre[0]
        self.c.fine = &self.fine[0]
        self.c.coarse = &self.coarse[0]
        self.c.low = &self.low[0]
        self.c.high = &self.high[0]
        self.c.sizes = &self.sizes[0]
        self.c.shape = &self.shape[0]
        self.c.rate = &self.rate[0]
        self.c.log_normaliser = &self.log_normaliser[0]
        if noise is not None:
            ends = (np.broadcast_to(end, joint.posterior.y.shape[-1])
                    for end in joint.free.beta_prior.log_range)
            self.lowest, self.highest = (np.array(end, dtype=float) for end in ends)
            self.noise = noise
            self.c.noise = &noise.c
            self.c.lowest = &self.lowest[0]
            self.c.highest = &self.highest[0]
        if variances is not None:
            self.variances = _rows_last(variances, model.c.n)
            self.single_variances = np.asarray(self.variances).astype(np.float32)
            self.c.variances = &self.variances[0, 0]
            self.c.single_variances = &self.single_variances[0, 0]

    def tempered(self, of_prior, of_data, of_first, centre, scale):
        """The same positions with the energy of populations, see `Tempering`."""
        cdef Joint other = Joint.__new__(Joint)
        cdef double[::1] c = np.append(centre, 0.0), s = np.append(scale, 1.0)
        other.kept = [self, c, s]
        other.model, other.dimension, other.c = self.model, self.dimension, self.c
        other.stride = self.stride
        other.tempering.of_prior, other.tempering.of_data = of_prior, of_data
        other.tempering.of_first = of_first
        other.tempering.centre = &c[0]
        other.tempering.scale = &s[0]
        other.c.tempering = &other.tempering
        return other

    def values(self, q):
        """Energies alone, and where these are not to be had without eigenvalues."""
        values, failed = np.empty(len(q)), np.empty(len(q), dtype=np.uint8)
        cdef unsigned char[::1] lost = failed
        cdef long i
        cdef const double[:, ::1] p = np.ascontiguousarray(q)
        cdef double[::1] v = values
        cdef double *work = memory(joint_doubles(&self.c))
        with nogil:
            for i in range(v.shape[0]):
                lost[i] = not kernels.value(&self.c, row(p, i), &v[i], work)
            free(work)
        return values, failed.view(bool)

    def terms(self, q):
        """Fields of `JointEnergy`, and where these are not to be had without eigenvalues."""
        lead = q.shape[:-1]
        values, gradients = np.empty((2, *lead)), np.empty((2, *lead, self.dimension))
        failed = np.empty(lead, dtype=np.uint8)
        cdef unsigned char[::1] lost = failed.reshape(-1)
        cdef long m = lost.shape[0], d = self.dimension, i
        cdef const double[::1] p = np.ascontiguousarray(q).reshape(-1)
        cdef double[::1] v = values.reshape(-1), g = gradients.reshape(-1)
        cdef double *work = memory(joint_doubles(&self.c))
        with nogil:
            for i in range(m):
                lost[i] = not kernels.terms(
                    &self.c, at(p, i * self.stride), &v[i], out(g, i * d), &v[m + i],
                    out(g, (m + i) * d), work)
            free(work)
        fields = values[0, ...], gradients[0], values[1, ...], gradients[1]
        return fields, failed.view(bool)

    cdef double *wanted(self, double[:, ::1] gradient, long i) noexcept nogil:
        """Where a gradient is to be put: populations need none between their trajectories."""
        return NULL if self.c.tempering != NULL else &gradient[i, 0]

    def leapfrog(self, phase, step_size, n_steps, factor, double unstable):
        """Move chains along their trajectories, in place; those left out are returned."""
        cdef long m = len(step_size), d = self.dimension, i
        cdef double[:, ::1] q = phase.position, p = phase.momentum, g = phase.gradient
        cdef double[::1] v = phase.value
        kept = [field.copy() for field in phase]
        cdef double[::1] eps = np.ascontiguousarray(step_size, dtype=float)
        cdef long[::1] steps = np.ascontiguousarray(n_steps, dtype=np.dtype("l"))
        cdef const double[:, ::1] f = np.ascontiguousarray(factor).reshape(m, -1)
        cdef int dense = factor.ndim == 3
        failed = np.zeros(m, dtype=np.uint8)
        cdef unsigned char[::1] lost = failed
        cdef double *work = memory(joint_doubles(&self.c) + (map_doubles(d) if dense else 0))
        with nogil:
            for i in range(m):
                lost[i] = not kernels.leapfrog(
                    &self.c, &q[i, 0], &p[i, 0], &v[i], self.wanted(g, i), eps[i], steps[i],
                    &f[i, 0], dense, unstable, work)
            free(work)
        left = np.flatnonzero(failed)
        for field, before in zip(phase, kept):
            field[left] = before[left]
        return left

    def rescalings(self, phase, shifts, log_uniform, done):
        """Make steps of `ScaleMoves`, in place; the numbers of steps made are returned."""
        cdef const double[:, :, ::1] s = np.ascontiguousarray(shifts)
        cdef const double[:, ::1] u = np.ascontiguousarray(log_uniform)
        cdef CMoves moves
        moves.kind, moves.n, moves.shifts, moves.log_uniform = RESCALE, s.shape[1], &s[0, 0, 0], &u[0, 0]
        return self.moved(phase, &moves, done)

    def unit_slices(self, phase, unit, chosen, normal, exponential, uniform, done):
        """Sample units from their slices, in place; the numbers of slices done are returned."""
        cdef const int[::1] of = np.ascontiguousarray(unit, dtype=np.intc)
        cdef const int[:, ::1] c = np.ascontiguousarray(chosen, dtype=np.intc)
        cdef const double[:, ::1] z = np.ascontiguousarray(normal)
        cdef const double[:, ::1] e = np.ascontiguousarray(exponential)
        cdef const double[:, :, ::1] u = np.ascontiguousarray(uniform)
        cdef CMoves moves
        moves.kind, moves.n, moves.n_tries = SLICE, c.shape[1], u.shape[2]
        moves.unit, moves.chosen, moves.normal = &of[0], &c[0, 0], &z[0, 0]
        moves.exponential, moves.uniform = &e[0, 0], &u[0, 0, 0]
        return self.moved(phase, &moves, done)

    cdef object moved(self, phase, const CMoves *moves, done):
        """Make steps of all chains."""
        cdef double[:, ::1] q = phase.position, g = phase.gradient
        cdef double[::1] v = phase.value
        made = np.array(done, dtype=np.dtype("l"))
        cdef long[::1] count = made
        cdef long m = len(made), i
        cdef double *work = memory(move_doubles(&self.c))
        with nogil:
            for i in range(m):
                count[i] = kernels.moves(
                    &self.c, moves, i, &q[i, 0], &v[i], self.wanted(g, i), count[i], work)
            free(work)
        return made
