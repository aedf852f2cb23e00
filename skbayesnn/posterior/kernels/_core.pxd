# Declarations of the compiled core, for the extension modules that use it.

cdef extern from "core.h":
    enum:
        PADDING
        MOST_LAYERS
        MOST_CLASSES
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

    ctypedef struct CLaw "Law":
        double nu, log_constant, range
        long n_cells
        const double *table

    ctypedef struct Kernels:
        const char *name
        int most_weights
        double (*evaluate)(const CModel *, const double *, const double *, int, double *, double *,
                           double *, double *) nogil
        void (*bend)(const CModel *, const double *, const double *, const double *, double *,
                     double *) nogil
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
        void (*softmax_moments)(int, int, long, const double *, const double *, long,
                                const double *, double *, double *) nogil
        void (*mixture)(const CLaw *, long, long, const double *, const double *, const double *,
                        const double *, double *, double *) nogil
        void (*count_table)(long, long, long, double *, const double *, const double *, double *) nogil

    long work_doubles(const CModel *, int) nogil
    long joint_doubles(const CJoint *) nogil
    const Kernels *kernels_at(int) nogil

cdef const Kernels *kernels_in_use() noexcept

cdef double *doubles(list kept, values) except NULL

cdef int *integers(list kept, values) except NULL

cdef class Model:
    cdef CModel c
    cdef readonly long n_weights
    cdef bint single  # whether inputs are moderate
    cdef list kept

    cdef long room(self, int hessian) noexcept
