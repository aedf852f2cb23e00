/* Included by core.c for every set of instructions, with ISA, LANES and TILE defined. */

typedef double NAME(vec) __attribute__((vector_size(8 * LANES), aligned(8), may_alias));
typedef int64_t NAME(ints) __attribute__((vector_size(8 * LANES), aligned(8), may_alias));
#define V NAME(vec)
#define I NAME(ints)

/* --- functions of vectors --------------------------------------------------------------------- */

INLINE V NAME(all)(double x) { return (V){0} + x; }

INLINE V NAME(chosen)(I mask, V a, V b) { return (V)(((I)a & mask) | ((I)b & ~mask)); }

INLINE double NAME(sum)(V x)
{
    double total = 0.0;
    for (int i = 0; i < LANES; i++)
        total += x[i];
    return total;
}

/* exp(x) - 1 = scale (1 + p) - 1: with x = k log 2 + r, the Taylor polynomial p of exp(r) - 1, and
   scale 2^k. */
INLINE V NAME(split_exp)(V x, V *scale)
{
    const double rounder = 6755399441055744.0; /* 1.5 2^52: the last bits of a sum are an integer */
    x = NAME(chosen)(x < -708.0, NAME(all)(-708.0), x);
    x = NAME(chosen)(x > 709.0, NAME(all)(709.0), x);
    V shifted = x * 1.4426950408889634 + rounder, k = shifted - rounder;
    V r = x - k * 6.93147180369123816490e-01;
    r = r - k * 1.90821492927058770002e-10;
    V p = NAME(all)(1.0 / 6227020800.0);
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r * r + r;
    *scale = (V)(((I)shifted + 1023) << 52);
    return p;
}

INLINE V NAME(exp)(V x)
{
    V scale, p = NAME(split_exp)(x, &scale);
    return scale + scale * p;
}

/* Of positive normal numbers: x = 2^k m with m within [sqrt(1/2), sqrt(2)]. */
INLINE V NAME(log)(V x)
{
    const int64_t root_half = 0x3fe6a09e667f3bcd;
    I k = ((I)x - root_half) >> 52;
    V m = (V)((I)x - (k << 52)), s = (m - 1.0) / (m + 1.0), t = s * s;
    V p = NAME(all)(1.0 / 21.0);
    p = p * t + 1.0 / 19.0;
    p = p * t + 1.0 / 17.0;
    p = p * t + 1.0 / 15.0;
    p = p * t + 1.0 / 13.0;
    p = p * t + 1.0 / 11.0;
    p = p * t + 1.0 / 9.0;
    p = p * t + 1.0 / 7.0;
    p = p * t + 1.0 / 5.0;
    p = p * t + 1.0 / 3.0;
    V whole = (V)(k + 0x4338000000000000) - 6755399441055744.0;
    return whole * 0.6931471805599453 + 2.0 * (s + s * t * p) + 0.0 * x; /* or nan */
}

INLINE V NAME(abs)(V x) { return (V)((I)x & INT64_MAX); }

INLINE V NAME(tanh)(V x)
{
    V y = 2.0 * NAME(abs)(x), scale;
    y = NAME(chosen)(y > 44.0, NAME(all)(44.0), y);
    V p = NAME(split_exp)(y, &scale), e = scale * p + (scale - 1.0);
    return (V)((I)(e / (e + 2.0)) | ((I)x & INT64_MIN));
}

INLINE V NAME(logistic)(V x)
{
    V small = NAME(exp)(-NAME(abs)(x)), likely = 1.0 / (1.0 + small);
    return NAME(chosen)(x > 0.0, likely, small * likely);
}

/* z = phi(a) in place, with as many derivatives as `order` says. */
static void NAME(activate)(int activation, V *z, V *slope, V *bend, long count, int order)
{
    for (long i = 0; i < count; i++) {
        V a = z[i], f = a, d = NAME(all)(1.0), dd = NAME(all)(0.0);
        switch (activation) {
        case TANH:
            f = NAME(tanh)(a);
            d = 1.0 - f * f;
            dd = -2.0 * f * d;
            break;
        case LOGISTIC:
            f = NAME(logistic)(a);
            d = f * (1.0 - f);
            dd = d * (1.0 - 2.0 * f);
            break;
        case RELU:
            d = NAME(chosen)(a > 0.0, d, dd);
            f = a * d;
            break;
        case SILU: {
            V s = NAME(logistic)(a);
            f = a * s;
            d = s + f * (1.0 - s);
            dd = s * (1.0 - s) * (2.0 + a * (1.0 - 2.0 * s));
            break;
        }
        }
        z[i] = f;
        if (order > 0)
            slope[i] = d;
        if (order > 1)
            bend[i] = dd;
    }
}

/* --- products of small matrices with rows ----------------------------------------------------- */

INLINE void NAME(combine_tile)(V *out, long so, const double *m, long sp, long sq, const V *in,
                               long si, int Q, int add, const int P, const int W)
{
    V total[4][2];
    for (int p = 0; p < P; p++)
        for (int v = 0; v < W; v++)
            total[p][v] = add ? out[p * so + v] : (V){0};
    for (int q = 0; q < Q; q++)
        for (int p = 0; p < P; p++)
            for (int v = 0; v < W; v++)
                total[p][v] += m[p * sp + q * sq] * in[q * si + v];
    for (int p = 0; p < P; p++)
        for (int v = 0; v < W; v++)
            out[p * so + v] = total[p][v];
}

/* out_p = sum_q m[p sp + q sq] in_q, or more if `add`, for `nv` vectors of rows. */
static void NAME(combine)(V *out, long so, int P, const double *m, long sp, long sq, const V *in,
                          long si, int Q, int nv, int add)
{
    int p = 0;
    for (; p + 4 <= P; p += 4, out += 4 * so, m += 4 * sp) {
        int v = 0;
        for (; v + 2 <= nv; v += 2)
            NAME(combine_tile)(out + v, so, m, sp, sq, in + v, si, Q, add, 4, 2);
        if (v < nv)
            NAME(combine_tile)(out + v, so, m, sp, sq, in + v, si, Q, add, 4, 1);
    }
    for (; p < P; p++, out += so, m += sp) {
        int v = 0;
        for (; v + 2 <= nv; v += 2)
            NAME(combine_tile)(out + v, so, m, sp, sq, in + v, si, Q, add, 1, 2);
        if (v < nv)
            NAME(combine_tile)(out + v, so, m, sp, sq, in + v, si, Q, add, 1, 1);
    }
}

/* The sums of LANES vectors, as one vector. */
INLINE V NAME(sums_of)(const V *x)
{
#if LANES == 2
    return SHUFFLE(x[0], x[1], 0, 2) + SHUFFLE(x[0], x[1], 1, 3);
#elif LANES == 4
    V pair[2];
    for (int i = 0; i < 4; i += 2)
        pair[i / 2] = SHUFFLE(x[i], x[i + 1], 0, 4, 2, 6) + SHUFFLE(x[i], x[i + 1], 1, 5, 3, 7);
    return SHUFFLE(pair[0], pair[1], 0, 1, 4, 5) + SHUFFLE(pair[0], pair[1], 2, 3, 6, 7);
#else
    V pair[4], four[2];
    for (int i = 0; i < 8; i += 2)
        pair[i / 2] = SHUFFLE(x[i], x[i + 1], 0, 8, 2, 10, 4, 12, 6, 14) +
                      SHUFFLE(x[i], x[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
    for (int i = 0; i < 4; i += 2)
        four[i / 2] = SHUFFLE(pair[i], pair[i + 1], 0, 1, 8, 9, 4, 5, 12, 13) +
                      SHUFFLE(pair[i], pair[i + 1], 2, 3, 10, 11, 6, 7, 14, 15);
    return SHUFFLE(four[0], four[1], 0, 1, 2, 3, 8, 9, 10, 11) +
           SHUFFLE(four[0], four[1], 4, 5, 6, 7, 12, 13, 14, 15);
#endif
}

INLINE void NAME(sums_tile)(double *out, long sp, const V *left, long sl, const V *right, long sr,
                            int nv, const int P, const int Q)
{
    V total[TILE * TILE];
    for (int p = 0; p < P; p++)
        for (int q = 0; q < Q; q++)
            total[p * Q + q] = (V){0};
    for (int v = 0; v < nv; v++)
        for (int p = 0; p < P; p++)
            for (int q = 0; q < Q; q++)
                total[p * Q + q] += left[p * sl + v] * right[q * sr + v];
    if (P * Q % LANES) {
        for (int p = 0; p < P; p++)
            for (int q = 0; q < Q; q++)
                out[p * sp + q] += NAME(sum)(total[p * Q + q]);
        return;
    }
    for (int first = 0; first < P * Q; first += LANES) {
        V some = NAME(sums_of)(total + first);
        for (int i = 0; i < LANES; i++)
            out[(first + i) / Q * sp + (first + i) % Q] += some[i];
    }
}

/* out[p sp + q] += sum over rows of left_p right_q. */
static void NAME(sums)(double *out, long sp, const V *left, long sl, int P, const V *right, long sr,
                       int Q, int nv)
{
    int p = 0;
    for (; p + TILE <= P; p += TILE, left += TILE * sl, out += TILE * sp) {
        int q = 0;
        for (; q + TILE <= Q; q += TILE)
            NAME(sums_tile)(out + q, sp, left, sl, right + q * sr, sr, nv, TILE, TILE);
        for (; q < Q; q++)
            NAME(sums_tile)(out + q, sp, left, sl, right + q * sr, sr, nv, TILE, 1);
    }
    for (; p < P; p++, left += sl, out += sp) {
        int q = 0;
        for (; q + TILE <= Q; q += TILE)
            NAME(sums_tile)(out + q, sp, left, sl, right + q * sr, sr, nv, 1, TILE);
        for (; q < Q; q++)
            NAME(sums_tile)(out + q, sp, left, sl, right + q * sr, sr, nv, 1, 1);
    }
}

/* --- rows of data on their way through the network -------------------------------------------- */

/* What is known of some rows. One unit after the other, `stride` vectors apart; data all rows apart. */
typedef struct {
    const Model *model;
    long first, stride;
    int nv;                /* vectors of rows */
    const V *inputs;       /* of the network */
    V *z[MOST_LAYERS];     /* of the layers of weights above the first, a row of ones below them */
    V *slope[MOST_LAYERS]; /* of the units that feed a layer */
    V *bend[MOST_LAYERS];
    V *delta[MOST_LAYERS]; /* derivatives of the misfit in the summed inputs of a layer */
    V *outputs, *curvature, *rest;
} NAME(Rows);
#define Rows NAME(Rows)

static Rows NAME(begin)(const Model *model, long most, double *work)
{
    Rows rows = {.model = model, .stride = (most < model->n ? most : model->n) / LANES};
    V *next = (V *)(((uintptr_t)work + 63) & ~(uintptr_t)63);
    int K = model->size[model->n_layers];
    for (int l = 0; l < model->n_layers; l++) {
        int width = model->size[l];
        if (l > 0) {
            rows.z[l] = next;
            rows.slope[l] = next + (width + 1) * rows.stride;
            rows.bend[l] = rows.slope[l] + width * rows.stride;
            next = rows.bend[l] + width * rows.stride;
            for (long v = 0; v < rows.stride; v++)
                rows.slope[l][v - rows.stride] = NAME(all)(1.0);
        }
        rows.delta[l] = next;
        next += model->size[l + 1] * rows.stride;
    }
    rows.outputs = next;
    rows.curvature = next + K * rows.stride;
    rows.rest = rows.curvature + n_pairs(K) * rows.stride;
    return rows;
}

static void NAME(at)(Rows *rows, long first)
{
    const Model *model = rows->model;
    long left = (model->n - first) / LANES;
    rows->first = first;
    rows->nv = (int)(left < rows->stride ? left : rows->stride);
    rows->inputs = (const V *)(model->inputs + first);
}

static const V *NAME(fed)(const Rows *rows, int layer, long *stride)
{
    *stride = layer ? rows->stride : rows->model->n / LANES;
    return layer ? rows->z[layer] : rows->inputs;
}

/* Summed inputs of a layer from what feeds it, with `constant` times the biases, or more. */
static void NAME(summed)(const Rows *rows, int layer, const double *weights, const V *z, long stride,
                         V *out, int constant, int add)
{
    int width = fan_out(rows->model, layer);
    int Q = constant ? fan_in(rows->model, layer) : rows->model->size[layer];
    NAME(combine)(out, rows->stride, width, weights, 1, width, z, stride, Q, rows->nv, add);
}

static void NAME(forward)(const Rows *rows, const double *theta, int order, int n_layers)
{
    const Model *model = rows->model;
    for (int l = 0; l < n_layers; l++) {
        int last = l == model->n_layers - 1, width = fan_out(model, l);
        long stride, apart = rows->stride;
        const V *z = NAME(fed)(rows, l, &stride);
        V *out = last ? rows->outputs : rows->z[l + 1];
        NAME(summed)(rows, l, theta, z, stride, out, 1, 0);
        for (long i = 0; i < width * apart && !last; i += apart)
            NAME(activate)(model->activation, out + i, rows->slope[l + 1] + i,
                           rows->bend[l + 1] + i, rows->nv, order);
        theta += (long)fan_in(model, l) * width;
    }
}

/* The gradient in the weights of the first layers, from delta of the last one of these.
   With `bends` these become derivatives of the misfit. */
static void NAME(backward)(const Rows *rows, const double *theta, int n_layers, double *gradient,
                           int bends)
{
    const Model *model = rows->model;
    for (int l = n_layers - 1; l >= 0; l--) {
        int in = fan_in(model, l), out = fan_out(model, l), units = model->size[l];
        long at = weights_before(model, l), stride;
        const V *z = NAME(fed)(rows, l, &stride), *delta = rows->delta[l];
        NAME(sums)(gradient + at, out, z, stride, in, delta, rows->stride, out, rows->nv);
        if (l == 0)
            break;
        V *below = rows->delta[l - 1];
        NAME(combine)(below, rows->stride, units, theta + at, out, 1, delta, rows->stride, out,
                      rows->nv, 0);
        for (long i = 0; i < units * rows->stride; i += rows->stride)
            for (long j = i; j < i + rows->nv; j++) {
                if (bends)
                    rows->bend[l][j] *= below[j];
                below[j] *= rows->slope[l][j];
            }
    }
}

/* --- likelihoods ------------------------------------------------------------------------------ */

static const V *NAME(counts)(const Rows *rows, int output)
{
    const Model *model = rows->model;
    return (const V *)(model->counts + (model->n_counts > 1 ? output : 0) * model->n + rows->first);
}

static const V *NAME(targets)(const Rows *rows, int output)
{
    return (const V *)(rows->model->targets + output * rows->model->n + rows->first);
}

/* `Likelihood.misfit` and `derivatives`: returns the value, for Gaussian noise without what follows
   from the errors of its levels, to which it adds, and leaves the gradient in the last delta. If
   `order` is 2 the curvature is left: the diagonal, or all pairs of outputs. */
static double NAME(noise)(const Rows *rows, const double *beta, double *errors, int order, int exact)
{
    const Model *model = rows->model;
    int K = model->size[model->n_layers], nv = rows->nv;
    long apart = rows->stride;
    V *residual = rows->delta[model->n_layers - 1], *curvature = rows->curvature, value = (V){0};
    const V *f = rows->outputs, *counts = NAME(counts)(rows, 0);
    switch (model->likelihood) {
    case GAUSSIAN:
        for (int o = 0; o < K; o++, f += apart, residual += apart, curvature += apart) {
            const V *y = NAME(targets)(rows, o), *own = NAME(counts)(rows, o);
            double tau = beta[model->level[o]] * model->relative[o];
            V squares = (V){0};
            for (int v = 0; v < nv; v++) {
                V error = f[v] - y[v], weighted = own[v] * error;
                squares += weighted * error;
                residual[v] = tau * weighted;
                if (order > 1)
                    curvature[v] = tau * own[v];
            }
            errors[model->level[o]] += 0.5 * model->relative[o] * NAME(sum)(squares);
        }
        break;
    case STUDENT_T: {
        double nu = model->degrees_of_freedom, total = nu + K;
        V squares[model->n_levels];
        memset(squares, 0, sizeof(squares));
        for (int v = 0; v < nv; v++, f++, residual++) {
            V delta = (V){0}, *pair = curvature + v;
            for (int o = 0; o < K; o++) {
                V error = f[o * apart] - NAME(targets)(rows, o)[v];
                residual[o * apart] = beta[model->level[o]] * model->relative[o] * error;
                delta += residual[o * apart] * error;
            }
            V u = total / (nu + delta), weighted = counts[v] * u;
            value += counts[v] * (0.5 * total) * NAME(log)(1.0 + delta / nu);
            for (int o = 0; o < K && order > 1; o++) {
                V diagonal = beta[model->level[o]] * model->relative[o] * weighted;
                if (!exact)
                    pair[o * apart] = diagonal;
                for (int c = o; c < K && exact; c++, pair += apart)
                    *pair = (double)(o == c) * diagonal -
                            2.0 / total * u * weighted * residual[o * apart] * residual[c * apart];
            }
            for (int o = 0; o < K; o++) {
                V error = f[o * apart] - NAME(targets)(rows, o)[v];
                squares[model->level[o]] += 0.5 * model->relative[o] * weighted * error * error;
                residual[o * apart] *= weighted;
            }
        }
        for (int level = 0; level < model->n_levels; level++)
            errors[level] += NAME(sum)(squares[level]);
        break;
    }
    case SQUARED_RESIDUALS:
        for (int o = 0; o < K; o++, f += apart, residual += apart, curvature += apart) {
            const V *y = NAME(targets)(rows, o), *own = NAME(counts)(rows, o);
            for (int v = 0; v < nv; v++) {
                V h = NAME(chosen)(f[v] > 300.0, NAME(all)(300.0), f[v]);
                V ratio = NAME(exp)(h) * y[v], half = 0.5 * own[v];
                value += half * (ratio - f[v]);
                residual[v] = half * (ratio - 1.0);
                if (order > 1)
                    curvature[v] = exact ? half * ratio : half * 1.0;
            }
        }
        break;
    case BERNOULLI: {
        const V *y = NAME(targets)(rows, 0);
        for (int v = 0; v < nv; v++) {
            V a = f[v], small = NAME(exp)(-NAME(abs)(a)), likely = 1.0 / (1.0 + small);
            V p = NAME(chosen)(a > 0.0, likely, small * likely);
            V positive = NAME(chosen)(a > 0.0, a, 0.0 * a);
            value += counts[v] * (positive + NAME(log)(1.0 + small) - y[v] * a);
            residual[v] = counts[v] * (p - y[v]);
            if (order > 1)
                curvature[v] = counts[v] * likely * (small * likely);
        }
        break;
    }
    case CATEGORICAL:
        for (int v = 0; v < nv; v++, f++, residual++) {
            V most = f[0], total = (V){0}, *pair = curvature + v;
            for (int o = 1; o < K; o++)
                most = NAME(chosen)(f[o * apart] <= most, most, f[o * apart]); /* or nan */
            for (int o = 0; o < K; o++) {
                V shifted = f[o * apart] - most;
                value -= counts[v] * NAME(targets)(rows, o)[v] * shifted;
                total += residual[o * apart] = NAME(exp)(shifted);
            }
            value += counts[v] * NAME(log)(total);
            for (int o = 0; o < K; o++)
                residual[o * apart] *= counts[v] / total;
            for (int o = 0; o < K && order > 1; o++)
                for (int c = o; c < K; c++, pair += apart) /* where counts vanish, so does p */
                    *pair = (o == c ? residual[o * apart] : (V){0}) -
                            residual[o * apart] * residual[c * apart] /
                                NAME(chosen)(counts[v] > 0.0, counts[v], NAME(all)(1.0));
            for (int o = 0; o < K; o++)
                residual[o * apart] -= counts[v] * NAME(targets)(rows, o)[v];
        }
        break;
    }
    return NAME(sum)(value);
}

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
    long n_left, n_right, n_sums, apart = rows->stride, stride, stride_below;
    hessian_sizes(model, exact, &n_left, &n_right, &n_sums);
    V *own = rows->rest, *first = own + n_left * apart, *second = first + n_left * apart;
    V *paths = second + n_left * apart, *products = paths + n_left * apart;
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

static double NAME(evaluate)(const Model *model, const double *theta, const double *beta, int exact,
                             double *errors, double *gradient, double *hessian, double *work)
{
    long n_left, n_right, n_sums = 0;
    if (hessian) {
        hessian_sizes(model, exact, &n_left, &n_right, &n_sums);
        memset(work, 0, sizeof(double) * n_sums);
    }
    Rows rows = NAME(begin)(model, BLOCK, work + n_sums);
    double value = 0.0;
    if (gradient)
        memset(gradient, 0, sizeof(double) * n_weights(model));
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
        if (is_diagonal(model, 0)) {
            for (long i = 0; i < K * apart; i += apart)
                for (long v = i; v < i + rows.nv; v++)
                    delta[v] = pair[v] * second[v];
        } else {
            memset(delta, 0, sizeof(V) * K * apart);
            for (int o = 0; o < K; o++)
                for (int c = o; c < K; c++, pair += apart)
                    for (int v = 0; v < rows.nv; v++) {
                        delta[o * apart + v] += pair[v] * second[c * apart + v];
                        if (o != c)
                            delta[c * apart + v] += pair[v] * second[o * apart + v];
                    }
        }
        NAME(backward)(&rows, theta, model->n_layers, force, 0);
    }
}

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

static int NAME(best_outputs)(const Model *model, double *theta, const double *alpha,
                              const double *beta, double *work)
{
    int last = model->n_layers - 1, width = fan_in(model, last), K = fan_out(model, last);
    int robust = model->likelihood == STUDENT_T;
    long at = weights_before(model, last), square = (long)width * width;
    double *gram = work, *moment = gram + K * square, *system = moment + K * width;
    Rows rows = NAME(begin)(model, BLOCK, system + square);
    memset(gram, 0, sizeof(double) * K * (square + width));
    for (long first = 0; first < model->n; first += BLOCK) {
        NAME(at)(&rows, first);
        NAME(forward)(&rows, theta, 0, robust ? last + 1 : last);
        if (robust) { /* a row counts by its residual: one step of expectation maximisation */
            double tau = beta[model->level[0]] * model->relative[0], errors[model->n_levels];
            NAME(noise)(&rows, beta, errors, 2, 0);
            for (int v = 0; v < rows.nv; v++)
                rows.curvature[v] /= tau;
        }
        for (int o = 0; o < K; o++)
            NAME(add_normal)(&rows, o, robust ? rows.curvature : NAME(counts)(&rows, o), rows.rest,
                             o && model->n_counts == 1 ? NULL : gram + o * square,
                             moment + o * width);
    }
    for (int o = 0; o < K; o++) {
        double tau = beta[model->level[o]] * model->relative[o], sd[width], log_det;
        for (int a = 0; a < width; a++)
            sd[a] = 1.0 / sqrt(alpha[at + (long)a * K + o]);
        normal_equations(gram + (model->n_counts == 1 ? 0 : o) * square, tau, sd, width, system);
        if (!cholesky(system, width, model->largest_diagonal, &log_det))
            return 0;
        double *m = moment + o * width;
        for (int a = 0; a < width; a++)
            m[a] *= tau * sd[a];
        solve(system, width, m);
        for (int a = 0; a < width; a++)
            theta[at + (long)a * K + o] = sd[a] * m[a];
    }
    return 1;
}

/* --- positions of samplers -------------------------------------------------------------------- */

/* `integrated` of the output layer, its prior precisions by group, with the gradient in the hidden
   weights, and the derivatives in ln alpha and in ln beta. Returns 0 if it needs eigenvalues. */
static int NAME(marginal)(const Joint *joint, const double *theta, const double *alpha,
                          const double *beta, double *value, double *gradient, double *by_alpha,
                          double *by_beta, double *work)
{
    const Model *model = joint->model;
    int last = model->n_layers - 1, width = fan_in(model, last), K = fan_out(model, last);
    long at = weights_before(model, last), square = (long)width * width, stride;
    const int *label = joint->label + at;
    double *gram = work, *moment = gram + square, *system = moment + K * width;
    double *spread = system + square, *mean = spread + square, *inverse = mean + width * K;
    Rows rows = NAME(begin)(model, model->n, inverse + square);
    NAME(at)(&rows, 0);
    NAME(forward)(&rows, theta, 1, last);
    memset(gram, 0, sizeof(double) * (square + K * width));
    for (int o = 0; o < K; o++)
        NAME(add_normal)(&rows, o, NAME(counts)(&rows, o), rows.rest, o ? NULL : gram,
                         moment + o * width);
    memset(spread, 0, sizeof(double) * square);
    *value = 0.0;
    for (int o = 0; o < K; o++) {
        double tau = beta[model->level[o]] * model->relative[o], sd[width], log_det, fixed = width;
        double *m = moment + o * width;
        for (int a = 0; a < width; a++) {
            sd[a] = 1.0 / sqrt(alpha[label[a * K + o]]);
            m[a] *= tau * sd[a];
        }
        normal_equations(gram, tau, sd, width, system);
        if (!cholesky(system, width, model->largest_diagonal, &log_det))
            return 0;
        solve(system, width, m);
        inverse_of(system, width, inverse);
        for (int a = 0; a < width; a++) {
            double variance = inverse[a * width + a];
            by_alpha[label[a * K + o]] += 0.5 * (m[a] * m[a] + variance - 1.0);
            fixed -= variance;
            *value += 0.5 * m[a] * m[a];
            mean[a * K + o] = sd[a] * m[a];
            for (int b = 0; b < width; b++)
                spread[a * width + b] += tau * sd[a] * sd[b] * inverse[a * width + b];
        }
        *value += 0.5 * log_det;
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
            f[v] = tau * error;
        }
        double total = 0.5 * tau * NAME(sum)(squares);
        *value += total;
        by_beta[model->level[o]] += total;
    }
    if (last == 0)
        return 1;
    V *delta = rows.delta[last - 1];
    int units = model->size[last];
    NAME(combine)(delta, rows.stride, units, spread, width, 1, z, stride, width, rows.nv, 0);
    NAME(combine)(delta, rows.stride, units, mean, K, 1, rows.outputs, rows.stride, K, rows.nv, 1);
    for (long i = 0; i < units * rows.stride; i += rows.stride)
        for (int v = 0; v < rows.nv; v++)
            delta[i + v] *= counts[v] * rows.slope[last][i + v];
    NAME(backward)(&rows, theta, last, gradient, 0);
    return 1;
}

static int NAME(terms)(const Joint *joint, const double *q, double *prior, double *prior_gradient,
                       double *data, double *data_gradient, double *work)
{
    const Model *model = joint->model;
    int m = joint->n_sampled, n_free = joint->n_free, G = joint->n_groups;
    int n_precisions = G + model->n_levels;
    double *alpha = work, *beta = alpha + G, *by = beta + model->n_levels;
    double *scale = by + n_precisions, *share = scale + G, *squares = share + G, *pull = squares + G;
    double *stretch = pull + G, *errors = stretch + n_free, *theta = errors + model->n_levels;
    const double *eta = q + m;
    memcpy(alpha, joint->fixed, sizeof(double) * n_precisions);
    *prior = 0.0;
    for (int f = 0; f < n_free; f++) {
        alpha[joint->which[f]] = precision_at(joint, f, eta[f], stretch + f, prior_gradient + m + f);
        double precision = alpha[joint->which[f]], pull = joint->rate[f] * precision;
        *prior -= log(stretch[f]) +
                  (joint->shape[f] * log(precision) - pull - joint->log_normaliser[f]);
        prior_gradient[m + f] = -(prior_gradient[m + f] + (joint->shape[f] - pull) * stretch[f]);
    }
    for (int c = 0; c < G; c++) {
        double total = alpha[c] + joint->information[c];
        scale[c] = 1.0 / sqrt(total);
        share[c] = alpha[c] / total;
        squares[c] = pull[c] = 0.0;
    }
    for (int i = 0; i < m; i++) {
        int c = joint->label[i];
        theta[i] = q[i] * scale[c];
        squares[c] += q[i] * q[i];
        prior_gradient[i] = share[c] * q[i];
    }
    for (int c = 0; c < G; c++) {
        double excess = share[c] * squares[c] - joint->sizes[c];
        *prior += 0.5 * (share[c] * squares[c] - joint->sizes[c] * log(share[c] / (2.0 * M_PI)));
        by[c] = 0.5 * (1.0 - share[c]) * excess;
    }
    for (int f = 0; f < joint->n_free_alpha; f++)
        prior_gradient[m + f] += by[joint->which[f]] * stretch[f];
    memset(by, 0, sizeof(double) * n_precisions);
    memset(data_gradient, 0, sizeof(double) * (m + n_free));
    double *rest = theta + n_weights(model);
    if (!joint->integrated) {
        *data = NAME(evaluate)(model, theta, beta, 0, errors, data_gradient, NULL, rest);
        for (int l = 0; l < model->n_levels; l++)
            by[G + l] = beta[l] * errors[l];
    } else if (!NAME(marginal)(joint, theta, alpha, beta, data, data_gradient, by, by + G, rest))
        return 0;
    for (int o = 0; o < model->size[model->n_layers] && model->likelihood == GAUSSIAN; o++) {
        double tau = beta[model->level[o]] * model->relative[o];
        *data -= 0.5 * model->n_counted * log(tau / (2.0 * M_PI));
        by[G + model->level[o]] -= 0.5 * model->n_counted;
    }
    for (int i = 0; i < m; i++) {
        int c = joint->label[i];
        pull[c] += theta[i] * data_gradient[i];
        data_gradient[i] *= scale[c];
    }
    for (int c = 0; c < G; c++)
        by[c] -= 0.5 * share[c] * pull[c];
    for (int f = 0; f < n_free; f++)
        data_gradient[m + f] = by[joint->which[f]] * stretch[f];
    return 1;
}

static int NAME(leapfrog)(const Joint *joint, double *q, double *p, double *value, double *gradient,
                          double step_size, long n_steps, const double *factor, int dense,
                          double unstable, double *work)
{
    int d = joint->n_sampled + joint->n_free;
    double *force = work, *prior_gradient = force + d, *data_gradient = prior_gradient + d, prior;
    work = data_gradient + d;
    double initial = *value + 0.5 * squared(p, d);
    transformed(factor, dense, 1, gradient, d, force);
    for (long step = 0; step < n_steps; step++) {
        for (int i = 0; i < d; i++)
            p[i] -= 0.5 * step_size * force[i];
        transformed(factor, dense, 0, p, d, prior_gradient);
        for (int i = 0; i < d; i++)
            q[i] += step_size * prior_gradient[i];
        if (!NAME(terms)(joint, q, &prior, prior_gradient, value, data_gradient, work))
            return 0;
        *value += prior;
        for (int i = 0; i < d; i++)
            gradient[i] = prior_gradient[i] + data_gradient[i];
        transformed(factor, dense, 1, gradient, d, force);
        for (int i = 0; i < d; i++)
            p[i] -= 0.5 * step_size * force[i];
        if (!(*value + 0.5 * squared(p, d) - initial < unstable)) {
            *value = INFINITY;
            break;
        }
    }
    return 1;
}

/* --- predictions ------------------------------------------------------------------------------ */

static void NAME(softmax_moments)(int n_classes, int rank, long n, const double *mean,
                                  const double *root, long n_points, const double *points,
                                  double *first, double *second)
{
    V p[n_classes], sums[n_classes], products[n_pairs(n_classes)];
    for (; n > 0; n--, mean += n_classes, root += n_classes * rank, first += n_classes,
                  second += n_classes * n_classes) {
        memset(sums, 0, sizeof(sums));
        memset(products, 0, sizeof(products));
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

#undef V
#undef I
#undef Rows
