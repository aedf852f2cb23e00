"""Transitions of whole positions that accompany those of the dynamics."""

from skbayesnn.inference._scale_moves import ScaleMoves


class Renewals:
    """Gibbs draws of what the energy is conditional on (a transition of `samplers`).

    Parameters
    ----------
    joint : StudentTJoint

    Examples
    --------
    >>> import numpy as np
    >>> from skbayesnn.inference import FreeHyperparameters, Renewals
    >>> from skbayesnn.network import Network
    >>> from skbayesnn.posterior import Hyperparameters, LogUniform, Posterior, weight_groups
    >>> from skbayesnn.posterior import StudentT, StudentTJoint
    >>> from skbayesnn.samplers import start
    >>> network, X, rng = Network((1, 1)), np.zeros((5, 1)), np.random.default_rng(0)
    >>> groups, noise = weight_groups(network, "single"), StudentT.per_output(1)
    >>> posterior = Posterior(network, noise, groups, X, X, np.ones(5))
    >>> free = FreeHyperparameters(np.array([True]), np.array([True]), LogUniform())
    >>> given = free, Hyperparameters(np.ones(1), np.ones(1)), np.zeros(1)
    >>> joint = StudentTJoint(posterior, *given, degrees_of_freedom=(2.5, 5.0))
    >>> phase = start(joint.energy, joint.draw_prior(rng)[None])
    >>> moved = Renewals(joint)(joint.energy, phase, [rng])
    >>> moved.position[0] == phase.position[0]  # precisions stay; factors and weights are new
    array([ True,  True, False, False, False, False, False, False, False, False])
    """

    def __init__(self, joint):
        self.joint = joint

    def __call__(self, energy, phase, rngs):
        """Draw every chain's conditions anew."""
        position = self.joint.renewed(phase.position, rngs)
        return type(phase)(position, phase.momentum, *energy(position))


class Moves:
    """Several transitions one after the other.

    Parameters
    ----------
    moves : sequence of callable
    """

    def __init__(self, *moves):
        self.moves = moves

    def __call__(self, energy, phase, rngs):
        """Each in turn."""
        for move in self.moves:
            phase = move(energy, phase, rngs)
        return phase


def moves_beside(joint, n_sweeps):
    """Transitions that accompany those of the dynamics.

    Parameters
    ----------
    joint : JointPosterior
    n_sweeps : int
        Of `ScaleMoves`, perhaps none.

    Returns
    -------
    Moves
    """
    moves = [ScaleMoves(joint, n_sweeps)] if n_sweeps else []
    return Moves(*moves, *([Renewals(joint)] if joint.n_conditions else []))
