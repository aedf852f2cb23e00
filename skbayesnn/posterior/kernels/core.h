/* The hot loops of the energy, which `_core.pyx` calls. The NumPy twin of each function, named here
   and in this folder if nothing else is said, states what it computes.

   Rows run along vectors of LANES doubles, so that everything that belongs to one unit lies
   together in memory. The loops are compiled once for each set of instructions (see core.c). */

#ifndef SKBAYESNN_CORE_H
#define SKBAYESNN_CORE_H

#define PADDING 16 /* rows are padded to a multiple of this; what is added counts for nothing */
#define MAX_LAYERS 16

enum { IDENTITY, TANH, LOGISTIC, RELU, SILU };
enum { GAUSSIAN, STUDENT_T, SQUARED_RESIDUALS, BERNOULLI, CATEGORICAL, POISSON };

/* A network, a likelihood and the data. */
typedef struct {
    int n_layers;    /* of weights */
    const int *size; /* of the inputs and of every layer, n_layers + 1 */
    int output_bias; /* whether the last layer has biases */
    int activation, likelihood;
    double degrees_of_freedom; /* of Student-t noise */
    int n_levels;
    const int *level;       /* noise level of every output */
    const double *relative; /* its precision relative to that of the level */
    long n;                 /* rows, padded */
    const double *inputs;   /* (size[0] + 1, n), the last are ones */
    const double *targets;  /* (n_outputs, n) */
    int n_counts;           /* 1, or one for each output */
    const double *counts;   /* (n_counts, n), zero in the padding */
    const float *single_inputs, *single_targets, *single_counts; /* rounded */
    double n_counted;       /* sum of the rows' weights */
} Model;

/* A free precision: the parameters of its `PrecisionMap` and of its `Hyperpriors`. */
typedef struct {
    double centre, fine, coarse, low, high, shape, rate, log_normaliser;
} FreePrecision;

/* Weights and precisions as positions of samplers, see `Coordinates` and `JointPosterior`. */
typedef struct {
    const Model *model;
    int n_groups, n_sampled, n_free, n_free_alpha, integrated;
    long n_factors;            /* rows, if their factors follow the position: Student-t noise */
    const Model *noise;        /* network of the noise, or NULL; its weights follow the others */
    const double *lowest, *highest; /* log precision of every output that it can make */
    const double *variances;   /* known ones of the targets (n_outputs, n), or NULL */
    const float *single_variances;  /* rounded */
    int single;                /* forces and moves in single precision, where that will do */
    const int *label;          /* group of every weight of the network */
    const double *information; /* of every group */
    const double *fixed;       /* all precisions: of groups, then of noise levels */
    const int *which;          /* of these is each free one */
    const FreePrecision *free;
    const double *sizes;       /* sampled weights of every group */
    /* of populations (`Tempered` of the inference): factors of the parts of the energy, and of the
       log density of where it begins, whose centre and scale every free precision has; else 1, 1
       and 0 */
    double of_prior, of_data, of_first;
    const double *first_centre, *first_scale;
} Joint;

/* Doubles of working memory that the functions below need. */
long work_doubles(const Model *model, int hessian);
long joint_doubles(const Joint *joint);

typedef struct {
    const char *name;
    int most_weights; /* up to which its Hessians are faster than those by matrix products */

    /* `Posterior.misfit_and_gradient`; with `hessian` (k, k) that of `data_hessian`, too. Gradient
       and Hessian may be NULL. Returns the misfit. */
    double (*evaluate)(const Model *model, const double *theta, const double *beta, int exact,
                       double *errors, double *gradient, double *hessian, double *work);

    /* `Posterior.with_best_outputs`: the last layer of `theta` is overwritten. */
    void (*best_outputs)(const Model *model, double *theta, const double *alpha,
                         const double *beta, double *work);

    /* The energy of one position. Here and below `gradient` may be NULL. */
    void (*value)(const Joint *joint, const double *q, double *value, double *gradient,
                  double *work);

    /* `leapfrog` of the samplers, one chain, in place. `factor` is that of its metric, symmetric
       and (d, d) if `dense`, else (d,). */
    void (*leapfrog)(const Joint *joint, double *q, double *p, double *value, double *gradient,
                     double step_size, long n_steps, const double *factor, int dense,
                     double unstable, double *work);

    /* `ScaleMoves`, n for one chain, in place: changes of ln alpha (n, n_groups), and the
       logarithms of the uniform numbers of Metropolis tests (n). */
    void (*rescalings)(const Joint *joint, long n, const double *shifts, const double *log_uniform,
                       double *q, double *value, double *gradient, double *work);

    /* `UnitMoves`, n for one chain, in place: the unit of every sampled weight or -1, units (n),
       and random numbers (n_sampled), (n) and (n, n_tries). */
    void (*unit_slices)(const Joint *joint, long n, long n_tries, const int *unit,
                        const int *chosen, const double *normal, const double *exponential,
                        const double *uniform, double *q, double *value, double *gradient,
                        double *work);
} Kernels;

/* Those that this processor can run, the fastest first; NULL beyond the last. */
const Kernels *kernels_at(int i);

#endif
