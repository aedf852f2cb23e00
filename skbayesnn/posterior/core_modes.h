/* Included by core.c after core_rows.h for every set of instructions, in double and in single precision:
   the modes where annealing begins. */

#define NOTHING (SINGLE ? 1e-9 : 1e-18) /* shares of modes that do not count */

INLINE void NAME(product_tile)(V *out, const V *m, int nv, const REAL *x, int from, int to,
                               const int W)
{
    V total[4];
    for (int w = 0; w < W; w++)
        total[w] = (V){0};
    for (int j = from; j < to; j++)
        for (int w = 0; w < W; w++)
            total[w] += m[(long)j * nv + w] * x[j];
    for (int w = 0; w < W; w++)
        out[w] = total[w];
}

/* out = sum_j x_j m_j, where rows m_j of a triangle have entries from j on or, `upper`, up to j. */
static void NAME(product)(V *out, const REAL *m, int nv, const REAL *x, int d, int upper)
{
    const V *rows = (const V *)m;
    for (int v = 0; v < nv; v += 4) {
        int W = nv - v < 4 ? nv - v : 4, last = (v + W) * LANES;
        int from = upper ? v * LANES : 0, to = upper || last > d ? d : last;
        switch (W) {
        case 1: NAME(product_tile)(out + v, rows + v, nv, x, from, to, 1); break;
        case 2: NAME(product_tile)(out + v, rows + v, nv, x, from, to, 2); break;
        case 3: NAME(product_tile)(out + v, rows + v, nv, x, from, to, 3); break;
        case 4: NAME(product_tile)(out + v, rows + v, nv, x, from, to, 4); break;
        }
    }
}

/* `Modes.log_density`; if `gradient` is not NULL, its own is subtracted from that `of_first` times. */
static double NAME(modes)(const Joint *joint, const double *q, double *gradient, double *work)
{
    const Tempering *t = joint->tempering;
    int M = t->n_modes, d = joint->n_sampled + joint->n_free, nv = padded(d) / LANES;
    double logs[M], power[M], most = -INFINITY, total = 0.0;
    V *white = (V *)(((uintptr_t)work + 63) & ~(uintptr_t)63), *out = white + M * nv;
    REAL *away = (REAL *)(out + nv);
    for (int m = 0; m < M; m++) {
        for (int j = 0; j < d; j++)
            away[j] = (REAL)(q[j] - t->centre[(long)m * d + j]);
        NAME(product)(white + m * nv, DATA(t, columns) + (long)m * d * padded(d), nv, away, d, 1);
        V squares = (V){0};
        for (int v = 0; v < nv; v++)
            squares += white[m * nv + v] * white[m * nv + v];
        power[m] = t->tails + NAME(sum)(squares);
        logs[m] = t->log_norm[m] - 0.5 * (t->tails + d) * log(power[m] / t->tails);
        most = fmax(most, logs[m]);
    }
    for (int m = 0; m < M; m++)
        total += logs[m] = exp(logs[m] - most);
    for (int m = 0; m < M && gradient; m++) {
        double share = t->of_first * logs[m] / total * (t->tails + d) / power[m];
        const REAL *own = (const REAL *)(white + m * nv), *all = (const REAL *)out;
        if (logs[m] < NOTHING)
            continue;
        NAME(product)(out, DATA(t, whitener) + (long)m * d * padded(d), nv, own, d, 0);
        for (int j = 0; j < d; j++)
            gradient[j] += share * all[j];
    }
    return most + log(total);
}
