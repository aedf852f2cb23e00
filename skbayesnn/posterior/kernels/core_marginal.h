/* Included by core.c after core_rows.h for every set of instructions, in double and in single
   precision: Gaussian noise with the output layer integrated out. */

/* Sums over rows of z_a z_b, its upper triangle, and z_a y of an output, rows counted. */
static void NAME(add_normal)(const Rows *rows, int output, const V *counts, V *weighted,
                             double *gram, double *moment)
{
    int last = rows->model->n_layers - 1, width = fan_in(rows->model, last);
    long stride;
    const V *z = NAME(fed)(rows, last, &stride);
    for (int a = 0; a < width; a++)
        for (int v = 0; v < rows->nv; v++)
            weighted[a * rows->stride + v] = counts[v] * z[a * stride + v];
    for (int a = 0; a < width && gram; a += TILE)
        NAME(sums)(gram + a * width + a, width, weighted + a * rows->stride, rows->stride,
                   width - a < TILE ? width - a : TILE, z + a * stride, stride, width - a,
                   rows->nv);
    NAME(sums)(moment, 1, weighted, rows->stride, width, NAME(targets)(rows, output), 0, 1,
               rows->nv);
}

/* `integrated` of the output layer, its prior precisions by group; if `gradient` is not NULL with
   that in the hidden weights, and the derivatives in ln alpha and in ln beta, and if `by_factors`
   is not those in ln F of every row and output (which then have counts of their own). In single
   precision it returns 0 where a pivot of the equations is too small for that. */
static int NAME(marginal)(const Joint *joint, const double *theta, const double *alpha,
                          const double *beta, double *value, double *gradient, double *by_alpha,
                          double *by_beta, REAL *by_factors, double *work)
{
    const Model *model = joint->model;
    int last = model->n_layers - 1, width = fan_in(model, last), K = fan_out(model, last);
    int systems = model->n_counts; /* different ones */
    long at = weights_before(model, last), square = (long)width * width, stride;
    const int *label = joint->label + joint->n_sampled;
    int wide = NAME(vectors)(width);
    double *gram = work, *moment = gram + systems * square, *sd = moment + K * width;
    double *errors = sd + width;
    V *system = (V *)(errors + model->n_levels), *spread = system + 2 * width * wide;
    REAL *mean = (REAL *)(spread + systems * width * wide), *weights = mean + width * K;
    Rows rows = NAME(begin)(model, model->n, weights + at);
    long each = width * rows.stride;
    V *weighted = rows.rest, *pulled = weighted + systems * each;
    WITHIN(by_factors ? pulled + each : pulled);
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
    memset(spread, 0, sizeof(V) * systems * width * wide);
    *value = 0.0;
    for (int o = 0; o < K; o++) {
        double tau = beta[model->level[o]] * model->relative[o], log_det, fixed = width;
        double *m = moment + o * width;
        int own = systems > 1 ? o : 0;
        for (int a = 0; a < width; a++)
            sd[a] = 1.0 / sqrt(alpha[label[a * K + o]]);
        if (!NAME(ridge)(gram + own * square, tau, sd, width, SINGLE ? MIN_SINGLE : 0.0, system,
                         m, &log_det))
            return 0;
        *value += 0.5 * (log_det + squared(m, width));
        for (int a = 0; a < width; a++)
            mean[a * K + o] = (REAL)(sd[a] * m[a]);
        if (!gradient)
            continue;
        for (int v = 0; v < wide; v++) {
            V variance = (V){0}, scale = (V){0};
            int some = width - v * LANES < LANES ? width - v * LANES : LANES;
            for (int i = 0; i < some; i++)
                scale[i] = (REAL)(sqrt(tau) * sd[v * LANES + i]);
            for (V *root = system + wide + v; root < system + 2 * width * wide; root += 2 * wide) {
                variance += *root * *root;
                *root *= scale;
            }
            for (int i = 0, a = v * LANES; i < some; i++, a++)
                by_alpha[label[a * K + o]] += 0.5 * (m[a] * m[a] + variance[i] - 1.0);
            fixed -= NAME(sum)(variance);
        }
        /* tau D S^-1 D */
        NAME(combine)(spread + own * width * wide, wide, width, (REAL *)(system + wide), 1,
                      2 * wide * LANES, system + wide, 2 * wide, width, wide, 1);
        by_beta[model->level[o]] += 0.5 * fixed;
    }
    const V *z = NAME(fed)(&rows, last, &stride);
    NAME(summed)(&rows, last, mean, z, stride, rows.outputs, 1, 0);
    memset(errors, 0, sizeof(double) * model->n_levels);
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
        NAME(combine)(pulled, rows.stride, width, (REAL *)(spread + i * width * wide),
                      wide * LANES, 1, weighted + i * each, rows.stride, width, rows.nv, 0);
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
        NAME(combine)(delta, rows.stride, units, (REAL *)spread, wide * LANES, 1, weighted,
                      rows.stride, width, rows.nv, 0);
    NAME(combine)(delta, rows.stride, units, mean, K, 1, rows.outputs, rows.stride, K, rows.nv, 1);
    for (long i = 0; i < units * rows.stride; i += rows.stride)
        for (int v = 0; v < rows.nv; v++)
            delta[i + v] *= rows.slope[last][i + v];
    NAME(backward)(&rows, weights, last, gradient, 0);
    return 1;
}

/* --- noise whose precision tau_o F_no differs between rows ------------------------------------ */

/* The noise network at all rows; `weights` get its own, and ln tau_o for its output biases. */
static Rows NAME(noise_network)(const Joint *joint, const double *theta, const double *beta,
                                int order, REAL *weights)
{
    const Model *model = joint->model, *noise = joint->noise;
    int K = model->size[model->n_layers];
    long k = n_weights(noise) - K;
    Rows rows = NAME(begin)(noise, noise->n, weights + k + K);
    for (long i = 0; i < k; i++)
        weights[i] = (REAL)theta[i];
    for (int o = 0; o < K; o++)
        weights[k + o] = (REAL)log(beta[model->level[o]] * model->relative[o]);
    NAME(at)(&rows, 0);
    NAME(forward)(&rows, weights, order, noise->n_layers);
    return rows;
}

/* Observations that every row stands for: the counts of the model may have further factors
   (`given`), those of the noise network have none. */
static const V *NAME(observations)(const Joint *joint)
{
    return (const V *)DATA(joint->noise ? joint->noise : joint->model, counts);
}

/* Counts s_n F_no of all rows (K, n) and d ln F_no / d ln tau_o. Returns the sum of s ln F, which
   is not to be had of known variances in single precision.

   A noise network gives ln (tau F), which is kept within an interval; known variances v of the
   targets beside the noise make F = 1 / (1 + tau v) (`MeasuredGaussian`). */
static double NAME(factors)(const Joint *joint, const double *beta, const Rows *network,
                            REAL *counts, REAL *follow)
{
    const Model *model = joint->model;
    int nv = (int)(model->n / LANES);
    const V *s = (const V *)DATA(model, counts), *variances = (const V *)DATA(joint, variances);
    const V *observed = NAME(observations)(joint);
    V *F = (V *)counts, *slope = (V *)follow;
    double total = 0.0;
    for (int o = 0; o < model->size[model->n_layers]; o++, F += nv, slope += nv) {
        double tau = beta[model->level[o]] * model->relative[o];
        REAL level = (REAL)log(tau);
        V sum = (V){0};
        for (int v = 0; v < nv && joint->noise; v++) {
            V h = network->outputs[o * network->stride + v], inside = h;
            V low = NAME(all)((REAL)joint->lowest[o]), high = NAME(all)((REAL)joint->highest[o]);
            inside = NAME(chosen)(inside < low, low, inside);
            inside = NAME(chosen)(inside > high, high, inside);
            slope[v] = NAME(chosen)(inside == h, NAME(all)(0), NAME(all)(-1));
            F[v] = s[v] * NAME(exp)(inside - level);
            sum += observed[v] * (inside - level);
        }
        for (int v = 0; v < nv && !joint->noise; v++) {
            V share = (REAL)1 / ((REAL)1 + (REAL)tau * variances[o * nv + v]);
            slope[v] = share - (REAL)1;
            F[v] = s[v] * share;
#if !SINGLE
            sum += s[v] * NAME(log)(share);
#endif
        }
        total += NAME(sum)(sum);
    }
    return total;
}

/* `JointPosterior._likelihood` without normalisers of tau; returns 0 where `marginal` does. */
static int NAME(regression)(const Joint *joint, const double *theta, const double *alpha,
                            const double *beta, double *value, double *gradient, double *by_alpha,
                            double *by_beta, double *work)
{
    const Model *model = joint->model, *noise = joint->noise;
    if (!has_factors(joint)) /* that follow from the position */
        return NAME(marginal)(joint, theta, alpha, beta, value, gradient, by_alpha, by_beta, NULL,
                              work);
    Given own = {*joint, *model};
    int K = model->size[model->n_layers], nv = (int)(model->n / LANES);
    double *by_noise = work;
    REAL *counts = (REAL *)(by_noise + (noise ? n_weights(noise) : 0));
    REAL *follow = counts + K * model->n, *weights = follow + 2 * K * model->n;
    REAL *by_factors = gradient ? follow + K * model->n : NULL;
    own.joint.model = &own.model;
    own.model.n_counts = K;
    DATA(&own.model, counts) = counts;
    Rows network = {0};
    work = (double *)weights;
    if (noise) {
        network = NAME(noise_network)(joint, theta + n_of_means(joint), beta, gradient != NULL,
                                      weights);
        work += n_weights(noise) + rows_doubles(noise, noise->n);
    }
    double log_factors = NAME(factors)(joint, beta, &network, counts, follow);
    if (!NAME(marginal)(&own.joint, theta, alpha, beta, value, gradient, by_alpha, by_beta,
                        by_factors, work))
        return 0;
    *value -= 0.5 * log_factors;
    if (!gradient)
        return 1;
    const V *observed = NAME(observations)(joint), *slope = (const V *)follow;
    V *by = (V *)by_factors, *delta = noise ? network.delta[noise->n_layers - 1] : NULL;
    for (int o = 0; o < K; o++, by += nv, slope += nv) {
        V sum = (V){0};
        for (int v = 0; v < nv; v++) {
            by[v] -= (REAL)0.5 * observed[v];
            sum += by[v] * slope[v];
            if (noise)
                delta[o * network.stride + v] = by[v] + by[v] * slope[v];
        }
        by_beta[model->level[o]] += NAME(sum)(sum);
    }
    if (!noise)
        return 1;
    memset(by_noise, 0, sizeof(double) * n_weights(noise));
    NAME(backward)(&network, weights, noise->n_layers, by_noise, 0);
    memcpy(gradient + n_of_means(joint), by_noise, sizeof(double) * (n_weights(noise) - K));
    return 1;
}
