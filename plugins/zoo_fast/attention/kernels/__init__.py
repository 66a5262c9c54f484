"""Triton kernels of attention, imported only if Triton can be used."""
