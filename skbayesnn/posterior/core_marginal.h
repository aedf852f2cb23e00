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
   in the hidden weights, and the derivatives in ln alpha and in ln beta. Returns 0 where a pivot
   of the equations is below `least` of its diagonal entry: they need more digits or eigenvalues. */
static int NAME(marginal)(const Joint *joint, const double *theta, const double *alpha,
                          const double *beta, double *value, double *gradient, double *by_alpha,
                          double *by_beta, double least, double *work)
{
    const Model *model = joint->model;
    int last = model->n_layers - 1, width = fan_in(model, last), K = fan_out(model, last);
    long at = weights_before(model, last), square = (long)width * width, stride;
    const int *label = joint->label + at;
    double *gram = work, *moment = gram + square, *system = moment + K * width;
    double *inverse = system + square;
    REAL *spread = (REAL *)(inverse + square), *mean = spread + square, *weights = mean + width * K;
    Rows rows = NAME(begin)(model, model->n, weights + at);
    for (long i = 0; i < at; i++)
        weights[i] = (REAL)theta[i];
    NAME(at)(&rows, 0);
    NAME(forward)(&rows, weights, gradient != NULL, last);
    memset(gram, 0, sizeof(double) * (square + K * width));
    for (int o = 0; o < K; o++)
        NAME(add_normal)(&rows, o, NAME(counts)(&rows, o), rows.rest, o ? NULL : gram,
                         moment + o * width);
    memset(spread, 0, sizeof(REAL) * square);
    *value = 0.0;
    for (int o = 0; o < K; o++) {
        double tau = beta[model->level[o]] * model->relative[o], sd[width], log_det, fixed = width;
        double *m = moment + o * width;
        for (int a = 0; a < width; a++) {
            sd[a] = 1.0 / sqrt(alpha[label[a * K + o]]);
            m[a] *= tau * sd[a];
        }
        normal_equations(gram, tau, sd, width, system);
        if (!cholesky(system, width, least, &log_det))
            return 0;
        solve(system, width, m);
        *value += 0.5 * (log_det + squared(m, width));
        for (int a = 0; a < width; a++)
            mean[a * K + o] = (REAL)(sd[a] * m[a]);
        if (!gradient)
            continue;
        inverse_of(system, width, inverse);
        for (int a = 0; a < width; a++) {
            double variance = inverse[a * width + a];
            by_alpha[label[a * K + o]] += 0.5 * (m[a] * m[a] + variance - 1.0);
            fixed -= variance;
            for (int b = 0; b < width; b++)
                spread[a * width + b] += (REAL)(tau * sd[a] * sd[b] * inverse[a * width + b]);
        }
        by_beta[model->level[o]] += 0.5 * fixed;
    }
    const V *z = NAME(fed)(&rows, last, &stride), *counts = NAME(counts)(&rows, 0);
    NAME(summed)(&rows, last, mean, z, stride, rows.outputs, 1, 0);
    for (int o = 0; o < K; o++) {
        const V *y = NAME(targets)(&rows, o);
        double tau = beta[model->level[o]] * model->relative[o];
        V *f = rows.outputs + o * rows.stride, squares = (V){0};
        for (int v = 0; v < rows.nv; v++) {
            V error = f[v] - y[v];
            squares += counts[v] * error * error;
            f[v] = (REAL)tau * error;
        }
        double total = 0.5 * tau * NAME(sum)(squares);
        *value += total;
        by_beta[model->level[o]] += total;
    }
    if (last == 0 || !gradient)
        return 1;
    V *delta = rows.delta[last - 1];
    int units = model->size[last];
    NAME(combine)(delta, rows.stride, units, spread, width, 1, z, stride, width, rows.nv, 0);
    NAME(combine)(delta, rows.stride, units, mean, K, 1, rows.outputs, rows.stride, K, rows.nv, 1);
    for (long i = 0; i < units * rows.stride; i += rows.stride)
        for (int v = 0; v < rows.nv; v++)
            delta[i + v] *= counts[v] * rows.slope[last][i + v];
    NAME(backward)(&rows, weights, last, gradient, 0);
    return 1;
}
