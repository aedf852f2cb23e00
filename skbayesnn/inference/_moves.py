"""Transitions of whole positions that accompany those of the dynamics."""

from skbayesnn.inference._precision_moves import PrecisionMoves
from skbayesnn.inference._scale_moves import ScaleMoves
from skbayesnn.inference._unit_moves import UnitMoves


class Renewals:
    """Gibbs draws of what the energy is conditional on (a transition of `samplers`)."""

    def __init__(self, joint):
        self.joint = joint

    def __call__(self, energy, phase, rngs):
        """Draw every chain's conditions anew."""
        position = self.joint.renewed(phase.position, rngs)
        return type(phase)(position, phase.momentum, *energy(position))


class Moves:
    """Several transitions one after the other."""

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
        Of `ScaleMoves`. With none only conditions are renewed, as for the classic samplers.
    """
    moves = [ScaleMoves(joint, n_sweeps)] if n_sweeps else []
    if n_sweeps:
        moves.append(PrecisionMoves(joint))
        if joint.posterior.network.hidden_layer_sizes and not joint.integrated:
            # all weights are in the position, which leaves the widths of units open
            moves.append(UnitMoves(joint))
    return Moves(*moves, *([Renewals(joint)] if joint.n_conditions else []))
