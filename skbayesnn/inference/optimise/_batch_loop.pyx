# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# cython: cdivision=True
"""Compiled twin of the loop over batches: see `BatchSteps` in `_batches.py`."""

from libc.math cimport sqrt

import numpy as np

from skbayesnn.posterior.kernels._core cimport PADDING, CModel, Kernels, Model, kernels_in_use


cdef void gather(long n_columns, long n_all, const double *columns, long m, const Py_ssize_t *rows,
                 long padded, double *batch) noexcept nogil:
    """Some rows of columns that lie one after the other."""
    cdef long c, i
    for c in range(n_columns):
        for i in range(m):
            batch[c * padded + i] = columns[c * n_all + rows[i]]


def descend(Model model, const Py_ssize_t[:, ::1] batches, const double[::1] pull,
            const double[::1] beta, const double[::1] rate, const double[::1] length,
            const double[::1] correction, double of_gradient, double of_square, double tiny,
            double[::1] theta, double[::1] mean, double[::1] square):
    """`BatchSteps._descend`; `pull` is ``alpha / n`` of every weight, the last three change."""
    cdef const CModel *whole = &model.c
    cdef const Kernels *kernels = kernels_in_use()
    cdef CModel batch = model.c
    cdef long n_inputs = whole.size[0] + 1, n_outputs = whole.size[whole.n_layers]
    cdef long m = batches.shape[1], k = model.n_weights, i, s
    cdef long padded = (m + PADDING - 1) // PADDING * PADDING
    cdef long n_columns = n_inputs + n_outputs + whole.n_counts
    cdef double g, scale
    batch.n = padded
    cdef long room = n_columns * padded + k + whole.n_levels + model.room(0)
    cdef double[::1] of_batch = np.zeros(room)
    cdef double *memory = &of_batch[0]
    cdef double *targets = memory + n_inputs * padded
    cdef double *counts = targets + n_outputs * padded
    cdef double *gradient = counts + whole.n_counts * padded
    cdef double *errors = gradient + k
    batch.inputs, batch.targets, batch.counts = memory, targets, counts
    with nogil:
        for i in range(padded):
            memory[(n_inputs - 1) * padded + i] = 1.0
        for s in range(batches.shape[0]):
            gather(n_inputs - 1, whole.n, whole.inputs, m, &batches[s, 0], padded, memory)
            gather(n_outputs, whole.n, whole.targets, m, &batches[s, 0], padded, targets)
            gather(whole.n_counts, whole.n, whole.counts, m, &batches[s, 0], padded, counts)
            kernels.evaluate(&batch, &theta[0], NULL if beta.shape[0] == 0 else &beta[0], 0,
                             errors, gradient, NULL, errors + whole.n_levels)
            for i in range(k):
                g = gradient[i] / m + pull[i] * theta[i]
                mean[i] += (1.0 - of_gradient) * (g - mean[i])
                square[i] += (1.0 - of_square) * (g * g - square[i])
                scale = sqrt(square[i] / correction[s]) + tiny
                theta[i] -= length[s] * rate[i] * mean[i] / scale
