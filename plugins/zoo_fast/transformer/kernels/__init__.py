"""Triton kernels of the Transformer, imported only if Triton can be used."""
