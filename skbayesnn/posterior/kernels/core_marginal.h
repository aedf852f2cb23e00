/* Included by core.c after core_rows.h for every set of instructions, in double and in single precision:
   Gaussian noise with the output layer integrated out. */

/* Sums over rows of z_a z_b and z_a y of an output, rows counted. */
static void NAME(add_normal)(const Rows *rows, int output, const V *counts, V *weighted,
                             double *gram, double *moment)
{
    int last = rows->model->n_layers - 1, width = fan_in(rows->model, last);
    long stride;
    const V *z = NAME(fed)(rows, last, &stride);
    for (int a = 0; a < width; a++)
        for (int v = 0; v < rows->nv; v++)
            weighted[a * rows->stride + v] = counts[v] * z[a * stride + v];
    if (gram)
        NAME(sums)(gram, width, weighted, rows->stride, width, z, stride, width, rows->nv);
    NAME(sums)(moment, 1, weighted, rows->stride, width, NAME(targets)(rows, output), 0, 1, rows->nv);
}

/* `integrated` of the output layer, its prior precisions by group; if `gradient` is not NULL with that
   in the hidden weights, and the derivatives in ln alpha and in ln beta, and if `by_factors` is not those
   in ln F of every row and output (which then have counts of their own). In single precision it
   returns 0 where a pivot of the equations is too small for that. */
static int NAME(marginal)(const Joint *joint, const double *theta, const double *alpha,
                          const double *beta, double *value, double *gradient, double *by_alpha,
                          double *by_beta, REAL *by_factors, double *work)
{
    const Model *model = joint->model;
    int last = model->n_layers - 1, width = fan_in(model, last), K = fan_out(model, last);
    int systems = model->n_counts; /* different ones */
    long at = weights_before(model, last), square = (long)width * width, stride;
    const int *label = joint->label + joint->n_sampled;
    double *gram = work, *moment = gram + systems * square, *system = moment + K * width;
    double *inverse = system + square;
    REAL *spread = (REAL *)(inverse + square), *mean = spread + systems * square;
    REAL *weights = mean + width * K;
    Rows rows = NAME(begin)(model, model->n, weights + at);
    long each = width * rows.stride;
    V *weighted = rows.rest, *pulled = weighted + systems * each;
    for (long i = 0; i < at; i++)
        weights[i] = (REAL)theta[i];
    NAME(at)(&rows, 0);
    NAME(forward)(&rows, weights, gradient != NULL, last);
    memset(gram, 0, sizeof(double) * (systems * square + K * width));
    for (int o = 0; o < K; o++) {
        int own = systems > 1 ? o : 0;
        NAME(add_normal)(&rows, o, NAME(counts)(&rows, o), weighted + own * each,
                         o > own ? NULL : gram + own * square, moment + o * width);
    }
    memset(spread, 0, sizeof(REAL) * systems * square);
    *value = 0.0;
    for (int o = 0; o < K; o++) {
        double tau = beta[model->level[o]] * model->relative[o], sd[width], log_det, fixed = width;
        double *m = moment + o * width;
        long own = systems > 1 ? o * square : 0;
        for (int a = 0; a < width; a++) {
            sd[a] = 1.0 / sqrt(alpha[label[a * K + o]]);
            m[a] *= tau * sd[a];
        }
        normal_equations(gram + own, tau, sd, width, system);
        if (!cholesky(system, width, SINGLE ? LEAST_SINGLE : 0.0, &log_det))
            return 0;
        solve(system, width, m);
        if (gradient)
            inverse_of(system, width, inverse);
        *value += 0.5 * (log_det + squared(m, width));
        for (int a = 0; a < width; a++)
            mean[a * K + o] = (REAL)(sd[a] * m[a]);
        if (!gradient)
            continue;
        for (int a = 0; a < width; a++) {
            double variance = inverse[a * width + a];
            by_alpha[label[a * K + o]] += 0.5 * (m[a] * m[a] + variance - 1.0);
            fixed -= variance;
            for (int b = 0; b < width; b++)
                spread[own + a * width + b] += (REAL)(tau * sd[a] * sd[b] * inverse[a * width + b]);
        }
        by_beta[model->level[o]] += 0.5 * fixed;
    }
    const V *z = NAME(fed)(&rows, last, &stride);
    NAME(summed)(&rows, last, mean, z, stride, rows.outputs, 1, 0);
    double errors[model->n_levels];
    memset(errors, 0, sizeof(errors));
    NAME(add_squares)(&rows, beta, rows.outputs, by_factors, errors);
    for (int l = 0; l < model->n_levels; l++) {
        *value += beta[l] * errors[l];
        by_beta[l] += beta[l] * errors[l];
    }
    int units = last ? model->size[last] : 0;
    V *delta = rows.delta[last ? last - 1 : 0];
    if (!gradient)
        return 1;
    for (int i = 0; i < systems && by_factors; i++) { /* variances of the outputs */
        V *own = (V *)by_factors + i * rows.nv;
        NAME(combine)(pulled, rows.stride, width, spread + i * square, width, 1, weighted + i * each,
                      rows.stride, width, rows.nv, 0);
        for (int a = 0; a < width; a++)
            for (int v = 0; v < rows.nv; v++)
                own[v] += (REAL)0.5 * z[a * stride + v] * pulled[a * rows.stride + v];
        if (i == 0)
            memset(delta, 0, sizeof(V) * units * rows.stride);
        for (long j = 0; j < units * rows.stride; j++)
            delta[j] += pulled[j];
    }
    if (last == 0)
        return 1;
    if (!by_factors) /* the rows count the same in all outputs */
        NAME(combine)(delta, rows.stride, units, spread, width, 1, weighted, rows.stride, width, rows.nv, 0);
    NAME(combine)(delta, rows.stride, units, mean, K, 1, rows.outputs, rows.stride, K, rows.nv, 1);
    for (long i = 0; i < units * rows.stride; i += rows.stride)
        for (int v = 0; v < rows.nv; v++)
            delta[i + v] *= rows.slope[last][i + v];
    NAME(backward)(&rows, weights, last, gradient, 0);
    return 1;
}
