/* Included by core_copy.h, once in double and once in single precision, with ISA, SINGLE, LANES and
   TILE defined. */

#if SINGLE
typedef float NAME(real);
typedef int32_t NAME(integer);
#else
typedef double NAME(real);
typedef int64_t NAME(integer);
#endif
typedef REAL NAME(vec) __attribute__((vector_size(sizeof(REAL) * LANES), aligned(8), may_alias));
typedef INTEGER NAME(ints) __attribute__((vector_size(sizeof(REAL) * LANES), aligned(8),
                                          may_alias));

/* --- functions of vectors --------------------------------------------------------------------- */

INLINE V NAME(all)(REAL x) { return (V){0} + x; }

INLINE V NAME(chosen)(I mask, V a, V b) { return (V)(((I)a & mask) | ((I)b & ~mask)); }

INLINE double NAME(sum)(V x)
{
    double total = 0.0;
    for (int i = 0; i < LANES; i++)
        total += x[i];
    return total;
}

/* c_0 x^(n-1) + ... + c_(n-1) by Horner's rule. */
INLINE V NAME(polynomial)(V x, const REAL *c, const int n)
{
    V p = NAME(all)(c[0]);
    for (int i = 1; i < n; i++)
        p = p * x + c[i];
    return p;
}

/* exp(x) = scale (1 + p): with x = k ln 2 + r, scale is 2^k and p the Taylor polynomial of exp(r) -
   1; |x| is at most that of `exp`. */
INLINE V NAME(split_exp)(V x, V *scale)
{
    static const REAL c[] = {
        (REAL)(1.0 / 6227020800.0), (REAL)(1.0 / 479001600.0), (REAL)(1.0 / 39916800.0),
        (REAL)(1.0 / 3628800.0),    (REAL)(1.0 / 362880.0),    (REAL)(1.0 / 40320.0),
        (REAL)(1.0 / 5040.0),       (REAL)(1.0 / 720.0),       (REAL)(1.0 / 120.0),
        (REAL)(1.0 / 24.0),         (REAL)(1.0 / 6.0),         (REAL)0.5};
    const int n = SINGLE ? 5 : 12, mantissa = SINGLE ? 23 : 52, bias = SINGLE ? 127 : 1023;
    /* few digits of ln 2, and the rest */
    const REAL high = (REAL)(SINGLE ? 0.693359375 : 6.93147180369123816490e-01);
    const REAL low = (REAL)(SINGLE ? -2.12194440e-4 : 1.90821492927058770002e-10);
    const REAL rounder = (REAL)(SINGLE ? 12582912.0 : 6755399441055744.0); /* 1.5 2^mantissa */
    V shifted = x * (REAL)1.4426950408889634 + rounder; /* last bits: integers */
    V k = shifted - rounder;
    V r = x - k * high;
    r = r - k * low;
    *scale = (V)(((I)shifted + bias) << mantissa);
    return NAME(polynomial)(r, c + 12 - n, n) * r * r + r;
}

INLINE V NAME(exp)(V x)
{
    const REAL most = SINGLE ? 87 : 708;
    x = NAME(chosen)(x < -most, NAME(all)(-most), x);
    x = NAME(chosen)(x > most, NAME(all)(most), x);
    V scale, p = NAME(split_exp)(x, &scale);
    return scale + scale * p;
}

/* Logarithm of positive normal numbers: x = 2^k m with m within [sqrt(1/2), sqrt(2)]. */
INLINE V NAME(log)(V x)
{
    const int mantissa = SINGLE ? 23 : 52, n = SINGLE ? 4 : 10;
    const INTEGER root_half = (INTEGER)(SINGLE ? 0x3f3504f3 : 0x3fe6a09e667f3bcd);
    I k = ((I)x - root_half) >> mantissa;
    V m = (V)((I)x - (k << mantissa)), s = (m - 1) / (m + 1), t = s * s;
    static const REAL c[] = {
        (REAL)(1.0 / 21.0), (REAL)(1.0 / 19.0), (REAL)(1.0 / 17.0), (REAL)(1.0 / 15.0),
        (REAL)(1.0 / 13.0), (REAL)(1.0 / 11.0), (REAL)(1.0 / 9.0),  (REAL)(1.0 / 7.0),
        (REAL)(1.0 / 5.0),  (REAL)(1.0 / 3.0)};
    V p = NAME(polynomial)(t, c + 10 - n, n);
    const REAL rounder = (REAL)(SINGLE ? 12582912.0 : 6755399441055744.0); /* 1.5 2^mantissa */
    V whole = (V)(k + (SINGLE ? (INTEGER)0x4b400000 : (INTEGER)0x4338000000000000)) - rounder;
    return whole * (REAL)0.6931471805599453 + 2 * (s + s * t * p) + 0 * x; /* or nan */
}

INLINE V NAME(abs)(V x) { return (V)((I)x & ~SIGN); }

#if SINGLE
/* A ratio of polynomials, within 1e-6 and never beyond 1. */
INLINE V NAME(tanh)(V x)
{
    V y = NAME(abs)(x);
    y = NAME(chosen)(y > 7.0f, NAME(all)(7.0f), y);
    static const float c[] = {3.95895793e-6f, 2.28410567e-3f, 0.123110204f, 0.999997410f};
    static const float d[] = {1.43070822e-4f, 2.11073998e-2f, 0.456432164f, 1.0f};
    V t = y * y, above = NAME(polynomial)(t, c, 4), below = NAME(polynomial)(t, d, 4);
    return (V)((I)(y * above / below) | ((I)x & SIGN));
}
#else
/* tanh(x) = (exp(2 x) - 1) / (exp(2 x) + 1), for |x| and with its sign. */
INLINE V NAME(tanh)(V x)
{
    V y = 2.0 * NAME(abs)(x), scale;
    y = NAME(chosen)(y > 44.0, NAME(all)(44.0), y); /* tanh(22) is 1 */
    V p = NAME(split_exp)(y, &scale), e = scale * p + (scale - 1.0);
    return (V)((I)(e / (e + 2.0)) | ((I)x & SIGN));
}
#endif

INLINE V NAME(logistic)(V x)
{
    V small = NAME(exp)(-NAME(abs)(x)), likely = 1.0 / (1.0 + small);
    return NAME(chosen)(x > 0.0, likely, small * likely);
}

/* `activate` for an activation and an order that the compiler knows. */
INLINE void NAME(activate_as)(V *z, V *slope, V *bend, long count, const int activation,
                              const int order)
{
    for (long i = 0; i < count; i++) {
        V a = z[i], f = a, d = NAME(all)(1.0), dd = NAME(all)(0.0);
        switch (activation) {
        case TANH:
            f = NAME(tanh)(a);
            d = 1.0 - f * f;
            dd = -(2.0 * f * d);
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

/* z = phi(a) in place, with derivatives up to `order`, a loop for each activation. */
static void NAME(activate)(int activation, V *z, V *slope, V *bend, long count, int order)
{
#define LOOP(phi) \
    case 3 * phi: NAME(activate_as)(z, slope, bend, count, phi, 0); break; \
    case 3 * phi + 1: NAME(activate_as)(z, slope, bend, count, phi, 1); break; \
    case 3 * phi + 2: NAME(activate_as)(z, slope, bend, count, phi, 2); break;
    switch (3 * activation + order) {
        LOOP(IDENTITY) LOOP(TANH) LOOP(LOGISTIC) LOOP(RELU) LOOP(SILU)
    }
#undef LOOP
}

/* --- products of small matrices with rows ----------------------------------------------------- */

/* `combine` for P units and W vectors of rows. */
INLINE void NAME(combine_tile)(V *out, long so, const REAL *m, long sp, long sq, const V *in,
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
static void NAME(combine)(V *out, long so, int P, const REAL *m, long sp, long sq, const V *in,
                          long si, int Q, int nv, int add)
{
    int paired = nv - nv % 2;
#define TILE_AT(v, n, w) NAME(combine_tile)(out + v, so, m, sp, sq, in + v, si, Q, add, n, w)
    for (int step, p = 0; p < P; p += step, out += step * so, m += step * sp) {
        step = P - p < 4 ? 1 : 4;
        for (int v = 0; v < paired; v += 2)
            step == 4 ? TILE_AT(v, 4, 2) : TILE_AT(v, 1, 2);
        if (paired < nv)
            step == 4 ? TILE_AT(paired, 4, 1) : TILE_AT(paired, 1, 1);
    }
#undef TILE_AT
}

/* The sums of LANES vectors, as one vector: sums of neighbours, until there is one vector. */
INLINE V NAME(sums_of)(const V *x)
{
    V half[LANES];
    for (int i = 0; i < LANES; i++)
        half[i] = x[i];
    for (int n = LANES / 2; n > 0; n /= 2)
        for (int i = 0; i < n; i++)
            half[i] = SHUFFLE(half[2 * i], half[2 * i + 1], JOIN(EVEN, LANES)) +
                      SHUFFLE(half[2 * i], half[2 * i + 1], JOIN(ODD, LANES));
    return half[0];
}

/* `sums` for P and Q that the compiler knows. */
INLINE void NAME(sums_tile)(double *out, long sp, const V *left, long sl, const V *right, long sr,
                            int nv, const int P, const int Q)
{
    V total[(TILE * TILE + LANES - 1) / LANES * LANES]; /* those beyond P Q stay zero */
    for (int i = 0; i < (int)(sizeof(total) / sizeof(V)); i++)
        total[i] = (V){0};
    for (int v = 0; v < nv; v++)
        for (int p = 0; p < P; p++)
            for (int q = 0; q < Q; q++)
                total[p * Q + q] += left[p * sl + v] * right[q * sr + v];
    for (int first = 0; first < P * Q; first += LANES) {
        V some = NAME(sums_of)(total + first);
        for (int i = 0; i < LANES && first + i < P * Q; i++)
            out[(first + i) / Q * sp + (first + i) % Q] += some[i];
    }
}

/* All that is left of P and Q, at most TILE, in one tile. */
static void NAME(sums_rest)(double *out, long sp, const V *left, long sl, int P, const V *right,
                            long sr, int Q, int nv)
{
#define PART(p, q) \
    case 4 * p + q: NAME(sums_tile)(out, sp, left, sl, right, sr, nv, p, q); break;
    switch (4 * P + Q) {
        PART(1, 1) PART(1, 2) PART(2, 1) PART(2, 2)
#if TILE > 2
        PART(1, 3) PART(1, 4) PART(2, 3) PART(2, 4) PART(3, 1) PART(3, 2) PART(3, 3) PART(3, 4)
        PART(4, 1) PART(4, 2) PART(4, 3) PART(4, 4)
#endif
    }
#undef PART
}

/* out[p sp + q] += sum over rows of left_p right_q. */
static void NAME(sums)(double *out, long sp, const V *left, long sl, int P, const V *right, long sr,
                       int Q, int nv)
{
    for (int p = 0; p < P; p += TILE)
        for (int q = 0; q < Q; q += TILE)
            NAME(sums_rest)(out + p * sp + q, sp, left + p * sl, sl, P - p < TILE ? P - p : TILE,
                            right + q * sr, sr, Q - q < TILE ? Q - q : TILE, nv);
}

#if SINGLE
/* out = F x of a symmetric matrix whose columns are `nv` vectors, a multiple of 4. */
static void NAME(times)(const V *F, int nv, int d, const double *x, double *out)
{
    for (int v = 0; v < nv; v += 4) {
        V total[4] = {(V){0}, (V){0}, (V){0}, (V){0}};
        for (int j = 0; j < d; j++)
            for (int i = 0; i < 4; i++)
                total[i] += (REAL)x[j] * F[(long)j * nv + v + i];
        for (int i = v * LANES; i < d && i < (v + 4) * LANES; i++)
            out[i] = total[i / LANES - v][i % LANES];
    }
}
#endif

/* --- ridge regression ------------------------------------------------------------------------- */

/* Vectors of `n` entries. */
INLINE int NAME(vectors)(int n) { return (n + LANES - 1) / LANES; }

/* Ridge regression of one output: m = S^-1 tau D z with S = 1 + tau D G D, from the upper triangle
   of the Gram matrix G, and z in m, D the prior's standard deviations. Rows of `work` are those of
   a Cholesky factor U, S = U^T U, and then those of U^-T. Returns 0 where a pivot is below `least`
   of its diagonal entry. As the pivots of S are at least 1, one that rounding has made smaller is
   set to 1. */
static int NAME(ridge)(const double *gram, double tau, const double *sd, int n, double least,
                       V *work, double *m, double *log_det)
{
    int nv = NAME(vectors)(n), stride = 2 * nv * LANES;
    REAL *entries = (REAL *)work;
    memset(work, 0, sizeof(V) * 2 * n * nv);
    for (int a = 0; a < n; a++) {
        REAL *row = entries + a * stride;
        m[a] *= tau * sd[a];
        for (int b = a; b < n; b++)
            row[b] = (REAL)(tau * sd[a] * sd[b] * gram[a * n + b]);
        row[a] += (REAL)1;
        row[nv * LANES + a] = (REAL)1;
    }
    *log_det = 0.0;
    for (int c = 0; c < n; c++) {
        const V *row = work + 2 * c * nv;
        int from = c / LANES, to = nv + from;
        double pivot = entries[c * stride + c];
        if (least > 0.0 && !(pivot >= least * (1.0 + tau * sd[c] * sd[c] * gram[c * n + c])))
            return 0;
        pivot = fmax(pivot, 1.0);
        *log_det += SINGLE ? 0.0 : log(pivot); /* values are not wanted */
        REAL root = (REAL)(1.0 / sqrt(pivot));
        for (int v = from; v <= to; v++)
            work[2 * c * nv + v] *= root;
        m[c] *= root;
        for (int a = c + 1; a < n; a++) {
            REAL factor = entries[c * stride + a];
            V *other = work + 2 * a * nv;
            for (int v = a / LANES; v <= to; v++)
                other[v] -= factor * row[v];
            m[a] -= factor * m[c];
        }
    }
    for (int v = 0; v < nv; v++) { /* later ones need nothing that is overwritten */
        V total = (V){0};
        for (int c = v * LANES; c < n; c++)
            total += (REAL)m[c] * work[(2 * c + 1) * nv + v];
        for (int a = v * LANES; a < n && a < (v + 1) * LANES; a++)
            m[a] = total[a % LANES];
    }
    return 1;
}

/* --- rows of data on their way through the network -------------------------------------------- */

/* Inputs, layers and targets of some rows. The values of units are `stride` vectors apart, those of
   data as many as all rows. */
typedef struct {
    const Model *model;
    long first, stride;
    int nv;                /* vectors of rows */
    const V *inputs;       /* of the network */
    V *z[MAX_LAYERS];     /* of the layers of weights above the first, a row of ones below them */
    V *slope[MAX_LAYERS]; /* of the units that feed a layer */
    V *bend[MAX_LAYERS];
    V *delta[MAX_LAYERS]; /* derivatives of the misfit in the summed inputs of a layer */
    V *outputs, *curvature, *rest;
} NAME(some_rows);
#define Rows NAME(some_rows)

/* Room for `most` rows at once in working memory; what follows belongs to the caller (`rest`). */
static Rows NAME(begin)(const Model *model, long most, REAL *work)
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
    WITHIN(rows.rest);
    return rows;
}

/* Go to the rows from `first` on. */
static void NAME(at)(Rows *rows, long first)
{
    const Model *model = rows->model;
    long left = (model->n - first) / LANES;
    rows->first = first;
    rows->nv = (int)(left < rows->stride ? left : rows->stride);
    rows->inputs = (const V *)(DATA(model, inputs) + first);
}

/* What feeds a layer of weights: the inputs, or the units below. */
static const V *NAME(fed)(const Rows *rows, int layer, long *stride)
{
    *stride = layer ? rows->stride : rows->model->n / LANES;
    return layer ? rows->z[layer] : rows->inputs;
}

/* Summed inputs of a layer from what feeds it, with `constant` times the biases, or more. */
static void NAME(summed)(const Rows *rows, int layer, const REAL *weights, const V *z, long stride,
                         V *out, int constant, int add)
{
    int width = fan_out(rows->model, layer);
    int Q = constant ? fan_in(rows->model, layer) : rows->model->size[layer];
    NAME(combine)(out, rows->stride, width, weights, 1, width, z, stride, Q, rows->nv, add);
}

/* Activations z_l+1 = phi(W_l z_l) up to `n_layers`, with derivatives of phi up to `order`. */
static void NAME(forward)(const Rows *rows, const REAL *theta, int order, int n_layers)
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
static void NAME(backward)(const Rows *rows, const REAL *theta, int n_layers, double *gradient,
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

static const V *NAME(counts)(const Rows *rows, int output)
{
    const Model *model = rows->model;
    long before = (model->n_counts > 1 ? output : 0) * model->n;
    return (const V *)(DATA(model, counts) + before + rows->first);
}

static const V *NAME(targets)(const Rows *rows, int output)
{
    return (const V *)(DATA(rows->model, targets) + output * rows->model->n + rows->first);
}

/* --- likelihoods ------------------------------------------------------------------------------ */

/* Gaussian noise: adds to the errors of its levels, and leaves the gradient in the outputs; if
   `by_factors` is not NULL also the derivatives in ln F, with counts s F of the rows. */
static void NAME(add_squares)(const Rows *rows, const double *beta, V *residual, REAL *by_factors,
                              double *errors)
{
    const Model *model = rows->model;
    for (int o = 0; o < model->size[model->n_layers]; o++, residual += rows->stride) {
        const V *y = NAME(targets)(rows, o), *counts = NAME(counts)(rows, o);
        const V *f = rows->outputs + o * rows->stride;
        V *own = (V *)by_factors + o * rows->nv, squares = (V){0};
        REAL tau = (REAL)(beta[model->level[o]] * model->relative[o]);
        for (int v = 0; v < rows->nv; v++) {
            V error = f[v] - y[v], weighted = counts[v] * error;
            squares += weighted * error;
            if (by_factors)
                own[v] = (REAL)0.5 * tau * weighted * error;
            residual[v] = tau * weighted;
        }
        errors[model->level[o]] += 0.5 * model->relative[o] * NAME(sum)(squares);
    }
}

/* `Likelihood.misfit` and `derivatives`: returns the value, for Gaussian noise without what follows
   from the errors of its levels, to which it adds, and leaves the gradient in the last delta. If
   `order` is 2 the curvature is left: the diagonal, or all pairs of outputs. */
static double NAME(noise)(const Rows *rows, const double *beta, double *errors, int order,
                          int exact)
{
    const Model *model = rows->model;
    int K = model->size[model->n_layers], nv = rows->nv;
    long apart = rows->stride;
    V *residual = rows->delta[model->n_layers - 1], *curvature = rows->curvature, value = (V){0};
    const V *f = rows->outputs, *counts = NAME(counts)(rows, 0);
    switch (model->likelihood) {
    case GAUSSIAN:
        NAME(add_squares)(rows, beta, residual, NULL, errors);
        for (int o = 0; o < K && order > 1; o++, curvature += apart)
            for (int v = 0; v < nv; v++)
                curvature[v] = (REAL)(beta[model->level[o]] * model->relative[o]) *
                               NAME(counts)(rows, o)[v];
        break;
    case STUDENT_T: { /* s (nu + K) / 2 ln(1 + sum_o tau_o error_o^2 / nu) */
        REAL nu = (REAL)model->degrees_of_freedom, total = nu + (REAL)K;
        for (int v = 0; v < nv; v++) {
            V delta = (V){0}, *r = residual + v, *pair = curvature + v;
            for (int o = 0; o < K; o++) {
                V error = f[o * apart + v] - NAME(targets)(rows, o)[v];
                r[o * apart] = (REAL)(beta[model->level[o]] * model->relative[o]) * error;
                delta += r[o * apart] * error;
            }
            V u = total / (nu + delta), weighted = counts[v] * u;
            value += counts[v] * ((REAL)0.5 * total) * NAME(log)(1.0 + delta / nu);
            for (int o = 0; o < K && order > 1; o++) {
                V diagonal = (REAL)(beta[model->level[o]] * model->relative[o]) * weighted;
                if (!exact)
                    pair[o * apart] = diagonal;
                for (int c = o; c < K && exact; c++, pair += apart)
                    *pair = (REAL)(o == c) * diagonal -
                            (REAL)2 / total * u * weighted * r[o * apart] * r[c * apart];
            }
            for (int o = 0; o < K; o++)
                r[o * apart] *= weighted;
        }
        for (int o = 0; o < K; o++, f += apart, residual += apart) {
            V squares = (V){0};
            for (int v = 0; v < nv; v++)
                squares += residual[v] * (f[v] - NAME(targets)(rows, o)[v]);
            errors[model->level[o]] += 0.5 * NAME(sum)(squares) / beta[model->level[o]];
        }
        break;
    }
    case SQUARED_RESIDUALS: /* s / 2 (y exp(f) - f) */
    case POISSON: /* s (exp(f) - y f) */
        for (int o = 0; o < K; o++, f += apart, residual += apart, curvature += apart) {
            const V *y = NAME(targets)(rows, o), *own = NAME(counts)(rows, o), one = NAME(all)(1);
            int poisson = model->likelihood == POISSON;
            REAL share = (REAL)(poisson ? 1.0 : 0.5);
            for (int v = 0; v < nv; v++) {
                V rate = NAME(exp)(NAME(chosen)(f[v] > HIGHEST, NAME(all)(HIGHEST), f[v]));
                V s = share * own[v], event = poisson ? y[v] : one;
                rate *= poisson ? one : y[v];
                value += s * (rate - event * f[v]);
                residual[v] = s * (rate - event);
                if (order > 1)
                    curvature[v] = s * (exact || poisson ? rate : one);
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

#if SINGLE
/* Misfit of classes or counts, and its gradient in all weights if that is not NULL. */
static double NAME(misfit)(const Model *model, const double *theta, double *gradient, double *work)
{
    long k = n_weights(model);
    double value = 0.0;
    float *weights = (float *)work;
    for (long i = 0; i < k; i++)
        weights[i] = (float)theta[i];
    Rows rows = NAME(begin)(model, BLOCK, weights + k);
    for (long i = 0; i < k && gradient; i++)
        gradient[i] = 0.0;
    for (long first = 0; first < model->n; first += BLOCK) {
        NAME(at)(&rows, first);
        NAME(forward)(&rows, weights, gradient != NULL, model->n_layers);
        value += NAME(noise)(&rows, NULL, NULL, 1, 0);
        if (gradient)
            NAME(backward)(&rows, weights, model->n_layers, gradient, 0);
    }
    return value;
}

/* A network of classes or counts with one hidden layer: units can be changed one at a time. */
typedef struct {
    Rows rows;
    float *into, *theta; /* weights into a unit, of the network */
    double misfit, tried;
    V *outputs, *z, *f; /* present outputs; activations of a unit and outputs that are tried */
} NAME(network);
#define Shallow NAME(network)

static Shallow NAME(shallow)(const Joint *joint, const double *q, const double *scale, double *work)
{
    const Model *model = joint->model;
    long k = n_weights(model);
    Shallow net = {.into = (float *)work, .theta = (float *)work + fan_in(model, 0)};
    net.rows = NAME(begin)(model, model->n, net.theta + k);
    for (long i = 0; i < k; i++)
        net.theta[i] = (float)(q[i] * scale[joint->label[i]]);
    NAME(at)(&net.rows, 0);
    NAME(forward)(&net.rows, net.theta, 0, 2);
    net.outputs = net.rows.outputs;
    net.z = net.rows.rest;
    net.f = net.z + net.rows.stride;
    WITHIN(net.f + model->size[2] * net.rows.stride);
    net.misfit = NAME(noise)(&net.rows, NULL, NULL, 1, 0);
    return net;
}

/* Try other weights of a unit; returns the misfit. */
static double NAME(try_unit)(Shallow *net, const Joint *joint, const double *q, const double *scale,
                             int unit)
{
    const Model *model = joint->model;
    int H = model->size[1], K = model->size[2], in = fan_in(model, 0), nv = net->rows.nv;
    long apart = net->rows.stride, stride;
    const V *inputs = NAME(fed)(&net->rows, 0, &stride), *z = net->rows.z[1] + unit * apart;
    const float *from = net->theta + (long)in * H + unit * K;
    for (int a = 0; a < in; a++)
        net->into[a] = (float)(q[a * H + unit] * scale[joint->label[a * H + unit]]);
    NAME(combine)(net->z, apart, 1, net->into, 0, 1, inputs, stride, in, nv, 0);
    NAME(activate)(model->activation, net->z, NULL, NULL, nv, 0);
    for (int o = 0; o < K; o++)
        for (int v = 0; v < nv; v++)
            net->f[o * apart + v] = net->outputs[o * apart + v] + from[o] * (net->z[v] - z[v]);
    net->rows.outputs = net->f;
    return net->tried = NAME(noise)(&net->rows, NULL, NULL, 1, 0);
}

/* Keep the weights that were tried. */
static void NAME(keep_unit)(Shallow *net, const Joint *joint, int unit)
{
    long apart = net->rows.stride, K = joint->model->size[2];
    memcpy(net->rows.z[1] + unit * apart, net->z, sizeof(V) * net->rows.nv);
    for (long o = 0; o < K; o++)
        memcpy(net->outputs + o * apart, net->f + o * apart, sizeof(V) * net->rows.nv);
    net->misfit = net->tried;
}
#endif
