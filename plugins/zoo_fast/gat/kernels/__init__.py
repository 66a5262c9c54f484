"""Triton kernels of graph attention, imported only if Triton can be used."""
