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
            Q = NAME(products)(rows, z, stride, in, below, stride_below, fan_in(model, l), products);
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

/* sum_n J_n^T Lambda_n d2f_n, with d2f_n the second derivatives of the outputs along a step (Transtrum &
   Sethna 2012), by a forward pass of first and second derivatives. */
static void NAME(bend)(const Model *model, const double *theta, const double *beta,
                       const double *step, double *force, double *work)
{
    Rows rows = NAME(begin)(model, BLOCK, work);
    int width = widest(model), top = model->n_layers - 1, K = model->size[top + 1];
    long apart = rows.stride;
    V *first = rows.rest, *second = first + width * apart; /* d a / d h and d2 a / d h2 */
    V *dz = second + width * apart, *ddz = dz + width * apart, *errors = ddz + width * apart;
    memset(force, 0, sizeof(double) * n_weights(model));
    for (long from = 0; from < model->n; from += BLOCK) {
        NAME(at)(&rows, from);
        NAME(forward)(&rows, theta, 2, model->n_layers);
        NAME(noise)(&rows, beta, (double *)errors, 2, 0);
        for (int l = 0; l <= top; l++) {
            long at = weights_before(model, l), stride;
            const V *z = NAME(fed)(&rows, l, &stride);
            for (long i = 0; l > 0 && i < model->size[l] * apart; i += apart)
                for (long v = i; v < i + rows.nv; v++) {
                    ddz[v] = rows.bend[l][v] * first[v] * first[v] + rows.slope[l][v] * second[v];
                    dz[v] = rows.slope[l][v] * first[v];
                }
            if (l == 0)
                for (long i = 0; i < model->size[1] * apart; i++)
                    second[i] = (V){0};
            NAME(summed)(&rows, l, step + at, z, stride, first, 1, 0);
            if (l == 0)
                continue;
            NAME(summed)(&rows, l, theta + at, dz, apart, first, 0, 1);
            NAME(summed)(&rows, l, step + at, dz, apart, second, 0, 0);
            for (long i = 0; i < model->size[l + 1] * apart; i++)
                second[i] *= 2.0;
            NAME(summed)(&rows, l, theta + at, ddz, apart, second, 0, 1);
        }
        V *delta = rows.delta[top];
        const V *pair = rows.curvature;
        memset(delta, 0, sizeof(V) * K * apart);
        for (int o = 0; o < K; o++)
            for (int c = o; c < (is_diagonal(model, 0) ? o + 1 : K); c++, pair += apart)
                for (int v = 0; v < rows.nv; v++) {
                    delta[o * apart + v] += pair[v] * second[c * apart + v];
                    if (o != c)
                        delta[c * apart + v] += pair[v] * second[o * apart + v];
                }
        NAME(backward)(&rows, theta, model->n_layers, force, 0);
    }
}

/* Ridge regression of the targets on the last hidden layer: variable projection (Golub & Pereyra 1973). */
static void NAME(best_outputs)(const Model *model, double *theta, const double *alpha,
                               const double *beta, double *work)
{
    int last = model->n_layers - 1, width = fan_in(model, last), K = fan_out(model, last);
    int robust = model->likelihood == STUDENT_T;
    long at = weights_before(model, last), square = (long)width * width;
    double *gram = work, *moment = gram + K * square, *sd = moment + K * width, log_det;
    V *system = (V *)(sd + width);
    Rows rows = NAME(begin)(model, BLOCK, (double *)(system + 2 * width * NAME(vectors)(width)));
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
        NAME(ridge)(gram + (model->n_counts == 1 ? 0 : o) * square, tau, sd, width, 0.0, system, m, &log_det);
        for (int a = 0; a < width; a++)
            theta[at + (long)a * K + o] = sd[a] * m[a];
    }
}

/* --- predictions ------------------------------------------------------------------------------ */

/* Means of p_c and p_c p_d, p the softmax of a = mean + root z at given points z. */
static void NAME(softmax_moments)(int n_classes, int rank, long n, const double *mean,
                                  const double *root, long n_points, const double *points,
                                  double *first, double *second)
{
    V p[MOST_CLASSES], sums[MOST_CLASSES], products[MOST_CLASSES * (MOST_CLASSES + 1) / 2];
    for (; n > 0; n--, mean += n_classes, root += n_classes * rank, first += n_classes,
                  second += n_classes * n_classes) {
        memset(sums, 0, sizeof(V) * n_classes);
        memset(products, 0, sizeof(V) * n_pairs(n_classes));
        for (long v = 0; v < n_points; v += LANES) {
            V most = NAME(all)(-INFINITY), total = (V){0}, *product = products;
            for (int c = 0; c < n_classes; c++) {
                p[c] = NAME(all)(mean[c]);
                for (int k = 0; k < rank; k++)
                    p[c] += root[c * rank + k] * *(const V *)(points + k * n_points + v);
                most = NAME(chosen)(p[c] <= most, most, p[c]);
            }
            for (int c = 0; c < n_classes; c++)
                total += p[c] = NAME(exp)(p[c] - most);
            for (int c = 0; c < n_classes; c++)
                sums[c] += p[c] /= total;
            for (int c = 0; c < n_classes; c++)
                for (int d = c; d < n_classes; d++)
                    *product++ += p[c] * p[d];
        }
        const V *product = products;
        for (int c = 0; c < n_classes; c++) {
            first[c] = NAME(sum)(sums[c]) / (double)n_points;
            for (int d = c; d < n_classes; d++)
                second[c * n_classes + d] = second[d * n_classes + c] =
                    NAME(sum)(*product++) / (double)n_points;
        }
    }
}

/* Up to LANES values, followed by zeros. */
INLINE V NAME(some)(const double *values, long count)
{
    if (count >= LANES)
        return *(const V *)values;
    V found = (V){0};
    for (long i = 0; i < count; i++)
        found[i] = values[i];
    return found;
}

/* Normal distribution function and density. The ratio of the upper tail to exp(-z^2 / 2) is that of
   polynomials of Hart (1968, "Computer approximations", no. 5666): error below 1e-15. */
INLINE V NAME(normal_law)(V z, V *density, int with_cdf)
{
    static const double c[] = {3.52624965998911e-02, 0.700383064443688, 6.37396220353165,
                               33.912866078383,      112.079291497871,  221.213596169931,
                               220.206867912376};
    static const double d[] = {8.83883476483184e-02, 1.75566716318264, 16.064177579207,
                               86.7807322029461,     296.564248779674, 637.333633378831,
                               793.826512519948,     440.413735824752};
    V size = NAME(abs)(z);
    size = NAME(chosen)(size > 40.0, NAME(all)(40.0), size);
    V height = NAME(exp)(-0.5 * size * size);
    *density = height * 0.3989422804014327;
    if (!with_cdf)
        return height;
    V tail = height * NAME(polynomial)(size, c, 7) / NAME(polynomial)(size, d, 8);
    return NAME(chosen)(z > 0.0, 1.0 - tail, tail);
}

/* Student's t distribution, from the table of its `Law`. */
INLINE V NAME(student_law)(const Law *law, V z, V *density, int with_cdf)
{
    const double n_cells = (double)law->n_cells, per_unit = n_cells / (2.0 * law->range);
    V t = z * z / law->nu, v, below;
    t = NAME(chosen)(t > 1e200, NAME(all)(1e200), t);
    V u = 1.0 + t, logarithm = NAME(chosen)(u == 1.0, t, NAME(log)(u) * t / (u - 1.0));
    *density = NAME(exp)(law->log_constant - 0.5 * (law->nu + 1.0) * logarithm);
    if (!with_cdf)
        return logarithm;
    for (int i = 0; i < LANES; i++)
        v[i] = sqrt(law->nu * logarithm[i]);
    v = NAME(chosen)(v < law->range, v, NAME(all)(law->range));
    V place = ((V)((I)v | ((I)z & SIGN)) + law->range) * per_unit;
    V cell = (place - 0.5 + 6755399441055744.0) - 6755399441055744.0; /* or the one below */
    cell = NAME(chosen)(cell < n_cells, cell, NAME(all)(n_cells - 1.0));
    V rest = (place - cell) / per_unit;
    for (int i = 0; i < LANES; i++) {
        const double *c = law->table + 4 * (long)cell[i];
        below[i] = c[0] + rest[i] * (c[1] + rest[i] * (c[2] + rest[i] * c[3]));
    }
    return below;
}

/* F(x) = sum_j w_j F_0((x - mu_j) / s_j), unless cdf is NULL, and its density. */
static void NAME(mixture)(const Law *law, long n, long m, const double *x, const double *weights,
                          const double *means, const double *inverse, double *cdf, double *density)
{
    for (; n > 0; n--, x++, means += m, inverse += m) {
        V below = (V){0}, heights = (V){0};
        for (long j = 0; j < m; j += LANES) {
            V scale = NAME(some)(inverse + j, m - j), weight = NAME(some)(weights + j, m - j);
            V z = (x[0] - NAME(some)(means + j, m - j)) * scale, height;
            below += weight * (law->n_cells ? NAME(student_law)(law, z, &height, cdf != NULL)
                                            : NAME(normal_law)(z, &height, cdf != NULL));
            heights += weight * scale * height;
        }
        if (cdf)
            *cdf++ = NAME(sum)(below);
        *density++ = NAME(sum)(heights);
    }
}

/* P(k) = sum_j p_j(k) with p_j(k + 1) = p_j(k) (u_j k + w_j) / (k + 1). */
static void NAME(count_table)(long n, long m, long size, double *p, const double *u, const double *w,
                              double *table)
{
    for (; n > 0; n--, p += m, u += m, w += m)
        for (long k = 0; k < size; k++) {
            double inverse = 1.0 / (k + 1.0);
            V total = (V){0};
            for (long j = 0; j < m; j += LANES) {
                V own = NAME(some)(p + j, m - j);
                total += own;
                own *= (NAME(some)(u + j, m - j) * (double)k + NAME(some)(w + j, m - j)) * inverse;
                if (m - j >= LANES)
                    *(V *)(p + j) = own;
                else
                    memcpy(p + j, &own, (m - j) * sizeof(double));
            }
            *table++ = NAME(sum)(total);
        }
}
