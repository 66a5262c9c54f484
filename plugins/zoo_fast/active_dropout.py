"""Dropout layers that are enabled, also in a model in evaluation mode (Monte Carlo dropout)."""

from torch import nn


def active_p(dropout: nn.Dropout) -> float:
    """Return the probability of a dropout layer in its present mode, 0 in evaluation.

    The mode of the layer can differ from that of the module that it belongs to.
    """
    return dropout.p if dropout.training else 0.0
