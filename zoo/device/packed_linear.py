"""The names of `zoo_fast.device.packed_linear` that zoo_transformer uses."""

from zoo_fast.device.packed_linear import PackedWeights, packed_weights

__all__ = ["PackedWeights", "packed_weights"]
