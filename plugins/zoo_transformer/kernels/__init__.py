"""Triton kernels of Transformer blocks, imported only if Triton can be used."""
