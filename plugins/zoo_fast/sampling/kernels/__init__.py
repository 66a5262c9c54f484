"""Triton kernels of samplers, imported only if Triton can be used."""
