/* Included by core.c after core_marginal.h for every set of instructions, in double and in single precision:
   Gaussian noise whose precision tau_o F_no differs between rows. */

/* The noise network at all rows; `weights` get its own, and ln tau_o for its output biases. */
static Rows NAME(noise_network)(const Joint *joint, const double *theta, const double *beta, int order,
                                REAL *weights)
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

/* Counts s_n F_no of all rows (K, n) and d ln F_no / d ln tau_o. Returns the sum of s ln F, which is not to
   be had of known variances in single precision.

   A noise network gives ln (tau F), which is kept within an interval; known variances v of the
   targets beside the noise make F = 1 / (1 + tau v) (`MeasuredGaussian`). */
static double NAME(factors)(const Joint *joint, const double *beta, const Rows *network, REAL *counts,
                            REAL *follow)
{
    const Model *model = joint->model;
    int nv = (int)(model->n / LANES);
    const V *s = (const V *)DATA(model, counts), *variances = (const V *)DATA(joint, variances);
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
            sum += s[v] * (inside - level);
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

/* `JointPosterior._likelihood` without normalisers of tau, as `marginal`: returns 0 as that does. */
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
    REAL *counts = (REAL *)(by_noise + (noise ? n_weights(noise) : 0)), *follow = counts + K * model->n;
    REAL *by_factors = gradient ? follow + K * model->n : NULL, *weights = follow + 2 * K * model->n;
    own.joint.model = &own.model;
    own.model.n_counts = K;
    DATA(&own.model, counts) = counts;
    Rows network = {0};
    work = (double *)weights;
    if (noise) {
        network = NAME(noise_network)(joint, theta + n_of_means(joint), beta, gradient != NULL, weights);
        work += n_weights(noise) + rows_doubles(noise, noise->n);
    }
    double log_factors = NAME(factors)(joint, beta, &network, counts, follow);
    if (!NAME(marginal)(&own.joint, theta, alpha, beta, value, gradient, by_alpha, by_beta, by_factors,
                        work))
        return 0;
    *value -= 0.5 * log_factors;
    if (!gradient)
        return 1;
    const V *s = (const V *)DATA(model, counts), *slope = (const V *)follow;
    V *by = (V *)by_factors;
    for (int o = 0; o < K; o++, by += nv, slope += nv) {
        V sum = (V){0};
        for (int v = 0; v < nv; v++) {
            by[v] -= (REAL)0.5 * s[v];
            sum += by[v] * slope[v];
            if (noise)
                network.delta[noise->n_layers - 1][o * network.stride + v] = by[v] + by[v] * slope[v];
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
