"""Adapters that violate a law, and the valid one they are based on."""

from torch import nn

from zoo.testing.tiny_adapter import TinyAdapter, TinyAdapterLayer


class _ShiftedLayer(TinyAdapterLayer):
    def reset_parameters(self):
        nn.init.ones_(self.shift)


class ShiftsUntrained(TinyAdapter):
    def build_layer(self, module):
        return _ShiftedLayer(module)


class _UnusedLayer(TinyAdapterLayer):
    def adapt_output(self, module, inputs, output):
        return output


class UnusedParameters(TinyAdapter):
    def build_layer(self, module):
        return _UnusedLayer(module)


class _HalfMergedLayer(TinyAdapterLayer):
    def merge(self, module):
        module.bias += self.shift / 2


class HalfMerged(TinyAdapter):
    def build_layer(self, module):
        return _HalfMergedLayer(module)


class _UnfreezingLayer(TinyAdapterLayer):
    def copy_values(self, module):
        module.weight.requires_grad_(True)


class TrainsTheModel(TinyAdapter):
    def build_layer(self, module):
        return _UnfreezingLayer(module)


class _UnsavedLayer(TinyAdapterLayer):
    offset = 0.0

    def copy_values(self, module):
        self.offset = 0.0 if module.weight.is_meta else 1.0

    def adapt_output(self, module, inputs, output):
        return super().adapt_output(module, inputs, output) + self.offset


class NotSaved(TinyAdapter):
    def build_layer(self, module):
        return _UnsavedLayer(module)


class _SharedLayer(TinyAdapterLayer):
    def __deepcopy__(self, memo):
        return self


class SharedByCopies(TinyAdapter):
    def build_layer(self, module):
        return _SharedLayer(module)


# (law, broken component, valid component)
BROKEN = [
    ("untrained-changes-nothing", ShiftsUntrained, TinyAdapter),
    ("used-parameters", UnusedParameters, TinyAdapter),
    ("merged-equals-applied", HalfMerged, TinyAdapter),
    ("only-adapter-gradients", TrainsTheModel, TinyAdapter),
    ("exact-saving", NotSaved, TinyAdapter),
    ("independent-copies", SharedByCopies, TinyAdapter),
]
