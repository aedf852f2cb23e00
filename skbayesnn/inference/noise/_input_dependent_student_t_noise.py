"""Noise model that nests the others: Student-t noise whose scale is a function of the inputs.

The target of a row is ``t = f(x) + e (beta(x) lambda)^(-1/2)`` with ``ln beta_o(x) = level_o +
g_o(x; v)``, ``lambda ~ Gamma(nu/2, rate nu/2)`` and a standard normal ``e``. Constant noise has
``v = 0``, Gaussian noise ``nu`` towards infinity, so that nothing has to be chosen between them.
The priors of the precisions of ``v`` let ``g`` vary by some tenths, and ``ln nu`` is uniform on a
grid. Its posterior is sampled; it has no Laplace approximation.
"""

import numpy as np

from skbayesnn.inference.noise._constant_noise import derived_generator, stacked
from skbayesnn.inference.noise._input_dependent_noise import InputDependentNoise
from skbayesnn.inference.noise._student_t_noise import StudentTNoise
from skbayesnn.posterior import (
    Gamma,
    Hyperparameters,
    Hyperpriors,
    InputDependentStudentTJoint,
    fan_ins,
)

DEGREES_OF_FREEDOM = (2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0)  # of equal prior probability
SHAPE = 1.0  # of the Gamma priors of the precisions of the noise network
OUTPUTS_SMALLER = 4.0  # factor of the prior precision of its output weights
START = 0.1  # standard deviation of the weights of the noise network where chains start


class InputDependentStudentTNoise(InputDependentNoise):
    """Student-t noise whose log precision is the output of a second network."""

    has_minima, heavy_tails = False, True
    pose = StudentTNoise.pose
    for_outliers = StudentTNoise.for_outliers

    def joint(self, problem, posed, integrate_outputs):
        """Joint posterior of both networks, in non-centred coordinates."""
        (posterior, settings), plan = posed, self.plan(problem)
        typical, likelihood = self._precisions(plan), posterior.likelihood
        free, fixed, n_means = settings.free, settings.fixed, len(settings.free.alpha)
        priors = Hyperpriors.of([Gamma(SHAPE, SHAPE / value) for value in typical])
        free = type(free)(
            np.append(free.alpha, np.ones(len(typical), dtype=bool)),
            free.beta,
            Hyperpriors.joined([free.alpha_prior, priors, free.beta_prior]),
        )
        grid = tuple(sorted({likelihood.degrees_of_freedom, *DEGREES_OF_FREEDOM}))
        return InputDependentStudentTJoint(
            posterior,
            free,
            fixed._replace(alpha=np.append(fixed.alpha, typical)),
            np.zeros(n_means + len(typical)),
            integrate_outputs,
            *plan,
            grid,
        )

    def starts(self, problem, posed, joint, starts, minima, seeds):
        """Starting points: means trained under constant noise, and nearly constant noise."""
        plan, posterior = self.plan(problem), posed.posterior
        theta, hyper = stacked(starts)
        v = [derived_generator(seed, 1).standard_normal(joint.n_noise) for seed in seeds]
        typical = np.tile(self._precisions(plan), (len(seeds), 1))
        beta = posed.settings.free.beta_prior.clip(posterior.likelihood.precisions(hyper.beta))
        both = theta[:, : joint.n_mean], START * np.stack(v), theta[:, joint.n_mean :]
        return np.hstack(both), Hyperparameters(np.hstack([hyper.alpha, typical]), beta)

    @staticmethod
    def _precisions(plan):
        """Typical prior precision of every weight group of the noise network but its level."""
        network, groups = plan
        of_outputs = np.unique(network.layers(groups.labels)[-1][: network.layer_sizes[-2]])
        values = fan_ins(network, groups)
        values[of_outputs] *= OUTPUTS_SMALLER
        return values[:-1]
