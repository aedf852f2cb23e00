/* Included by core.c after core_loops.h for every set of instructions: energies of samplers, and
   trajectories. */

/* The terms of `JointPosterior.terms` that `wanted` asks for. `own` holds values and slopes of
   `hyperprior` at the free precisions. */
static void NAME(energy)(const Joint *joint, const double *q, int wanted, double *prior,
                         double *prior_gradient, double *data, double *data_gradient, double *own,
                         double *work)
{
    const Model *model = joint->model;
    int m = joint->n_sampled, n_free = joint->n_free, G = joint->n_groups;
    int n_precisions = G + model->n_levels;
    double *alpha = work, *beta = alpha + G, *by = beta + model->n_levels;
    double *scale = by + n_precisions, *share = scale + G, *squares = share + G, *pull = squares + G;
    double *stretch = pull + G, *errors = stretch + n_free, *theta = errors + model->n_levels;
    memcpy(alpha, joint->fixed, sizeof(double) * n_precisions);
    *prior = 0.0;
    for (int f = 0; f < n_free; f++) {
        alpha[joint->which[f]] = hyperprior(joint, f, q[m + f], stretch + f, own + f, own + n_free + f);
        *prior += own[f];
        prior_gradient[m + f] = own[n_free + f];
    }
    for (int c = 0; c < G; c++) {
        double total = alpha[c] + joint->information[c];
        scale[c] = 1.0 / sqrt(total);
        share[c] = alpha[c] / total;
        squares[c] = pull[c] = 0.0;
    }
    for (int i = 0, c; i < m;) { /* neighbours are mostly of one group */
        double total = 0.0;
        for (c = joint->label[i]; i < m && joint->label[i] == c; i++) {
            theta[i] = q[i] * scale[c];
            total += q[i] * q[i];
            prior_gradient[i] = share[c] * q[i];
        }
        squares[c] += total;
    }
    for (int c = 0; c < G; c++) {
        double excess = share[c] * squares[c] - joint->sizes[c];
        *prior += 0.5 * (share[c] * squares[c] - joint->sizes[c] * log(share[c] / (2.0 * M_PI)));
        by[c] = 0.5 * (1.0 - share[c]) * excess;
    }
    for (int f = 0; f < joint->n_free_alpha; f++)
        prior_gradient[m + f] += by[joint->which[f]] * stretch[f];
    memset(by, 0, sizeof(double) * n_precisions);
    double *rest = theta + most(n_weights(model), m), *natural = wanted == VALUE ? NULL : data_gradient;
    if (natural)
        memset(natural, 0, sizeof(double) * (m + n_free));
    if (joint->integrated) {
        int done = wanted == FORCE && joint->single &&
                   JOIN(regression_single, ISA)(joint, theta, alpha, beta, data, natural, by, by + G, rest);
        if (!done) {
            memset(by, 0, sizeof(double) * n_precisions);
            NAME(regression)(joint, theta, alpha, beta, data, natural, by, by + G, rest);
        }
    } else if (wanted == FORCE && joint->single) {
        JOIN(force_single, ISA)(model, theta, natural, rest);
        *data = 0.0;
    } else {
        *data = NAME(evaluate)(model, theta, beta, 0, errors, natural, NULL, rest);
        for (int l = 0; l < model->n_levels; l++)
            by[G + l] = beta[l] * errors[l];
    }
    for (int o = 0; o < model->size[model->n_layers] && model->likelihood == GAUSSIAN; o++) {
        double tau = beta[model->level[o]] * model->relative[o];
        *data -= 0.5 * model->n_counted * log(tau / (2.0 * M_PI));
        by[G + model->level[o]] -= 0.5 * model->n_counted;
    }
    if (!natural)
        return;
    for (int i = 0, c; i < m;) {
        double total = 0.0;
        for (c = joint->label[i]; i < m && joint->label[i] == c; i++) {
            total += theta[i] * natural[i];
            natural[i] *= scale[c];
        }
        pull[c] += total;
    }
    for (int c = 0; c < G; c++)
        by[c] -= 0.5 * share[c] * pull[c];
    for (int f = 0; f < n_free; f++)
        natural[m + f] = by[joint->which[f]] * stretch[f];
}

/* `NearPrecisions.change`, with what `energy` leaves in `own`; from the gradient its own is subtracted,
   `of_first` times, if that is not NULL. */
static double NAME(near)(const Joint *joint, const double *q, const double *own, double *gradient)
{
    const Tempering *t = joint->tempering;
    double total = 0.0;
    for (int f = 0, i = joint->n_sampled; f < joint->n_free; f++, i++) {
        double away = (q[i] - t->centre[f]) / t->scale[f], small = exp(-fabs(away));
        double steep = copysign((1.0 - small) / (1.0 + small), away) / t->scale[f];
        total += own[f] - fabs(away) - 2.0 * log1p(small) - log(t->scale[f]);
        if (gradient)
            gradient[i] -= t->of_first * (own[joint->n_free + f] - steep);
    }
    return total;
}

/* The sum of both parts, and of their gradients if these are wanted; `Tempered` if that is. */
static void NAME(total)(const Joint *joint, const double *q, int wanted, double *value,
                        double *gradient, double *work)
{
    int d = joint->n_sampled + joint->n_free;
    const Tempering *t = joint->tempering;
    double of_prior = t ? t->of_prior : 1.0, of_data = t ? t->of_data : 1.0, prior;
    double *by_prior = work, *by_data = by_prior + d, *own = by_data + d;
    work = own + 2 * joint->n_free;
    NAME(energy)(joint, q, wanted, &prior, by_prior, value, by_data, own, work);
    *value = of_prior * prior + of_data * *value;
    for (int i = 0; i < d && wanted != VALUE; i++)
        gradient[i] = of_prior * by_prior[i] + of_data * by_data[i];
    if (t && t->of_first != 0.0)
        *value -= t->of_first * NAME(near)(joint, q, own, wanted == VALUE ? NULL : gradient);
}

static void NAME(value)(const Joint *joint, const double *q, double *value, double *gradient,
                        double *work)
{
    Given own;
    joint = given(&own, joint, q, &work);
    NAME(total)(joint, q, gradient ? ALL : VALUE, value, gradient, work);
}

/* F^T x of a matrix, or of a diagonal one. */
static void NAME(mapped)(const double *F, int dense, int d, const double *x, double *out)
{
    for (int i = 0; i < d; i++)
        out[i] = dense ? 0.0 : F[i] * x[i];
    for (int j = 0; j < d && dense; j++, F += d)
        for (int i = 0; i < d; i++)
            out[i] += F[i] * x[j];
}

/* Forces in single precision are as good as any: where a trajectory ends the energy is exact, and
   any force that depends on the position alone leaves steps reversible and volumes as they are. */
static void NAME(leapfrog)(const Joint *joint, double *q, double *p, double *value, double *gradient,
                           double step_size, long n_steps, const double *factor, int dense,
                           double unstable, double *work)
{
    int d = joint->n_sampled + joint->n_free, rough = joint->single && n_steps > 0;
    Given own;
    joint = given(&own, joint, q, &work);
    double *force = work, *velocity = force + d, *slope = velocity + d, known = *value;
    double *transposed = slope + d;
    work = dense ? transposed + (long)d * d : transposed;
    for (long i = 0; i < d && dense; i++)
        for (long j = 0; j < d; j++)
            transposed[j * d + i] = factor[i * d + j];
    double initial = known + 0.5 * squared(p, d);
    if (gradient && !rough)
        slope = gradient;
    else
        NAME(total)(joint, q, FORCE, &known, slope, work);
    NAME(mapped)(factor, dense, d, slope, force);
    for (long step = 0; step < n_steps; step++) {
        for (int i = 0; i < d; i++)
            p[i] -= 0.5 * step_size * force[i];
        NAME(mapped)(dense ? transposed : factor, dense, d, p, velocity);
        for (int i = 0; i < d; i++)
            q[i] += step_size * velocity[i];
        NAME(total)(joint, q, FORCE, value, slope, work);
        NAME(mapped)(factor, dense, d, slope, force);
        for (int i = 0; i < d; i++)
            p[i] -= 0.5 * step_size * force[i];
        if (rough ? !isfinite(squared(p, d)) : !(*value + 0.5 * squared(p, d) - initial < unstable)) {
            *value = INFINITY;
            return;
        }
    }
    if (rough)
        NAME(total)(joint, q, gradient ? ALL : VALUE, value, gradient, work);
    if (rough && !(*value + 0.5 * squared(p, d) - initial < unstable))
        *value = INFINITY;
}
