/* Included by core.c after core_rows.h for every set of instructions: functions in double precision
   only. */

/* --- the Hessian ------------------------------------------------------------------------------ */

/* Products of rows of two arrays, of all pairs a <= b where they are the same one. */
static int NAME(products)(const Rows *rows, const V *left, long stride, int n, const V *right,
                          long stride_right, int n_right, V *out)
{
    int count = 0;
    for (int a = 0; a < n; a++)
        for (int b = left == right ? a : 0; b < n_right; b++, count++, out += rows->stride)
            for (int v = 0; v < rows->nv; v++)
                out[v] = left[a * stride + v] * right[b * stride_right + v];
    return count;
}

/* Rows (c, i) for the units i below from rows (c, j) for those of a layer, for any c:
   sum_j W[i, j] above[c, j], times the slope of i. */
static void NAME(carried_down)(const Rows *rows, int layer, const double *theta, const V *above,
                               int count, V *out)
{
    const Model *model = rows->model;
    int width = fan_out(model, layer), below = model->size[layer];
    const double *weights = theta + weights_before(model, layer);
    for (int c = 0; c < count; c++, above += width * rows->stride, out += below * rows->stride) {
        NAME(combine)(out, rows->stride, below, weights, width, 1, above, rows->stride, width,
                      rows->nv, 0);
        for (long i = 0; i < below * rows->stride; i += rows->stride)
            for (long v = i; v < i + rows->nv; v++)
                out[v] *= rows->slope[layer][v];
    }
}

/* All rows (i, j) of symmetric matrices of which pairs i <= j, or the diagonals, are given. */
static void NAME(unpacked)(const Rows *rows, const V *packed, int n, int diagonal, V *out)
{
    size_t size = sizeof(V) * rows->nv;
    for (int i = 0; i < n; i++)
        for (int j = i; j < n; j++) {
            V *one = out + (i * n + j) * rows->stride, *other = out + (j * n + i) * rows->stride;
            if (diagonal && i != j) {
                memset(one, 0, size);
                memset(other, 0, size);
                continue;
            }
            memcpy(one, packed, size);
            if (i != j)
                memcpy(other, packed, size);
            packed += rows->stride;
        }
}

/* Sums over rows that make the second derivatives of the misfit in all weights (`spread_out`). With
   C_ml the second derivatives in the summed inputs of layers m and l

       d2 / dW_m[b, j] dW_l[a, i] = sum_n z_b z_a C_ml[j, i] + z_a delta_j dz_b / da_i,

   the second term and the curvature of the units only if `exact`. From the outputs down,
   C_m,l-1 = (C_ml W_l^T) phi'_l-1, and C_l-1,l-1 = phi'_l-1 W_l C_l,l-1 + diag(e phi''_l-1). */
static void NAME(add_second)(const Rows *rows, const double *theta, int exact, double *sums)
{
    const Model *model = rows->model;
    long width = widest(model), apart = rows->stride, most = width * width * apart;
    long stride, stride_below;
    V *own = rows->rest, *first = own + most, *second = first + most;
    V *paths = second + most, *products = paths + most;
    const V *given = rows->curvature;
    WITHIN(products + most);
    int diagonal = is_diagonal(model, exact);
    for (int m = model->n_layers - 1; m >= 0; m--, diagonal = 0, given = own) {
        int in = fan_in(model, m), out = fan_out(model, m), units = model->size[m];
        int P = diagonal ? out : n_pairs(out);
        const V *z = NAME(fed)(rows, m, &stride);
        int Q = NAME(products)(rows, z, stride, in, z, stride, in, products);
        NAME(sums)(sums, Q, given, apart, P, products, apart, Q, rows->nv);
        sums += (long)P * Q;
        if (m == 0)
            break;
        V *mixed = first, *further = second, *pair = own;
        NAME(unpacked)(rows, given, out, diagonal, further);
        NAME(carried_down)(rows, m, theta, further, out, mixed);
        const double *weights = theta + weights_before(model, m);
        for (int i = 0; i < units; i++)
            for (int c = i; c < units; c++, pair += apart) {
                NAME(combine)(pair, apart, 1, weights + (long)i * out, 0, 1, mixed + c * apart,
                              units * apart, out, rows->nv, 0);
                for (int v = 0; v < rows->nv; v++) {
                    pair[v] *= rows->slope[m][i * apart + v];
                    if (exact && i == c)
                        pair[v] += rows->bend[m][i * apart + v];
                }
            }
        for (int l = m - 1; l >= 0; l--) {
            const V *below = NAME(fed)(rows, l, &stride_below);
            P = out * fan_out(model, l);
            Q = NAME(products)(rows, z, stride, in, below, stride_below, fan_in(model, l),
                               products);
            NAME(sums)(sums, Q, mixed, apart, P, products, apart, Q, rows->nv);
            sums += (long)P * Q;
            if (l == 0)
                break;
            NAME(carried_down)(rows, l, theta, mixed, out, further);
            V *swap = mixed;
            mixed = further, further = swap;
        }
        const V *reach = rows->slope[m]; /* dz_b / da_i; of the layer below its diagonal */
        mixed = first, further = second;
        for (int l = m - 1; exact && l >= 0; l--) {
            const V *below = NAME(fed)(rows, l, &stride_below);
            P = l == m - 1 ? units : units * fan_out(model, l), Q = fan_in(model, l);
            for (int j = 0; j < out; j++, sums += (long)P * Q) {
                NAME(products)(rows, rows->delta[m] + j * apart, 0, 1, reach, apart, P, paths);
                NAME(sums)(sums, Q, paths, apart, P, below, stride_below, Q, rows->nv);
            }
            if (l == 0)
                break;
            if (l == m - 1)
                NAME(unpacked)(rows, reach, units, 1, further);
            else
                memcpy(further, reach, sizeof(V) * P * apart);
            NAME(carried_down)(rows, l, theta, further, units, mixed);
            reach = mixed;
        }
    }
}

/* Misfit, and derivatives of it that are not NULL, over blocks of rows. */
static double NAME(evaluate)(const Model *model, const double *theta, const double *beta, int exact,
                             double *errors, double *gradient, double *hessian, double *work)
{
    long k = n_weights(model), n_sums = hessian ? k * k : 0;
    memset(work, 0, sizeof(double) * n_sums);
    Rows rows = NAME(begin)(model, BLOCK, work + n_sums);
    double value = 0.0;
    if (gradient)
        memset(gradient, 0, sizeof(double) * k);
    memset(errors, 0, sizeof(double) * model->n_levels);
    int order = hessian ? 1 + exact : gradient != NULL;
    for (long first = 0; first < model->n; first += BLOCK) {
        NAME(at)(&rows, first);
        NAME(forward)(&rows, theta, order, model->n_layers);
        value += NAME(noise)(&rows, beta, errors, hessian ? 2 : order, exact);
        if (gradient)
            NAME(backward)(&rows, theta, model->n_layers, gradient, hessian && exact);
        if (hessian)
            NAME(add_second)(&rows, theta, exact, work);
    }
    if (hessian)
        spread_out(model, exact, work, hessian);
    for (int level = 0; level < model->n_levels && model->likelihood == GAUSSIAN; level++)
        value += beta[level] * errors[level];
    return value;
}

/* --- steps ------------------------------------------------------------------------------------ */

/* Ridge regression of the targets on the last hidden layer: variable projection (Golub & Pereyra
   1973). */
static void NAME(best_outputs)(const Model *model, double *theta, const double *alpha,
                               const double *beta, double *work)
{
    int last = model->n_layers - 1, width = fan_in(model, last), K = fan_out(model, last);
    int robust = model->likelihood == STUDENT_T;
    long at = weights_before(model, last), square = (long)width * width;
    double *gram = work, *moment = gram + K * square, *sd = moment + K * width, log_det;
    V *system = (V *)(sd + width);
    Rows rows = NAME(begin)(model, BLOCK, (double *)(system + 2 * width * NAME(vectors)(width)));
    WITHIN(rows.rest + width * rows.stride);
    memset(gram, 0, sizeof(double) * K * (square + width));
    for (long first = 0; first < model->n; first += BLOCK) {
        NAME(at)(&rows, first);
        NAME(forward)(&rows, theta, 0, robust ? last + 1 : last);
        if (robust) { /* a row counts by its residual: one step of expectation maximisation */
            NAME(noise)(&rows, beta, (double *)rows.rest, 2, 0);
            for (int v = 0; v < rows.nv; v++)
                rows.curvature[v] /= beta[model->level[0]] * model->relative[0];
        }
        for (int o = 0; o < K; o++)
            NAME(add_normal)(&rows, o, robust ? rows.curvature : NAME(counts)(&rows, o), rows.rest,
                             o && model->n_counts == 1 ? NULL : gram + o * square,
                             moment + o * width);
    }
    for (int o = 0; o < K; o++) {
        double tau = beta[model->level[o]] * model->relative[o], *m = moment + o * width;
        for (int a = 0; a < width; a++)
            sd[a] = 1.0 / sqrt(alpha[at + (long)a * K + o]);
        NAME(ridge)(gram + (model->n_counts == 1 ? 0 : o) * square, tau, sd, width, 0.0, system, m,
                    &log_det);
        for (int a = 0; a < width; a++)
            theta[at + (long)a * K + o] = sd[a] * m[a];
    }
}
