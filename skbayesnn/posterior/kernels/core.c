/* One copy of the loops for every set of instructions, chosen when the module is loaded. */

#include "core.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifndef M_PI
#define M_PI 3.14159265358979323846
#endif

#define PASTE(a, b) a##_##b
#define JOIN(a, b) PASTE(a, b)
#define NAME(function) JOIN(function, ISA)
#define REAL NAME(real)
#define INTEGER NAME(integer)
#define V NAME(vec)
#define I NAME(ints)
#define DATA_0(model, field) (model)->field
#define DATA_1(model, field) (model)->single_##field
#define DATA(model, field) JOIN(DATA, SINGLE)(model, field)
#define SIGN ((INTEGER)(SINGLE ? INT32_MIN : INT64_MIN))
#define HIGHEST ((REAL)(SINGLE ? 80 : 300)) /* argument of rates */
#define INLINE static inline __attribute__((always_inline))
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (I){__VA_ARGS__})
#endif
#define EVEN_2 0, 2
#define EVEN_4 EVEN_2, 4, 6
#define EVEN_8 EVEN_4, 8, 10, 12, 14
#define EVEN_16 EVEN_8, 16, 18, 20, 22, 24, 26, 28, 30
#define ODD_2 1, 3
#define ODD_4 ODD_2, 5, 7
#define ODD_8 ODD_4, 9, 11, 13, 15
#define ODD_16 ODD_8, 17, 19, 21, 23, 25, 27, 29, 31
#define BLOCK 128 /* rows that are worked on together */
#define MIN_SINGLE 1e-6 /* least pivot in single precision, relative to its diagonal entry */

/* What is wanted of an energy: NEARLY is the value in single precision. */
enum { VALUE, FORCE, ALL, NEARLY };

/* In builds that check, arrays in working memory lie before the end that the caller has set. */
#ifdef SKBAYESNN_CHECK
#include <assert.h>
const double *memory_end;
#define WITHIN(end) assert((const double *)(end) <= memory_end)
#else
#define WITHIN(end) ((void)0)
#endif

static int fan_in(const Model *model, int layer)
{
    return model->size[layer] + (model->output_bias || layer < model->n_layers - 1);
}

static int fan_out(const Model *model, int layer) { return model->size[layer + 1]; }

static int n_pairs(int n) { return n * (n + 1) / 2; }

static long most(long a, long b) { return a > b ? a : b; }

static int widest(const Model *model)
{
    long width = 0;
    for (int l = 0; l <= model->n_layers; l++)
        width = most(width, model->size[l] + 1);
    return (int)width;
}

static long weights_before(const Model *model, int layer)
{
    long at = 0;
    for (int l = 0; l < layer; l++)
        at += (long)fan_in(model, l) * fan_out(model, l);
    return at;
}

static long n_weights(const Model *model) { return weights_before(model, model->n_layers); }

/* 1 if the curvature of the misfit in the outputs is diagonal, else 0. */
static int is_diagonal(const Model *model, int exact)
{
    if (model->likelihood == STUDENT_T && model->size[model->n_layers] > 1)
        return !exact;
    return model->likelihood != CATEGORICAL;
}

/* Doubles of `begin`. */
static long rows_doubles(const Model *model, long rows)
{
    int K = model->size[model->n_layers];
    long count = 2L * K + n_pairs(K);
    for (int l = 0; l < model->n_layers; l++)
        count += 4L * (model->size[l] + 1);
    return count * (rows < model->n ? rows : model->n) + PADDING;
}

/* With Hessians: no more than k^2 sums over rows, and five arrays of pairs of units or inputs. */
long work_doubles(const Model *model, int hessian)
{
    long k = n_weights(model), width = widest(model), K = model->size[model->n_layers];
    long rows = model->n < BLOCK ? model->n : BLOCK;
    long outputs = width * rows + model->n_levels + (K + 3) * width * (width + PADDING);
    long second = hessian ? k * k + 5 * width * width * rows : 0;
    return rows_doubles(model, BLOCK) + most(outputs, second);
}

/* 1 if the position determines factors of the precisions of rows, else 0; with such factors the
   output layer is integrated out. */
static int has_factors(const Joint *joint) { return joint->noise || joint->variances; }

/* Weights of the network of the means in the position. */
static int n_of_means(const Joint *joint)
{
    int K = joint->model->size[joint->model->n_layers];
    return joint->n_sampled - (joint->noise ? (int)n_weights(joint->noise) - K : 0);
}

/* Those of all functions of a position together. */
long joint_doubles(const Joint *joint)
{
    const Model *model = joint->model;
    long width = widest(model), K = model->size[model->n_layers], n = model->n;
    long d = joint->n_sampled + joint->n_free, k = n_weights(model), G = joint->n_groups;
    long energy = 7 * G + 4 * model->n_levels + 9 * d + 3 * k;
    long given = 2 * n, slices = G + width + (K + 1) * n + rows_doubles(model, n);
    long marginal = (K + 2) * width * (2 * width + n + PADDING + 2);
    long metric = d * (d + 4 * PADDING), factors = 3 * K * n;
    if (joint->noise)
        factors += 2 * n_weights(joint->noise) + rows_doubles(joint->noise, n);
    return energy + metric + given + slices + marginal + factors + rows_doubles(model, n);
}

/* The Hessian from the sums of `add_second`, in the same order. */
static void spread_out(const Model *model, int exact, const double *sums, double *hessian)
{
    long k = n_weights(model);
    memset(hessian, 0, sizeof(double) * k * k);
    for (int m = model->n_layers - 1; m >= 0; m--) {
        int in = fan_in(model, m), out = fan_out(model, m), units = model->size[m];
        int diagonal = is_diagonal(model, exact) && m == model->n_layers - 1;
        long at = weights_before(model, m);
        for (int i = 0; i < out; i++) /* pairs of units, pairs of inputs */
            for (int j = i; j < (diagonal ? i + 1 : out); j++)
                for (int a = 0; a < in; a++)
                    for (int b = a; b < in; b++) {
                        long ai = at + (long)a * out + i, bj = at + (long)b * out + j;
                        long aj = at + (long)a * out + j, bi = at + (long)b * out + i;
                        hessian[ai * k + bj] = hessian[bj * k + ai] = hessian[aj * k + bi] =
                            hessian[bi * k + aj] = *sums++;
                    }
        for (int l = m - 1; l >= 0; l--) { /* b, j in this layer, a, i in one below */
            int in_below = fan_in(model, l), out_below = fan_out(model, l);
            double *block = hessian + at * k + weights_before(model, l);
            for (int j = 0; j < out; j++)
                for (int i = 0; i < out_below; i++)
                    for (int b = 0; b < in; b++)
                        for (int a = 0; a < in_below; a++)
                            block[((long)b * out + j) * k + a * out_below + i] = *sums++;
        }
        for (int l = m - 1; exact && l >= 0; l--) {
            int in_below = fan_in(model, l), out_below = fan_out(model, l), adjacent = l == m - 1;
            double *block = hessian + at * k + weights_before(model, l);
            for (int j = 0; j < out; j++)
                for (int b = 0; b < units; b++)
                    for (int i = adjacent ? b : 0; i < (adjacent ? b + 1 : out_below); i++)
                        for (int a = 0; a < in_below; a++)
                            block[((long)b * out + j) * k + a * out_below + i] += *sums++;
        }
        for (long row = at; row < at + (long)in * out; row++)
            for (long column = 0; column < at; column++)
                hessian[column * k + row] = hessian[row * k + column];
    }
}

/* --- positions of samplers -------------------------------------------------------------------- */

/* A joint posterior with a model of its own. */
typedef struct {
    Joint joint;
    Model model;
} Given;

/* The joint posterior given what follows a position: rows count as often as before times their
   factors (`StudentTJoint`). */
static const Joint *given(Given *own, const Joint *joint, const double *q, double **work)
{
    if (!joint->n_factors)
        return joint;
    const double *factors = q + joint->n_sampled + joint->n_free;
    double *counts = *work;
    float *single = (float *)(counts + joint->model->n);
    *own = (Given){*joint, *joint->model};
    memcpy(counts, own->model.counts, sizeof(double) * own->model.n);
    for (long row = 0; row < joint->n_factors; row++)
        counts[row] *= factors[row];
    for (long row = 0; row < own->model.n; row++)
        single[row] = (float)counts[row];
    own->model.counts = counts;
    own->model.single_counts = single;
    own->joint.model = &own->model;
    *work += 2 * own->model.n;
    WITHIN(*work);
    return &own->joint;
}

/* 1 / (1 + e^-x), that of -x, and ln(1 + e^x). */
static double sigmoid(double x, double *opposite, double *softplus)
{
    double small = exp(-fabs(x)), likely = 1.0 / (1.0 + small), unlikely = small * likely;
    if (softplus)
        *softplus = (x > 0.0 ? x : 0.0) + log1p(small);
    *opposite = x > 0.0 ? unlikely : likely;
    return x > 0.0 ? likely : unlikely;
}

/* ln of a free precision at psi (`PrecisionMap._curve`), its slope, and the slope's. */
static double curve(const FreePrecision *free, double psi, double *slope, double *bend)
{
    double more = free->coarse - free->fine, opposite, softplus;
    double above = sigmoid(psi, &opposite, &softplus);
    *slope = free->fine + more * above;
    *bend = more * above * opposite;
    return free->centre + free->fine * psi + more * softplus;
}

/* ln of a free precision at its coordinate, and `PrecisionMap.derivatives`. */
static double log_precision_at(const FreePrecision *free, double eta, double *stretch,
                               double *change)
{
    double opposite, place = sigmoid(eta, &opposite, NULL), range = free->high - free->low;
    double slope, bend, inner = range * place * opposite;
    double log_precision = curve(free, free->low + range * place, &slope, &bend);
    *stretch = slope * inner;
    *change = bend / slope * inner + 1.0 - 2.0 * place;
    return log_precision;
}

/* A free precision at its coordinate, and how fast its logarithm changes. */
static double precision_at(const FreePrecision *free, double eta, double *stretch)
{
    double change;
    return exp(log_precision_at(free, eta, stretch, &change));
}

/* A free precision, and `JointPosterior.hyperprior` of its coordinate. */
static double hyperprior(const FreePrecision *free, double eta, double *stretch, double *value,
                         double *slope)
{
    double change, log_precision = log_precision_at(free, eta, stretch, &change);
    double precision = exp(log_precision), pull = free->rate * precision;
    *value = free->log_normaliser + pull - free->shape * log_precision - log(*stretch);
    *slope = -(change + (free->shape - pull) * *stretch);
    return precision;
}

/* The coordinate of a precision's logarithm (`PrecisionMap.eta`), by Newton's method. */
static double coordinate_of(const FreePrecision *free, double log_precision)
{
    double away = log_precision - free->centre, slope, bend;
    double psi = fmin(away / free->fine, away / free->coarse);
    for (int i = 0; i < 100; i++) {
        double step = (curve(free, psi, &slope, &bend) - log_precision) / slope;
        if (!(fabs(step) > 1e-12 * (1.0 + fabs(psi))))
            break;
        psi -= step;
    }
    double share = (psi - free->low) / (free->high - free->low);
    return share <= 0.0 ? -INFINITY : share >= 1.0 ? INFINITY : log(share / (1.0 - share));
}

/* `JointPosterior.rescaled`, one position, in place. Returns the logarithm of the volume. */
static double rescale(const Joint *joint, double *q, const double *shift, double *work)
{
    double *factor = work, *moved = factor + joint->n_groups, before, after, log_volume = 0.0;
    double *eta = q + joint->n_sampled;
    WITHIN(moved + joint->n_free_alpha);
    for (int c = 0; c < joint->n_groups; c++)
        factor[c] = 1.0;
    for (int f = 0; f < joint->n_free_alpha; f++) {
        int c = joint->which[f];
        const FreePrecision *free = joint->free + f;
        double alpha = precision_at(free, eta[f], &before), h = joint->information[c];
        double share = alpha / (alpha + h);
        moved[f] = coordinate_of(free, log(alpha) + shift[c]);
        if (!isfinite(moved[f]))
            return -INFINITY;
        alpha = precision_at(free, moved[f], &after);
        double ratio = share / (alpha / (alpha + h));
        factor[c] = sqrt(ratio);
        log_volume += 0.5 * joint->sizes[c] * log(ratio) + log(before / after);
    }
    memcpy(eta, moved, sizeof(double) * joint->n_free_alpha);
    for (int i = 0; i < joint->n_sampled; i++)
        q[i] *= factor[joint->label[i]];
    return log_volume;
}

/* `Place.share` of every group, and `Place.scales` of its weights. */
static void shares(const Joint *joint, const double *q, double *share, double *scale)
{
    double stretch;
    memcpy(share, joint->fixed, sizeof(double) * joint->n_groups);
    for (int f = 0; f < joint->n_free_alpha; f++)
        share[joint->which[f]] = precision_at(joint->free + f, q[joint->n_sampled + f], &stretch);
    for (int c = 0; c < joint->n_groups; c++) {
        double total = share[c] + joint->information[c];
        scale[c] = 1.0 / sqrt(total);
        share[c] /= total;
    }
}

/* 1 if units can be changed one at a time (`slices`), else 0. */
static int is_shallow(const Joint *joint)
{
    return joint->single && joint->model->n_levels == 0 && joint->model->n_layers == 2;
}

/* Energy without the prior of a unit's weights given their precisions, whose shares are given. */
static double without_prior(const Joint *joint, double value, const double *share, const double *q,
                            const int *unit, int chosen)
{
    for (int i = 0; i < joint->n_sampled; i++)
        if (unit[i] == chosen)
            value -= 0.5 * share[joint->label[i]] * q[i] * q[i];
    return value;
}

static double squared(const double *x, int n)
{
    double total = 0.0;
    for (int i = 0; i < n; i++)
        total += x[i] * x[i];
    return total;
}

/* --- the copies ------------------------------------------------------------------------------- */

#define SET baseline
#define DOUBLES 2
#define SINGLES 4
#define TILE 2
#include "core_copy.h"

#if defined(__x86_64__) && defined(__GNUC__)
#if defined(__clang__)
#define FOR(instructions) _Pragma( \
    STRING(clang attribute push(__attribute__((target(instructions))), apply_to = function)))
#define END _Pragma("clang attribute pop")
#else
#define FOR(instructions) _Pragma("GCC push_options") _Pragma(STRING(GCC target(instructions)))
#define END _Pragma("GCC pop_options")
#endif
#define STRING(text) #text

FOR("avx2,fma")
#define SET avx2
#define DOUBLES 4
#define SINGLES 8
#define TILE 2
#include "core_copy.h"
END
FOR("avx512f,avx512dq,avx512vl,fma,prefer-vector-width=512")
#define SET avx512
#define DOUBLES 8
#define SINGLES 16
#define TILE 4
#include "core_copy.h"
END
#endif

#define KERNELS(isa, most_weights) \
    {#isa, most_weights, evaluate_##isa, best_outputs_##isa, value_##isa, leapfrog_##isa, \
     rescalings_##isa, unit_slices_##isa}

const Kernels *kernels_at(int i)
{
    static const Kernels baseline = KERNELS(baseline, 100);
#ifdef FOR
    static const Kernels avx2 = KERNELS(avx2, 200), avx512 = KERNELS(avx512, 1000);
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && i-- == 0)
        return &avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && i-- == 0)
        return &avx2;
#endif
    return i == 0 ? &baseline : NULL;
}
