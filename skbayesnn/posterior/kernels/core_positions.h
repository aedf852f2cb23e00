/* Included by core.c after core_loops.h for every set of instructions: energies of samplers,
   trajectories, and other moves. */

/* `PathFromPrior.change`, with values and slopes of `hyperprior` in `own`; from the gradient its
   own is subtracted, `of_first` times, if that is not NULL. */
static double NAME(near)(const Joint *joint, const double *q, const double *own, double *gradient)
{
    double total = 0.0;
    for (int f = 0, i = joint->n_sampled; f < joint->n_free; f++, i++) {
        double scale = joint->first_scale[f], away = (q[i] - joint->first_centre[f]) / scale;
        double small = exp(-fabs(away));
        double steep = copysign((1.0 - small) / (1.0 + small), away) / scale;
        total += own[f] - fabs(away) - 2.0 * log1p(small) - log(scale);
        if (gradient)
            gradient[i] -= joint->of_first * (own[joint->n_free + f] - steep);
    }
    return total;
}

/* Energy of a position: `of_prior` times that of the prior, plus `of_data` times that of the data
   (`JointPosterior.terms`), and its gradient, where `wanted` asks for that. */
static void NAME(total)(const Joint *joint, const double *q, int wanted, double *value,
                        double *gradient, double *work)
{
    const Model *model = joint->model;
    int m = joint->n_sampled, n_free = joint->n_free, G = joint->n_groups, d = m + n_free;
    int n_precisions = G + model->n_levels;
    double prior = 0.0, *alpha = work, *beta = alpha + G, *by = beta + model->n_levels;
    double *scale = by + n_precisions, *share = scale + G, *squares = share + G;
    double *pull = squares + G, *stretch = pull + G, *own = stretch + n_free;
    double *errors = own + 2 * n_free, *pulled = errors + model->n_levels, *theta = pulled + d;
    double *natural = wanted == FORCE || wanted == ALL ? gradient : NULL;
    memcpy(alpha, joint->fixed, sizeof(double) * n_precisions);
    for (int f = 0; f < n_free; f++) {
        alpha[joint->which[f]] =
            hyperprior(joint->free + f, q[m + f], stretch + f, own + f, own + n_free + f);
        prior += own[f];
        pulled[m + f] = own[n_free + f];
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
            pulled[i] = share[c] * q[i];
        }
        squares[c] += total;
    }
    for (int c = 0; c < G; c++) {
        double excess = share[c] * squares[c] - joint->sizes[c];
        prior += 0.5 * (share[c] * squares[c] - joint->sizes[c] * log(share[c] / (2.0 * M_PI)));
        by[c] = 0.5 * (1.0 - share[c]) * excess;
    }
    for (int f = 0; f < joint->n_free_alpha; f++)
        pulled[m + f] += by[joint->which[f]] * stretch[f];
    memset(by, 0, sizeof(double) * n_precisions);
    double *rest = theta + most(n_weights(model), m);
    WITHIN(rest);
    if (natural)
        memset(natural, 0, sizeof(double) * d);
    if (joint->integrated) {
        int done = wanted == FORCE && joint->single &&
                   JOIN(regression_single, ISA)(joint, theta, alpha, beta, value, natural, by,
                                                by + G, rest);
        if (!done) {
            memset(by, 0, sizeof(double) * n_precisions);
            NAME(regression)(joint, theta, alpha, beta, value, natural, by, by + G, rest);
        }
    } else if ((wanted == FORCE || wanted == NEARLY) && joint->single) {
        *value = JOIN(misfit_single, ISA)(model, theta, natural, rest);
    } else {
        *value = NAME(evaluate)(model, theta, beta, 0, errors, natural, NULL, rest);
        for (int l = 0; l < model->n_levels; l++)
            by[G + l] = beta[l] * errors[l];
    }
    for (int o = 0; o < model->size[model->n_layers] && model->likelihood == GAUSSIAN; o++) {
        double tau = beta[model->level[o]] * model->relative[o];
        *value -= 0.5 * model->n_counted * log(tau / (2.0 * M_PI));
        by[G + model->level[o]] -= 0.5 * model->n_counted;
    }
    *value = joint->of_prior * prior + joint->of_data * *value;
    for (int i = 0, c; natural && i < m;) {
        double total = 0.0;
        for (c = joint->label[i]; i < m && joint->label[i] == c; i++) {
            total += theta[i] * natural[i];
            natural[i] *= scale[c];
        }
        pull[c] += total;
    }
    for (int c = 0; c < G; c++)
        by[c] -= 0.5 * share[c] * pull[c];
    for (int f = 0; natural && f < n_free; f++)
        natural[m + f] = by[joint->which[f]] * stretch[f];
    for (int i = 0; natural && i < d; i++)
        natural[i] = joint->of_prior * pulled[i] + joint->of_data * natural[i];
    if (joint->of_first != 0.0)
        *value -= joint->of_first * NAME(near)(joint, q, own, natural);
}

/* The energy of one position, and its gradient if that is not NULL. */
static void NAME(value)(const Joint *joint, const double *q, double *value, double *gradient,
                        double *work)
{
    Given own;
    joint = given(&own, joint, q, &work);
    NAME(total)(joint, q, gradient ? ALL : VALUE, value, gradient, work);
}

/* F x of a diagonal matrix, or of a symmetric one with columns of `nv` vectors. */
static void NAME(mapped)(const double *diagonal, const float *columns, int nv, int d,
                         const double *x, double *out)
{
    if (columns)
        JOIN(times_single, ISA)((JOIN(vec_single, ISA) *)columns, nv, d, x, out);
    for (int i = 0; i < d && !columns; i++)
        out[i] = diagonal[i] * x[i];
}

/* `leapfrog` of the samplers. Forces in single precision are as good as any, and so are
   velocities: where a trajectory ends the energy is exact, and any force that depends on the
   position alone, and any velocity that depends on the momentum alone, leave steps reversible and
   volumes as they are. A metric of some hundred weights in double precision would not fit into the
   cache, and steps would take half as long again. */
static void NAME(leapfrog)(const Joint *joint, double *q, double *p, double *value,
                           double *gradient, double step_size, long n_steps, const double *factor,
                           int dense, double unstable, double *work)
{
    int d = joint->n_sampled + joint->n_free, rough = joint->single && n_steps > 0;
    Given own;
    joint = given(&own, joint, q, &work);
    double *force = work, *velocity = force + d, *slope = velocity + d, known = *value;
    work = slope + d;
    int nv = (d + 4 * SINGLES - 1) / (4 * SINGLES) * 4, width = nv * SINGLES;
    float *columns = dense ? (float *)work : NULL;
    for (long i = 0; i < (long)d * width && dense; i++)
        columns[i] = i % width < d ? (float)factor[i / width * d + i % width] : 0.0f;
    work += (long)d * width / 2;
    WITHIN(work);
    double initial = known + 0.5 * squared(p, d);
    if (gradient && !rough)
        slope = gradient;
    else
        NAME(total)(joint, q, FORCE, &known, slope, work);
    NAME(mapped)(factor, columns, nv, d, slope, force);
    for (long step = 0; step < n_steps; step++) {
        for (int i = 0; i < d; i++)
            p[i] -= 0.5 * step_size * force[i];
        NAME(mapped)(factor, columns, nv, d, p, velocity);
        for (int i = 0; i < d; i++)
            q[i] += step_size * velocity[i];
        NAME(total)(joint, q, FORCE, value, slope, work);
        NAME(mapped)(factor, columns, nv, d, slope, force);
        for (int i = 0; i < d; i++)
            p[i] -= 0.5 * step_size * force[i];
        double kinetic = 0.5 * squared(p, d);
        if (rough ? !isfinite(kinetic) : !(*value + kinetic - initial < unstable)) {
            *value = INFINITY;
            return;
        }
    }
    if (rough)
        NAME(total)(joint, q, gradient ? ALL : VALUE, value, gradient, work);
    if (rough && !(*value + 0.5 * squared(p, d) - initial < unstable))
        *value = INFINITY;
}

/* --- moves beside trajectories ---------------------------------------------------------------- */

/* Metropolis steps along changes of the precisions of groups (`ScaleMoves`). */
static void NAME(rescalings)(const Joint *joint, long n, const double *shifts,
                             const double *log_uniform, double *q, double *value, double *gradient,
                             double *work)
{
    int d = joint->n_sampled + joint->n_free, accepted = 0;
    Given own;
    joint = given(&own, joint, q, &work);
    double *moved = work, here, there;
    NAME(total)(joint, q, NEARLY, &here, NULL, work);
    for (long at = 0; at < n; at++, shifts += joint->n_groups) {
        memcpy(moved, q, sizeof(double) * d);
        double log_volume = rescale(joint, moved, shifts, moved + d);
        if (!isfinite(log_volume))
            continue;
        NAME(total)(joint, moved, NEARLY, &there, NULL, moved + d);
        if (!(log_uniform[at] < here - there + log_volume))
            continue;
        memcpy(q, moved, sizeof(double) * d);
        here = there;
        accepted++;
    }
    if (accepted)
        NAME(total)(joint, q, gradient ? ALL : VALUE, value, gradient, work);
}

/* Elliptical slices of the weights of units (`UnitMoves`). */
static void NAME(unit_slices)(const Joint *joint, long n, long n_tries, const int *unit,
                              const int *chosen, const double *normal, const double *exponential,
                              const double *uniform, double *q, double *value, double *gradient,
                              double *work)
{
    int d = joint->n_sampled + joint->n_free, inside = 0, accepted = 0;
    Given own;
    joint = given(&own, joint, q, &work);
    double *moved = work, *share = moved + d, *scale = share + joint->n_groups, here, there;
    work = scale + joint->n_groups;
    shares(joint, q, share, scale);
    JOIN(network_single, ISA) net;
    if (is_shallow(joint))
        net = JOIN(shallow_single, ISA)(joint, q, scale, work);
    else
        NAME(total)(joint, q, NEARLY, &here, NULL, work);
    for (long at = 0; at < n; at++, uniform += n_tries) {
        int u = chosen[at];
        double level = exponential[at], angle = 2.0 * M_PI * uniform[0];
        double low = angle - 2.0 * M_PI, high = angle;
        level += is_shallow(joint) ? joint->of_data * net.misfit
                                   : without_prior(joint, here, share, q, unit, u);
        memcpy(moved, q, sizeof(double) * d);
        for (long try = 1;; try++) {
            double c = cos(angle), s = sin(angle);
            for (int i = 0; i < joint->n_sampled; i++)
                if (unit[i] == u)
                    moved[i] = q[i] * c + normal[i] / sqrt(share[joint->label[i]]) * s;
            if (is_shallow(joint)) {
                there = JOIN(try_unit_single, ISA)(&net, joint, moved, scale, u);
                inside = joint->of_data * there < level;
            } else {
                NAME(total)(joint, moved, NEARLY, &there, NULL, work);
                inside = without_prior(joint, there, share, moved, unit, u) < level;
            }
            if (inside || try == n_tries)
                break;
            *(angle < 0.0 ? &low : &high) = angle;
            angle = low + (high - low) * uniform[try];
        }
        if (!inside)
            continue;
        memcpy(q, moved, sizeof(double) * d);
        accepted++;
        if (is_shallow(joint))
            JOIN(keep_unit_single, ISA)(&net, joint, u);
        else
            here = there;
    }
    if (accepted)
        NAME(total)(joint, q, gradient ? ALL : VALUE, value, gradient, work);
}
