/* Included by core.c after core_rows.h in single precision: the forces of trajectories. */

/* Derivatives of the misfit of classes or counts in the outputs (`Likelihood.derivatives`), in the last delta. */
static void NAME(residuals)(const Rows *rows)
{
    const Model *model = rows->model;
    int K = model->size[model->n_layers];
    long apart = rows->stride;
    const V *f = rows->outputs, *counts = NAME(counts)(rows, 0);
    V *residual = rows->delta[model->n_layers - 1];
    for (int v = 0; v < rows->nv && model->likelihood == BERNOULLI; v++)
        residual[v] = counts[v] * (NAME(logistic)(f[v]) - NAME(targets)(rows, 0)[v]);
    for (int v = 0; v < rows->nv && model->likelihood == POISSON; v++) {
        V h = NAME(chosen)(f[v] > 80.0f, NAME(all)(80.0f), f[v]);
        residual[v] = counts[v] * (NAME(exp)(h) - NAME(targets)(rows, 0)[v]);
    }
    for (int v = 0; v < rows->nv && model->likelihood == CATEGORICAL; v++, f++, residual++) {
        V most = f[0], total = (V){0};
        for (int o = 1; o < K; o++)
            most = NAME(chosen)(f[o * apart] <= most, most, f[o * apart]); /* or nan */
        for (int o = 0; o < K; o++)
            total += residual[o * apart] = NAME(exp)(f[o * apart] - most);
        for (int o = 0; o < K; o++)
            residual[o * apart] =
                counts[v] * (residual[o * apart] / total - NAME(targets)(rows, o)[v]);
    }
}

/* The gradient of the misfit of classes or counts in all weights. */
static void NAME(force)(const Model *model, const double *theta, double *gradient, double *work)
{
    long k = n_weights(model);
    float *weights = (float *)work;
    for (long i = 0; i < k; i++)
        weights[i] = (float)theta[i];
    Rows rows = NAME(begin)(model, FORCE_ROWS, weights + k);
    memset(gradient, 0, sizeof(double) * k);
    for (long first = 0; first < model->n; first += FORCE_ROWS) {
        NAME(at)(&rows, first);
        NAME(forward)(&rows, weights, 1, model->n_layers);
        NAME(residuals)(&rows);
        NAME(backward)(&rows, weights, model->n_layers, gradient, 0);
    }
}
