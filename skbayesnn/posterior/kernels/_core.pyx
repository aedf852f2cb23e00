# cython: language_level=3, boundscheck=False, initializedcheck=False
"""Compiled twins of methods of `Posterior` and `JointPosterior`: see `core.h` and `_compiled.py`."""

import math

import numpy as np

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

DEEPEST, CLASSES = MOST_LAYERS, MOST_CLASSES
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


def mixture(x, weights, means, inverse_scales, law, bint with_cdf=True):
    """Distribution function and density at `x` `(n,)` of mixtures of a law of targets."""
    cdf, density = np.zeros((2, len(x)))
    cdef const double[::1] at = x, w = weights
    cdef const double[:, ::1] m = means, s = inverse_scales, table = law.table
    cdef double[::1] below = cdf, height = density
    cdef CLaw c
    c.nu, c.log_constant, c.range = law.degrees_of_freedom, law.log_constant, law.range
    c.n_cells, c.table = table.shape[0], &table[0, 0]
    if len(x):
        with nogil:
            kernels.mixture(
                &c, m.shape[0], m.shape[1], &at[0], &w[0], &m[0, 0], &s[0, 0],
                &below[0] if with_cdf else NULL, &height[0])
    return cdf, density


def count_table(size, p, u, w):
    """Probabilities `(n, size)` of counts, see `core.h`."""
    table = np.empty((len(p), size))
    cdef double[:, ::1] first = p, found = table
    cdef const double[:, ::1] slope = u, start = w
    if len(p):
        with nogil:
            kernels.count_table(
                first.shape[0], first.shape[1], found.shape[1], &first[0, 0], &slope[0, 0],
                &start[0, 0], &found[0, 0])
    return table


cdef class Model:
    """A network, a likelihood and the data: `Targets` and inputs ``(n, n_features)``."""

    def __init__(self, network, likelihood, targets, X):
        self.kept, n = [], -(-len(X) // PADDING) * PADDING
        inputs = _rows_last(np.column_stack([X, np.ones(len(X))]), n)
        inputs[-1] = 1.0
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

    cdef long room(self, int hessian) noexcept:
        """`work_doubles`."""
        return work_doubles(&self.c, hessian)

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

    def bending_force(self, theta, beta, step):
        """`Posterior.bending_force`."""
        cdef long k = self.n_weights, n_levels = self.c.n_levels, i
        cdef const double[:, ::1] w = rows_of(theta, theta.shape, k)
        cdef const double[:, ::1] s = rows_of(step, theta.shape, k)
        cdef const double[:, ::1] b = rows_of(beta, theta.shape, n_levels)
        force = np.empty(theta.shape)
        cdef double[:, ::1] f = force.reshape(-1, k)
        cdef double[::1] work = np.empty(work_doubles(&self.c, False))
        with nogil:
            for i in range(w.shape[0]):
                kernels.bend(&self.c, &w[i, 0], row(b, i), &s[i, 0], &f[i, 0], &work[0])
        return force

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
        columns = [getattr(precision_map, name) for name in ("centre", "fine", "coarse", "low", "high")]
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
                    &self.c, c.shape[1], u.shape[2], &of[0], &c[i, 0], &z[i, 0], &e[i, 0], &u[i, 0, 0],
                    &q[i, 0], &v[i], self.wanted(g, i), &work[0])
