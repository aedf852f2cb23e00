# cython: language_level=3, boundscheck=False, initializedcheck=False, wraparound=False
"""Compiled twins of methods of `Posterior`, `JointPosterior` and others: see `core.h`."""

import math

import numpy as np

cimport cython
from libc.math cimport sqrt

cdef extern from "core.h":
    enum:
        PADDING
        MAX_LAYERS
        IDENTITY, TANH, LOGISTIC, RELU, SILU
        GAUSSIAN, STUDENT_T, SQUARED_RESIDUALS, BERNOULLI, CATEGORICAL, POISSON

    ctypedef struct CModel "Model":
        int n_layers
        const int *size
        int output_bias
        int activation, likelihood, n_levels
        double degrees_of_freedom
        const int *level
        const double *relative
        long n
        const double *inputs, *targets
        int n_counts
        const double *counts
        const float *single_inputs, *single_targets, *single_counts
        double n_counted

    ctypedef struct FreePrecision:
        double centre, fine, coarse, low, high, shape, rate, log_normaliser

    ctypedef struct CJoint "Joint":
        const CModel *model
        int n_groups, n_sampled, n_free, n_free_alpha, integrated, single
        long n_factors
        const CModel *noise
        const double *lowest, *highest, *variances
        const float *single_variances
        const int *label
        const double *information, *fixed
        const int *which
        const FreePrecision *free
        const double *sizes
        double of_prior, of_data, of_first
        const double *first_centre, *first_scale

    ctypedef struct Kernels:
        const char *name
        int most_weights
        double (*evaluate)(const CModel *, const double *, const double *, int, double *, double *,
                           double *, double *) nogil
        void (*best_outputs)(const CModel *, double *, const double *, const double *,
                             double *) nogil
        void (*value)(const CJoint *, const double *, double *, double *, double *) nogil
        void (*leapfrog)(const CJoint *, double *, double *, double *, double *, double, long,
                         const double *, int, double, double *) nogil
        void (*rescalings)(const CJoint *, long, const double *, const double *, double *, double *,
                           double *, double *) nogil
        void (*unit_slices)(const CJoint *, long, long, const int *, const int *, const double *,
                            const double *, const double *, double *, double *, double *,
                            double *) nogil

    long work_doubles(const CModel *, int) nogil
    long joint_doubles(const CJoint *) nogil
    const Kernels *kernels_at(int) nogil


cdef const Kernels *kernels


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

DEEPEST = MAX_LAYERS
SINGLE = 1e6  # largest inputs whose products are summed in single precision
ACTIVATIONS = {
    "identity": IDENTITY, "tanh": TANH, "logistic": LOGISTIC, "relu": RELU, "silu": SILU,
}
LIKELIHOODS = {
    "gaussian": GAUSSIAN, "student_t": STUDENT_T, "squared_residuals": SQUARED_RESIDUALS,
    "bernoulli": BERNOULLI, "categorical": CATEGORICAL, "poisson": POISSON,
}


def rows_of(array, shape, long width):
    """Rows `(m, width)` of an array, which is repeated along the leading axes of a shape."""
    if array.shape[:-1] != shape[:-1]:
        array = np.broadcast_to(array, (*shape[:-1], width))
    return np.ascontiguousarray(array).reshape(math.prod(shape[:-1]), width)


cdef inline double *row(const double[:, ::1] array, long i) noexcept nogil:
    return NULL if array.shape[1] == 0 else <double *>&array[i, 0]


cdef void *copied(list kept, values, kind) except NULL:
    """Copy values to an array that is kept; it has one more entry, as none may be empty."""
    cdef char[::1] array = np.append(values, 1).astype(kind).view(np.int8)
    kept.append(array)
    return &array[0]


cdef double *doubles(list kept, values) except NULL:
    return <double *>copied(kept, values, float)


cdef float *floats(list kept, values) except NULL:
    return <float *>copied(kept, values, np.float32)


cdef int *integers(list kept, values) except NULL:
    return <int *>copied(kept, values, np.intc)


def _rows_last(array, n):
    """Columns one after the other, padded with zeros to `n` rows."""
    padded = np.zeros((array.shape[1], n))
    padded[:, : len(array)] = array.T
    return padded


cdef void gather(long n_columns, long n_all, const double *columns, long m, const Py_ssize_t *rows,
                 long padded, double *batch) noexcept nogil:
    """Some rows of columns that lie one after the other."""
    cdef long c, i
    for c in range(n_columns):
        for i in range(m):
            batch[c * padded + i] = columns[c * n_all + rows[i]]


cdef class Model:
    """A network, a likelihood and the data: `Targets` and inputs ``(n, n_features)``."""

    cdef CModel c
    cdef readonly long n_weights
    cdef bint single  # whether inputs are moderate
    cdef list kept

    def __init__(self, network, likelihood, targets, X):
        self.kept, n = [], -(-len(X) // PADDING) * PADDING
        inputs = _rows_last(np.column_stack([X, np.ones(len(X))]), n)
        inputs[network.layer_sizes[0]] = 1.0
        y, counts = _rows_last(targets.y, n), _rows_last(targets.counts, n)
        self.n_weights = network.n_weights
        self.single = np.max(np.abs(inputs)) < SINGLE
        self.c.n_layers = len(network.layer_sizes) - 1
        self.c.size = integers(self.kept, network.layer_sizes)
        self.c.output_bias = network.output_bias
        self.c.activation = ACTIVATIONS[network.activation]
        self.c.likelihood = LIKELIHOODS[likelihood.compiled]
        self.c.n_levels = likelihood.n_levels
        self.c.degrees_of_freedom = getattr(likelihood, "degrees_of_freedom", 0.0)
        self.c.level = integers(self.kept, getattr(likelihood, "levels", 0))
        self.c.relative = doubles(self.kept, getattr(likelihood, "relative", 1.0))
        self.c.n, self.c.n_counts = n, len(counts)
        self.c.inputs, self.c.single_inputs = doubles(self.kept, inputs), floats(self.kept, inputs)
        self.c.targets, self.c.single_targets = doubles(self.kept, y), floats(self.kept, y)
        self.c.counts, self.c.single_counts = doubles(self.kept, counts), floats(self.kept, counts)
        self.c.n_counted = np.sum(targets.weight)

    @property
    def is_small(self):
        """True if matrices are so small that the loops of this core are faster than LAPACK."""
        return self.n_weights <= kernels.most_weights

    def evaluate(self, theta, beta, int order, bint exact=False):
        """Compute misfits, errors of noise levels, and derivatives up to `order`."""
        cdef long k = self.n_weights, n_levels = self.c.n_levels, i
        cdef const double[:, ::1] w = rows_of(theta, theta.shape, k)
        cdef const double[:, ::1] b = rows_of(beta, theta.shape, n_levels)
        m, lead = len(w), theta.shape[:-1]
        value, errors = np.empty(m), np.empty((m, n_levels))
        gradient, hessian = np.empty((m, k * (order > 0))), np.empty((m, k * k * (order > 1)))
        cdef double[::1] v = value, work = np.empty(work_doubles(&self.c, order > 1))
        cdef double[:, ::1] e = errors, g = gradient, h = hessian
        with nogil:
            for i in range(w.shape[0]):
                v[i] = kernels.evaluate(&self.c, &w[i, 0], row(b, i), exact, row(e, i), row(g, i),
                                        row(h, i), &work[0])
        return (
            value.reshape(lead),
            errors.reshape(*lead, n_levels),
            gradient.reshape(*lead, k) if order > 0 else None,
            hessian.reshape(*lead, k, k) if order > 1 else None,
        )

    def best_outputs(self, theta, alpha, beta):
        """`Posterior.with_best_outputs`."""
        cdef long k = self.n_weights, i
        cdef const double[:, ::1] a = rows_of(alpha, theta.shape, k)
        cdef const double[:, ::1] b = rows_of(beta, theta.shape, self.c.n_levels)
        result = np.array(theta, order="C")
        cdef double[:, ::1] w = result.reshape(-1, k)
        cdef double[::1] work = np.empty(work_doubles(&self.c, False))
        with nogil:
            for i in range(w.shape[0]):
                kernels.best_outputs(&self.c, &w[i, 0], &a[i, 0], row(b, i), &work[0])
        return result


    @cython.cdivision(True)
    def descend(self, const Py_ssize_t[:, ::1] batches, const double[::1] pull,
                const double[::1] beta, const double[::1] rate, const double[::1] length,
                const double[::1] correction, double of_gradient, double of_square, double tiny,
                double[::1] theta, double[::1] mean, double[::1] square):
        """`BatchSteps._descend`; `pull` is ``alpha / n`` of every weight, the last three change."""
        cdef CModel batch = self.c
        cdef long n_inputs = batch.size[0] + 1, n_outputs = batch.size[batch.n_layers]
        cdef long m = batches.shape[1], n_levels = batch.n_levels, i, s
        cdef long padded = (m + PADDING - 1) // PADDING * PADDING
        batch.n = padded
        cdef double[::1] inputs = np.zeros(n_inputs * padded), errors = np.empty(n_levels + 1)
        cdef double[::1] targets = np.zeros(n_outputs * padded)
        cdef double[::1] counts = np.zeros(batch.n_counts * padded)
        cdef double[::1] gradient = np.empty(self.n_weights)
        cdef double[::1] work = np.empty(work_doubles(&batch, False))
        cdef double g, scale
        inputs[(n_inputs - 1) * padded :] = 1.0
        batch.inputs, batch.targets, batch.counts = &inputs[0], &targets[0], &counts[0]
        with nogil:
            for s in range(batches.shape[0]):
                gather(n_inputs - 1, self.c.n, self.c.inputs, m, &batches[s, 0], padded, &inputs[0])
                gather(n_outputs, self.c.n, self.c.targets, m, &batches[s, 0], padded, &targets[0])
                gather(batch.n_counts, self.c.n, self.c.counts, m, &batches[s, 0], padded,
                       &counts[0])
                kernels.evaluate(&batch, &theta[0], NULL if n_levels == 0 else &beta[0], 0,
                                 &errors[0], &gradient[0], NULL, &work[0])
                for i in range(self.n_weights):
                    g = gradient[i] / m + pull[i] * theta[i]
                    mean[i] += (1.0 - of_gradient) * (g - mean[i])
                    square[i] += (1.0 - of_square) * (g * g - square[i])
                    scale = sqrt(square[i] / correction[s]) + tiny
                    theta[i] -= length[s] * rate[i] * mean[i] / scale


cdef class Joint:
    """Positions of samplers, see `JointPosterior`."""

    cdef CJoint c
    cdef long dimension, stride
    cdef bint tempers
    cdef list kept

    def __init__(self, Model model, joint, precision_map, Model noise=None, variances=None):
        self.kept, priors = [model, noise], joint.free.priors
        self.dimension = joint.dimension
        self.stride = joint.dimension + joint.n_conditions
        self.c.model = &model.c
        self.c.n_groups = len(joint.free.alpha)
        self.c.n_sampled = joint.n_sampled
        self.c.n_free = joint.n_free
        self.c.n_free_alpha = joint.n_alpha
        self.c.of_prior = self.c.of_data = 1.0
        self.c.integrated = joint.integrated
        self.c.n_factors = len(joint.posterior.X) if joint.n_conditions else 0
        self.c.single = model.single and (joint.integrated or model.c.n_levels == 0)
        self.c.label = integers(self.kept, joint.groups.labels)
        self.c.information = doubles(self.kept, joint.information)
        self.c.fixed = doubles(self.kept, np.concatenate(joint.fixed))
        self.c.which = integers(self.kept, np.flatnonzero(joint.free.mask))
        fields = "centre", "fine", "coarse", "low", "high"
        columns = [getattr(precision_map, name) for name in fields]
        columns += [priors.shape, priors.rate, priors.log_normaliser]
        self.c.free = <const FreePrecision *>doubles(self.kept, np.column_stack(columns))
        self.c.sizes = doubles(self.kept, joint.sizes)
        if noise is not None:
            lowest, highest = np.broadcast_arrays(
                *joint.free.beta_prior.log_range, joint.posterior.y[0])[:2]
            self.c.noise = &noise.c
            self.c.lowest = doubles(self.kept, lowest)
            self.c.highest = doubles(self.kept, highest)
        if variances is not None:
            variances = _rows_last(variances, model.c.n)
            self.c.variances = doubles(self.kept, variances)
            self.c.single_variances = floats(self.kept, variances)

    def tempered(self, of_prior, of_data, of_first, centre, scale):
        """The same positions with the energy of populations, see `core.h`."""
        cdef Joint other = Joint.__new__(Joint)
        other.kept, other.dimension, other.stride, other.c = (
            [self], self.dimension, self.stride, self.c)
        other.c.of_prior, other.c.of_data, other.c.of_first = of_prior, of_data, of_first
        other.c.first_centre = doubles(other.kept, centre)
        other.c.first_scale = doubles(other.kept, scale)
        other.tempers = True
        return other

    def values(self, q, bint gradients=False):
        """Energies, and with `gradients` these."""
        lead = q.shape[:-1]
        values, slopes = np.empty(lead), np.empty((*lead, self.dimension))
        cdef const double[:, ::1] p = np.ascontiguousarray(q).reshape(-1, self.stride)
        cdef double[::1] v = values.reshape(-1)
        cdef double[:, ::1] g = slopes.reshape(-1, self.dimension)
        cdef long i
        cdef double[::1] work = np.empty(joint_doubles(&self.c))
        with nogil:
            for i in range(v.shape[0]):
                kernels.value(&self.c, &p[i, 0], &v[i], &g[i, 0] if gradients else NULL, &work[0])
        return (values[()], slopes) if gradients else values

    cdef double *wanted(self, double[:, ::1] gradient, long i) noexcept nogil:
        """Where a gradient is to be put: populations need none between their trajectories."""
        return NULL if self.tempers else &gradient[i, 0]

    def leapfrog(self, phase, step_size, n_steps, factor, double unstable):
        """Move chains along their trajectories, in place."""
        cdef long m = len(step_size), i
        cdef double[:, ::1] q = phase.position, p = phase.momentum, g = phase.gradient
        cdef double[::1] v = phase.value
        cdef double[::1] eps = np.ascontiguousarray(step_size, dtype=float)
        cdef long[::1] steps = np.ascontiguousarray(n_steps, dtype=np.dtype("l"))
        cdef const double[:, ::1] f = np.ascontiguousarray(factor).reshape(m, -1)
        cdef int dense = factor.ndim == 3
        cdef double[::1] work = np.empty(joint_doubles(&self.c))
        with nogil:
            for i in range(m):
                kernels.leapfrog(&self.c, &q[i, 0], &p[i, 0], &v[i], self.wanted(g, i), eps[i],
                                 steps[i], &f[i, 0], dense, unstable, &work[0])

    def rescalings(self, phase, shifts, log_uniform):
        """Make steps of `ScaleMoves`, in place."""
        cdef const double[:, :, ::1] s = np.ascontiguousarray(shifts)
        cdef const double[:, ::1] u = np.ascontiguousarray(log_uniform)
        cdef double[:, ::1] q = phase.position, g = phase.gradient
        cdef double[::1] v = phase.value, work = np.empty(joint_doubles(&self.c))
        cdef long i
        with nogil:
            for i in range(v.shape[0]):
                kernels.rescalings(&self.c, s.shape[1], &s[i, 0, 0], &u[i, 0], &q[i, 0], &v[i],
                                   self.wanted(g, i), &work[0])

    def unit_slices(self, phase, unit, chosen, normal, exponential, uniform):
        """Sample units from their slices, in place."""
        cdef const int[::1] of = np.ascontiguousarray(unit, dtype=np.intc)
        cdef const int[:, ::1] c = np.ascontiguousarray(chosen, dtype=np.intc)
        cdef const double[:, ::1] z = np.ascontiguousarray(normal)
        cdef const double[:, ::1] e = np.ascontiguousarray(exponential)
        cdef const double[:, :, ::1] u = np.ascontiguousarray(uniform)
        cdef double[:, ::1] q = phase.position, g = phase.gradient
        cdef double[::1] v = phase.value, work = np.empty(joint_doubles(&self.c))
        cdef long i
        with nogil:
            for i in range(v.shape[0]):
                kernels.unit_slices(
                    &self.c, c.shape[1], u.shape[2], &of[0], &c[i, 0], &z[i, 0], &e[i, 0],
                    &u[i, 0, 0], &q[i, 0], &v[i], self.wanted(g, i), &work[0])
