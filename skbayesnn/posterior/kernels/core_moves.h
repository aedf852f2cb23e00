/* Included by core.c after core_positions.h for every set of instructions: moves of samplers beside
   trajectories. */

/* Make Metropolis steps; returns the number of accepted ones. */
static int NAME(proposals)(const Joint *joint, const Moves *moves, long chain, double *q, double *value,
                           double *work)
{
    int d = joint->n_sampled + joint->n_free, accepted = 0;
    double *moved = work, there;
    for (long at = chain * moves->n; at < (chain + 1) * moves->n; at++) {
        memcpy(moved, q, sizeof(double) * d);
        double log_volume = rescale(joint, moved, moves->shifts + at * joint->n_groups, moved + d);
        if (!isfinite(log_volume))
            continue;
        NAME(total)(joint, moved, VALUE, &there, NULL, moved + d);
        if (!(moves->log_uniform[at] < *value - there + log_volume))
            continue;
        memcpy(q, moved, sizeof(double) * d);
        *value = there;
        accepted++;
    }
    return accepted;
}

/* Networks of one hidden layer, whose units can be changed one at a time. */
typedef struct {
    Rows rows;
    const double *beta;
    double *into, *theta; /* weights into a unit, of the network */
    double misfit, tried;
    V *outputs, *z, *f; /* present outputs; activations of a unit and outputs that are tried */
} NAME(shallow_network);
#define Shallow NAME(shallow_network)

static Shallow NAME(shallow)(const Joint *joint, const double *q, const double *scale, double *work)
{
    const Model *model = joint->model;
    long k = n_weights(model);
    Shallow net = {.into = work, .theta = work + fan_in(model, 0)};
    net.rows = NAME(begin)(model, model->n, net.theta + k);
    for (long i = 0; i < k; i++)
        net.theta[i] = q[i] * scale[joint->label[i]];
    NAME(at)(&net.rows, 0);
    NAME(forward)(&net.rows, net.theta, 0, 2);
    net.outputs = net.rows.outputs;
    net.z = net.rows.rest;
    net.f = net.z + net.rows.stride;
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
    const double *from = net->theta + (long)in * H + unit * K;
    for (int a = 0; a < in; a++)
        net->into[a] = q[a * H + unit] * scale[joint->label[a * H + unit]];
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

/* Sample units by slices; returns the number of changed units. */
static int NAME(slices)(const Joint *joint, const Moves *moves, long chain, double *q, double *value,
                        double *work)
{
    int d = joint->n_sampled + joint->n_free, inside = 0, accepted = 0;
    double of_data = joint->tempering ? joint->tempering->of_data : 1.0;
    const int *unit = moves->unit;
    const double *normal = moves->normal + chain * joint->n_sampled;
    double *moved = work, *share = moved + d, *scale = share + joint->n_groups, there;
    work = scale + joint->n_groups;
    shares(joint, q, share, scale);
    Shallow net;
    if (is_shallow(joint))
        net = NAME(shallow)(joint, q, scale, work);
    for (long at = chain * moves->n; at < (chain + 1) * moves->n; at++) {
        int u = moves->chosen[at];
        const double *place = moves->uniform + at * moves->n_tries;
        double level = moves->exponential[at], angle = 2.0 * M_PI * place[0];
        double low = angle - 2.0 * M_PI, high = angle;
        level += is_shallow(joint) ? of_data * net.misfit : without_prior(joint, *value, share, q, unit, u);
        memcpy(moved, q, sizeof(double) * d);
        for (long try = 1;; try++) {
            double c = cos(angle), s = sin(angle);
            for (int i = 0; i < joint->n_sampled; i++)
                if (unit[i] == u)
                    moved[i] = q[i] * c + normal[i] / sqrt(share[joint->label[i]]) * s;
            if (is_shallow(joint))
                inside = of_data * NAME(try_unit)(&net, joint, moved, scale, u) < level;
            else {
                NAME(total)(joint, moved, VALUE, &there, NULL, work);
                inside = without_prior(joint, there, share, moved, unit, u) < level;
            }
            if (inside || try == moves->n_tries)
                break;
            *(angle < 0.0 ? &low : &high) = angle;
            angle = low + (high - low) * place[try];
        }
        if (!inside)
            continue;
        memcpy(q, moved, sizeof(double) * d);
        accepted++;
        if (is_shallow(joint))
            NAME(keep_unit)(&net, joint, u);
        else
            *value = there;
    }
    return accepted;
}

static void NAME(moves)(const Joint *joint, const Moves *moves, long chain, double *q, double *value,
                        double *gradient, double *work)
{
    int slices = moves->kind == SLICE;
    Given own;
    joint = given(&own, joint, q, &work);
    int accepted = (slices ? NAME(slices) : NAME(proposals))(joint, moves, chain, q, value, work);
    if (accepted && (gradient || slices))
        NAME(total)(joint, q, gradient ? ALL : VALUE, value, gradient, work);
}
