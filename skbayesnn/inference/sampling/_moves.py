"""Transitions of positions that alternate with those of the dynamics."""

from skbayesnn.inference.sampling._scale_moves import ScaleMoves
from skbayesnn.inference.sampling._unit_moves import UnitMoves


class Renewals:
    """Gibbs updates of the variables that the energy conditions on (transition of `samplers`)."""

    def __init__(self, joint):
        self.joint = joint

    def __call__(self, energy, phase, rngs):
        """Redraw the conditioning variables of every chain."""
        position = self.joint.renewed(phase.position, rngs)
        return type(phase)(position, phase.momentum, *energy(position))


class Moves:
    """Composition of several transitions."""

    def __init__(self, *moves):
        self.moves = moves

    def __call__(self, energy, phase, rngs):
        """Apply every transition in turn."""
        for move in self.moves:
            phase = move(energy, phase, rngs)
        return phase


def moves_beside(joint, n_sweeps):
    """Compose the transitions that alternate with those of the dynamics.

    Parameters
    ----------
    joint : JointPosterior
    n_sweeps : int
        Sweeps of `ScaleMoves`. If zero, only the conditioning variables are redrawn, as for the
        classic samplers.
    """
    moves = [ScaleMoves(joint, n_sweeps)] if n_sweeps else []
    if n_sweeps and joint.posterior.network.hidden_layer_sizes and not joint.integrated:
        # all weights are sampled, so that their posterior scales differ between units
        moves.append(UnitMoves(joint))
    return Moves(*moves, *([Renewals(joint)] if joint.n_conditions else []))
