"""Linear layer."""

from torch import nn


class Linear(nn.Linear):
    """A `torch.nn.Linear` that can be created on the meta device without initialisation."""

    def reset_parameters(self) -> None:
        if not self.weight.is_meta:  # no values to initialise
            super().reset_parameters()
