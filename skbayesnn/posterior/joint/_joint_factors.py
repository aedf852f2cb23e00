"""Joint posteriors with known errors of the targets, input-dependent and Student-t noise.

In all of them the noise is Gaussian with a factor of its precision for every row. The factors
follow from the known errors or a second network, or belong to the position: Student-t noise is a
scale mixture of Gaussian noise.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from skbayesnn.network import Network, forward, hessian, outputs, vector_jacobian
from skbayesnn.posterior.joint._coordinates import Coordinates
from skbayesnn.posterior.joint._joint import Derivatives, JointPosterior
from skbayesnn.posterior.priors._weight_groups import WeightGroups, sums_by


def _rows_of(posterior, precision):
    """Targets with individual precisions ``(..., n, n_outputs)`` as factors."""
    ones = np.ones(posterior.network.n_outputs)
    return posterior.targets()._replace(precision=ones, factors=precision)


@dataclass(frozen=True)
class MeasuredJoint(JointPosterior):
    """Joint posterior with `MeasuredGaussian` noise: known errors on top of a noise level."""

    def _likelihood(self, place):
        rows, share = self._rows(place), self._shares(place)
        found, by_row = self._of_rows(place, rows)
        weight = self.posterior.sample_weight
        value = found.value - 0.5 * np.sum(weight @ np.log(rows.factors), axis=-1)
        slope = (by_row.log_factors - 0.5 * weight[:, None]) * share  # d ln(tau F) / d ln tau = F
        by_beta = sums_by(self.posterior.likelihood.membership, np.sum(slope, axis=-2))
        return Derivatives(value, found.theta, found.log_alpha, by_beta)

    def _rows(self, place):
        tau = self.posterior.likelihood.precisions(place.hyper.beta)[..., None, :]
        return _rows_of(self.posterior, tau * self._shares(place))

    def _level_information(self, place):
        """Expected second derivative ``1/2 sum_no s_n F_no^2`` in ``ln beta_l``."""
        weight = self.posterior.sample_weight
        return sums_by(
            self.posterior.likelihood.membership, 0.5 * (weight @ self._shares(place) ** 2)
        )

    def _shares(self, place):
        """Shares ``F`` of `MeasuredGaussian`, ``(..., n, n_outputs)``."""
        posterior = self.posterior
        return posterior.likelihood.shares(posterior.targets(), place.hyper.beta)[1]


@dataclass(frozen=True)
class InputDependentJoint(JointPosterior):
    """Joint posterior with noise whose log precision is a function of the inputs.

    The log precision is ``h = ln beta_o + g_o(x; v)`` with a second network ``g``, whose output
    biases are replaced by the level of constant noise with its prior. Values outside the interval
    of that prior are clipped to it. The position holds the weights ``v`` after those of the means.
    Sampling averages over the weights of both networks, so that neither likelihood has to be
    integrated over the weights of the other network as in the evidence (MacKay 1992, chapter 6).

    The posterior of the means has `Gaussian` noise, one level per output. The last of
    ``noise_groups`` are the output biases of the noise network.
    """

    noise_network: Network | None = None
    noise_groups: WeightGroups | None = None

    @cached_property
    def further_weights(self):
        """Labels and group names of the noise network's weights without its output biases."""
        groups, n_outputs = self.noise_groups, self.noise_network.n_outputs
        return groups.labels[:-n_outputs], [f"noise_{name}" for name in groups.names[:-1]]

    @property
    def further_directions(self):
        """Directions of all noise groups, of the hidden ones, and of these against the others."""
        hidden_part = self.noise_groups.labels[: self.noise_network.slices[-1].start]
        n_means, n_noise = len(self.posterior.groups.names), len(self.noise_groups.names) - 1
        hidden = np.isin(np.arange(n_noise), hidden_part).astype(float)
        several = [np.ones(n_noise)]
        if len(hidden_part):
            several += [hidden, 2.0 * hidden - 1.0]
        return [np.concatenate([np.zeros(n_means), some]) for some in several]

    def drawn_coordinates(self, draws):
        """Coordinates ``eta`` of draws with fields ``alpha`` and ``noise``, ``(..., n_free)``."""
        return self.coordinates(draws.alpha, np.exp(draws.noise[..., self.n_noise :]))

    # --- the noise network -----------------------------------------------------------------------

    def noise_weights(self, q):
        """Weights of the noise network with output biases ``ln beta``, ``(..., k)``."""
        return self._noise_weights(self.place(q))

    noise_state = noise_weights

    def noise_functions(self, state, X):
        """Log noise precisions of networks at inputs, ``(..., n, n_outputs)``."""
        return np.clip(outputs(self.noise_network, state, X), *self.free.beta_prior.log_range)

    def typical_hyper(self, q):
        """Precisions at positions, with geometric means of the noise precisions over the rows."""
        posterior = self.posterior
        h = self.noise_functions(self.noise_state(q), posterior.X)
        typical = np.exp((posterior.sample_weight @ h) / posterior.n_rows)
        hyper = self.place(q).hyper
        return hyper._replace(beta=typical / posterior.likelihood.relative)

    def _noise_weights(self, place):
        v = place.theta[..., self.n_mean :]
        bias = np.log(self.posterior.likelihood.precisions(place.hyper.beta))
        return np.concatenate([v, bias], axis=-1)

    def _log_precisions(self, place):
        """Log precision of the noise of every row and output, ``(..., n, n_outputs)``."""
        h = outputs(self.noise_network, self._noise_weights(place), self.posterior.X)
        return np.clip(h, *self.free.beta_prior.log_range)

    def _rows_of_log_precision(self, place, h):
        """Targets with the precisions of their noise, given those that the network makes."""
        return _rows_of(self.posterior, np.exp(h))

    def _rows(self, place):
        return self._rows_of_log_precision(place, self._log_precisions(place))

    # --- energy and curvature --------------------------------------------------------------------

    def _likelihood(self, place):
        posterior, s = self.posterior, self.posterior.sample_weight
        trace = forward(self.noise_network, self._noise_weights(place), posterior.X, 1)
        h = np.clip(trace.outputs, *self.free.beta_prior.log_range)
        means, rows = self._of_rows(place, self._rows_of_log_precision(place, h))
        value = means.value - 0.5 * np.sum(s @ h, axis=-1)
        slope = (rows.log_factors - 0.5 * s[:, None]) * (h == trace.outputs)
        by_noise = vector_jacobian(trace, slope)
        by_theta = np.concatenate([means.theta, by_noise[..., : self.n_noise]], axis=-1)
        by_beta = sums_by(self.posterior.likelihood.membership, by_noise[..., self.n_noise :])
        return Derivatives(value, by_theta, means.log_alpha, by_beta)

    def _data_hessian(self, theta, place):
        """Blocks of the network of the means and of the noise network."""
        posterior, m, n, k = self.posterior, self.n_mean, self.n_sampled, theta.shape[-1]
        trace = forward(posterior.network, self._of_means(theta), posterior.X, 1)
        curvature = self._rows(place).counts
        matrix, index = np.zeros((*theta.shape, k)), np.r_[:m, n:k]
        of_means = hessian([(trace, curvature, curvature)], exact=False)
        matrix[..., index[:, None], index] = of_means
        trace = forward(self.noise_network, self._noise_weights(place), posterior.X, 1)
        low, high = self.free.beta_prior.log_range
        inside = (low < trace.outputs) & (trace.outputs < high)
        curvature = 0.5 * posterior.sample_weight[:, None] * inside
        of_noise = hessian([(trace, curvature, curvature)], exact=False)
        matrix[..., m:n, m:n] = of_noise[..., : self.n_noise, : self.n_noise]
        return matrix


@dataclass(frozen=True)
class StudentTJoint(JointPosterior):
    """Joint posterior with Student-t noise, and perhaps limits among the targets.

    Given a factor ``F_n`` of the precision of every row, the noise is Gaussian and the output layer
    can be integrated out. The conditions of a position are these factors, the degrees of freedom
    and the output layer. The dynamics is conditional on the factors, and `renewed` makes Gibbs
    draws of all conditions in turn from their exact conditional distributions (Geweke 1993). Given
    the output layer the factors of the rows are independent of each other, and the degrees of
    freedom are drawn with the factors integrated out. With limits (`CensoredStudentT`) there are
    no factors, and the position holds all weights.

    A row of weight ``s`` stands for ``s`` observations, each with its own factor from a Gamma
    distribution of shape and rate ``nu/2``. Only their sum ``s_n F_n`` matters. Given residuals the
    sum has a Gamma distribution of shape ``s (nu + p)/2`` and rate ``(nu + delta_n)/2``, for any
    ``s``.

    The degrees of freedom of the likelihood affect the metric only; a priori all the values
    ``degrees_of_freedom`` are equally probable.
    """

    degrees_of_freedom: tuple = ()

    state_names = ("degrees_of_freedom",)

    @cached_property
    def n_factors(self):
        """Number of rows, each of which has a factor; 0 with limits."""
        return len(self.posterior.X) if self.posterior.likelihood.conjugate else 0

    @cached_property
    def n_conditions(self):
        """Number of conditions in a position."""
        return self.n_factors + 1 + self.posterior.network.n_weights - self.n_mean

    @cached_property
    def compiled(self):
        """Compiled twin of the energy; ``None`` for limits and fixed levels."""
        return super().compiled if np.all(self.free.beta) else None

    # --- positions -------------------------------------------------------------------------------

    def place(self, q):
        """Decompose positions; precisions of fixed noise levels are those of the scale."""
        place = super().place(q)
        beta = self._scale_precisions(place.hyper.beta, place.conditions[..., self.n_factors, None])
        return place._replace(hyper=place.hyper._replace(beta=beta))

    def _scale_precisions(self, beta, nu):
        """Convert the precisions of fixed noise levels to precisions of the scale."""
        ratio = nu / (nu - 2.0) / self.posterior.likelihood.variance_factor
        return np.where(self.free.beta, beta, self.fixed.beta * ratio)

    def position(self, theta, hyper):
        """Positions of weights ``(..., k)`` and precisions, with conditions still to be renewed."""
        lead = theta.shape[:-1]
        factors = np.ones((*lead, self.n_factors))
        nu = np.full((*lead, 1), self.posterior.likelihood.degrees_of_freedom)
        moving = super().position(theta, hyper)
        return np.concatenate([moving, factors, nu, theta[..., self.n_sampled :]], axis=-1)

    def draw_weights(self, eta, rng):
        """Draw weights from the prior as the base class; the conditions are still to be renewed."""
        q = super().draw_weights(eta, rng)
        lead = eta.shape[:-1]
        factors = np.ones((*lead, self.n_factors))
        nu = rng.choice(self.degrees_of_freedom, (*lead, 1))
        alpha = Coordinates.place(self, q).hyper.alpha  # without conditions
        sd = self.groups.expand(alpha)[..., self.n_sampled :] ** -0.5
        return np.concatenate([q, factors, nu, sd * rng.standard_normal(sd.shape)], axis=-1)

    def complete_weights(self, q, rngs=None):
        """All weights ``(..., k)``, including those of the output layer in the position."""
        place = self.place(q)
        outer = place.conditions[..., self.n_factors + 1 :]
        return self._of_means(np.concatenate([place.theta, outer], axis=-1))

    def noise_state(self, q):
        """Degrees of freedom ``(..., 1)``."""
        return self._degrees_of_freedom(q)

    def _degrees_of_freedom(self, q):
        place = self.dimension + self.n_factors
        return q[..., place : place + 1]

    # --- the energy given the conditions ---------------------------------------------------------

    def _likelihood(self, place):
        if self.n_factors:
            return self._of_rows(place, self._rows(place))[0]
        likelihood = self.posterior.likelihood
        likelihood = replace(likelihood, degrees_of_freedom=place.conditions[..., 0])
        given = replace(self, posterior=replace(self.posterior, likelihood=likelihood))
        return JointPosterior._likelihood(given, place)

    def _rows(self, place):
        factors = place.conditions[..., : self.n_factors, None]
        return super()._rows(place)._replace(factors=factors)

    # --- the conditions --------------------------------------------------------------------------

    def misfit(self, q):
        """Minus log likelihood given all weights, precisions and degrees of freedom, ``(...)``."""
        f, place = self._outputs(q), self.place(q)
        return self._misfit(f, place, place.hyper.beta, self._degrees_of_freedom(q)[..., 0])

    def _outputs(self, q):
        """Outputs of the network of the means at all rows, ``(..., n, n_outputs)``."""
        return outputs(self.posterior.network, self.complete_weights(q), self.posterior.X)

    def _misfit(self, f, place, beta, nu):
        """Minus log likelihood of outputs; ``beta`` and ``nu`` may have more leading axes."""
        posterior = self.posterior
        likelihood = replace(posterior.likelihood, degrees_of_freedom=nu)
        value = likelihood.misfit(f, posterior.targets(), beta).value
        return value - likelihood.log_normaliser(beta, posterior.n_rows)

    def _squared_distances(self, f, place, beta):
        """Squared residuals in squared scales of the noise, summed over outputs, ``(..., n)``."""
        precision = self.posterior.likelihood.precisions(beta)[..., None, :]
        return np.sum(precision * (f - self.posterior.y) ** 2, axis=-1)

    def density(self, phase):
        """Minus log posterior density of all weights, the factors integrated out, ``(...)``."""
        place = self.place(phase.position)
        outer = place.conditions[..., self.n_factors + 1 :]
        alpha = self.groups.expand(place.hyper.alpha)[..., self.n_sampled :]
        prior = 0.5 * np.sum(alpha * outer**2 - np.log(alpha / (2.0 * np.pi)), axis=-1)
        rest = self._prior(place, self.precision_map.derivatives(place.eta)[0])[0]
        return rest + prior + self.misfit(phase.position)

    def renewed(self, q, rngs, keep_outputs=False):
        """Update the conditions of positions by Gibbs draws, for each chain from its generator.

        The order is: the output layer given the factors, unless it is kept; the degrees of freedom
        given all weights; the factors given both.
        """
        q, (posterior, n_rows) = q.copy(), (self.posterior, self.n_factors)
        if self.integrated and not keep_outputs:
            drawn = super().complete_weights(q, rngs)
            q[:, self.dimension + n_rows + 1 :] = drawn[:, self.n_mean :]
        f, place = self._outputs(q), self.place(q)
        beta, grid = place.hyper.beta, np.array(self.degrees_of_freedom)
        scales = self._scale_precisions(beta, grid[:, None, None])
        values = self._misfit(f, place, scales, grid[:, None]).T
        shares = np.exp(np.min(values, axis=-1, keepdims=True) - values)
        levels = np.cumsum(shares, axis=-1)
        uniform = np.array([rng.random() for rng in rngs])
        nu = grid[np.sum(levels < uniform[:, None] * levels[:, -1:], axis=-1)]
        q[:, self.dimension + n_rows] = nu
        if not n_rows:
            return q
        delta = self._squared_distances(f, place, self._scale_precisions(beta, nu[:, None]))
        s = posterior.sample_weight
        shape = 0.5 * s * (nu[:, None] + posterior.network.n_outputs)
        gamma = np.stack([rng.standard_gamma(a) for rng, a in zip(rngs, shape, strict=True)])
        q[:, self.dimension : self.dimension + n_rows] = 2.0 * gamma / (nu[:, None] + delta) / s
        return q


@dataclass(frozen=True)
class InputDependentStudentTJoint(StudentTJoint, InputDependentJoint):
    """Joint posterior with Student-t noise whose scale is a function of the inputs.

    The noise of a target is ``e / (exp(h) F)^(1/2)`` with a standard normal ``e``, the output ``h``
    of the noise network (`InputDependentJoint`) and a factor ``F`` of the row with a Gamma
    distribution (`StudentTJoint`). Constant noise is the limit of a noise network without weights,
    Gaussian noise that of many degrees of freedom. Noise levels, one for every output, are those of
    the scale, also where they are fixed.
    """

    compiled = JointPosterior.compiled
    state_names = ()

    def noise_state(self, q):
        """Weights of the noise network, and degrees of freedom, ``(..., k + 1)``."""
        return np.concatenate([self.noise_weights(q), self._degrees_of_freedom(q)], axis=-1)

    def _scale_precisions(self, beta, nu):
        return beta

    def noise_functions(self, state, X):
        """Log precisions as in `InputDependentJoint`."""
        return InputDependentJoint.noise_functions(self, state[..., :-1], X)

    def drawn_coordinates(self, draws):
        """Coordinates ``eta`` as in `InputDependentJoint`."""
        return self.coordinates(draws.alpha, np.exp(draws.noise[..., self.n_noise : -1]))

    def _rows_of_log_precision(self, place, h):
        factors = place.conditions[..., : self.n_factors, None]
        return _rows_of(self.posterior, factors * np.exp(h))

    def _rows(self, place):
        return InputDependentJoint._rows(self, place)

    def _likelihood(self, place):
        return InputDependentJoint._likelihood(self, place)

    def _misfit(self, f, place, beta, nu):
        h, ones = self._log_precisions(place), np.ones_like(beta)
        scaled = (f - self.posterior.y) * np.exp(0.5 * h)
        targets = self.posterior.targets()
        targets = targets._replace(y=np.zeros_like(targets.y))
        likelihood = replace(self.posterior.likelihood, degrees_of_freedom=nu)
        value = likelihood.misfit(scaled, targets, ones).value
        value -= likelihood.log_normaliser(ones, self.posterior.n_rows)
        return value - 0.5 * np.sum(targets.weight @ h, axis=-1)

    def _squared_distances(self, f, place, beta):
        return np.sum(np.exp(self._log_precisions(place)) * (f - self.posterior.y) ** 2, axis=-1)
