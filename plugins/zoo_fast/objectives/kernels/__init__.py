"""Triton kernels of objectives, imported only if Triton can be used."""
