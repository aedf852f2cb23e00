/* Random networks, data and positions through every function of the core, in memory of exactly the
   sizes that core.h asks for, for all instructions that this processor has. `.ci/sanitize` compiles
   it with the sanitizers of addresses and of undefined behaviour. Working memory begins as NaN,
   which no result may be: nothing is read that was not written. */

#include "core.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SECOND 250 /* weights of which there are Hessians here, or dense metrics */

static void *kept[4096]; /* memory of the present problem */
static int n_kept, n_runs;

static void *room(size_t size)
{
    return kept[n_kept++] = malloc(size ? size : 1);
}

static void forget(int before)
{
    while (n_kept > before)
        free(kept[--n_kept]);
}

static double uniform(void) { return rand() / (RAND_MAX + 1.0); }

static int below(int n) { return (int)(n * uniform()); }

static double normal(void)
{
    return sqrt(-2.0 * log(1.0 - uniform())) * cos(2.0 * M_PI * uniform());
}

static double *filled(long n, double value)
{
    double *array = room(sizeof(double) * n);
    for (long i = 0; i < n; i++)
        array[i] = value;
    return array;
}

extern const double *memory_end; /* of the core, which checks that its arrays lie before it */

static double *work(long n)
{
    double *array = filled(n, NAN);
    memory_end = array + n;
    return array;
}

static double *normals(long n, double sd)
{
    double *array = filled(n, 0.0);
    for (long i = 0; i < n; i++)
        array[i] = sd * normal();
    return array;
}

static double *uniforms(long n, double low, double high)
{
    double *array = filled(n, low);
    for (long i = 0; i < n; i++)
        array[i] += (high - low) * uniform();
    return array;
}

static float *rounded(const double *array, long n)
{
    float *single = room(sizeof(float) * n);
    for (long i = 0; i < n; i++)
        single[i] = (float)array[i];
    return single;
}

static int *integers(long n, int value)
{
    int *array = room(sizeof(int) * n);
    for (long i = 0; i < n; i++)
        array[i] = value;
    return array;
}

static void expect_numbers(const char *what, const double *array, long n)
{
    n_runs++;
    for (long i = 0; i < n; i++)
        if (isnan(array[i])) {
            printf("%s: number %ld of %ld is NaN\n", what, i, n);
            exit(1);
        }
}

/* --- models ----------------------------------------------------------------------------------- */

static long fan_in(const Model *m, int layer)
{
    return m->size[layer] + (m->output_bias || layer < m->n_layers - 1);
}

static long weights_to(const Model *m, int layer) /* of the layers before it */
{
    long count = 0;
    for (int l = 0; l < layer; l++)
        count += fan_in(m, l) * m->size[l + 1];
    return count;
}

/* Few narrow layers, wide ones, or as many as there may be. */
static int *random_sizes(int *n_layers, int n_outputs)
{
    int kind = below(6);
    int most = kind == 0 ? MAX_LAYERS - 1 : 3, width = kind == 0 ? 4 : kind < 3 ? 40 : 9;
    *n_layers = 1 + below(most);
    int *size = integers(*n_layers + 1, n_outputs);
    for (int l = 0; l < *n_layers; l++)
        size[l] = 1 + below(width);
    return size;
}

/* Rows of data, padded: targets and counts with zeros, inputs with zeros and a one. */
static void with_data(Model *m, long rows)
{
    int n_inputs = m->size[0], K = m->size[m->n_layers];
    long n = m->n = (rows + PADDING - 1) / PADDING * PADDING;
    double *inputs = filled((n_inputs + 1) * n, 1.0), *y = filled(K * n, 0.0);
    double *counts = filled(m->n_counts * n, 0.0);
    for (long i = 0; i < n_inputs * n; i++)
        inputs[i] = i % n < rows ? normal() : 0.0;
    for (long i = 0; i < rows; i++) {
        for (int o = 0; o < K; o++)
            y[o * n + i] = m->likelihood == BERNOULLI ? below(2)
                           : m->likelihood == POISSON ? below(5)
                           : m->likelihood == CATEGORICAL ? 0.0
                           : m->likelihood == SQUARED_RESIDUALS ? fabs(normal()) : normal();
        if (m->likelihood == CATEGORICAL)
            y[below(K) * n + i] = 1.0;
        for (int o = 0; o < m->n_counts; o++)
            counts[o * n + i] = 0.5 + uniform();
    }
    m->inputs = inputs, m->targets = y, m->counts = counts;
    m->single_inputs = rounded(inputs, (n_inputs + 1) * n);
    m->single_targets = rounded(y, K * n);
    m->single_counts = rounded(counts, m->n_counts * n);
    m->n_counted = (double)rows;
}

static Model random_model(long rows)
{
    Model m = {.output_bias = below(4) > 0, .activation = below(5), .likelihood = below(6)};
    int few = m.likelihood == BERNOULLI || m.likelihood == POISSON;
    int K = few ? 1 : m.likelihood == CATEGORICAL ? 2 + below(10) : 1 + below(4);
    int levels = m.likelihood == GAUSSIAN || m.likelihood == STUDENT_T;
    m.size = random_sizes(&m.n_layers, K);
    m.degrees_of_freedom = 4.0;
    m.n_levels = !levels ? 0 : below(3) ? K : 1;
    int *level = integers(K, 0);
    for (int o = 0; o < K && m.n_levels > 1; o++)
        level[o] = o;
    m.level = level;
    m.relative = uniforms(K, 1.0, 2.0);
    m.n_counts = m.likelihood == GAUSSIAN && below(3) == 0 ? K : 1;
    with_data(&m, rows);
    return m;
}

static void try_model(const Kernels *q, const Model *m)
{
    int second = weights_to(m, m->n_layers) <= MAX_SECOND;
    long k = weights_to(m, m->n_layers), before = n_kept;
    double *theta = normals(k, 0.7), *beta = uniforms(m->n_levels, 0.2, 3.0);
    for (int order = 0; order < 2 + second; order++) {
        double *errors = work(m->n_levels), *g = work(k), *h = second ? work(k * k) : NULL;
        double value = q->evaluate(m, theta, beta, below(2), errors, order ? g : NULL,
                                   order > 1 ? h : NULL, work(work_doubles(m, order > 1)));
        expect_numbers("misfit", &value, 1);
        expect_numbers("errors", errors, m->n_levels);
        expect_numbers("gradient", g, order ? k : 0);
        expect_numbers("Hessian", h, order > 1 ? k * k : 0);
    }
    if (m->n_levels && m->n_layers > 1) {
        q->best_outputs(m, theta, uniforms(k, 0.1, 3.0), beta, work(work_doubles(m, 0)));
        expect_numbers("best outputs", theta, k);
    }
    forget(before);
}

/* As the loop over batches, which has nothing in single precision. */
static void try_batch(const Kernels *q, const Model *whole)
{
    int before = n_kept;
    Model m = *whole;
    with_data(&m, 1 + below(70));
    m.single_inputs = m.single_targets = m.single_counts = NULL;
    long k = weights_to(&m, m.n_layers);
    double *g = work(k), *errors = work(m.n_levels), *beta = uniforms(m.n_levels, 0.2, 3.0);
    q->evaluate(&m, normals(k, 0.7), m.n_levels ? beta : NULL, 0, errors, g, NULL,
                work(work_doubles(&m, 0)));
    expect_numbers("gradient of a batch", g, k);
    forget(before);
}

/* --- positions of samplers -------------------------------------------------------------------- */

/* A network of the noise, or known variances, or factors that follow the position, or none. */
static void with_other_noise(Joint *j, const Model *m, long rows)
{
    int K = m->size[m->n_layers], kind = m->n_counts == 1 ? below(4) : 3;
    if (kind == 0) {
        Model *noise = room(sizeof(Model));
        *noise = *m;
        noise->size = random_sizes(&noise->n_layers, K);
        ((int *)noise->size)[0] = m->size[0];
        noise->output_bias = 1;
        j->noise = noise;
        j->lowest = filled(K, -3.0), j->highest = filled(K, 3.0);
        j->n_sampled += (int)weights_to(noise, noise->n_layers) - K;
    } else if (kind == 1) {
        j->variances = uniforms(K * m->n, 0.0, 1.0);
        j->single_variances = rounded(j->variances, K * m->n);
    } else if (kind == 2)
        j->n_factors = rows;
}

static void with_precisions(Joint *j)
{
    int n = j->n_groups + j->model->n_levels, *which = integers(n, 0);
    FreePrecision *free = room(sizeof(FreePrecision) * n);
    for (int c = 0; c < n; c++)
        if (below(5)) {
            free[j->n_free] = (FreePrecision){
                normal(), 1.0 + uniform(), 3.0, -3.0, 3.0, uniform(), uniform(), 2.0};
            which[j->n_free++] = c;
            j->n_free_alpha += c < j->n_groups;
        }
    j->free = free, j->which = which;
    j->fixed = uniforms(n, 0.5, 2.0);
    j->information = uniforms(j->n_groups, 0.0, 2.0);
}

static Joint random_joint(const Model *m, long rows)
{
    int K = m->size[m->n_layers];
    Joint j = {.model = m, .of_prior = 1.0, .of_data = 1.0};
    j.integrated = m->likelihood == GAUSSIAN && m->n_layers > 1 && below(3);
    long outputs = j.integrated ? fan_in(m, m->n_layers - 1) * K : 0;
    j.n_sampled = (int)(weights_to(m, m->n_layers) - outputs);
    if (j.integrated)
        with_other_noise(&j, m, rows);
    j.n_groups = 1 + below(6);
    with_precisions(&j);
    j.single = (j.integrated || m->n_levels == 0) && below(4);
    int *label = integers(j.n_sampled + outputs, 0), apart = below(2), group = 0;
    double *sizes = filled(j.n_groups, 0.0);
    for (long i = 0; i < j.n_sampled + outputs; i++) {
        label[i] = group = apart || below(7) == 0 ? below(j.n_groups) : group;
        sizes[group] += i < j.n_sampled;
    }
    j.label = label, j.sizes = sizes;
    if (below(2)) {
        j.of_first = 0.3, j.of_data = 0.6;
        j.first_centre = normals(j.n_free, 1.0), j.first_scale = uniforms(j.n_free, 0.5, 2.0);
    }
    return j;
}

static void try_units(const Kernels *q, const Joint *j, double *at, double *value, double *g)
{
    const Model *m = j->model;
    long n = 5, tries = 8, n_units = 0;
    int *unit = integers(j->n_sampled, -1), *chosen = integers(n, 0);
    for (int l = 0; l < (m->n_layers > 1 ? m->n_layers - 1 : 1); n_units += m->size[++l])
        for (long i = weights_to(m, l); i < weights_to(m, l + 1); i++)
            unit[i] = (int)(n_units + (i - weights_to(m, l)) % m->size[l + 1]);
    for (int i = 0; i < n; i++)
        chosen[i] = below((int)n_units);
    q->unit_slices(j, n, tries, unit, chosen, normals(j->n_sampled, 1.0), uniforms(n, 0.0, 4.0),
                   uniforms(n * tries, 0.0, 1.0), at, value, g, work(joint_doubles(j)));
}

static void try_joint(const Kernels *q, const Model *m, long rows)
{
    int before = n_kept, G, dense;
    Joint j = random_joint(m, rows);
    long d = j.n_sampled + j.n_free;
    G = j.n_groups, dense = d <= MAX_SECOND && below(2);
    double *at = normals(d + j.n_factors, 0.5), *g = work(d), value = NAN;
    for (long i = d; i < d + j.n_factors; i++)
        at[i] = 0.5 + uniform();
    q->value(&j, at, &value, g, work(joint_doubles(&j)));
    expect_numbers("energy", &value, 1);
    expect_numbers("gradient of the energy", g, d);
    double *metric = filled(dense ? d * d : d, dense ? 0.0 : 1.0), *own = below(2) ? g : NULL;
    for (long i = 0; i < d && dense; i++)
        metric[i * d + i] = 1.0;
    q->leapfrog(&j, at, normals(d, 1.0), &value, own, 0.02, below(4), metric, dense, 1000.0,
                work(joint_doubles(&j)));
    expect_numbers("end of a trajectory", at, d);
    q->rescalings(&j, 4, normals(4 * G, 0.3), uniforms(4, -2.0, 0.0), at, &value, own,
                  work(joint_doubles(&j)));
    if (!j.integrated)
        try_units(q, &j, at, &value, own);
    expect_numbers("position", at, d);
    expect_numbers("energy after moves", &value, 1);
    forget(before);
}

int main(int n_arguments, char **arguments)
{
    int n_models = n_arguments > 1 ? atoi(arguments[1]) : 1500, isa = 0;
    for (const Kernels *q; (q = kernels_at(isa)); isa++) {
        for (int i = 0; i < n_models; i++) {
            srand(i + 1);
            long rows = 1 + below(below(2) ? 40 : 300);
            Model m = random_model(rows);
            try_model(q, &m);
            try_batch(q, &m);
            if (m.likelihood != SQUARED_RESIDUALS && m.likelihood != STUDENT_T)
                try_joint(q, &m, rows);
            forget(0);
        }
        printf("%s: %d models\n", q->name, n_models);
    }
    printf("%d results\n", n_runs);
    return isa == 0;
}
